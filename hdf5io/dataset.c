/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opening a dataset: find the shards, open each, compare it with the first and
 * with the model. All of it happens before training starts, so that a bad file
 * costs seconds and not a night.
 */
#include "hdf5io/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "base/str.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/h5.h"

/* Descriptors that the rest of the program may need beside the shards. */
#define DATASET_SPARE_FILES 256

/* Decoded chunks kept in memory, over all shards: a shuffle window of 16384
 * samples of 4 KB. */
#define DATASET_CACHE_BYTES ((size_t)64 << 20)

static const char *const dataset_casts[] = {"float32", NULL};

#define DATASET_SCALE_ROWS                                            \
    {.name = "scale",                                                 \
     .type = OPT_REAL,                                                \
     .offset = offsetof(hdf5io_field_t, scale),                       \
     .fallback = "1.0",                                               \
     .help = "each value is multiplied by it"},                       \
    {                                                                 \
        .name = "shift", .type = OPT_REAL,                            \
        .offset = offsetof(hdf5io_field_t, shift), .fallback = "0.0", \
        .help = "added after the scale"                               \
    }

const opt_row_t hdf5io_input_options[] = {
    {.name = "path",
     .type = OPT_TEXT,
     .offset = offsetof(hdf5io_field_t, path),
     .help = "the HDF5 dataset that holds the inputs, samples along "
             "dimension 0"},
    {.name = "cast",
     .type = OPT_CHOICE,
     .offset = offsetof(hdf5io_field_t, cast),
     .fallback = "float32",
     .choices = dataset_casts,
     .help = "the type that the model receives"},
    DATASET_SCALE_ROWS,
    {.name = NULL}};

const opt_row_t hdf5io_target_options[] = {
    {.name = "path",
     .type = OPT_TEXT,
     .offset = offsetof(hdf5io_field_t, path),
     .fallback = "",
     .help = "the HDF5 dataset that holds the targets, samples along "
             "dimension 0; the loss chooses their type; with data.sequence "
             "there is none"},
    DATASET_SCALE_ROWS,
    {.name = NULL}};

/* Every shard may keep a descriptor or two open: take what the hard limit
 * allows. If that is too little, opening a shard says so. */
static void dataset_files_allow(int count)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)count * 2 + DATASET_SPARE_FILES;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static err_code_t dataset_same_shape(const hdf5io_column_t *first,
                                     const hdf5io_column_t *other, err_t *err)
{
    char here[256], there[256];
    bool same = first->ndim == other->ndim;

    for (int i = 0; same && i < first->ndim; i++)
        same = first->dims[i] == other->dims[i];
    if (same)
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "shapes disagree: samples of %s are %s in %s, but %s in "
                   "%s: all shards need the same",
                   first->path, hdf5io_column_shape(first, here, sizeof here),
                   first->file, hdf5io_column_shape(other, there, sizeof there),
                   other->file);
}

/* Do the samples have as many values as the model takes and gives? */
static err_code_t dataset_fits(const hdf5io_dataset_config_t *config,
                               const hdf5io_shard_t *shard, err_t *err)
{
    const hdf5io_column_t *input = &shard->input, *target = &shard->target;
    int64_t wanted = config->target_elems;
    char shape[256];

    if (input->elems != config->input_elems)
        return err_set(err, ERR_DATA,
                       "%s: samples of %s are %s (%" PRId64
                       " values), but model.input is %s (%" PRId64 " values)",
                       input->file, input->path,
                       hdf5io_column_shape(input, shape, sizeof shape),
                       input->elems, config->input_shape, config->input_elems);
    if (target->elems == wanted)
        return ERR_OK;
    hdf5io_column_shape(target, shape, sizeof shape);
    if (config->target_is_class)
        return err_set(err, ERR_DATA,
                       "%s: targets of %s are %s (%" PRId64
                       " values), but the loss takes %" PRId64
                       " class number%s a sample",
                       target->file, target->path, shape, target->elems, wanted,
                       wanted == 1 ? "" : "s");
    return err_set(err, ERR_DATA,
                   "%s: targets of %s are %s (%" PRId64
                   " values), but the model gives %" PRId64 " values",
                   target->file, target->path, shape, target->elems, wanted);
}

