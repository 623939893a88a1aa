/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A file is a row of records: one byte for each label, then the 3072 bytes of
 * an image. The names of the classes are in text files beside, one in a line.
 */
#include "import/cifar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/hdf.h"
#include "import/stream.h"

enum { IMAGE_BYTES = 3 * 32 * 32, LABELS_MAX = 2, CLASSES_MAX = 100 };

/* A label, in the order of the bytes of a record. */
typedef struct label {
    const char *name; /* of its dataset */
    int field;        /* the index of the dataset */
    int classes;
    const char *names; /* the file with their names */
} label_t;

typedef struct cifar {
    import_source_t source;
    const import_config_t *config;
    const label_t *labels;
    int label_count;
    int64_t record; /* bytes */
    char **names[LABELS_MAX];
    import_stream_t *stream; /* NULL: none is open */
    int next;                /* file that is opened next */
    int64_t left;            /* records of the open file not read yet */
    int64_t at;              /* number of its next record */
} cifar_t;

static const label_t labels10[] = {{"label", 1, 10, "batches.meta.txt"}};
static const label_t labels100[] = {
    {"coarse_label", 2, 20, "coarse_label_names.txt"},
    {"label", 1, 100, "fine_label_names.txt"}};

/* ---- opening ------------------------------------------------------------- */

/* Open the next file, and count its records. */
static err_code_t file_next(cifar_t *self, err_t *err)
{
    const char *path;
    int64_t size;
    err_code_t rc;

    if (self->next == self->config->word_count)
        return err_set(err, ERR_DATA, "%s: it was changed while it was read",
                       self->config->words[self->next - 1]);
    path = self->config->words[self->next];
    rc = import_stream_open(path, false, &self->stream, err);
    if (rc != ERR_OK)
        return rc;
    self->next++;
    self->at = 0;
    size = import_stream_size(self->stream);
    self->left = size / self->record;
    if (size == 0 || size % self->record != 0)
        rc = err_set(err, ERR_DATA,
                     "%s: its %lld bytes are no whole number of records of "
                     "%lld bytes: expected a file such as %s of the binary "
                     "version",
                     path, (long long)size, (long long)self->record,
                     self->label_count == 1 ? "data_batch_1.bin" : "train.bin");
    return rc;
}

static void names_free(char **names)
{
    for (int i = 0; names != NULL && names[i] != NULL; i++)
        free(names[i]);
    mem_free(names);
}

/* Divide [text] into lines; an empty one is left out. */
static err_code_t lines_take(char *text, int most, char **out, int *count,
                             err_t *err)
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\r\n")) != NULL) {
        if (*line != '\0' && *count == most)
            return err_set(err, ERR_DATA, "more than %d names of classes",
                           most);
        if (*line != '\0')
            out[(*count)++] = str_dup(line);
    }
    return ERR_OK;
}

/* Read the names of the classes of [label], if their file is beside the first
 * file of records. */
static err_code_t names_read(cifar_t *self, int index, err_t *err)
{
    const label_t *label = &self->labels[index];
    const char *first = self->config->words[0], *slash = strrchr(first, '/');
    char *path =
        str_printf("%.*s%s", slash == NULL ? 0 : (int)(slash - first + 1),
                   first, label->names);
    char *text = NULL;
    int count = 0;
    err_code_t rc = ERR_OK;

    if (access(path, F_OK) != 0)
        goto out;
    rc = mem_new(char *, CLASSES_MAX + 1, "names", &self->names[index], err);
    if (rc == ERR_OK)
        rc = file_read(path, &text, NULL, err);
    if (rc != ERR_OK)
        goto out;
    rc = lines_take(text, label->classes, self->names[index], &count, err);
    if (rc == ERR_OK && count < label->classes)
        rc = err_set(err, ERR_DATA,
                     "expected the names of %d classes, found "
                     "%d",
                     label->classes, count);
    if (rc != ERR_OK)
        err_prefix(err, "%s", path);
out:
    free(text);
    free(path);
    return rc;
}

static void cifar_close(import_source_t *source)
{
    cifar_t *self = (cifar_t *)source;

    import_stream_close(self->stream);
    for (int i = 0; i < self->label_count; i++)
        names_free(self->names[i]);
    mem_free(self);
}

/* Open each file once, to count the samples. */
static err_code_t records_count(cifar_t *self, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < self->config->word_count && rc == ERR_OK; i++) {
        rc = file_next(self, err);
        self->source.rows += self->left;
        import_stream_close(self->stream);
        self->stream = NULL;
    }
    self->next = 0;
    self->left = 0;
    return rc;
}

