/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * bench_rig: what `cddp-bench allreduce --device` opens on a rank: a device, a
 * group of the host for barriers and results, a group of the device, and
 * buffers.
 */
#ifndef CDDP_CMD_BENCH_RIG_H
#define CDDP_CMD_BENCH_RIG_H

#include "boot/boot.h"
#include "cmd/bench_args.h"
#include "comm/comm.h"
#include "train/device.h"

typedef struct bench_rig {
    const bench_args_t *args;
    int rank, size;
    train_device_t device;
    comm_group_t *control; /* of the host */
    comm_group_t *group;   /* of the device */
    bool staged;           /* [group] copies data through the host */
    dev_stream_t *stream, *beside;
    dev_event_t *event;
    comm_arena_t *arena;
    /* Of the device. [data] has args->largest bytes, [twin] twice as many. */
    void *plain, *twin;
    float *data;
    float *host;   /* pinned, twice args->largest bytes */
    double *times; /* [BENCH_ROUNDS_MAX] */
} bench_rig_t;

/* Open *out for this rank of [boot], which is closed here. ERR_UNAVAILABLE: the
 * device or its group cannot be opened. ERR_CONFIG: only some ranks have such a
 * device. Close *out after a failure, too. Collective. */
err_code_t bench_rig_open(const bench_args_t *args, boot_t *boot,
                          bench_rig_t *out, err_t *err);

/* If the device was given up (dev_abandon), *lost is set: the process must then
 * end by _exit. */
void bench_rig_close(bench_rig_t *rig, bool *lost);

#endif