static size_t dataset_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Open shard number dataset->count and take it into the dataset. */
static err_code_t dataset_shard_add(hdf5io_dataset_t *dataset,
                                    const hdf5io_dataset_config_t *config,
                                    const hdf5io_shard_config_t *how,
                                    const char *path, err_t *err)
{
    hdf5io_shard_t *shard = &dataset->shards[dataset->count];
    err_code_t code;

    code = hdf5io_shard_open(how, path, shard, err);
    if (code != ERR_OK)
        return code;
    dataset->count++;
    shard->first = dataset->samples;
    dataset->samples += shard->rows;
    dataset->row_bytes = dataset_larger(
        dataset->row_bytes,
        dataset_larger(shard->input.row_bytes, shard->target.row_bytes));
    code = dataset_same_shape(&dataset->shards[0].input, &shard->input, err);
    if (code == ERR_OK)
        code =
            dataset_same_shape(&dataset->shards[0].target, &shard->target, err);
    if (code == ERR_OK)
        code = dataset_fits(config, shard, err);
    return code;
}

static void dataset_hash_set(hdf5io_dataset_t *dataset)
{
    hash_state_t *state = hash_state_open();

    for (int i = 0; i < dataset->count; i++) {
        const hdf5io_shard_t *shard = &dataset->shards[i];

        /* Every shard that was counted has its path. */
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
        hash_state_add(state, shard->path, strlen(shard->path) + 1);
        hash_state_add(state, &shard->bytes, sizeof shard->bytes);
        hash_state_add(state, &shard->rows, sizeof shard->rows);
    }
    dataset->hash = hash_state_value(state);
    hash_state_free(state);
}

/* Before the collective calls begin: a rank that could not go on would leave
 * the others waiting there, and so would one that sees other files. */
static err_code_t dataset_agree(h5mpi_t *mpi, char **paths, int count,
                                err_code_t code, err_t *err)
{
    hash_state_t *state = hash_state_open();
    uint64_t bytes, hash;

    for (int i = 0; i < count && code == ERR_OK; i++) {
        code = hdf5io_shard_probe(paths[i], &bytes, err);
        if (code != ERR_OK)
            break;
        hash_state_add(state, paths[i], strlen(paths[i]) + 1);
        hash_state_add(state, &bytes, sizeof bytes);
    }
    hash = code == ERR_OK ? hash_state_value(state) : 0;
    hash_state_free(state);
    if (h5mpi_same(mpi, hash) || code != ERR_OK)
        return code;
    return err_set(err, ERR_DATA,
                   "other ranks see other shards than %s and its %d fellows, "
                   "or none: is the directory shared by all nodes?",
                   paths[0], count - 1);
}

static err_code_t dataset_shards_open(hdf5io_dataset_t *dataset,
                                      const hdf5io_dataset_config_t *config,
                                      char **paths, int count, err_t *err)
{
    hdf5io_shard_config_t how = {.input = dataset->input_path,
                                 .target = dataset->target_path,
                                 .collective = config->mpi != NULL,
                                 .sequence = config->sequence,
                                 .cache_bytes =
                                     DATASET_CACHE_BYTES / (size_t)count};
    err_code_t code = ERR_OK;

    dataset->shards = calloc((size_t)count, sizeof *dataset->shards);
    if (dataset->shards == NULL)
        return err_set(err, ERR_MEMORY, "no memory for %d shards", count);
    dataset_files_allow(count);
    h5_lock();
    how.access = config->mpi != NULL ? h5mpi_access_list_read(config->mpi)
                                     : h5_access_list();
    h5_unlock();
    for (int i = 0; i < count && code == ERR_OK; i++)
        code = dataset_shard_add(dataset, config, &how, paths[i], err);
    h5_lock();
    H5Pclose(how.access);
    h5_unlock();
    if (code == ERR_OK && dataset->samples == 0)
        code = err_set(err, ERR_DATA,
                       "%s and its %d fellow shards hold no "
                       "samples",
                       paths[0], count - 1);
    return code;
}

/* Whole numbers, [what], are shifted by whole numbers only. */
static err_code_t dataset_check_whole(const hdf5io_field_t *field,
                                      const char *key, const char *what,
                                      err_t *err)
{
    if (field->scale == 1.0 && field->shift == rint(field->shift) &&
        fabs(field->shift) <= INT32_MAX)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "data.%s: scale %g and shift %g: %s take scale 1 and a "
                   "whole shift",
                   key, field->scale, field->shift, what);
}

