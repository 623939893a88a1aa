/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A rank of a group of NCCL on emulated GPUs, one process for each rank. */
#ifndef CDDP_TESTS_COMM_NCCL_RIG_H
#define CDDP_TESTS_COMM_NCCL_RIG_H

#include "comm/comm.h"
#include "cuda/emu.h"
#include "lib/ranks.h"

#define NCCL_RIG_COUNT ((size_t)9001)
#define NCCL_RIG_TIMEOUT 60 /* no rank of a working group takes so long */

typedef struct nccl_plan {
    const fake_cuda_t *fake;
    double timeout;
    int order;    /* order of streams */
    int64_t late; /* nccl_late and nccl_silent of fake_cuda_settings_t */
    int64_t silent;
    int64_t fail;     /* number of the call that fails on the last rank */
    const char *what; /* for the test */
    size_t scratch;   /* tree_scratch of the group */
} nccl_plan_t;

typedef struct nccl_rig {
    const nccl_plan_t *plan;
    int rank, size;
    comm_group_t *control, *group;
    dev_device_t *dev;
    dev_stream_t *stream;
    dev_event_t *event;
    comm_arena_t *arena; /* [size * NCCL_RIG_COUNT] doubles on the device */
    char *data;
    double *host, *back; /* [size * NCCL_RIG_COUNT] */
} nccl_rig_t;

/* Each of these functions opens a part of a rig: first the group of the host,
 * then the device with a stream, then the group of NCCL. */
err_code_t nccl_rig_control(nccl_rig_t *rig, const nccl_plan_t *plan,
                            const comm_oob_t *oob, err_t *err);
err_code_t nccl_rig_device(nccl_rig_t *rig, err_t *err);
err_code_t nccl_rig_group(nccl_rig_t *rig, dev_device_t *dev, err_t *err);

/* Open all of a rig. */
err_code_t nccl_rig_open(nccl_rig_t *rig, const nccl_plan_t *plan,
                         const comm_oob_t *oob, err_t *err);
/* A rank that has lost its device frees nothing in the device's memory. */
void nccl_rig_close(nccl_rig_t *rig);

/* Copy [bytes] of rig->host to the device asynchronously; the next collective
 * waits for this copy. */
err_code_t nccl_rig_put(nccl_rig_t *rig, size_t bytes, err_t *err);
/* Copy [bytes] from the device to rig->back, and wait for the stream. */
err_code_t nccl_rig_get(nccl_rig_t *rig, size_t bytes, err_t *err);

/* Run main in [ranks] processes; all of them must succeed. */
void nccl_rig_run(int ranks, ranks_main_t main, nccl_plan_t *plan);

/* Return the number of ranks of run [i], from 0 on, and set the order and the
 * late calls of [plan] for this run. 0: there are no more runs. */
int nccl_rig_vary(nccl_plan_t *plan, int i);

#endif
