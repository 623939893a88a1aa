/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * plan: says which samples the next batches have, in the order of the sampler,
 * epoch after epoch. Batches are numbered; batch 0 is read first. A limited
 * number of batches is known at a time.
 *
 * Thread rule: one thread at a time.
 */
#ifndef CDDP_HDF5IO_PLAN_H
#define CDDP_HDF5IO_PLAN_H

#include <stdint.h>

#include "base/err.h"
#include "hdf5io/sampler.h"

typedef struct hdf5io_plan hdf5io_plan_t;

typedef struct hdf5io_plan_config {
    hdf5io_sampler_t *sampler; /* not owned; only the plan uses it */
    int64_t epoch, step; /* of batch 0; a step after the last step of its epoch
                            counts as the start of the next epoch */
    int64_t epochs;      /* [epoch, epochs) are planned */
    int64_t most;        /* number of batches that are known at a time, >= 1;
                            fewer if a batch has very many samples */
} hdf5io_plan_config_t;

typedef struct plan_batch {
    int64_t epoch, step;
    int64_t count;  /* samples of this rank, may be 0 */
    int64_t global; /* samples of the step over all ranks */
    int64_t *index; /* [count] global sample numbers */
} plan_batch_t;

/* Bytes of a plan that knows up to [most] batches of at most [each] samples. */
uint64_t hdf5io_plan_bytes(int64_t most, int64_t each);

/* ERR_MEMORY. Local. */
err_code_t hdf5io_plan_open(const hdf5io_plan_config_t *config,
                            hdf5io_plan_t **out, err_t *err);
void hdf5io_plan_close(hdf5io_plan_t *plan); /* NULL allowed */

/* Number of batches that are known at a time. */
int64_t hdf5io_plan_most(const hdf5io_plan_t *plan);

/* Get batch [number]. The batches up to number - hdf5io_plan_most are
 * forgotten. NULL: there is no such batch, since the epochs end before it. The
 * result is valid until its batch is forgotten. */
const plan_batch_t *hdf5io_plan_get(hdf5io_plan_t *plan, int64_t number);

#endif
