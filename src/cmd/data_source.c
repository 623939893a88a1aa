/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Only the file that is being read is open. All are looked at once before, so
 * that nothing is written if they do not fit together. */
#include "cmd/data_source.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cmd/data_attribute.h"
#include "cmd/data_info.h"
#include "cmd/data_walk.h"
#include "hdf5io/h5.h"
#include "hdf5io/shard.h"
#include "hdf5io/storage.h"
#include "hdf5io/virtual.h"

typedef struct shards {
    import_source_t source;
    const cmd_source_config_t *config;
    int64_t *rows;                       /* samples of each file */
    int next;                            /* file that is opened next */
    hid_t file, sets[IMPORT_FIELDS_MAX]; /* of the open file, or invalid */
    int64_t at, left; /* its next sample, and how many are left */
} shards_t;

/* What a file is found to contain. */
typedef struct look {
    shards_t *self;
    int64_t rows; /* -1: no dataset was seen yet */
    char first[IMPORT_NAME_MAX];
    int found;
    bool title; /* the first file, which says what the fields are */
} look_t;

/* ---- what a file contains ------------------------------------------------ */

/* Is [path], "/a", among "/a,b"? */
static bool named(const char *only, const char *path)
{
    const size_t length = strlen(path + 1);

    while (only != NULL) {
        const char *end = strchr(only, ',');
        const char *name = *only == '/' ? only + 1 : only;
        const size_t bytes = end == NULL ? strlen(name) : (size_t)(end - name);

        if (bytes == length && memcmp(name, path + 1, length) == 0)
            return true;
        only = end == NULL ? NULL : end + 1;
    }
    return false;
}

/* Describe the dataset [path]; *rows: its samples. The caller closes
 * out->stored. HDF5 lock held, as below. */
static err_code_t field_look(hid_t set, const char *path, import_field_t *out,
                             int64_t *rows, err_t *err)
{
    hsize_t dims[H5S_MAX_RANK] = {0};
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    int ndim = -1;
    err_code_t rc = ERR_OK;

    *out = (import_field_t){.type = IMPORT_STORED, .stored = H5I_INVALID_HID};
    if (space >= 0 && type >= 0)
        ndim = H5Sget_simple_extent_dims(space, dims, NULL);
    if (ndim < 0)
        rc = h5_err_set(err, ERR_DATA, "dataset %s is damaged", path);
    else if (ndim == 0 || ndim > IMPORT_DIMS_MAX + 1)
        rc = err_set(err, ERR_DATA,
                     "dataset %s has %d dimensions: expected samples along the "
                     "first of 1 to %d; leave it out by --only",
                     path, ndim, IMPORT_DIMS_MAX + 1);
    else if (hdf5io_storage_points(type))
        rc = err_set(err, ERR_DATA,
                     "dataset %s has values of variable length or references, "
                     "which cannot be copied: leave it out by --only",
                     path);
    else if (strlen(path) > sizeof out->name)
        rc = err_set(err, ERR_DATA,
                     "dataset %s has a name of more than %zu "
                     "bytes",
                     path, sizeof out->name);
    if (rc == ERR_OK) {
        snprintf(out->name, sizeof out->name, "%s", path + 1);
        out->ndim = ndim - 1;
        for (int i = 1; i < ndim; i++)
            out->dims[i - 1] = (int64_t)dims[i];
        *rows = (int64_t)dims[0];
        out->item = H5Tget_size(type);
        out->stored = H5Tcopy(type);
        rc = import_field_check(out, err);
        if (rc != ERR_OK)
            err_prefix(err, "dataset %s", path);
    }
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return rc;
}

/* The index of the field called [name]; -1: none. */
static int field_find(const import_source_t *source, const char *name)
{
    for (int i = 0; i < source->field_count; i++)
        if (strcmp(source->fields[i].name, name) == 0)
            return i;
    return -1;
}

/* Add [field] of the first file, which becomes the source's, or compare with
 * it. */
static err_code_t field_take(look_t *look, import_field_t *field, err_t *err)
{
    import_source_t *source = &look->self->source;
    const char *first = look->self->config->paths[0];
    int index;

    if (look->title) {
        if (source->field_count == IMPORT_FIELDS_MAX)
            return err_set(err, ERR_DATA,
                           "more than %d datasets: name those that are copied "
                           "by --only",
                           IMPORT_FIELDS_MAX);
        source->fields[source->field_count++] = *field;
        field->stored = H5I_INVALID_HID;
        return ERR_OK;
    }
    index = field_find(source, field->name);
    if (index < 0)
        return err_set(err, ERR_DATA, "dataset /%s is not in %s", field->name,
                       first);
    if (!import_field_equal(field, &source->fields[index]) ||
        H5Tequal(field->stored, source->fields[index].stored) <= 0)
        return err_set(err, ERR_DATA,
                       "the samples of /%s have another type or shape than in "
                       "%s",
                       field->name, first);
    return ERR_OK;
}

