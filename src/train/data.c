/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/data.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ddp/fold.h"
#include "hdf5io/attribute.h"
#include "hdf5io/descriptor.h"
#include "hdf5io/plan.h"
#include "hdf5io/pool.h"
#include "hdf5io/shard.h"
#include "train/fields.h"
#include "train/limits.h"

int64_t train_micro_size(int64_t count, int64_t parts)
{
    return (count + parts - 1) / parts;
}

_Static_assert(sizeof((train_data_t *)0)->zeros ==
                   sizeof((hdf5io_batch_t *)0)->targets,
               "targets of a batch");

static retry_t retry_of(const train_config_t *config)
{
    return (retry_t){.tries = (int)config->fault.io_retries,
                     .seconds = RETRY_SHARE * config->fault.io_timeout};
}

/* Number of shards of a split that a rank keeps open. Ranks that are threads
 * share the limit of their process, and each has two splits. */
static int open_files_of(const train_split_t *split)
{
    const comm_group_t *group = split->look.group;
    const int64_t asked = split->config->data.open_files;
    int sharers = 2;

    if (asked > 0)
        return (int)asked;
    if (group != NULL && strcmp(comm_group_backend(group), "threads") == 0)
        sharers *= comm_group_size(group);
    return hdf5io_descriptor_share(sharers);
}

/* Bytes in which a rank keeps decoded chunks of a split. */
static size_t memory_of(const train_split_t *split)
{
    const int64_t asked = split->config->data.memory;
    const slurm_memory_t limit = train_limits_node("");

    if (asked > 0)
        return (size_t)asked;
    return (size_t)train_limits_pool(
        &limit,
        train_limits_ranks(split->look.group, split->rank, split->size));
}

static err_code_t shards_open(const train_split_t *split, train_data_t *data,
                              err_t *err)
{
    const train_config_t *config = split->config;
    hdf5io_dataset_config_t shards = {
        .shards = split->valid ? &config->data.valid : &config->data.train,
        .sequence = config->data.sequence,
        .inputs_only = split->inputs_only,
        .whole = config->data.samples == TRAIN_SAMPLES_FILES,
        .retry = retry_of(config),
        .mpi = split->mpi,
        .cache_bytes = memory_of(split),
        .open_files = open_files_of(split),
        /* train_same compares them; nobody else needs them. */
        .digest =
            split->look.group != NULL &&
            (train_validate_t)config->data.validate != TRAIN_VALIDATE_NONE};
    train_look_t look = split->look;
    train_fields_t texts;
    err_code_t rc =
        train_fields_match(config, split->graph, &texts, &shards, err);

    look.index = split->look.group != NULL;
    look.what = split->valid ? "data.valid" : "data.train";
    return train_look_open(&look, &shards, rc, &data->dataset, err);
}

err_code_t train_data_targets(const train_config_t *config, const char **absent,
                              err_t *err)
{
    const opt_map_t *targets = &config->data.target;
    const retry_t retry = retry_of(config);
    const char *missing = NULL;
    char **paths = NULL;
    bool there = targets->count == 0 || config->data.sequence > 0;
    int count = 0;
    err_code_t rc =
        hdf5io_shard_paths(&config->data.valid, &paths, &count, err);

    for (int k = 0; rc == ERR_OK && !there && k < targets->count; k++) {
        missing = train_field(targets, k)->path;
        rc = hdf5io_attribute_link(paths[0], missing, &retry, &there, err);
    }
    hdf5io_shard_paths_free(paths, count);
    if (rc == ERR_OK || rc == ERR_DATA)
        *absent = rc == ERR_OK && !there ? missing : NULL;
    else
        err_prefix(err, "data.valid");
    return rc == ERR_DATA ? ERR_OK : rc;
}

/* Store the two micro-batch sizes of a step in which this rank has [count]
 * samples: the usual size, and that of the last micro-batch if it is
 * smaller. */
static void sizes_add(train_data_t *data, int at, int64_t count, int64_t parts)
{
    int64_t size = train_micro_size(count, parts);

    data->sizes[at] = size;
    data->sizes[at + 1] = size > 0 ? count % size : 0;
}

