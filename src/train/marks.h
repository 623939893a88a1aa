/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the data of a run held, kept in its checkpoints, so that a later life
 * that finds other data says so. */
#ifndef CDDP_TRAIN_MARKS_H
#define CDDP_TRAIN_MARKS_H

#include "hdf5io/checkpoint.h"
#include "train/data.h"

/* The marks of both splits as a checkpoint keeps them: a row for each shard,
 * or, beyond 4096 shards of a split, for as many as are one row. Freed with
 * hdf5io_marks_free. Splits that were not looked at have none. ERR_MEMORY. */
err_code_t train_marks_list(const train_data_t *train,
                            const train_data_t *valid, hdf5io_mark_t **out,
                            int *count, err_t *err);

/* Two lists of marks, of then and of now. */
typedef struct train_marks_pair {
    const hdf5io_mark_t *then, *now;
    int then_count, now_count;
} train_marks_pair_t;

/* Does split [split] ("train") hold the same now? False: [say] becomes what
 * differs, naming the first shard ("data.train: ..."), with no word on what
 * follows. True if one of the lists knows nothing of the split. Pure. */
bool train_marks_same(const train_marks_pair_t *pair, const char *split,
                      char *say, size_t room);

#endif
