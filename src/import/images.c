/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The members of a crew take one image after the other, so that their number
 * changes neither the result nor which of several bad files is named. */
#include "import/images.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "import/folders.h"
#include "import/hdf.h"
#include "import/picture.h"

enum { IMAGE, LABEL };

typedef struct images {
    import_source_t source;
    const char *root;
    import_folders_t folders;
    picture_fit_t fit;
    crew_t *crew;
    int64_t done; /* samples that were read */
    /* The current read: */
    int64_t end;
    unsigned char *out;
    atomic_llong next;
    pthread_mutex_t lock; /* of what follows */
    int64_t failed;       /* the first image that failed; [end]: none */
    err_t err;
} images_t;

/* ---- the command line ---------------------------------------------------- */

/* Read "H" or "H,W" into *height and *width; width 0: it was not given. */
static err_code_t edges_take(const char *option, const char *text, int *height,
                             int *width, err_t *err)
{
    char *copy = str_dup(text), *comma = strchr(copy, ',');
    int64_t high = 0, wide = 0;
    bool good;

    if (comma != NULL)
        *comma = '\0';
    good = str_to_int(copy, &high) && high >= 1 && high <= PICTURE_EDGE_MAX &&
           (comma == NULL || (str_to_int(comma + 1, &wide) && wide >= 1 &&
                              wide <= PICTURE_EDGE_MAX));
    free(copy);
    if (!good)
        return err_set(err, ERR_USAGE,
                       "%s: expected a number of pixels from 1 to %d, or two "
                       "of them such as 224,320 (height, width), found \"%s\"",
                       option, PICTURE_EDGE_MAX, text);
    *height = (int)high;
    *width = (int)wide;
    return ERR_OK;
}

static err_code_t fit_take(const import_config_t *config, picture_fit_t *fit,
                           err_t *err)
{
    err_code_t rc = ERR_OK;

    fit->channels = config->channels == 0 ? 3 : config->channels;
    if (fit->channels != 1 && fit->channels != 3)
        rc = err_set(err, ERR_USAGE,
                     "--channels: expected 1 (grey) or 3 (red, green, blue), "
                     "found %d",
                     fit->channels);
    if (rc == ERR_OK && config->resize != NULL)
        rc = edges_take("--resize", config->resize, &fit->resize_height,
                        &fit->resize_width, err);
    if (rc == ERR_OK && config->crop != NULL)
        rc = edges_take("--crop", config->crop, &fit->crop_height,
                        &fit->crop_width, err);
    if (fit->crop_width == 0)
        fit->crop_width = fit->crop_height;
    return rc;
}

/* ---- one image ----------------------------------------------------------- */

/* Read image [index] as it is stored in a sample; the caller frees it. */
static err_code_t image_read(const images_t *self, int64_t index,
                             picture_t *out, err_t *err)
{
    char *path = str_printf("%s/%s", self->root, self->folders.files[index]);
    picture_t picture = {0};
    char *data = NULL;
    size_t bytes = 0;
    err_code_t rc = file_read(path, &data, &bytes, err);

    if (rc == ERR_OK) {
        rc = picture_decode(data, bytes, &picture, err);
        if (rc == ERR_OK)
            rc = picture_apply(&self->fit, &picture, err);
        if (rc != ERR_OK)
            err_prefix(err, "%s", path);
    }
    free(data);
    free(path);
    if (rc == ERR_OK)
        *out = picture;
    else
        picture_free(&picture);
    return rc;
}

/* Decode image [index] into its sample. */
static err_code_t image_store(const images_t *self, int64_t index, err_t *err)
{
    const import_field_t *field = &self->source.fields[IMAGE];
    const size_t bytes = import_field_bytes(field);
    picture_t picture = {0};
    err_code_t rc = image_read(self, index, &picture, err);

    if (rc != ERR_OK)
        return rc;
    if (picture.height == field->dims[1] && picture.width == field->dims[2])
        picture_planes(&picture,
                       self->out + (size_t)(index - self->done) * bytes);
    else
        rc = err_set(err, ERR_DATA,
                     "%s/%s: it is %d pixels high and %d wide, but %s is %lld "
                     "high and %lld wide: give all one size by --resize and "
                     "--crop",
                     self->root, self->folders.files[index], picture.height,
                     picture.width, self->folders.files[0],
                     (long long)field->dims[1], (long long)field->dims[2]);
    picture_free(&picture);
    return rc;
}

