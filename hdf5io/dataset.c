/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opening a dataset: find the shards, look at each one (dataset_look.c), and
 * put together what is known of them. All of this happens before training
 * starts, so that a bad file is found within seconds.
 */
#include "hdf5io/dataset.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/dataset_index.h"
#include "hdf5io/h5.h"

_Static_assert(DATASET_FIELDS_MAX <= SHARD_COLUMNS_MAX, "columns");

/* Default bytes of decoded chunks in memory, over all columns of all shards: a
 * shuffle window of 16384 samples of 4 KB for an input and a target. */
#define DATASET_CACHE_BYTES ((size_t)128 << 20)

/* Set the configuration with which shards are opened and reopened. */
static err_code_t dataset_how_set(hdf5io_dataset_t *dataset,
                                  const hdf5io_dataset_config_t *config,
                                  int count, err_t *err)
{
    err_code_t rc;

    dataset->cache_max =
        config->cache_bytes > 0 ? config->cache_bytes : DATASET_CACHE_BYTES;
    dataset->open_max = config->open_files > 0 ? config->open_files : INT_MAX;
    dataset->retry = config->retry;
    rc = hdf5io_pool_open(dataset->cache_max, &dataset->pool, err);
    if (rc != ERR_OK)
        return rc;
    dataset->how = (hdf5io_shard_config_t){
        .count = dataset->field_count,
        .collective = config->mpi != NULL,
        .sequence = config->sequence,
        .whole = config->whole,
        .pool = dataset->pool,
        .cache_bytes = dataset->cache_max /
                       ((size_t)dataset->field_count * (size_t)count)};
    dataset->owner = hdf5io_pool_owners(
        dataset->pool, (uint64_t)count * (uint64_t)dataset->field_count);
    for (int k = 0; k < dataset->field_count; k++)
        dataset->how.paths[k] = dataset->fields[k].path;
    h5_lock();
    dataset->how.access = h5_access_list();
    h5_unlock();
    return ERR_OK;
}

static void dataset_field_add(hdf5io_dataset_t *dataset,
                              const hdf5io_want_t *want)
{
    const hdf5io_field_t *from = want->field;
    const bool classes = want->as != HDF5IO_AS_REALS || from->one_hot > 0;
    dataset_field_t *field = &dataset->fields[dataset->field_count++];

    check(dataset->field_count <= DATASET_FIELDS_MAX, "field %d of %d",
          dataset->field_count, DATASET_FIELDS_MAX);
    *field = (dataset_field_t){
        .path = str_dup(from->path),
        .place = want->place == NULL ? NULL : str_dup(want->place),
        .as = want->as,
        .whole = classes ? (int64_t)from->shift : 0,
        .limit = from->one_hot > 0 ? from->one_hot : want->limit,
        .ignore = want->ignore,
        .ignored = want->ignored,
        .shares = want->shares,
        .elems = want->elems};
    memcpy(field->sums, want->sums, sizeof field->sums);
}

/* Copy the settings that reading needs from the configuration. */
static err_code_t dataset_configure(hdf5io_dataset_t *dataset,
                                    const hdf5io_dataset_config_t *config,
                                    err_t *err)
{
    const int inputs = config->input_count > 0 ? config->input_count : 1;
    const int targets = config->inputs_only        ? 0
                        : config->target_count > 0 ? config->target_count
                                                   : 1;
    const char *key = config->sequence > 0 ? "input" : "target";
    err_code_t rc = ERR_OK;

    for (int k = 0; k < targets && rc == ERR_OK; k++) {
        hdf5io_want_t want = config->targets[k];

        if (config->sequence > 0)
            want.field = config->inputs[0].field;
        rc = hdf5io_want_check(&want, key, err);
    }
    for (int k = 0; k < inputs && rc == ERR_OK; k++)
        rc = hdf5io_want_check(&config->inputs[k], "input", err);
    if (rc != ERR_OK)
        return rc;
    dataset->inputs = inputs;
    dataset->mpi = config->mpi;
    for (int k = 0; k < inputs; k++)
        dataset_field_add(dataset, &config->inputs[k]);
    for (int k = 0; k < targets; k++) {
        hdf5io_want_t want = config->targets[k];

        if (config->sequence > 0)
            want.field = config->inputs[0].field;
        dataset_field_add(dataset, &want);
    }
    return ERR_OK;
}

