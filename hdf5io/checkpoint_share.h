/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_share: what one rank writes of a checkpoint: its share of the
 * tensors that all ranks hold, and the parts that it alone holds. These are
 * runs of consecutive elements, in the order of the tensors. Their bytes are
 * the data of the rank's shard.
 *
 * The runs are read where the tensors are. Or the share gets a buffer: then the
 * tensors may change as soon as their runs were copied.
 *
 * Thread rule: several threads may copy disjoint ranges at the same time. All
 * else is for one thread at a time.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_SHARE_H
#define CDDP_HDF5IO_CHECKPOINT_SHARE_H

#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint.h"

typedef struct hdf5io_share hdf5io_share_t;

/* Elements [first, first + count) of the flat tensor number [tensor]. */
typedef struct hdf5io_run {
    int tensor;
    int64_t first, count; /* count > 0 */
    const float *data;    /* in the buffer, if there is one */
} hdf5io_run_t;

/* List what [rank] of [size] ranks writes of [count] tensors, whose data
 * outlives the share. ERR_MEMORY. Local. */
err_code_t hdf5io_share_open(const hdf5io_tensor_t *tensors, int count,
                             int rank, int size, hdf5io_share_t **out,
                             err_t *err);
void hdf5io_share_close(hdf5io_share_t *share); /* NULL allowed */

/* Give the share a buffer for all its elements. ERR_MEMORY. */
err_code_t hdf5io_share_buffer(hdf5io_share_t *share, err_t *err);

/* Number of elements of all runs. */
int64_t hdf5io_share_elems(const hdf5io_share_t *share);

/* Number of elements in the runs of the tensors before number [tensor]: where
 * the runs of that tensor begin in the buffer. */
int64_t hdf5io_share_before(const hdf5io_share_t *share, int tensor);

/* Copy elements [first, last) of the share, counted over all runs, to the
 * buffer. Without a buffer nothing is done. */
void hdf5io_share_copy(hdf5io_share_t *share, int64_t first, int64_t last);

/* The runs, in order. */
int hdf5io_share_runs(const hdf5io_share_t *share);
hdf5io_run_t hdf5io_share_run(const hdf5io_share_t *share, int index);

#endif
