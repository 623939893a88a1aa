/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One tensor at a time is in memory. */
#include "cmd/ckpt_move.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/ckpt_map.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_read.h"
#include "hdf5io/safetensors.h"

#define MODEL "model/"
#define AVERAGE "optimizer/ema/"

/* A tensor that is written: number [from] of the source. */
typedef struct moved {
    int from;
    bool transposed, leading;
} moved_t;

typedef struct moving moving_t;
struct moving {
    /* Read tensor number [from] of the source to [out]. */
    err_code_t (*read)(const moving_t *moving, int from, float *out,
                       err_t *err);
    const char *path; /* of the source */
    hdf5io_manifest_t manifest;
    hdf5io_safe_t file;
    cmd_map_t *map;
    cmd_map_way_t way;
    /* [count], with room for [room]: what is written */
    hdf5io_safe_tensor_t *tensors;
    moved_t *moved;
    int count, room;
    float *data, *turned; /* one tensor, as it is read and as it is written */
};

/* ---- what is written ----------------------------------------------------- */

static err_code_t grow(moving_t *moving, err_t *err)
{
    const int room = moving->room == 0 ? 64 : 2 * moving->room;
    hdf5io_safe_tensor_t *tensors =
        realloc(moving->tensors, (size_t)room * sizeof *tensors);
    moved_t *moved;

    if (tensors != NULL)
        moving->tensors = tensors;
    moved = realloc(moving->moved, (size_t)room * sizeof *moved);
    if (moved != NULL)
        moving->moved = moved;
    if (tensors == NULL || moved == NULL)
        return err_set(err, ERR_MEMORY, "out of memory for the table of %s",
                       moving->path);
    moving->room = room;
    return ERR_OK;
}

/* Add a first dimension of size 1, or take it away from a tensor of the other
 * program. */
static err_code_t leading_move(const moving_t *moving,
                               hdf5io_safe_tensor_t *tensor, err_t *err)
{
    const bool out = moving->way == CMD_MAP_OUT;
    int64_t *dims = tensor->dims;

    if (out ? tensor->ndim == HDF5IO_SAFE_DIMS_MAX
            : tensor->ndim < 1 || dims[0] != 1)
        return err_set(err, ERR_CONFIG,
                       "%s: tensor %s has %d dimensions, and the map says "
                       "leading: expected a first dimension of size 1 there",
                       moving->path, tensor->name, tensor->ndim);
    tensor->ndim += out ? 1 : -1;
    if (out) {
        memmove(dims + 1, dims, (size_t)(tensor->ndim - 1) * sizeof *dims);
        dims[0] = 1;
    } else {
        memmove(dims, dims + 1, (size_t)tensor->ndim * sizeof *dims);
    }
    return ERR_OK;
}

/* Append the tensor [like], number [from] of the source, under [name]. Takes
 * [name]. */
static err_code_t tensor_add(moving_t *moving, const hdf5io_safe_tensor_t *like,
                             char *name, const moved_t *how, err_t *err)
{
    hdf5io_safe_tensor_t tensor = *like;
    err_code_t rc = how->leading ? leading_move(moving, &tensor, err) : ERR_OK;

    if (rc == ERR_OK && how->transposed && like->ndim != 2)
        rc = err_set(err, ERR_CONFIG,
                     "%s: the map transposes tensor %s, which has %d "
                     "dimensions: expected 2",
                     moving->path, like->name, like->ndim);
    if (rc == ERR_OK && moving->count == moving->room)
        rc = grow(moving, err);
    if (rc != ERR_OK) {
        free(name);
        return rc;
    }
    moving->moved[moving->count] = *how;
    tensor.name = name;
    if (how->transposed) {
        tensor.dims[0] = like->dims[1];
        tensor.dims[1] = like->dims[0];
    }
    moving->tensors[moving->count++] = tensor;
    return ERR_OK;
}

/* Append the tensor [like], number [from] of the source, under each name that
 * the map has for it. */