static err_code_t dataset_look(void *context, hid_t set, const char *path,
                               const char *target, err_t *err)
{
    look_t *look = context;
    const char *only = look->self->config->only;
    import_field_t field = {.stored = H5I_INVALID_HID};
    int64_t rows = 0;
    int files = 0;
    err_code_t rc;

    (void)target;
    if (only != NULL && !named(only, path))
        return ERR_OK;
    /* before its shape is asked for, see virtual.h */
    rc = hdf5io_virtual_check(set, path, &files, err);
    if (rc == ERR_OK)
        rc = field_look(set, path, &field, &rows, err);
    if (rc == ERR_OK && look->rows >= 0 && rows != look->rows)
        rc =
            err_set(err, ERR_DATA,
                    "dataset %s has %lld samples, but /%s has %lld: name those "
                    "that belong together by --only",
                    path, (long long)rows, look->first, (long long)look->rows);
    if (rc == ERR_OK && look->rows < 0)
        snprintf(look->first, sizeof look->first, "%s", field.name);
    look->rows = rows;
    if (rc == ERR_OK)
        rc = field_take(look, &field, err);
    look->found++;
    if (field.stored >= 0)
        H5Tclose(field.stored);
    return rc;
}

/* Look at file [index]. */
static err_code_t file_look(shards_t *self, int index, err_t *err)
{
    const char *path = self->config->paths[index];
    look_t look = {.self = self, .rows = -1, .title = index == 0};
    hid_t file = H5I_INVALID_HID;
    uint64_t bytes;
    err_code_t rc = hdf5io_shard_probe(path, &bytes, err);

    if (rc != ERR_OK)
        return rc;
    h5_lock();
    rc = cmd_data_open(path, &file, err);
    if (rc == ERR_OK)
        rc = cmd_data_walk(file, path, dataset_look, &look, err);
    if (file >= 0)
        H5Fclose(file);
    h5_unlock();
    if (rc == ERR_OK && look.found < self->source.field_count)
        rc = err_set(err, ERR_DATA, "it has %d datasets, %s has %d", look.found,
                     self->config->paths[0], self->source.field_count);
    if (rc == ERR_OK && self->source.field_count == 0)
        rc = err_set(err, ERR_DATA, "there is no dataset%s",
                     self->config->only != NULL ? " of those of --only" : "");
    if (rc != ERR_OK)
        cmd_data_prefix(path, err);
    self->rows[index] = look.rows;
    return rc;
}

/* ERR_USAGE: a name of --only is in no file. */
static err_code_t only_check(const shards_t *self, err_t *err)
{
    int names = 1;

    if (self->config->only == NULL)
        return ERR_OK;
    for (const char *at = self->config->only; *at != '\0'; at++)
        names += *at == ',';
    if (names == self->source.field_count)
        return ERR_OK;
    return err_set(err, ERR_USAGE,
                   "--only: \"%s\" has %d names, but only %d of them %s in %s",
                   self->config->only, names, self->source.field_count,
                   self->source.field_count == 1 ? "is" : "are",
                   self->config->paths[0]);
}

/* ---- the source ---------------------------------------------------------- */

/* Close the open file. */
static void file_close(shards_t *self)
{
    for (int i = 0; i < IMPORT_FIELDS_MAX; i++) {
        if (self->sets[i] >= 0)
            H5Dclose(self->sets[i]);
        self->sets[i] = H5I_INVALID_HID;
    }
    if (self->file >= 0)
        H5Fclose(self->file);
    self->file = H5I_INVALID_HID;
}

/* Open the next file. */
static err_code_t file_next(shards_t *self, err_t *err)
{
    const import_source_t *source = &self->source;
    err_code_t rc;

    file_close(self);
    rc = cmd_data_open(self->config->paths[self->next], &self->file, err);
    for (int i = 0; i < source->field_count && rc == ERR_OK; i++) {
        self->sets[i] =
            H5Dopen2(self->file, source->fields[i].name, H5P_DEFAULT);
        if (self->sets[i] < 0)
            rc = h5_err_set(err, ERR_DATA, "dataset /%s cannot be opened",
                            source->fields[i].name);
    }
    self->at = 0;
    self->left = self->rows[self->next++];
    return rc;
}

