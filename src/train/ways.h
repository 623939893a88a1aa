/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* ways: tells how the data of a run is read. */
#ifndef CDDP_TRAIN_WAYS_H
#define CDDP_TRAIN_WAYS_H

#include "base/str.h"
#include "train/data.h"

/* Append a line for each field of the split [name] ("train"): how its bytes are
 * read, why not in a faster way, and what is done to its numbers. Then append
 * how many threads read ahead. If the order has lanes and the data has chunks,
 * also append the memory that this rank needs to decode each chunk only once,
 * and the size of data.memory. Nothing for a split without shards. */
void train_ways_add(const char *name, const train_data_t *data,
                    str_buf_t *text);

#endif
