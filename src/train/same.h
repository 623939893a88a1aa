/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Do all ranks see the same samples? Each rank reads its share by number, so a
 * node whose files are others (an old copy, a mount of something else) would
 * train on them without a word.
 *
 * Each rank compares shapes and numbers of samples by itself, as it has opened
 * all shards anyway. The bytes are read once a host: ranks that look at the
 * same files (same host, same mounts, same inodes) divide them among
 * themselves. What rank 0's host has found is the reference for all.
 */
#ifndef CDDP_TRAIN_SAME_H
#define CDDP_TRAIN_SAME_H

#include "comm/comm.h"
#include "hdf5io/dataset.h"

typedef enum train_validate {
    TRAIN_VALIDATE_QUICK, /* a sample of the bytes */
    TRAIN_VALIDATE_FULL,  /* and all bytes */
    TRAIN_VALIDATE_NONE   /* shapes and numbers of samples only */
} train_validate_t;

/* What the shards of a dataset hold, the same on all ranks; hashes as
 * hdf5io/digest.h has them, of all fields of a shard in one. */
typedef struct train_marks {
    int shards;
    uint64_t *quick; /* [shards]; NULL: not looked at */
    uint64_t *full;  /* [shards]; NULL: the same */
} train_marks_t;

typedef struct train_same {
    comm_group_t *group;
    const char *what; /* "data.train", for sentences */
    train_validate_t how;
    void (*alive)(void *context); /* (optional) while bytes are read */
    void *context;
} train_same_t;

/*
 * Compare what this rank sees with what rank 0 sees. ERR_DATA on the ranks that
 * see something else (the sentence names shard, field and rank 0's host);
 * ERR_OK on those that see the same, so that a vote has to follow. [out] is
 * filled on success; train_marks_free frees what is inside. Collective; blocks
 * for the reading.
 */
err_code_t train_same(const train_same_t *same, hdf5io_dataset_t *dataset,
                      train_marks_t *out, err_t *err);
void train_marks_free(train_marks_t *marks);

#endif
