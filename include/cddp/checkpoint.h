/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Checkpoints: every rank writes its share of the tensors into HDF5 files in
 * DIRECTORY/step-%010d. The directory gets this name only when it is complete;
 * reading checks every byte. The number of ranks that read a checkpoint may
 * differ from the number that wrote it. h5py and cddp-ckpt read checkpoints,
 * too.
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

/* A tensor of the state. Every rank passes the same tensors, each of them as a
 * whole. To write, the values are the same on all ranks, too. */
typedef struct cddp_tensor {
    const char *name; /* "model/linear.weight", "optimizer/momentum/..." */
    int ndim;
    int64_t dims[6];
    float *data;
} cddp_tensor_t;

/* Position of the training loop, stored with the tensors. */
typedef struct cddp_progress {
    int64_t step;       /* updates done */
    int64_t epoch;      /* number of the epoch in progress, from 0 */
    int64_t epoch_step; /* steps of this epoch done */
    int64_t samples;    /* samples of this epoch that all ranks have consumed */
    uint64_t seed;
} cddp_progress_t;

typedef struct cddp_checkpoint_config {
    const char *directory;
    int keep; /* number of checkpoints to keep, the newest ones; 0: 3 */
    /* Any number that identifies the model. Reading a checkpoint that was
     * written with another number is CDDP_CONFIG. */
    uint64_t model;
    /* Seconds that a rank may wait for storage. Meanwhile it reports to the
     * other ranks, so that they do not give up after the group's timeout.
     * Failed reads are repeated for a quarter of this time, then CDDP_IO is
     * returned. 0: 600. */
    double io_timeout;
} cddp_checkpoint_config_t;

/* Write a checkpoint and publish it. On failure older checkpoints stay. Only
 * one program at a time may write to a directory; others may read from it
 * meanwhile. CDDP_CONFIG: ranks pass different tensors, or pass the same
 * tensors in different orders. */
cddp_code_t cddp_checkpoint_write(cddp_group_t *group,
                                  const cddp_checkpoint_config_t *config,
                                  const cddp_progress_t *progress,
                                  const cddp_tensor_t *tensors, int count,
                                  cddp_error_t *error);

/* Read the newest intact checkpoint of the directory into [tensors]. *found is
 * 0 if there is none; then nothing else is written. A checkpoint that is
 * complete but still has its temporary name, because the write was interrupted,
 * counts, too; the next write renames it. If files of a checkpoint are missing
 * or changed, the next older one is read. CDDP_CONFIG: a later version of
 * cddp wrote the checkpoint, or ranks name different tensors. This is checked
 * even if there is no checkpoint; ranks may name the same tensors in different
 * orders. All ranks get the same result. After an error the tensors are
 * undefined. */
cddp_code_t cddp_checkpoint_read(cddp_group_t *group,
                                 const cddp_checkpoint_config_t *config,
                                 const cddp_tensor_t *tensors, int count,
                                 int *found, cddp_progress_t *progress,
                                 cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
