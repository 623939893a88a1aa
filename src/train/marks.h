/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* marks: hashes of a run's data. Its checkpoints store them, so that a later
 * life notices if the data has changed. */
#ifndef CDDP_TRAIN_MARKS_H
#define CDDP_TRAIN_MARKS_H

#include "hdf5io/checkpoint.h"
#include "train/data.h"

/* List the marks of both splits for a checkpoint. A split has one row per
 * shard, or, above 4096 shards, one row for several shards. A split that was
 * not read has no rows. Freed with hdf5io_marks_free. ERR_MEMORY. */
err_code_t train_marks_list(const train_data_t *train,
                            const train_data_t *valid, hdf5io_mark_t **out,
                            int *count, err_t *err);

/* The marks of a checkpoint and the marks of the data as it is now. */
typedef struct train_marks_pair {
    const hdf5io_mark_t *then, *now;
    int then_count, now_count;
} train_marks_pair_t;

/* Return whether split [split] ("train") has the samples that it had when the
 * checkpoint was written. If not, [say] tells the difference, and names the
 * first shard that differs ("data.train: ..."). True if one of the lists has no
 * marks of the split. Pure. */
bool train_marks_same(const train_marks_pair_t *pair, const char *split,
                      char *say, size_t room);

#endif