static err_code_t form_open(const import_kind_t *kind, const label_t *labels,
                            int count, const import_config_t *config,
                            import_source_t **out, err_t *err)
{
    import_field_t *fields;
    cifar_t *self;
    err_code_t rc = mem_new(cifar_t, 1, "a source", &self, err);

    if (rc != ERR_OK)
        return rc;
    self->config = config;
    self->labels = labels;
    self->label_count = count;
    self->record = IMAGE_BYTES + count;
    self->source.kind = kind;
    self->source.field_count = 1 + count;
    fields = self->source.fields;
    fields[0] = (import_field_t){
        .name = "image", .type = IMPORT_UINT8, .ndim = 3, .dims = {3, 32, 32}};
    for (int i = 0; i < count && rc == ERR_OK; i++) {
        import_field_t *field = &fields[labels[i].field];

        snprintf(field->name, sizeof field->name, "%s", labels[i].name);
        field->type = IMPORT_UINT8;
        rc = names_read(self, i, err);
    }
    if (rc == ERR_OK)
        rc = records_count(self, err);
    if (rc == ERR_OK)
        *out = &self->source;
    else
        cifar_close(&self->source);
    return rc;
}

static err_code_t cifar10_open(const import_config_t *config,
                               import_source_t **out, err_t *err)
{
    return form_open(&import_cifar10, labels10, 1, config, out, err);
}

static err_code_t cifar100_open(const import_config_t *config,
                                import_source_t **out, err_t *err)
{
    return form_open(&import_cifar100, labels100, 2, config, out, err);
}

/* ---- reading ------------------------------------------------------------- */

/* Read the next record of the open file into sample [row]. */
static err_code_t record_read(cifar_t *self, int64_t row, void *const *out,
                              err_t *err)
{
    unsigned char begin[LABELS_MAX];
    err_code_t rc = import_stream_exact(
        self->stream, begin, (size_t)self->label_count, "records", err);

    if (rc == ERR_OK)
        rc = import_stream_exact(self->stream,
                                 (char *)out[0] + row * IMAGE_BYTES,
                                 IMAGE_BYTES, "records", err);
    for (int i = 0; i < self->label_count && rc == ERR_OK; i++) {
        const label_t *label = &self->labels[i];

        ((unsigned char *)out[label->field])[row] = begin[i];
        if (begin[i] >= label->classes)
            rc = err_set(err, ERR_DATA,
                         "%s: the %s of its record %lld (counted from 0) is "
                         "%d: expected 0 to %d; is this a file of CIFAR-%d?",
                         import_stream_path(self->stream), label->name,
                         (long long)self->at, begin[i], label->classes - 1,
                         self->label_count == 1 ? 10 : 100);
    }
    self->at++;
    self->left--;
    return rc;
}

static err_code_t cifar_read(import_source_t *source, int64_t rows,
                             void *const *out, err_t *err)
{
    cifar_t *self = (cifar_t *)source;
    err_code_t rc = ERR_OK;

    for (int64_t row = 0; row < rows && rc == ERR_OK; row++) {
        if (self->stream == NULL)
            rc = file_next(self, err);
        if (rc == ERR_OK)
            rc = record_read(self, row, out, err);
        if (rc == ERR_OK && self->left == 0) {
            rc = import_stream_end(self->stream, err);
            import_stream_close(self->stream);
            self->stream = NULL;
        }
    }
    return rc;
}

static err_code_t cifar_skip(import_source_t *source, int64_t rows, err_t *err)
{
    cifar_t *self = (cifar_t *)source;
    err_code_t rc = ERR_OK;

    while (rows > 0 && rc == ERR_OK) {
        int64_t take = 0;

        if (self->stream == NULL)
            rc = file_next(self, err);
        if (rc == ERR_OK) {
            take = rows < self->left ? rows : self->left;
            rc = import_stream_skip(self->stream, take * self->record, err);
        }
        self->at += take;
        self->left -= take;
        rows -= take;
        if (rc == ERR_OK && self->left == 0) {
            import_stream_close(self->stream);
            self->stream = NULL;
        }
    }
    return rc;
}

static err_code_t cifar_annotate(import_source_t *source, hid_t file,
                                 const hid_t *sets, err_t *err)
{
    const cifar_t *self = (const cifar_t *)source;
    err_code_t rc = ERR_OK;

    (void)file;
    for (int i = 0; i < self->label_count && rc == ERR_OK; i++)
        if (self->names[i] != NULL)
            rc = import_hdf_names(sets[self->labels[i].field], "classes",
                                  self->names[i], self->labels[i].classes, err);
    return rc;
}

const import_kind_t import_cifar10 = {.name = "cifar10",
                                      .open = cifar10_open,
                                      .read = cifar_read,
                                      .skip = cifar_skip,
                                      .annotate = cifar_annotate,
                                      .close = cifar_close};

const import_kind_t import_cifar100 = {.name = "cifar100",
                                       .open = cifar100_open,
                                       .read = cifar_read,
                                       .skip = cifar_skip,
                                       .annotate = cifar_annotate,
                                       .close = cifar_close};