/* Store the leaf sizes of the reproducible mode: a whole leaf, the last leaf of
 * a full step, and the last leaf of the last step. */
static void leaves_plan(const train_split_t *split, train_data_t *data)
{
    int64_t leaf = split->config->train.microbatch;
    int64_t full = hdf5io_sampler_share(data->sampler, 0).global;
    int64_t last = hdf5io_sampler_share(data->sampler, data->steps - 1).global;

    data->sizes[0] = full < leaf ? 0 : leaf;
    data->sizes[1] = full % leaf;
    data->sizes[2] = last % leaf;
}

/* Store the number of steps and the sizes of micro-batches. */
static void sizes_plan(const train_split_t *split, train_data_t *data)
{
    int64_t parts = split->valid ? 1 : split->config->train.accumulate;
    int64_t last;

    data->steps = hdf5io_sampler_steps(data->sampler);
    last = data->steps - 1;
    if (split->config->train.reproducible) {
        leaves_plan(split, data);
        return;
    }
    sizes_add(data, 0, hdf5io_sampler_share(data->sampler, 0).count, parts);
    sizes_add(data, 2, hdf5io_sampler_share(data->sampler, last).count, parts);
}

/* Whether the order of samples depends on the units of the data. */
static bool has_units(const train_split_t *split, const train_data_t *data)
{
    return !split->valid && data->dataset != NULL &&
           split->config->data.shuffle == HDF5IO_SHUFFLE_CHUNK &&
           split->config->data.lanes > 0;
}

/* Divide the data into units of rows[shards] samples, NULL: as the files say.
 */
static err_code_t units_open(const int64_t *rows, train_data_t *data,
                             err_t *err)
{
    const int shards = hdf5io_dataset_shards(data->dataset);
    int64_t *own = NULL;
    err_code_t rc = ERR_OK;

    if (rows == NULL) {
        rc = mem_new(int64_t, (size_t)shards, "units", &own, err);
        if (rc == ERR_OK)
            hdf5io_dataset_unit_rows(data->dataset, own);
    }
    if (rc == ERR_OK)
        rc = hdf5io_dataset_units(data->dataset, rows == NULL ? own : rows,
                                  &data->units, err);
    mem_free(own);
    return rc;
}

static err_code_t sampler_open(const train_split_t *split, int64_t samples,
                               train_data_t *data, err_t *err)
{
    const train_config_t *config = split->config;
    hdf5io_sampler_config_t order = {
        .samples = samples,
        .batch = config->train.batch,
        .rank = split->rank,
        .size = split->size,
        .grain = config->train.reproducible ? config->train.microbatch : 0,
        .shuffle = split->valid || data->dataset == NULL
                       ? HDF5IO_SHUFFLE_NONE
                       : (hdf5io_shuffle_t)config->data.shuffle,
        .seed = (uint64_t)config->run.seed,
        .lanes = config->data.lanes,
        .units = data->units};

    if (order.shuffle != HDF5IO_SHUFFLE_CHUNK || data->units != NULL)
        order.order = HDF5IO_ORDER_NEWEST;
    return hdf5io_sampler_open(&order, &data->sampler, err);
}

err_code_t train_data_order(const train_split_t *split, const int64_t *rows,
                            train_data_t *data, err_t *err)
{
    err_code_t rc = ERR_OK;

    hdf5io_sampler_close(data->sampler);
    hdf5io_units_close(data->units);
    data->sampler = NULL;
    data->units = NULL;
    if (has_units(split, data))
        rc = units_open(rows, data, err);
    return rc == ERR_OK
               ? sampler_open(split, hdf5io_dataset_samples(data->dataset),
                              data, err)
               : rc;
}

/* Number of threads that read ahead. */
static int readers_of(const train_split_t *split)
{
    const train_config_t *config = split->config;
    const int64_t asked = config->data.threads;
    const int64_t threads = asked > 0 ? asked : split->cores > 1 ? 2 : 1;

    if (split->mpi != NULL)
        return 0;
    return (int)(threads < config->data.prefetch ? threads
                                                 : config->data.prefetch);
}

