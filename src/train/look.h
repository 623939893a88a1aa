/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * look: opens a dataset together. Each shard is opened by one rank, which tells
 * the others what it found (hdf5io/catalogue.h). A file system that all hosts
 * share has one copy of the data; disks of hosts may have a copy each, and then
 * the ranks that see the same copy do this among themselves. Whether all copies
 * are equal is compared later (same.h).
 */
#ifndef CDDP_TRAIN_LOOK_H
#define CDDP_TRAIN_LOOK_H

#include "comm/comm.h"
#include "hdf5io/dataset.h"

typedef struct train_look {
    /* NULL, or a group of one rank: this rank looks at all shards */
    comm_group_t *group;
    const char *what; /* "data.train", for messages; NULL: nothing */
    bool index;       /* rank 0 writes .cddp-index if one is due */
    /* (optional) Called before each shard is opened: a sign of life. */
    void (*alive)(void *context);
    void *context;
} train_look_t;

/*
 * Open the dataset [config]. [rc] is this rank's result so far, with its
 * message in [err]; if it is an error, nothing is opened. Shards at which other
 * ranks looked are closed until they are read. With config->mpi every rank
 * looks at all shards, as MPI-IO keeps them open.
 *
 * Errors as for hdf5io_dataset_open. If one rank of the group has an error, all
 * ranks get it (vote.h). Collective; blocks while shards are opened.
 */
err_code_t train_look_open(const train_look_t *look,
                           const hdf5io_dataset_config_t *config, err_code_t rc,
                           hdf5io_dataset_t **out, err_t *err);

#endif
