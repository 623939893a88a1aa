/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One split of the data, train or valid: its shards, sampler and loader. */
#ifndef CDDP_TRAIN_DATA_H
#define CDDP_TRAIN_DATA_H

#include "comm/comm_collective.h"
#include "hdf5io/dataset.h"
#include "hdf5io/dataset_tell.h"
#include "hdf5io/loader.h"
#include "hdf5io/sampler.h"
#include "nn/nn.h"
#include "train/config.h"
#include "train/feed.h"
#include "train/look.h"
#include "train/same.h"
#include "train/team.h"

/* Maximum number of micro-batch sizes of a rank in one split: two in a full
 * step, two in a short step. */
#define TRAIN_SIZES_MAX 4

typedef struct train_data {
    hdf5io_dataset_t *dataset; /* NULL if the split has no shards */
    hdf5io_units_t *units;     /* NULL: the order needs none */
    hdf5io_sampler_t *sampler;
    hdf5io_loader_t *loader;
    train_feed_t *feed;  /* brings its batches to the device */
    train_marks_t marks; /* hashes of the shards */
    /* If the samples have no targets: zeros for a batch, for each target of the
     * graph. NULL: the samples have targets. */
    void *zeros[NN_FIELDS_MAX];
    int64_t steps; /* steps of an epoch */
    int readers;   /* threads that read ahead; 0: the training thread reads */
    int64_t sizes[TRAIN_SIZES_MAX]; /* micro-batch sizes; 0: unused entry */
    hdf5io_reads_t told; /* what rows of metrics.jsonl have told of its reads */
    double waited;       /* the same of waiting for its batches, in seconds */
    double bound; /* best possible accuracy: attribute bound_accuracy of the
                     shards; NaN: none. train_data_open sets it on rank 0. */
} train_data_t;

typedef struct train_split {
    const train_config_t *config;
    const nn_graph_t *graph;
    h5mpi_t *mpi;      /* NULL: independent reads */
    dev_device_t *dev; /* computes with the samples */
    /* (optional) The group that opens the shards together. [what] is not
     * used. */
    train_look_t look;
    int rank, size;
    int cores;        /* cores that this rank has for itself */
    bool valid;       /* true: the valid split; false: the train split */
    bool inputs_only; /* its samples have no targets */
} train_split_t;

/* Find out whether the samples of the valid split have targets. If the first
 * shard has none of the datasets of data.target, *absent becomes the name of
 * one of them, valid as long as [config]. If it has one of them, or is damaged,
 * *absent becomes NULL. Samples of a stream always have targets. ERR_IO,
 * ERR_UNAVAILABLE, ERR_MEMORY. Local. */
err_code_t train_data_targets(const train_config_t *config, const char **absent,
                              err_t *err);

/* Open shards and sampler, and plan the micro-batch sizes. Collective over the
 * group of split->look, and with MPI-IO; a vote has to follow. A split without
 * shards (valid: []) leaves [out] zeroed. */
err_code_t train_data_open(const train_split_t *split, train_data_t *out,
                           err_t *err);

/* Open the sampler of an open dataset (again). rows[shards] are the samples of
 * each shard that are read together, NULL: as this rank's files say. The shares
 * of ranks stay the same. Local; before train_data_start. */
err_code_t train_data_order(const train_split_t *split, const int64_t *rows,
                            train_data_t *data, err_t *err);

/* Plan [steps] full steps without shards, for a caller that makes the samples
 * itself. Local. */
err_code_t train_data_plan(const train_split_t *split, int64_t steps,
                           train_data_t *out, err_t *err);

/* Start to read ahead from step [step] of epoch [epoch] on. Nothing is done for
 * a split without shards. Local. */
err_code_t train_data_start(const train_split_t *split, train_data_t *data,
                            int64_t epoch, int64_t step, err_t *err);
/* Bytes of the host's memory that reading ahead needs for the plan of the
 * batches, and for the buffers of the reads that run at the same time. Batches,
 * chunks and short rows are not counted. 0 for a split without shards. */
uint64_t train_data_reading(const train_data_t *data);
/* hdf5io_loader_next. The targets of samples that have none are zeros. */
err_code_t train_data_next(train_data_t *data, hdf5io_batch_t **out,
                           err_t *err);

/* Stop reading ahead, so that train_data_start can begin at another place.
 * Local. */
void train_data_stop(train_data_t *data);
void train_data_close(train_data_t *data); /* a zeroed one is allowed */

/* Samples of a micro-batch if [count] samples are divided into [parts]. The
 * last micro-batch may be smaller. */
int64_t train_micro_size(int64_t count, int64_t parts);

/* This rank's leaves of step [step] of [data], in reproducible mode; [leaf] is
 * train.microbatch, [batch] is train.batch. */
comm_leaves_t train_leaves_of(const train_data_t *data, int64_t leaf,
                              int64_t batch, int64_t step);

/* Find the leaves of all [ranks] ranks in step [step] of an epoch. For each
 * rank, [ranges] gets the number of the first leaf and the number of leaves
 * (comm_leaves_t). */
void train_leaves_ranges(const train_data_t *data, int64_t leaf, int64_t batch,
                         int64_t step, int ranks, int64_t *ranges);

/* Number of partial arenas in which [teams] teams, the main team included, fold
 * this rank's leaves in its largest step. */
int train_partials(const train_data_t *data, int64_t leaf, int64_t batch,
                   int teams);

/* Number of teams of train.leaf_threads threads that [threads] threads can
 * make, at most the number of this rank's leaves. 1 in the default mode. */
int train_teams(const train_config_t *config, const train_data_t *data,
                int threads);

/* Threads of one team; all [threads] in the default mode. */
int train_team_threads(const train_config_t *config, int threads);

/* The most samples that this rank has in a batch of either split. */
int64_t train_samples_of(const train_data_t *train, const train_data_t *valid);

/* The micro-batch sizes of both splits. */
train_team_sizes_t train_sizes_of(const train_data_t *train,
                                  const train_data_t *valid);

#endif