uint64_t train_data_reading(const train_data_t *data)
{
    if (data->dataset == NULL)
        return 0;
    return hdf5io_plan_bytes(data->readers > 0 ? POOL_AHEAD : 1,
                             hdf5io_sampler_share_max(data->sampler)) +
           hdf5io_dataset_stages(data->dataset,
                                 data->readers > 0 ? data->readers : 1);
}

err_code_t train_data_open(const train_split_t *split, train_data_t *out,
                           err_t *err)
{
    const retry_t retry = retry_of(split->config);
    train_data_t data = {.bound = NAN, .readers = readers_of(split)};
    err_code_t rc;

    if (split->valid && split->config->data.valid.count == 0) {
        *out = data;
        return ERR_OK;
    }
    rc = shards_open(split, &data, err);
    if (rc == ERR_OK)
        rc = train_data_order(split, NULL, &data, err);
    if (rc == ERR_OK)
        sizes_plan(split, &data);
    if (rc == ERR_OK && split->valid && split->rank == 0)
        rc = hdf5io_attribute_read(hdf5io_dataset_shard(data.dataset, 0),
                                   "bound_accuracy", &retry, &data.bound, err);
    if (rc != ERR_OK) {
        train_data_close(&data);
        return rc;
    }
    *out = data;
    return ERR_OK;
}

static err_code_t feed_open(const train_split_t *split, train_data_t *data,
                            err_t *err)
{
    /* Evaluations wait for each batch. */
    const train_feed_plan_t plan = {
        .dev = split->dev,
        .graph = split->graph,
        .loader = data->loader,
        .most = hdf5io_sampler_share_max(data->sampler),
        .slots = split->valid ? 1 : TRAIN_FEED_SLOTS};

    return train_feed_open(&plan, &data->feed, err);
}

err_code_t train_data_plan(const train_split_t *split, int64_t steps,
                           train_data_t *out, err_t *err)
{
    train_data_t data = {.bound = NAN};
    err_code_t rc =
        sampler_open(split, steps * split->config->train.batch, &data, err);

    if (rc == ERR_OK)
        sizes_plan(split, &data);
    if (rc == ERR_OK)
        rc = feed_open(split, &data, err);
    if (rc != ERR_OK) {
        train_data_close(&data);
        return rc;
    }
    *out = data;
    return ERR_OK;
}

/* Make the zeros that stand for targets. */
static err_code_t zeros_make(const nn_graph_t *graph, train_data_t *data,
                             err_t *err)
{
    const size_t most = (size_t)hdf5io_sampler_share_max(data->sampler);
    err_code_t rc = ERR_OK;

    for (int k = 0; k < nn_graph_targets(graph) && rc == ERR_OK; k++)
        rc = mem_alloc(most * nn_graph_target_info(graph, k).bytes, "targets",
                       &data->zeros[k], err);
    return rc;
}

err_code_t train_data_start(const train_split_t *split, train_data_t *data,
                            int64_t epoch, int64_t step, err_t *err)
{
    const train_config_t *config = split->config;
    hdf5io_loader_config_t ahead = {
        .dataset = data->dataset,
        .sampler = data->sampler,
        .prefetch = split->mpi != NULL ? 0 : (int)config->data.prefetch,
        .threads = data->readers,
        /* The next batch is read while the device computes this one. */
        .kept = dev_host_visible(split->dev) || split->valid ? 0 : 1,
        .epoch = epoch,
        .step = step,
        .epochs = split->valid ? INT64_MAX : config->train.epochs,
        .augment = !split->valid,
        .seed = (uint64_t)config->run.seed,
        .rank = split->rank};
    err_code_t rc;

    if (data->dataset == NULL)
        return ERR_OK;
    rc = hdf5io_loader_open(&ahead, &data->loader, err);
    if (rc == ERR_OK && split->inputs_only)
        rc = zeros_make(split->graph, data, err);
    return rc == ERR_OK ? feed_open(split, data, err) : rc;
}

