/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* marks: hashes of a run's data, kept in its checkpoints, so that a later life
 * notices other data. */
#ifndef CDDP_TRAIN_MARKS_H
#define CDDP_TRAIN_MARKS_H

#include "hdf5io/checkpoint.h"
#include "train/data.h"

/* List the marks of both splits for a checkpoint: one row per shard, or, if a
 * split has more than 4096 shards, one row for several. Freed with
 * hdf5io_marks_free. A split that was not read has none. ERR_MEMORY. */
err_code_t train_marks_list(const train_data_t *train,
                            const train_data_t *valid, hdf5io_mark_t **out,
                            int *count, err_t *err);

/* Two lists of marks: those of a checkpoint, and those of the data now. */
typedef struct train_marks_pair {
    const hdf5io_mark_t *then, *now;
    int then_count, now_count;
} train_marks_pair_t;

/* Does split [split] ("train") hold the same data now? If not, [say] tells the
 * difference, with the first shard that differs ("data.train: ..."). True if
 * one of the lists has no marks of the split. Pure. */
bool train_marks_same(const train_marks_pair_t *pair, const char *split,
                      char *say, size_t room);

#endif
