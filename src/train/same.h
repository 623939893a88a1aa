/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * same: checks that all ranks see equal samples. Each rank reads its share by
 * sample number, so a node with other files (an old copy, another mount) would
 * train on them unnoticed.
 *
 * Each rank compares shapes and numbers of samples alone, as it knows them of
 * all shards anyway. A sample of the bytes is read when a shard is opened, by
 * one of the ranks that see the same files (look.h). All bytes are read once
 * per host: ranks that see the same files (one host, one set of mounts, equal
 * inodes) divide them among themselves. The hashes of rank 0's host are the
 * reference for all ranks.
 */
#ifndef CDDP_TRAIN_SAME_H
#define CDDP_TRAIN_SAME_H

#include "comm/comm.h"
#include "hdf5io/dataset.h"

typedef enum train_validate {
    TRAIN_VALIDATE_QUICK, /* compare a sample of the bytes */
    TRAIN_VALIDATE_FULL,  /* compare that sample and then all bytes */
    TRAIN_VALIDATE_NONE,  /* compare shapes and numbers of samples only */
    TRAIN_VALIDATE_LABELS /* here as quick; see values.h */
} train_validate_t;

/* Hashes of the shards of a dataset. A hash covers all fields of its shard (see
 * hdf5io/digest.h). Equal on all ranks. */
typedef struct train_marks {
    int shards;
    uint64_t *quick; /* [shards], of a sample of the bytes; NULL: not read */
    uint64_t *full;  /* [shards], of all bytes; NULL: not read */
} train_marks_t;

typedef struct train_same {
    comm_group_t *group;
    const char *what; /* "data.train", for messages */
    train_validate_t how;
    /* NULL or called now and then while bytes are read. */
    void (*alive)(void *context);
    void *context;
} train_same_t;

/*
 * Compare the data that this rank sees with rank 0's data. Ranks with other
 * data get ERR_DATA, with a message that names shard, field and rank 0's host.
 * The other ranks get ERR_OK, so a vote has to follow. [out] is filled on
 * success; train_marks_free frees it. Collective; blocks while data is read.
 */
err_code_t train_same(const train_same_t *same, hdf5io_dataset_t *dataset,
                      train_marks_t *out, err_t *err);
void train_marks_free(train_marks_t *marks);

#endif
