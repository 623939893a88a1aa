/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/data.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "ddp/fold.h"
#include "hdf5io/attribute.h"

int64_t train_micro_size(int64_t count, int64_t parts)
{
    return (count + parts - 1) / parts;
}

static int64_t input_elems(const nn_graph_t *graph, str_buf_t *shape)
{
    int64_t dims[OP_DIMS_MAX];
    int ndim = nn_graph_input(graph, dims);
    int64_t elems = 1;

    for (int d = 0; d < ndim; d++) {
        elems *= dims[d];
        str_buf_add(shape, "%s%lld", d == 0 ? "[" : ", ", (long long)dims[d]);
    }
    str_buf_add(shape, "]");
    return elems;
}

static err_code_t shards_open(const train_split_t *split, train_data_t *data,
                              err_t *err)
{
    const train_config_t *config = split->config;
    str_buf_t shape = {0};
    hdf5io_dataset_config_t shards = {
        .shards = split->valid ? &config->data.valid : &config->data.train,
        .input = &config->data.input,
        .target = &config->data.target,
        .sequence = config->data.sequence,
        .target_is_class = nn_graph_classes(split->graph) > 0,
        .classes = nn_graph_classes(split->graph),
        .tokens = nn_graph_tokens(split->graph),
        .input_elems = input_elems(split->graph, &shape),
        .target_elems = nn_graph_target_elems(split->graph),
        .mpi = split->mpi};
    err_code_t rc;

    shards.ignore = nn_graph_ignored(split->graph, &shards.ignored);
    shards.input_shape = shape.text;
    rc = hdf5io_dataset_open(&shards, &data->dataset, err);
    if (rc != ERR_OK)
        err_prefix(err, "data.%s", split->valid ? "valid" : "train");
    str_buf_free(&shape);
    return rc;
}

/* The micro-batch sizes of a step in which this rank has [count] samples. */
static void sizes_add(train_data_t *data, int at, int64_t count, int64_t parts)
{
    int64_t size = train_micro_size(count, parts);

    data->sizes[at] = size;
    data->sizes[at + 1] = size > 0 ? count % size : 0;
}

/* Leaves of the reproducible mode: whole ones, and what is left at the end of a
 * full and of the last step. */
static void leaves_plan(const train_split_t *split, train_data_t *data)
{
    int64_t leaf = split->config->train.microbatch;
    int64_t full = hdf5io_sampler_share(data->sampler, 0).global;
    int64_t last = hdf5io_sampler_share(data->sampler, data->steps - 1).global;

    data->sizes[0] = full < leaf ? 0 : leaf;
    data->sizes[1] = full % leaf;
    data->sizes[2] = last % leaf;
}

static void sizes_plan(const train_split_t *split, train_data_t *data)
{
    int64_t parts = split->valid ? 1 : split->config->train.accumulate;
    int64_t last = data->steps - 1;

    if (split->config->train.reproducible) {
        leaves_plan(split, data);
        return;
    }
    sizes_add(data, 0, hdf5io_sampler_share(data->sampler, 0).count, parts);
    sizes_add(data, 2, hdf5io_sampler_share(data->sampler, last).count, parts);
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
        .seed = (uint64_t)config->run.seed};
    err_code_t rc;

    rc = hdf5io_sampler_open(&order, &data->sampler, err);
    if (rc != ERR_OK)
        return rc;
    data->steps = hdf5io_sampler_steps(data->sampler);
    sizes_plan(split, data);
    return ERR_OK;
}

err_code_t train_data_open(const train_split_t *split, train_data_t *out,
                           err_t *err)
{
    train_data_t data = {.bound = NAN};
    err_code_t rc;

    if (split->valid && split->config->data.valid.count == 0) {
        *out = data;
        return ERR_OK;
    }
    rc = shards_open(split, &data, err);
    if (rc == ERR_OK)
        rc = sampler_open(split, hdf5io_dataset_samples(data.dataset), &data,
                          err);
    if (rc == ERR_OK && split->valid)
        rc = hdf5io_attribute_read(hdf5io_dataset_shard(data.dataset, 0),
                                   "bound_accuracy", &data.bound, err);
    if (rc != ERR_OK) {
        train_data_close(&data);
        return rc;
    }
    *out = data;
    return ERR_OK;
}

err_code_t train_data_plan(const train_split_t *split, int64_t steps,
                           train_data_t *out, err_t *err)
{
    train_data_t data = {.bound = NAN};
    err_code_t rc =
        sampler_open(split, steps * split->config->train.batch, &data, err);

    if (rc != ERR_OK) {
        train_data_close(&data);
        return rc;
    }
    *out = data;
    return ERR_OK;
}

err_code_t train_data_start(const train_split_t *split, train_data_t *data,
                            int64_t epoch, int64_t step, err_t *err)
{
    const train_config_t *config = split->config;
    int64_t dims[OP_DIMS_MAX];
    int ndim = nn_graph_input(split->graph, dims);
    hdf5io_loader_config_t ahead = {
        .dataset = data->dataset,
        .sampler = data->sampler,
        .prefetch = split->mpi != NULL ? 0 : (int)config->data.prefetch,
        .epoch = epoch,
        .step = step,
        .epochs = split->valid ? INT64_MAX : config->train.epochs,
        .input_elems = 1,
        .target_elems = nn_graph_target_elems(split->graph),
        .target_is_class = nn_graph_classes(split->graph) > 0,
        .rank = split->rank};

    if (data->dataset == NULL)
        return ERR_OK;
    for (int d = 0; d < ndim; d++)
        ahead.input_elems *= dims[d];
    return hdf5io_loader_open(&ahead, &data->loader, err);
}

void train_data_close(train_data_t *data)
{
    hdf5io_loader_close(data->loader);
    hdf5io_sampler_close(data->sampler);
    hdf5io_dataset_close(data->dataset);
    memset(data, 0, sizeof *data);
}

train_leaves_t train_leaves_of(const train_data_t *data, int64_t leaf,
                               int64_t batch, int64_t step)
{
    hdf5io_share_t share = hdf5io_sampler_share(data->sampler, step);

    return (train_leaves_t){.first =
                                (share.first - step * batch + leaf - 1) / leaf,
                            .held = (share.count + leaf - 1) / leaf,
                            .leaves = (share.global + leaf - 1) / leaf};
}

int train_partials(const train_data_t *data, int64_t leaf, int64_t batch,
                   int teams)
{
    const int64_t steps[] = {0, data->steps - 1};
    int most = 1;

    for (int i = 0; i < 2; i++) {
        train_leaves_t mine = train_leaves_of(data, leaf, batch, steps[i]);
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

train_team_sizes_t train_sizes_of(const train_data_t *train,
                                  const train_data_t *valid)
{
    return (train_team_sizes_t){.train = train->sizes,
                                .eval = valid->sizes,
                                .train_count = TRAIN_SIZES_MAX,
                                .eval_count = TRAIN_SIZES_MAX};
}