static err_code_t tensor_map(moving_t *moving, const hdf5io_safe_tensor_t *like,
                             int from, err_t *err)
{
    cmd_map_hit_t hit;
    err_code_t rc = ERR_OK;
    int line = 0, hits = 0;

    if (moving->map == NULL)
        return tensor_add(moving, like, str_dup(like->name),
                          &(moved_t){from, false, false}, err);
    while (rc == ERR_OK && (hits == 0 || moving->way == CMD_MAP_OUT) &&
           cmd_map_find(moving->map, moving->way, like->name, &line, &hit)) {
        hits++;
        if (hit.name != NULL)
            rc = tensor_add(moving, like, hit.name,
                            &(moved_t){from, hit.transposed, hit.leading}, err);
    }
    if (rc == ERR_OK && hits == 0)
        rc = err_set(err, ERR_CONFIG,
                     "the map has no line for tensor %s of %s: add one, or "
                     "leave it out by a line with -",
                     like->name, moving->path);
    return rc;
}

/* ---- writing ------------------------------------------------------------- */

static void transpose(const float *from, const int64_t dims[2], float *out)
{
    for (int64_t r = 0; r < dims[0]; r++)
        for (int64_t c = 0; c < dims[1]; c++)
            out[c * dims[0] + r] = from[r * dims[1] + c];
}

static err_code_t tensor_fetch(void *context, int index, const void **data,
                               err_t *err)
{
    moving_t *moving = context;
    const moved_t *how = &moving->moved[index];
    const int64_t *dims = moving->tensors[index].dims;
    err_code_t rc = moving->read(moving, how->from, moving->data, err);

    if (rc == ERR_OK && how->transposed)
        transpose(moving->data, (int64_t[]){dims[1], dims[0]}, moving->turned);
    *data = how->transposed ? moving->turned : moving->data;
    return rc;
}

/* Write all tensors to the file of [move]. */
static err_code_t tensors_write(moving_t *moving, const cmd_ckpt_move_t *move,
                                str_buf_t *out, err_t *err)
{
    const hdf5io_safe_plan_t plan = {moving->tensors, moving->count,
                                     tensor_fetch, moving};
    int64_t most = 0, elems = 0;
    err_code_t rc;

    for (int i = 0; i < moving->count; i++) {
        const int64_t own = moving->tensors[i].elems;

        most = own > most ? own : most;
        elems += own;
    }
    rc = mem_new(float, (size_t)most, "a tensor", &moving->data, err);
    if (rc == ERR_OK)
        rc = mem_new(float, (size_t)most, "a tensor", &moving->turned, err);
    if (rc == ERR_OK)
        rc = hdf5io_safe_write(
            move->to, move->replace ? FILE_REPLACE : FILE_NEW, &plan, err);
    if (rc == ERR_OK)
        str_buf_add(out, "%s: %d tensors, %" PRId64 " numbers from %s\n",
                    move->to, moving->count, elems, moving->path);
    return rc;
}

static void moving_free(moving_t *moving)
{
    for (int i = 0; i < moving->count; i++)
        free((void *)moving->tensors[i].name);
    free(moving->tensors);
    free(moving->moved);
    mem_free(moving->turned);
    mem_free(moving->data);
    cmd_map_free(moving->map);
    hdf5io_safe_close(&moving->file);
    hdf5io_manifest_free(&moving->manifest);
}

/* What is done before anything is read. */
static err_code_t move_begin(moving_t *moving, const cmd_ckpt_move_t *move,
                             err_t *err)
{
    if (!move->replace && access(move->to, F_OK) == 0)
        return err_set(err, ERR_USAGE,
                       "%s exists: name another file, or replace it by --force",
                       move->to);
    return move->map == NULL ? ERR_OK
                             : cmd_map_read(move->map, &moving->map, err);
}

/* ---- export -------------------------------------------------------------- */

static err_code_t checkpoint_read(const moving_t *moving, int from, float *out,
                                  err_t *err)
{
    const hdf5io_saved_t saved = {&hdf5io_io_system, moving->path,
                                  &moving->manifest};

    return hdf5io_checkpoint_fetch(&saved, from, out, err);
}