/* Read [rows] samples of field [index], from sample self->at of the file. */
static err_code_t set_read(const shards_t *self, int index, int64_t rows,
                           void *out, err_t *err)
{
    const import_field_t *field = &self->source.fields[index];
    hsize_t from[IMPORT_DIMS_MAX + 1] = {(hsize_t)self->at};
    hsize_t count[IMPORT_DIMS_MAX + 1] = {(hsize_t)rows};
    const hid_t space = H5Dget_space(self->sets[index]);
    hid_t memory;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < field->ndim; i++)
        count[i + 1] = (hsize_t)field->dims[i];
    memory = H5Screate_simple(field->ndim + 1, count, NULL);
    if (space < 0 || memory < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL) <
            0 ||
        H5Dread(self->sets[index], field->stored, memory, space, H5P_DEFAULT,
                out) < 0)
        rc = h5_err_set(err, ERR_DATA,
                        "dataset /%s cannot be read from sample %lld on",
                        field->name, (long long)self->at);
    if (memory >= 0)
        H5Sclose(memory);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

static err_code_t shards_read(import_source_t *source, int64_t rows,
                              void *const *out, err_t *err)
{
    shards_t *self = (shards_t *)source;
    int64_t done = 0;
    err_code_t rc = ERR_OK;

    h5_lock();
    while (done < rows && rc == ERR_OK) {
        const int64_t want = rows - done;
        int64_t take;

        if (self->left == 0) {
            rc = file_next(self, err);
            if (rc != ERR_OK)
                break;
        }
        take = want < self->left ? want : self->left;
        for (int i = 0; i < source->field_count && take > 0 && rc == ERR_OK;
             i++)
            rc = set_read(self, i, take,
                          (char *)out[i] +
                              (size_t)done *
                                  import_field_bytes(&source->fields[i]),
                          err);
        done += take;
        self->at += take;
        self->left -= take;
    }
    h5_unlock();
    if (rc != ERR_OK)
        cmd_data_prefix(self->config->paths[self->next - 1], err);
    return rc;
}

static err_code_t shards_annotate(import_source_t *source, hid_t file,
                                  const hid_t *sets, err_t *err)
{
    const char *path = ((shards_t *)source)->config->paths[0];
    hid_t from = H5I_INVALID_HID;
    err_code_t rc = cmd_data_open(path, &from, err);

    (void)sets;
    if (rc == ERR_OK)
        rc = cmd_attributes_copy(from, file, "/", err);
    for (int i = 0; i < source->field_count && rc == ERR_OK; i++) {
        const char *name = source->fields[i].name;

        /* Its groups, and the dataset. A group of several datasets is passed
         * again: what is there already is left. */
        for (const char *end = name; end != NULL && rc == ERR_OK;) {
            char *part;

            end = strchr(end + 1, '/');
            part = str_printf("%.*s", end == NULL ? INT_MAX : (int)(end - name),
                              name);
            rc = cmd_attributes_copy(from, file, part, err);
            free(part);
        }
    }
    if (from >= 0)
        H5Fclose(from);
    if (rc != ERR_OK)
        cmd_data_prefix(path, err);
    return rc;
}

static void shards_close(import_source_t *source)
{
    shards_t *self = (shards_t *)source;

    h5_lock();
    file_close(self);
    for (int i = 0; i < source->field_count; i++)
        H5Tclose(source->fields[i].stored);
    h5_unlock();
    mem_free(self->rows);
    mem_free(self);
}

static const import_kind_t shards_kind = {.name = "hdf5",
                                          .read = shards_read,
                                          .annotate = shards_annotate,
                                          .close = shards_close};

err_code_t cmd_source_open(const cmd_source_config_t *config,
                           import_source_t **out, err_t *err)
{
    shards_t *self;
    err_code_t rc = mem_new(shards_t, 1, "a source", &self, err);

    if (rc != ERR_OK)
        return rc;
    self->source.kind = &shards_kind;
    self->config = config;
    self->file = H5I_INVALID_HID;
    for (int i = 0; i < IMPORT_FIELDS_MAX; i++)
        self->sets[i] = H5I_INVALID_HID;
    rc = mem_new(int64_t, (size_t)config->count, "names of files", &self->rows,
                 err);
    for (int i = 0; i < config->count && rc == ERR_OK; i++) {
        rc = file_look(self, i, err);
        if (rc == ERR_OK &&
            __builtin_add_overflow(self->source.rows, self->rows[i],
                                   &self->source.rows))
            rc = err_set(err, ERR_DATA, "%s: the files have too many samples",
                         config->paths[i]);
        if (rc == ERR_OK && i == 0)
            rc = only_check(self, err);
    }
    if (rc == ERR_OK && self->source.rows == 0)
        rc = err_set(err, ERR_DATA, "%s: there are no samples",
                     config->paths[0]);
    if (rc == ERR_OK)
        *out = &self->source;
    else
        shards_close(&self->source);
    return rc;
}
