/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Looking at shards. A shard that this process looks at is opened, and its
 * facts are stored in the catalogue. Facts of other shards may come from ranks
 * that looked at them. When all are known, each rank compares the shards with
 * each other and with the model (dataset_fits.c), and numbers them. So all
 * ranks find a misfit, and none is named for it.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/dataset_index.h"

/* Descriptors reserved for the rest of the program. */
#define DATASET_SPARE_FILES 256

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
            files +=
                (rlim_t)hdf5io_dataset_columns(dataset, &dataset->shards[i])[k]
                    .files;
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

/* Has column [k] of [other] the shape that it has in [first]? */
static err_code_t dataset_same_shape(const hdf5io_dataset_t *dataset, int k,
                                     const hdf5io_shard_t *first,
                                     const hdf5io_shard_t *other, err_t *err)
{
    const hdf5io_column_t *a = &hdf5io_dataset_columns(dataset, first)[k];
    const hdf5io_column_t *b = &hdf5io_dataset_columns(dataset, other)[k];
    bool same = a->ndim == b->ndim;
    char here[256], there[256];

    for (int i = 0; same && i < a->ndim; i++)
        same = a->dims[i] == b->dims[i];
    if (same)
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "shapes disagree: samples of %s are %s in %s, but %s in "
                   "%s: all shards need the same",
                   a->path, hdf5io_column_shape(a, here, sizeof here),
                   first->path, hdf5io_column_shape(b, there, sizeof there),
                   other->path);
}

/* Arguments and results of one try to look at a shard, see retry.h. */
typedef struct look_try {
    hdf5io_dataset_t *dataset;
    const char *path;
    hdf5io_shard_t *out;
    bool digest;       /* digests are wanted */
    bool digested;     /* they were found */
    uint64_t *digests; /* [columns] */
} look_try_t;

/* Does the shard refer to other files? */
static bool look_refers(const hdf5io_shard_t *shard)
{
    for (int k = 0; k < shard->count; k++)
        if (shard->columns[k].elsewhere)
            return true;
    return false;
}

/* Open the shard, without HDF5 if an earlier shard had the same headers. */
static err_code_t look_file(look_try_t *try, hdf5io_shard_t *out, err_t *err)
{
    hdf5io_dataset_t *dataset = try->dataset;
    const bool compare = dataset->count > 1 && dataset->mpi == NULL;
    err_code_t rc;

    if (compare &&
        hdf5io_alike_open(dataset->alike, &dataset->how, try->path, out))
        return ERR_OK;
    rc =
        hdf5io_shard_look(&dataset->how, try->path,
                          hdf5io_dataset_owner(dataset, try->out, 0), out, err);
    if (rc == ERR_OK && compare)
        hdf5io_alike_learn(out, &dataset->alike);
    return rc;
}

/* Open the shard and find its digests, if they are wanted. */
static err_code_t look_once(look_try_t *try, err_t *err)
{
    hdf5io_shard_t shard;
    err_code_t rc = look_file(try, &shard, err);

    if (rc != ERR_OK)
        return rc;
    try->digested = try->digest && !look_refers(&shard);
    for (int k = 0; try->digested && k < shard.count && rc == ERR_OK; k++) {
        errno = 0;
        rc = hdf5io_shard_digest(&shard, k, try->dataset->count,
                                 &try->digests[k], err);
    }
    if (rc == ERR_OK)
        *try->out = shard;
    else
        hdf5io_shard_rest(&shard);
    return rc;
}

static err_code_t look_attempt(void *context, int *number, err_t *err)
{
    look_try_t *try = context;
    err_code_t rc;

    do
        rc = look_once(try, err);
    while (rc == ERR_UNAVAILABLE && errno == EMFILE &&
           hdf5io_dataset_rest_oldest(try->dataset));
    if (rc == ERR_OK)
        return rc;
    if (rc == ERR_IO || rc == ERR_UNAVAILABLE ||
        retry_cause(errno) == RETRY_FORBIDDEN)
        *number = errno;
    return rc;
}

/* Look at the shard. With MPI-IO an error is final. */
static err_code_t look_open(look_try_t *try, err_t *err)
{
    hdf5io_dataset_t *dataset = try->dataset;

    if (dataset->mpi != NULL)
        return look_once(try, err);
    return retry_run(&dataset->retry, try->path, look_attempt, try, NULL, err);
}

/* Make room for the columns of all shapes. */
static err_code_t dataset_likes_grow(hdf5io_dataset_t *dataset, err_t *err)
{
    const int shapes = hdf5io_catalogue_shapes(dataset->catalogue);
    hdf5io_column_t **larger = NULL;
    err_code_t rc;

    if (shapes <= dataset->like_count)
        return ERR_OK;
    rc = mem_new(hdf5io_column_t *, (size_t)shapes, "the shapes of shards",
                 &larger, err);
    if (rc != ERR_OK)
        return rc;
    for (int s = 0; s < dataset->like_count; s++)
        larger[s] = dataset->likes[s];
    mem_free(dataset->likes);
    dataset->likes = larger;
    dataset->like_count = shapes;
    return ERR_OK;
}

/* Set the shape of shard [index], whose facts are known. */
static err_code_t dataset_shape_know(hdf5io_dataset_t *dataset, int index,
                                     err_t *err)
{
    hdf5io_shard_t *shard = &dataset->shards[index];
    hdf5io_shard_t like;
    catalogue_facts_t facts;
    err_code_t rc = dataset_likes_grow(dataset, err);

    if (rc != ERR_OK)
        return rc;
    shard->shape = hdf5io_catalogue_shape(dataset->catalogue, index);
    if (dataset->likes[shard->shape] != NULL)
        return ERR_OK;
    hdf5io_shard_init(&like);
    rc = hdf5io_shard_columns_make(&like, dataset->field_count, err);
    if (rc != ERR_OK)
        return rc;
    hdf5io_catalogue_get(dataset->catalogue, index, &facts);
    hdf5io_shard_columns_fill(&dataset->how, shard->path, &facts, like.columns);
    dataset->likes[shard->shape] = like.columns;
    return ERR_OK;
}