/* What reading needs of the configuration. */
static err_code_t dataset_configure(hdf5io_dataset_t *dataset,
                                    const hdf5io_dataset_config_t *config,
                                    err_t *err)
{
    const hdf5io_field_t *target =
        config->sequence > 0 ? config->input : config->target;
    err_code_t code = ERR_OK;

    if (config->target_is_class)
        code = dataset_check_whole(target,
                                   config->sequence > 0 ? "input" : "target",
                                   "class numbers", err);
    if (code == ERR_OK && config->tokens > 0)
        code = dataset_check_whole(config->input, "input", "tokens", err);
    if (code != ERR_OK)
        return code;
    dataset->input_path = str_dup(config->input->path);
    dataset->target_path = str_dup(target->path);
    dataset->input_scale = (float)config->input->scale;
    dataset->input_shift = (float)config->input->shift;
    dataset->target_scale = (float)target->scale;
    dataset->target_shift = (float)target->shift;
    dataset->target_is_class = config->target_is_class;
    dataset->classes = config->classes;
    dataset->ignore = config->ignore;
    dataset->ignored = config->ignored;
    if (config->target_is_class)
        dataset->class_shift = (int64_t)target->shift;
    dataset->tokens = config->tokens;
    if (config->tokens > 0)
        dataset->token_shift = (int64_t)config->input->shift;
    dataset->input_elems = config->input_elems;
    dataset->target_elems = config->target_elems;
    dataset->mpi = config->mpi;
    return ERR_OK;
}

err_code_t hdf5io_dataset_open(const hdf5io_dataset_config_t *config,
                               hdf5io_dataset_t **out, err_t *err)
{
    hdf5io_dataset_t *dataset = NULL;
    char **paths = NULL;
    int count = 0;
    err_code_t code;

    code = hdf5io_shard_paths(config->shards, &paths, &count, err);
    if (config->mpi != NULL)
        code = dataset_agree(config->mpi, paths, count, code, err);
    if (code != ERR_OK)
        goto out;
    dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL) {
        code = err_set(err, ERR_MEMORY, "no memory for a dataset");
        goto out;
    }
    pthread_mutex_init(&dataset->lock, NULL);
    dataset->transfer = H5P_DEFAULT;
    code = dataset_configure(dataset, config, err);
    if (code == ERR_OK)
        code = dataset_shards_open(dataset, config, paths, count, err);
    if (code != ERR_OK)
        goto out;
    if (config->mpi != NULL) {
        h5_lock();
        dataset->transfer = h5mpi_transfer_list(config->mpi);
        h5_unlock();
    }
    dataset_hash_set(dataset);
    *out = dataset;
    dataset = NULL;
out:
    hdf5io_dataset_close(dataset);
    hdf5io_shard_paths_free(paths, count);
    return code;
}

void hdf5io_dataset_close(hdf5io_dataset_t *dataset)
{
    if (dataset == NULL)
        return;
    if (dataset->transfer != H5P_DEFAULT) {
        h5_lock();
        H5Pclose(dataset->transfer);
        h5_unlock();
    }
    for (int i = 0; i < dataset->count; i++)
        hdf5io_shard_close(&dataset->shards[i]);
    free(dataset->shards);
    hdf5io_read_scratch_free(dataset->scratch);
    pthread_mutex_destroy(&dataset->lock);
    free(dataset->target_path);
    free(dataset->input_path);
    free(dataset);
}

int64_t hdf5io_dataset_samples(const hdf5io_dataset_t *dataset)
{
    return dataset->samples;
}

int hdf5io_dataset_shards(const hdf5io_dataset_t *dataset)
{
    return dataset->count;
}

const char *hdf5io_dataset_shard(const hdf5io_dataset_t *dataset, int index)
{
    return dataset->shards[index].path;
}

size_t hdf5io_dataset_sample_bytes(const hdf5io_dataset_t *dataset)
{
    return dataset->shards[0].input.row_bytes +
           dataset->shards[0].target.row_bytes;
}

uint64_t hdf5io_dataset_hash(const hdf5io_dataset_t *dataset)
{
    return dataset->hash;
}

bool hdf5io_dataset_collective(const hdf5io_dataset_t *dataset)
{
    return dataset->mpi != NULL;
}

int64_t hdf5io_dataset_bytes_read(const hdf5io_dataset_t *dataset)
{
    return atomic_load(&dataset->bytes_read);
}
