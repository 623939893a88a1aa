/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Checkpoints: every rank writes its share of the tensors into HDF5 files below
 * DIRECTORY/step-%010d, which shows up under that name only once it is whole;
 * reading checks every byte. Any number of ranks can go on from what another
 * number has written. h5py and cddp-ckpt read them.
 *
 * Thread rule: one thread per rank; collective.
 */
#ifndef CDDP_CHECKPOINT_H
#define CDDP_CHECKPOINT_H

#include <stdint.h>

#include <cddp/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of the state, whole and the same on every rank. */
typedef struct cddp_tensor {
    const char *name; /* "model/linear.weight", "optimizer/momentum/..." */
    int ndim;
    int64_t dims[6];
    float *data;
} cddp_tensor_t;

/* Where the loop stands; kept with the tensors. */
typedef struct cddp_progress {
    int64_t step;       /* updates done */
    int64_t epoch;      /* in progress, from 0 */
    int64_t epoch_step; /* steps of it done */
    int64_t samples;    /* of it consumed by all ranks */
    uint64_t seed;
} cddp_progress_t;

typedef struct cddp_checkpoint_config {
    const char *directory;
    int keep;       /* newest checkpoints that are kept; 0: 3 */
    uint64_t model; /* any number; reading with another one is refused
                       (CDDP_CONFIG) */
    /* Seconds that a rank may be kept by storage: meanwhile it tells the others
     * that it lives, so that they do not give up after the group's timeout; and
     * storage that cannot be read (CDDP_IO in the end) is tried again for a
     * quarter of it. 0: 600. */
    double io_timeout;
} cddp_checkpoint_config_t;

/* Write and publish. On failure older checkpoints stay. One program at a time
 * writes to a directory; others may read from it meanwhile. */
cddp_code_t cddp_checkpoint_write(cddp_group_t *group,
                                  const cddp_checkpoint_config_t *config,
                                  const cddp_progress_t *progress,
                                  const cddp_tensor_t *tensors, int count,
                                  cddp_error_t *error);

/* Read the newest whole checkpoint of the directory into [tensors]; *found is 0
 * when there is none at all, and then nothing else is written. What an
 * interrupted write has left whole is read, too; the next write gives it its
 * name. Only what is missing or has another size or content is passed over for
 * an older one. */
cddp_code_t cddp_checkpoint_read(cddp_group_t *group,
                                 const cddp_checkpoint_config_t *config,
                                 const cddp_tensor_t *tensors, int count,
                                 int *found, cddp_progress_t *progress,
                                 cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
