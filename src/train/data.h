/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One split (train or valid) of the data: shards, sampler, loader. */
#ifndef CDDP_TRAIN_DATA_H
#define CDDP_TRAIN_DATA_H

#include "hdf5io/dataset.h"
#include "hdf5io/loader.h"
#include "hdf5io/sampler.h"
#include "nn/nn.h"
#include "train/config.h"
#include "train/same.h"
#include "train/team.h"

/* Batch sizes that one rank meets in one split: a full and a short step, each
 * cut into micro-batches of two sizes. */
#define TRAIN_SIZES_MAX 4

typedef struct train_data {
    hdf5io_dataset_t *dataset; /* NULL: the split is not there */
    hdf5io_sampler_t *sampler;
    hdf5io_loader_t *loader;
    train_marks_t marks;            /* what all ranks see in it */
    int64_t steps;                  /* of an epoch */
    int64_t sizes[TRAIN_SIZES_MAX]; /* micro-batches; 0: unused */
    double bound; /* attribute bound_accuracy of the shards, NaN: none */
} train_data_t;

typedef struct train_split {
    const train_config_t *config;
    const nn_graph_t *graph;
    h5mpi_t *mpi; /* NULL: independent reads */
    int rank, size;
    bool valid; /* which split */
} train_split_t;

/* Open shards and sampler and plan the sizes. Collective with MPI-IO. A split
 * without shards (valid: []) leaves [out] zeroed. */
err_code_t train_data_open(const train_split_t *split, train_data_t *out,
                           err_t *err);

/* Plan [steps] full steps without shards: for a caller that makes the samples.
 */
err_code_t train_data_plan(const train_split_t *split, int64_t steps,
                           train_data_t *out, err_t *err);

/* Start reading at ([epoch], [step]). */
err_code_t train_data_start(const train_split_t *split, train_data_t *data,
                            int64_t epoch, int64_t step, err_t *err);
void train_data_close(train_data_t *data);

/* Samples of a micro-batch when [count] samples are cut into [parts]: all are
 * of this size but the last, which holds the rest. */
int64_t train_micro_size(int64_t count, int64_t parts);

/* The leaves of a step in reproducible mode, and those of this rank. */
typedef struct train_leaves {
    int64_t first, held, leaves;
} train_leaves_t;

/* Of step [step] of [data]; [leaf] is train.microbatch, [batch] train.batch. */
train_leaves_t train_leaves_of(const train_data_t *data, int64_t leaf,
                               int64_t batch, int64_t step);

/* Partial arenas, the main one included, with which [teams] teams fold this
 * rank's leaves in its widest step. */
int train_partials(const train_data_t *data, int64_t leaf, int64_t batch,
                   int teams);

/* Teams of train.leaf_threads that [threads] threads make: no more than this
 * rank ever has leaves, and one in the default mode. */
int train_teams(const train_config_t *config, const train_data_t *data,
                int threads);

/* Threads of such a team; all of [threads] in the default mode. */
int train_team_threads(const train_config_t *config, int threads);

/* The sizes of both splits. */
train_team_sizes_t train_sizes_of(const train_data_t *train,
                                  const train_data_t *valid);

#endif
