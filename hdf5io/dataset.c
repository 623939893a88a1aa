/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opening a dataset: find the shards, open each one, and compare it with the
 * first shard and with the model (dataset_fits.c). All of this happens before
 * training starts, so that a bad file is found within seconds.
 */
#include "hdf5io/dataset.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/h5.h"

_Static_assert(DATASET_FIELDS_MAX <= SHARD_COLUMNS_MAX, "columns");

/* Default bytes of decoded chunks in memory, over all columns of all shards: a
 * shuffle window of 16384 samples of 4 KB for an input and a target. */
#define DATASET_CACHE_BYTES ((size_t)128 << 20)

/* Descriptors reserved for the rest of the program. */
#define DATASET_SPARE_FILES 256

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

/* Raise the limit of open files for the sources of virtual datasets. HDF5 keeps
 * sources open, and returns fill values for a source that it cannot open. Ranks
 * that are threads share the limit. */
static err_code_t dataset_sources_allow(const hdf5io_dataset_t *dataset,
                                        err_t *err)
{
    rlim_t wanted = (rlim_t)dataset->count * 2 + DATASET_SPARE_FILES;
    struct rlimit limit;
    rlim_t files = 0;

    for (int i = 0; i < dataset->count; i++)
        for (int k = 0; k < dataset->shards[i].count; k++)
            files += (rlim_t)dataset->shards[i].columns[k].files;
    if (files == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= wanted + files)
        return ERR_OK;
    limit.rlim_cur = wanted + files;
    if (limit.rlim_cur <= limit.rlim_max &&
        setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return ERR_OK;
    return err_set(err, ERR_UNAVAILABLE,
                   "virtual datasets need %llu files open at a time, but the "
                   "limit is %llu: raise it (ulimit -n)",
                   (unsigned long long)(wanted + files),
                   (unsigned long long)limit.rlim_max);
}

static err_code_t dataset_same_shape(const hdf5io_column_t *first,
                                     const hdf5io_column_t *other, err_t *err)
{
    char here[256], there[256];
    bool same;

    check(first != NULL && other != NULL, "a shard is not open");
    same = first->ndim == other->ndim;

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

static size_t dataset_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Arguments of one try to open a shard, see retry.h. */
typedef struct shard_try {
    hdf5io_dataset_t *dataset;
    const char *path;
    hdf5io_shard_t *out;
} shard_try_t;

static err_code_t dataset_shard_try(void *context, int *number, err_t *err)
{
    const shard_try_t *try = context;
    err_code_t rc;

    do
        rc = hdf5io_shard_open(&try->dataset->how, try->path, try->out, err);
    while (rc == ERR_UNAVAILABLE && errno == EMFILE &&
           hdf5io_dataset_rest_oldest(try->dataset));
    if (rc == ERR_OK)
        return rc;
    if (rc == ERR_IO || rc == ERR_UNAVAILABLE ||
        retry_cause(errno) == RETRY_FORBIDDEN)
        *number = errno;
    return rc;
}

static err_code_t dataset_shard_open(hdf5io_dataset_t *dataset,
                                     const char *path, hdf5io_shard_t *out,
                                     err_t *err)
{
    shard_try_t try = {dataset, path, out};

    if (dataset->mpi != NULL)
        return hdf5io_shard_open(&dataset->how, path, out, err);
    return retry_run(&dataset->retry, path, dataset_shard_try, &try, NULL, err);
}

/* Open the shard [path] and append it to the dataset. */
static err_code_t dataset_shard_add(hdf5io_dataset_t *dataset,
                                    const hdf5io_dataset_config_t *config,
                                    const char *path, err_t *err)
{
    hdf5io_shard_t *shard = &dataset->shards[dataset->count];
    err_code_t rc;

    rc = dataset_shard_open(dataset, path, shard, err);
    if (rc != ERR_OK)
        return rc;
    dataset->count++;
    dataset->cached += shard->cached;
    dataset->open_count++;
    shard->used = ++dataset->uses;
    shard->first = dataset->samples;
    if (__builtin_add_overflow(dataset->samples, shard->rows,
                               &dataset->samples))
        rc = err_set(err, ERR_DATA,
                     "the shards up to %s hold more samples than can be "
                     "counted: the header of one is wrong",
                     path);
    for (int k = 0; k < dataset->field_count && rc == ERR_OK; k++) {
        dataset->row_bytes =
            dataset_larger(dataset->row_bytes, shard->columns[k].row_bytes);
        rc = dataset_same_shape(&dataset->shards[0].columns[k],
                                &shard->columns[k], err);
    }
    if (rc == ERR_OK)
        rc = hdf5io_dataset_fits(dataset, config, shard, err);
    if (rc == ERR_OK)
        hdf5io_dataset_trim(dataset, shard);
    return rc;
}

/* Set the configuration with which shards are opened and reopened. */
static void dataset_how_set(hdf5io_dataset_t *dataset,
                            const hdf5io_dataset_config_t *config, int count)
{
    dataset->cache_max =
        config->cache_bytes > 0 ? config->cache_bytes : DATASET_CACHE_BYTES;
    dataset->open_max = INT_MAX;
    dataset->retry = config->retry;
    dataset->how = (hdf5io_shard_config_t){
        .count = dataset->field_count,
        .collective = config->mpi != NULL,
        .sequence = config->sequence,
        .cache_bytes = dataset->cache_max /
                       ((size_t)dataset->field_count * (size_t)count)};
    for (int k = 0; k < dataset->field_count; k++)
        dataset->how.paths[k] = dataset->fields[k].path;
    h5_lock();
    dataset->how.access = h5_access_list();
    h5_unlock();
}

static err_code_t dataset_shards_open(hdf5io_dataset_t *dataset,
                                      const hdf5io_dataset_config_t *config,
                                      char **paths, int count, err_t *err)
{
    err_code_t rc = ERR_OK;

    rc =
        mem_new(hdf5io_shard_t, (size_t)count, "shards", &dataset->shards, err);
    if (rc == ERR_OK)
        rc = mem_new(unsigned char, (size_t)count, "shards", &dataset->touched,
                     err);
    if (rc != ERR_OK)
        return rc;
    dataset_how_set(dataset, config, count);
    for (int i = 0; i < count && rc == ERR_OK; i++)
        rc = dataset_shard_add(dataset, config, paths[i], err);
    if (rc == ERR_OK)
        rc = dataset_sources_allow(dataset, err);
    if (rc == ERR_OK && dataset->samples == 0 && count == 1)
        rc = err_set(err, ERR_DATA, "%s holds no samples", paths[0]);
    else if (rc == ERR_OK && dataset->samples == 0)
        rc = err_set(err, ERR_DATA,
                     "none of the %d shards holds a sample; the first is %s",
                     count, paths[0]);
    return rc;
}

static void dataset_field_add(hdf5io_dataset_t *dataset,
                              const hdf5io_want_t *want)
{
    const hdf5io_field_t *from = want->field;

    dataset_field_t *field = &dataset->fields[dataset->field_count++];

    check(dataset->field_count <= DATASET_FIELDS_MAX, "field %d of %d",
          dataset->field_count, DATASET_FIELDS_MAX);
    *field = (dataset_field_t){
        .path = str_dup(from->path),
        .place = want->place == NULL ? NULL : str_dup(want->place),
        .as = want->as,
        .scale = (float)from->scale,
        .shift = (float)from->shift,
        .whole = want->as == HDF5IO_AS_REALS ? 0 : (int64_t)from->shift,
        .limit = want->limit,
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
    const int targets = config->target_count > 0 ? config->target_count : 1;
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

/* The part of opening that each rank does by itself. */
static err_code_t dataset_open_own(hdf5io_dataset_t *dataset,
                                   const hdf5io_dataset_config_t *config,
                                   err_t *err)
{
    char **paths = NULL;
    int count = 0;
    err_code_t rc;

    rc = hdf5io_shard_paths(config->shards, &paths, &count, err);
    if (rc == ERR_OK)
        rc = dataset_configure(dataset, config, err);
    if (rc == ERR_OK)
        rc = dataset_shards_open(dataset, config, paths, count, err);
    hdf5io_shard_paths_free(paths, count);
    return rc;
}

err_code_t hdf5io_dataset_open(const hdf5io_dataset_config_t *config,
                               hdf5io_dataset_t **out, err_t *err)
{
    hdf5io_dataset_t *dataset = NULL;
    err_code_t rc = mem_new(hdf5io_dataset_t, 1, "a dataset", &dataset, err);

    if (rc == ERR_OK) {
        pthread_mutex_init(&dataset->lock, NULL);
        dataset->transfer = H5P_DEFAULT;
        rc = dataset_open_own(dataset, config, err);
    }
    if (config->mpi != NULL)
        rc = hdf5io_dataset_join(dataset, config->mpi, rc, err);
    if (dataset == NULL)
        return rc;
    for (int k = 0; rc == ERR_OK && k < hdf5io_dataset_targets(dataset); k++)
        rc = hdf5io_dataset_classes_check(dataset, &config->targets[k],
                                          dataset->inputs + k, err);
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
        hdf5io_shard_close(&dataset->shards[i]);
    if (dataset->how.access > 0) {
        h5_lock();
        H5Pclose(dataset->how.access);
        h5_unlock();
    }
    mem_free(dataset->touched);
    mem_free(dataset->shards);
    hdf5io_read_scratch_free(dataset->scratch);
    pthread_mutex_destroy(&dataset->lock);
    for (int k = 0; k < dataset->field_count; k++) {
        free(dataset->fields[k].place);
        free(dataset->fields[k].path);
    }
    mem_free(dataset);
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
    size_t bytes = 0;

    for (int k = 0; k < dataset->field_count; k++)
        bytes += dataset->shards[0].columns[k].row_bytes;
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

void hdf5io_dataset_trace(hdf5io_dataset_t *dataset, trace_t *trace)
{
    dataset->trace = trace;
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

int hdf5io_dataset_open_shards(hdf5io_dataset_t *dataset)
{
    int open = 0;

    pthread_mutex_lock(&dataset->lock);
    for (int s = 0; s < dataset->count; s++)
        open += dataset->shards[s].open;
    pthread_mutex_unlock(&dataset->lock);
    return open;
}