static void images_work(void *context, int member)
{
    images_t *self = context;

    (void)member;
    for (;;) {
        const int64_t index = atomic_fetch_add(&self->next, 1);
        err_t err = ERR_INIT;

        if (index >= self->end)
            return;
        if (image_store(self, index, &err) == ERR_OK)
            continue;
        pthread_mutex_lock(&self->lock);
        if (index < self->failed) {
            self->failed = index;
            self->err = err;
        }
        pthread_mutex_unlock(&self->lock);
        return;
    }
}

/* ---- the source ---------------------------------------------------------- */

static void images_close(import_source_t *source)
{
    images_t *self = (images_t *)source;

    crew_close(self->crew);
    pthread_mutex_destroy(&self->lock);
    import_folders_free(&self->folders);
    mem_free(self);
}

/* The first image says what all must be. */
static err_code_t fields_set(images_t *self, err_t *err)
{
    import_source_t *source = &self->source;
    picture_t first = {0};
    err_code_t rc = image_read(self, 0, &first, err);

    if (rc != ERR_OK)
        return rc;
    source->fields[IMAGE] =
        (import_field_t){.name = "image",
                         .type = IMPORT_UINT8,
                         .ndim = 3,
                         .dims = {first.channels, first.height, first.width}};
    source->fields[LABEL] =
        (import_field_t){.name = "label", .type = IMPORT_INT32};
    source->field_count = 2;
    source->rows = self->folders.count;
    picture_free(&first);
    return ERR_OK;
}

static err_code_t images_open(const import_config_t *config,
                              import_source_t **out, err_t *err)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg", NULL};
    const int threads = config->threads > 0 ? config->threads : thread_cores();
    images_t *self;
    err_code_t rc;

    if (config->word_count != 1)
        return err_set(err, ERR_USAGE,
                       "convert images: expected one folder, which contains a "
                       "folder for each class, found %d words",
                       config->word_count);
    rc = mem_new(images_t, 1, "a source", &self, err);
    if (rc != ERR_OK)
        return rc;
    pthread_mutex_init(&self->lock, NULL);
    self->source.kind = &import_images;
    self->root = config->words[0];
    rc = fit_take(config, &self->fit, err);
    if (rc == ERR_OK)
        rc = import_folders_list(self->root, endings, &self->folders, err);
    if (rc == ERR_OK)
        rc = fields_set(self, err);
    if (rc == ERR_OK)
        rc = crew_open(threads, "cddp-image", &self->crew, err);
    if (rc == ERR_OK)
        *out = &self->source;
    else
        images_close(&self->source);
    return rc;
}

static err_code_t images_read(import_source_t *source, int64_t rows,
                              void *const *out, err_t *err)
{
    images_t *self = (images_t *)source;
    int32_t *label = out[LABEL];

    self->out = out[IMAGE];
    self->end = self->failed = self->done + rows;
    atomic_store(&self->next, self->done);
    crew_run(self->crew, images_work, self);
    if (self->failed < self->end)
        return err_copy(err, &self->err);
    memcpy(label, self->folders.labels + self->done,
           (size_t)rows * sizeof label[0]);
    self->done += rows;
    return ERR_OK;
}

static err_code_t images_skip(import_source_t *source, int64_t rows, err_t *err)
{
    images_t *self = (images_t *)source;

    (void)err;
    self->done += rows;
    return ERR_OK;
}

static err_code_t images_annotate(import_source_t *source, hid_t file,
                                  const hid_t *sets, err_t *err)
{
    const images_t *self = (const images_t *)source;

    (void)file;
    return import_hdf_names(sets[LABEL], "classes", self->folders.classes,
                            self->folders.class_count, err);
}

const import_kind_t import_images = {.name = "images",
                                     .takes = IMPORT_TAKES_PICTURES,
                                     .open = images_open,
                                     .read = images_read,
                                     .skip = images_skip,
                                     .annotate = images_annotate,
                                     .close = images_close};