err_code_t hdf5io_dataset_suits(hdf5io_dataset_t *dataset,
                                const hdf5io_shard_t *shard, err_t *err)
{
    const hdf5io_shard_t *first = &dataset->shards[0];
    err_code_t rc = ERR_OK;

    for (int k = 0; first->path != NULL && k < shard->count && rc == ERR_OK;
         k++)
        rc = dataset_same_shape(dataset, k, first, shard, err);
    if (rc == ERR_OK)
        rc = hdf5io_dataset_transforms_make(dataset, shard, err);
    return rc == ERR_OK
               ? hdf5io_dataset_fits(dataset, dataset->config, shard, err)
               : rc;
}

/* Make shard [index] from its facts, as this process has not opened it. The
 * shard stays closed. */
static err_code_t dataset_shard_restore(hdf5io_dataset_t *dataset, int index,
                                        err_t *err)
{
    const char *path = hdf5io_catalogue_path(dataset->catalogue, index);
    hdf5io_shard_t *shard = &dataset->shards[index];
    catalogue_facts_t facts;

    if (shard->path != NULL)
        return ERR_OK;
    if (!hdf5io_catalogue_get(dataset->catalogue, index, &facts))
        return err_set(err, ERR_DATA, "nothing is known of %s", path);
    shard->path = path;
    shard->bytes = facts.bytes;
    shard->place = facts.place;
    shard->rows = facts.rows;
    shard->cached = (size_t)facts.cached;
    shard->count = dataset->field_count;
    return dataset_shape_know(dataset, index, err);
}

/* Open the shard and keep its facts. */
static err_code_t look_shard(hdf5io_dataset_t *dataset, int index, err_t *err)
{
    hdf5io_shard_t *shard = &dataset->shards[index];
    catalogue_column_t columns[CATALOGUE_FIELDS_MAX];
    uint64_t digests[CATALOGUE_FIELDS_MAX] = {0};
    look_try_t try = {.dataset = dataset, .out = shard, .digests = digests};
    catalogue_facts_t facts;
    err_code_t rc;

    try.path = hdf5io_catalogue_path(dataset->catalogue, index);
    try.digest = dataset->config->digest && dataset->mpi == NULL;
    rc = look_open(&try, err);
    if (rc != ERR_OK)
        return rc;
    hdf5io_dataset_opened(dataset, shard);
    hdf5io_shard_facts(shard, columns, &facts);
    facts.digested = try.digested;
    memcpy(facts.digests, digests, sizeof digests);
    rc = hdf5io_catalogue_set(dataset->catalogue, index, &facts, err);
    if (rc == ERR_OK)
        rc = dataset_shape_know(dataset, index, err);
    if (rc == ERR_OK)
        hdf5io_dataset_trim(dataset, shard);
    return rc;
}

err_code_t hdf5io_dataset_look(hdf5io_dataset_t *dataset, int index, err_t *err)
{
    catalogue_facts_t facts;
    err_code_t rc;

    check(index >= 0 && index < dataset->count &&
              dataset->shards[index].path == NULL && dataset->config != NULL,
          "a look at shard %d of %d", index, dataset->count);
    if (!hdf5io_dataset_index_facts(dataset, index, &facts))
        return look_shard(dataset, index, err);
    rc = hdf5io_catalogue_set(dataset->catalogue, index, &facts, err);
    return rc == ERR_OK ? dataset_shard_restore(dataset, index, err) : rc;
}

/* Number the samples of shard [index], which follow those before it. */
static err_code_t dataset_shard_place(hdf5io_dataset_t *dataset, int index,
                                      err_t *err)
{
    hdf5io_shard_t *shard = &dataset->shards[index];
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, shard);

    shard->first = dataset->samples;
    if (__builtin_add_overflow(dataset->samples, shard->rows,
                               &dataset->samples))
        return err_set(err, ERR_DATA,
                       "the shards up to %s hold more samples than can be "
                       "counted: the header of one is wrong",
                       shard->path);
    for (int k = 0; k < shard->count; k++)
        if (columns[k].row_bytes > dataset->row_bytes)
            dataset->row_bytes = columns[k].row_bytes;
    return ERR_OK;
}

err_code_t hdf5io_dataset_settle(hdf5io_dataset_t *dataset, err_t *err)
{
    const char *first = hdf5io_catalogue_path(dataset->catalogue, 0);
    err_code_t rc = ERR_OK;

    /* No shard is looked at any more. */
    hdf5io_alike_close(dataset->alike);
    dataset->alike = NULL;
    for (int i = 0; i < dataset->count && rc == ERR_OK; i++) {
        rc = dataset_shard_restore(dataset, i, err);
        if (rc == ERR_OK)
            rc = hdf5io_dataset_suits(dataset, &dataset->shards[i], err);
        if (rc == ERR_OK)
            rc = dataset_shard_place(dataset, i, err);
    }
    if (rc == ERR_OK)
        rc = dataset_sources_allow(dataset, err);
    if (rc == ERR_OK && dataset->samples == 0 && dataset->count == 1)
        rc = err_set(err, ERR_DATA, "%s holds no samples", first);
    else if (rc == ERR_OK && dataset->samples == 0)
        rc = err_set(err, ERR_DATA,
                     "none of the %d shards holds a sample; the first is %s",
                     dataset->count, first);
    if (rc == ERR_OK)
        hdf5io_dataset_bands_choose(dataset);
    return rc;
}