/* Make room for [count] shards, of which nothing is known yet. */
static err_code_t dataset_shards_make(hdf5io_dataset_t *dataset,
                                      const hdf5io_dataset_config_t *config,
                                      char **paths, int count, err_t *err)
{
    const size_t shards = (size_t)count;
    err_code_t rc;

    rc = hdf5io_catalogue_open(paths, count, dataset->field_count,
                               &dataset->catalogue, err);
    if (rc == ERR_OK)
        rc = mem_new(unsigned char, shards, "shards", &dataset->touched, err);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_shard_t, shards, "shards", &dataset->shards, err);
    if (rc != ERR_OK)
        return rc;
    dataset->count = count;
    for (int i = 0; i < count; i++)
        hdf5io_shard_init(&dataset->shards[i]);
    return dataset_how_set(dataset, config, count, err);
}

err_code_t hdf5io_dataset_begin(const hdf5io_dataset_config_t *config,
                                hdf5io_dataset_t **out, err_t *err)
{
    hdf5io_dataset_t *dataset = NULL;
    char **paths = NULL;
    int count = 0;
    err_code_t rc = mem_new(hdf5io_dataset_t, 1, "a dataset", &dataset, err);

    if (rc != ERR_OK)
        return rc;
    pthread_mutex_init(&dataset->lock, NULL);
    dataset->transfer = H5P_DEFAULT;
    dataset->config = config;
    rc = hdf5io_shard_paths(config->shards, &paths, &count, err);
    if (rc == ERR_OK)
        rc = dataset_configure(dataset, config, err);
    if (rc == ERR_OK)
        rc = dataset_shards_make(dataset, config, paths, count, err);
    hdf5io_shard_paths_free(paths, count);
    if (rc == ERR_OK)
        *out = dataset;
    else
        hdf5io_dataset_close(dataset);
    return rc;
}

/* The last checks, which may read a sample. With mpi: collective. */
static err_code_t dataset_classes_check(hdf5io_dataset_t *dataset, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int k = 0; rc == ERR_OK && k < hdf5io_dataset_targets(dataset); k++)
        rc = hdf5io_dataset_classes_check(dataset, &dataset->config->targets[k],
                                          dataset->inputs + k, err);
    dataset->config = NULL;
    return rc;
}

err_code_t hdf5io_dataset_finish(hdf5io_dataset_t *dataset, err_t *err)
{
    err_code_t rc;

    check(dataset->mpi == NULL && dataset->config != NULL,
          "a dataset is finished twice, or in parts with MPI-IO");
    rc = hdf5io_dataset_settle(dataset, err);
    return rc == ERR_OK ? dataset_classes_check(dataset, err) : rc;
}

