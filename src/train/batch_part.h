/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#ifndef CDDP_TRAIN_BATCH_PART_H
#define CDDP_TRAIN_BATCH_PART_H

#include "hdf5io/loader.h"
#include "nn/nn.h"

/* The samples of [whole] from index [from] on, in the form that nn reads. */
nn_batch_t train_batch_part(const nn_graph_t *graph,
                            const hdf5io_batch_t *whole, int64_t from);

#endif
