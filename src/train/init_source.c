/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/init_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "hdf5io/checkpoint_find.h"
#include "hdf5io/checkpoint_read.h"

#define MODEL "model/"

static err_code_t table_make(train_source_t *source, int room, err_t *err)
{
    return mem_new(train_source_tensor_t, (size_t)room, "initial weights",
                   &source->tensors, err);
}

static err_code_t file_open(train_source_t *source, err_t *err)
{
    const hdf5io_safe_t *file = &source->file;
    err_code_t rc = hdf5io_safe_open(source->path, &source->file, err);

    if (rc == ERR_OK)
        rc = table_make(source, file->count, err);
    for (int i = 0; rc == ERR_OK && i < file->count; i++)
        source->tensors[source->count++] = (train_source_tensor_t){
            .name = file->tensors[i].name,
            .ndim = file->tensors[i].ndim,
            .dims = file->tensors[i].dims,
            .type = hdf5io_safe_type_name(file->tensors[i].type),
            .from = i};
    return rc;
}

/* Take the tensors of the model, and leave out those of the optimizer. */
static err_code_t checkpoint_open(train_source_t *source, err_t *err)
{
    const hdf5io_manifest_t *m = &source->manifest;
    uint64_t hash;
    err_code_t rc =
        hdf5io_manifest_load(source->path, &source->manifest, &hash, err);

    source->checkpoint = true;
    if (rc == ERR_OK)
        rc = table_make(source, m->tensor_count, err);
    for (int i = 0; rc == ERR_OK && i < m->tensor_count; i++) {
        const hdf5io_manifest_tensor_t *tensor = &m->tensors[i];

        if (strncmp(tensor->name, MODEL, strlen(MODEL)) == 0)
            source->tensors[source->count++] = (train_source_tensor_t){
                .name = tensor->name + strlen(MODEL),
                .ndim = tensor->ndim,
                .dims = tensor->dims,
                .type = hdf5io_safe_type_name(HDF5IO_SAFE_F32),
                .from = i};
    }
    return rc;
}

err_code_t train_source_open(const char *path, train_source_t *out, err_t *err)
{
    struct stat st;
    err_code_t rc;

    *out = (train_source_t){.file = {.fd = -1}};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        rc = hdf5io_checkpoint_find(path, &out->path, err);
        return rc == ERR_OK ? checkpoint_open(out, err) : rc;
    }
    out->path = str_dup(path);
    return file_open(out, err);
}

void train_source_close(train_source_t *source)
{
    hdf5io_safe_close(&source->file);
    hdf5io_manifest_free(&source->manifest);
    mem_free(source->tensors);
    free(source->path);
    *source = (train_source_t){.file = {.fd = -1}};
}

const train_source_tensor_t *train_source_find(const train_source_t *source,
                                               const char *name)
{
    for (int i = 0; i < source->count; i++)
        if (strcmp(source->tensors[i].name, name) == 0)
            return &source->tensors[i];
    return NULL;
}

err_code_t train_source_verify(const train_source_t *source, err_t *err)
{
    return source->checkpoint
               ? hdf5io_checkpoint_verify(source->path, NULL, err)
               : ERR_OK;
}

err_code_t train_source_read(const train_source_t *source,
                             const train_source_tensor_t *tensor, float *out,
                             err_t *err)
{
    const hdf5io_saved_t saved = {&hdf5io_io_system, source->path,
                                  &source->manifest};

    return source->checkpoint
               ? hdf5io_checkpoint_fetch(&saved, tensor->from, out, err)
               : hdf5io_safe_read(&source->file, tensor->from, out, err);
}