err_code_t hdf5io_dataset_open(const hdf5io_dataset_config_t *config,
                               hdf5io_dataset_t **out, err_t *err)
{
    hdf5io_dataset_t *dataset = NULL;
    err_code_t rc = hdf5io_dataset_begin(config, &dataset, err);

    if (rc == ERR_OK)
        hdf5io_dataset_index_read(dataset, true);
    /* A misfit is found before the next shard is opened. */
    for (int i = 0; rc == ERR_OK && i < dataset->count; i++) {
        rc = hdf5io_dataset_look(dataset, i, err);
        if (rc == ERR_OK)
            rc = hdf5io_dataset_suits(dataset, &dataset->shards[i], err);
    }
    if (rc == ERR_OK)
        rc = hdf5io_dataset_settle(dataset, err);
    if (config->mpi != NULL)
        rc = hdf5io_dataset_join(dataset, config->mpi, rc, err);
    if (rc == ERR_OK) {
        check(dataset != NULL, "a join made an error of this rank good");
        rc = dataset_classes_check(dataset, err);
    }
    if (rc == ERR_OK)
        *out = dataset;
    else
        hdf5io_dataset_close(dataset);
    return rc;
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
        if (dataset->shards[i].open)
            hdf5io_shard_rest(&dataset->shards[i]);
    hdf5io_pool_close(dataset->pool);
    if (dataset->how.access > 0) {
        h5_lock();
        H5Pclose(dataset->how.access);
        h5_unlock();
    }
    mem_free(dataset->touched);
    hdf5io_alike_close(dataset->alike);
    mem_free(dataset->shards);
    for (int s = 0; s < dataset->like_count; s++)
        mem_free(dataset->likes[s]);
    mem_free(dataset->likes);
    hdf5io_catalogue_close(dataset->catalogue);
    hdf5io_catalogue_close(dataset->index);
    hdf5io_read_scratch_free(dataset->scratch);
    pthread_mutex_destroy(&dataset->lock);
    for (int k = 0; k < dataset->field_count; k++) {
        hdf5io_transform_free(&dataset->fields[k].transform);
        free(dataset->fields[k].place);
        free(dataset->fields[k].path);
    }
    mem_free(dataset);
}

hdf5io_catalogue_t *hdf5io_dataset_catalogue(hdf5io_dataset_t *dataset)
{
    return dataset->catalogue;
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
    return hdf5io_catalogue_path(dataset->catalogue, index);
}

size_t hdf5io_dataset_sample_bytes(const hdf5io_dataset_t *dataset)
{
    size_t bytes = 0;

    for (int k = 0; k < dataset->field_count; k++)
        bytes += hdf5io_dataset_columns(dataset, dataset->shards)[k].row_bytes;
    return bytes;
}

int hdf5io_dataset_inputs(const hdf5io_dataset_t *dataset)
{
    return dataset->inputs;
}

int hdf5io_dataset_targets(const hdf5io_dataset_t *dataset)
{
    return dataset->field_count - dataset->inputs;
}

size_t hdf5io_dataset_field_bytes(const hdf5io_dataset_t *dataset, int index)
{
    static const size_t sizes[] = {[HDF5IO_AS_REALS] = sizeof(float),
                                   [HDF5IO_AS_TOKENS] = sizeof(int32_t),
                                   [HDF5IO_AS_CLASSES] = sizeof(int64_t)};
    const dataset_field_t *field = &dataset->fields[index];

    return (size_t)field->elems * sizes[field->as];
}

bool hdf5io_dataset_collective(const hdf5io_dataset_t *dataset)
{
    return dataset->mpi != NULL;
}

void hdf5io_dataset_trace(hdf5io_dataset_t *dataset, trace_t *const *traces,
                          int count)
{
    check(count <= 64, "%d traces", count);
    dataset->traces = traces;
    dataset->trace_count = count;
}

int64_t hdf5io_dataset_bytes_read(const hdf5io_dataset_t *dataset)
{
    return atomic_load(&dataset->bytes_read);
}

int64_t hdf5io_dataset_shards_read(const hdf5io_dataset_t *dataset)
{
    return atomic_load(&dataset->shards_read);
}

size_t hdf5io_dataset_cached(hdf5io_dataset_t *dataset)
{
    size_t cached;

    pthread_mutex_lock(&dataset->lock);
    cached = dataset->cached;
    pthread_mutex_unlock(&dataset->lock);
    return cached;
}

size_t hdf5io_dataset_pooled(hdf5io_dataset_t *dataset)
{
    return hdf5io_pool_held(dataset->pool);
}

int hdf5io_dataset_open_shards(hdf5io_dataset_t *dataset)
{
    int open = 0;

    pthread_mutex_lock(&dataset->lock);
    for (int s = 0; s < dataset->count; s++)
        open += dataset->shards[s].open;
    pthread_mutex_unlock(&dataset->lock);
    return open;
}
