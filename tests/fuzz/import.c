/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "import/picture.h"
#include "import/source.h"

/* ERR_USAGE: an input that chooses no kind. ERR_UNAVAILABLE: a library is
 * missing. */
static const err_code_t allowed[] = {ERR_DATA, ERR_MEMORY, ERR_USAGE,
                                     ERR_UNAVAILABLE, ERR_OK};

/* The header of a packed file may promise larger samples than its bytes are
 * worth memory. */
#define SAMPLE_MOST ((size_t)1 << 20)

/* Read all samples, one at a time. */
static err_code_t samples_read(import_source_t *source, err_t *err)
{
    void *out[IMPORT_FIELDS_MAX] = {NULL};
    err_code_t rc = ERR_OK;

    for (int i = 0; i < source->field_count && rc == ERR_OK; i++) {
        const size_t bytes = import_field_bytes(&source->fields[i]);

        rc = bytes > SAMPLE_MOST ? err_set(err, ERR_MEMORY, "a large sample")
                                 : mem_alloc(bytes, "a sample", &out[i], err);
    }
    for (int64_t row = 0; row < source->rows && rc == ERR_OK; row++)
        rc = source->kind->read(source, 1, out, err);
    for (int i = 0; i < source->field_count; i++)
        mem_free(out[i]);
    return rc;
}

static err_code_t kind_read(const char *name, const char *word, err_t *err)
{
    const import_kind_t *kind = import_kind_find(name);
    const import_config_t config = {.words = &word, .word_count = 1};
    import_source_t *source = NULL;
    err_code_t rc = kind->open(&config, &source, err);

    if (rc != ERR_OK)
        return rc;
    rc = samples_read(source, err);
    kind->close(source);
    return rc;
}

/* Decode and change the size. */
static err_code_t picture_read(const uint8_t *data, size_t bytes, err_t *err)
{
    const picture_fit_t fit = {.resize_height = 9, .channels = 1};
    picture_t picture = {0};
    err_code_t rc = picture_decode(data, bytes, &picture, err);

    if (rc == ERR_OK && (int64_t)picture.height * picture.width < 100000)
        rc = picture_apply(&fit, &picture, err);
    picture_free(&picture);
    return rc;
}

err_code_t fuzz_import(const uint8_t *data, size_t bytes)
{
    const char kind = bytes > 0 ? (char)data[0] : '\0';
    const int fd = memfd_create("import", MFD_CLOEXEC);
    err_t err = ERR_INIT;
    char word[64];
    err_code_t rc;

    if (fd < 0 ||
        (bytes > 1 && write(fd, data + 1, bytes - 1) != (ssize_t)(bytes - 1)))
        abort();
    snprintf(word, sizeof word, "x=/proc/self/fd/%d", fd);
    if (kind == 'n')
        rc = kind_read("npy", word, &err);
    else if (kind == 'i')
        rc = kind_read("idx", word, &err);
    else if (kind == 'z')
        rc = kind_read("npz", word + 2, &err);
    else if (kind == 'f')
        rc = kind_read("cifar100", word + 2, &err);
    else if (kind == 'p')
        rc = picture_read(data + 1, bytes - 1, &err);
    else if (kind == 'c')
        rc = kind_read("csv", word + 2, &err);
    else
        rc = err_set(&err, ERR_USAGE, "no kind");
    fuzz_check(rc, &err, allowed);
    close(fd);
    return rc;
}