/* The number of the moving average of parameter [name]; -1: there is none. */
static int average_find(const hdf5io_manifest_t *manifest, const char *name)
{
    for (int i = 0; i < manifest->tensor_count; i++)
        if (strncmp(manifest->tensors[i].name, AVERAGE, strlen(AVERAGE)) == 0 &&
            strcmp(manifest->tensors[i].name + strlen(AVERAGE), name) == 0)
            return i;
    return -1;
}

/* List the tensors of the model. */
static err_code_t model_list(moving_t *moving, bool average, err_t *err)
{
    const hdf5io_manifest_t *manifest = &moving->manifest;
    err_code_t rc = ERR_OK;
    int averages = 0;

    for (int i = 0; i < manifest->tensor_count && rc == ERR_OK; i++) {
        const hdf5io_manifest_tensor_t *tensor = &manifest->tensors[i];
        hdf5io_safe_tensor_t like = {.type = HDF5IO_SAFE_F32,
                                     .ndim = tensor->ndim,
                                     .elems = tensor->elems};
        int from = -1;

        if (strncmp(tensor->name, MODEL, strlen(MODEL)) != 0)
            continue;
        like.name = tensor->name + strlen(MODEL);
        memcpy(like.dims, tensor->dims, sizeof tensor->dims);
        if (average)
            from = average_find(manifest, like.name);
        averages += from >= 0;
        rc = tensor_map(moving, &like, from >= 0 ? from : i, err);
    }
    if (rc == ERR_OK && average && averages == 0)
        rc = err_set(err, ERR_DATA,
                     "%s has no moving average: the run had no ema.decay",
                     moving->path);
    return rc;
}

err_code_t cmd_ckpt_export(const cmd_ckpt_move_t *move, str_buf_t *out,
                           err_t *err)
{
    moving_t moving = {
        .read = checkpoint_read, .path = move->from, .way = CMD_MAP_OUT};
    uint64_t hash;
    err_code_t rc = move_begin(&moving, move, err);

    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_verify(move->from, NULL, err);
    if (rc == ERR_OK)
        rc = hdf5io_manifest_load(move->from, &moving.manifest, &hash, err);
    if (rc == ERR_OK)
        rc = model_list(&moving, move->average, err);
    if (rc == ERR_OK)
        rc = tensors_write(&moving, move, out, err);
    moving_free(&moving);
    return rc;
}

/* ---- import -------------------------------------------------------------- */

static err_code_t file_tensor_read(const moving_t *moving, int from, float *out,
                                   err_t *err)
{
    return hdf5io_safe_read(&moving->file, from, out, err);
}

/* Check a tensor that is to be written. */
static err_code_t type_check(const moving_t *moving, int from, err_t *err)
{
    const hdf5io_safe_tensor_t *tensor = &moving->file.tensors[from];

    return tensor->type == HDF5IO_SAFE_F32
               ? ERR_OK
               : err_set(err, ERR_DATA,
                         "%s: tensor %s has the type %s: expected F32; convert "
                         "it to float32 first, or leave it out by a line with "
                         "- in the map",
                         moving->path, tensor->name,
                         hdf5io_safe_type_name(tensor->type));
}

err_code_t cmd_ckpt_import(const cmd_ckpt_move_t *move, str_buf_t *out,
                           err_t *err)
{
    moving_t moving = {
        .read = file_tensor_read, .path = move->from, .way = CMD_MAP_IN};
    err_code_t rc = move_begin(&moving, move, err);

    if (rc == ERR_OK)
        rc = hdf5io_safe_open(move->from, &moving.file, err);
    for (int i = 0; rc == ERR_OK && i < moving.file.count; i++)
        rc = tensor_map(&moving, &moving.file.tensors[i], i, err);
    for (int i = 0; rc == ERR_OK && i < moving.count; i++)
        rc = type_check(&moving, moving.moved[i].from, err);
    if (rc == ERR_OK)
        rc = tensors_write(&moving, move, out, err);
    moving_free(&moving);
    return rc;
}
