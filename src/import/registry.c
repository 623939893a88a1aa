/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "import/bpe_cutter.h"
#include "import/cifar.h"
#include "import/columns.h"
#include "import/csv.h"
#include "import/images.h"
#include "import/npz.h"
#include "import/picture_decoder.h"
#include "import/text.h"

#include <string.h>

static err_code_t npy_open(const import_config_t *config, import_source_t **out,
                           err_t *err);
static err_code_t npz_open(const import_config_t *config, import_source_t **out,
                           err_t *err);
static err_code_t idx_open(const import_config_t *config, import_source_t **out,
                           err_t *err);
static err_code_t raw_open(const import_config_t *config, import_source_t **out,
                           err_t *err);

static const import_kind_t npy_kind = {.name = "npy",
                                       .open = npy_open,
                                       .read = import_columns_read,
                                       .skip = import_columns_skip,
                                       .close = import_columns_close};

static const import_kind_t idx_kind = {.name = "idx",
                                       .open = idx_open,
                                       .read = import_columns_read,
                                       .skip = import_columns_skip,
                                       .close = import_columns_close};

static const import_kind_t raw_kind = {.name = "raw",
                                       .takes = IMPORT_TAKES_SHAPE,
                                       .open = raw_open,
                                       .read = import_columns_read,
                                       .skip = import_columns_skip,
                                       .close = import_columns_close};

static const import_kind_t npz_kind = {.name = "npz",
                                       .open = npz_open,
                                       .read = import_columns_read,
                                       .skip = import_columns_skip,
                                       .close = import_columns_close};

static const import_kind_t *const kinds[] = {
    &npy_kind,       &npz_kind,        &idx_kind, &import_csv, &import_images,
    &import_cifar10, &import_cifar100, &raw_kind, &import_text};
static const char *const names[] = {"npy",    "npz",     "idx",      "csv",
                                    "images", "cifar10", "cifar100", "raw",
                                    "text",   NULL};

static err_code_t npy_open(const import_config_t *config, import_source_t **out,
                           err_t *err)
{
    static const import_columns_how_t how = {.header = import_npy_header,
                                             .unpack = true};

    return import_columns_open(&npy_kind, &how, config, out, err);
}

static err_code_t idx_open(const import_config_t *config, import_source_t **out,
                           err_t *err)
{
    static const import_columns_how_t how = {.header = import_idx_header,
                                             .unpack = true};

    return import_columns_open(&idx_kind, &how, config, out, err);
}

static err_code_t raw_open(const import_config_t *config, import_source_t **out,
                           err_t *err)
{
    static const import_columns_how_t how = {.header = import_raw_header};

    return import_columns_open(&raw_kind, &how, config, out, err);
}

static err_code_t npz_open(const import_config_t *config, import_source_t **out,
                           err_t *err)
{
#ifdef HAVE_LIBZIP
    return import_npz_open(&npz_kind, config, out, err);
#else
    (void)out;
    return err_set(err, ERR_UNAVAILABLE,
                   "%s: this build cannot read .npz files: install libzip-dev "
                   "(Debian, Ubuntu), then configure with --with-libzip and "
                   "build again; or save the arrays by numpy.save",
                   config->words[0]);
#endif
}

const import_kind_t *import_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const char *const *import_kind_names(void)
{
    return names;
}

#ifdef HAVE_LIBPNG
#define PNG_DECODE picture_png_decode
#else
#define PNG_DECODE NULL
#endif
#ifdef HAVE_LIBJPEG
#define JPEG_DECODE picture_jpeg_decode
#else
#define JPEG_DECODE NULL
#endif

const picture_decoder_t *picture_decoders(void)
{
    static const picture_decoder_t all[] = {
        {"PNG", "\x89PNG\r\n\x1a\n", 8, PNG_DECODE, "libpng", "libpng-dev"},
        {"JPEG", "\xff\xd8\xff", 3, JPEG_DECODE, "libjpeg", "libjpeg-dev"},
        {.name = NULL}};

    return all;
}

const bpe_cutter_t *import_cutter(void)
{
#ifdef HAVE_PCRE2
    return &import_cutter_pcre2;
#else
    return NULL;
#endif
}