err_code_t train_data_next(train_data_t *data, hdf5io_batch_t **out, err_t *err)
{
    err_code_t rc = hdf5io_loader_next(data->loader, out, err);

    if (rc == ERR_OK && *out != NULL && data->zeros[0] != NULL)
        memcpy((*out)->targets, data->zeros, sizeof data->zeros);
    return rc;
}

void train_data_stop(train_data_t *data)
{
    train_feed_close(data->feed);
    hdf5io_loader_close(data->loader);
    data->feed = NULL;
    data->loader = NULL;
    for (int k = 0; k < NN_FIELDS_MAX; k++) {
        mem_free(data->zeros[k]);
        data->zeros[k] = NULL;
    }
}

void train_data_close(train_data_t *data)
{
    train_data_stop(data);
    hdf5io_sampler_close(data->sampler);
    hdf5io_units_close(data->units);
    hdf5io_dataset_close(data->dataset);
    train_marks_free(&data->marks);
    memset(data, 0, sizeof *data);
}

static comm_leaves_t share_leaves(const hdf5io_share_t *share, int64_t leaf,
                                  int64_t batch, int64_t step)
{
    return (comm_leaves_t){.first =
                               (share->first - step * batch + leaf - 1) / leaf,
                           .held = (share->count + leaf - 1) / leaf,
                           .leaves = (share->global + leaf - 1) / leaf};
}

comm_leaves_t train_leaves_of(const train_data_t *data, int64_t leaf,
                              int64_t batch, int64_t step)
{
    const hdf5io_share_t share = hdf5io_sampler_share(data->sampler, step);

    return share_leaves(&share, leaf, batch, step);
}

void train_leaves_ranges(const train_data_t *data, int64_t leaf, int64_t batch,
                         int64_t step, int ranks, int64_t *ranges)
{
    for (int r = 0; r < ranks; r++) {
        const hdf5io_share_t share =
            hdf5io_sampler_share_of(data->sampler, step, r);
        const comm_leaves_t leaves = share_leaves(&share, leaf, batch, step);

        ranges[2 * r] = leaves.first;
        ranges[2 * r + 1] = leaves.held;
    }
}

int train_partials(const train_data_t *data, int64_t leaf, int64_t batch,
                   int teams)
{
    const int64_t steps[] = {0, data->steps - 1};
    int most = 1;

    for (int i = 0; i < 2; i++) {
        comm_leaves_t mine = train_leaves_of(data, leaf, batch, steps[i]);
        int slots = ddp_fold_slots(mine.first, mine.held, mine.leaves, teams);

        if (slots > most)
            most = slots;
    }
    return most;
}

int train_teams(const train_config_t *config, const train_data_t *data,
                int threads)
{
    int64_t teams = threads / config->train.leaf_threads;
    int64_t held =
        train_leaves_of(data, config->train.microbatch, config->train.batch, 0)
            .held;

    if (!config->train.reproducible || teams < 1 || held < 1)
        return 1;
    return (int)(teams < held ? teams : held);
}

int train_team_threads(const train_config_t *config, int threads)
{
    return config->train.reproducible ? (int)config->train.leaf_threads
                                      : threads;
}

int64_t train_samples_of(const train_data_t *train, const train_data_t *valid)
{
    const train_data_t *const both[] = {train, valid};
    int64_t most = 0;

    for (int i = 0; i < 2; i++) {
        const int64_t count =
            both[i]->sampler == NULL
                ? 0
                : hdf5io_sampler_share(both[i]->sampler, 0).count;

        most = count > most ? count : most;
    }
    return most;
}

train_team_sizes_t train_sizes_of(const train_data_t *train,
                                  const train_data_t *valid)
{
    return (train_team_sizes_t){.train = train->sizes,
                                .eval = valid->sizes,
                                .train_count = TRAIN_SIZES_MAX,
                                .eval_count = TRAIN_SIZES_MAX};
}
