/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_rig.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "comm/comm_data.h"
#include "comm/comm_split.h"

#define TIMEOUT 60.0

/* ---- groups -------------------------------------------------------------- */

static err_code_t control_open(bench_rig_t *rig, boot_t *boot, err_t *err)
{
    const bool threads = strcmp(boot_name(boot), "threads") == 0;
    const comm_config_t config = {
        .backend = comm_control_backend(rig->args->backend, rig->size,
                                        threads ? "threads" : "ucx"),
        .timeout = TIMEOUT,
        .table_path = rig->args->table};
    const comm_oob_t oob = {.context = boot,
                            .rank = rig->rank,
                            .size = rig->size,
                            .exchange = boot_exchange_call};

    return comm_group_open(&config, &oob, &rig->control, err);
}

/* All waits for the device call this, so that they end if a rank fails. */
static err_code_t rig_look(void *context, double waited, err_t *err)
{
    const bench_rig_t *rig = context;

    return rig->group == NULL ? ERR_OK
                              : comm_group_look(rig->group, waited, err);
}

static err_code_t data_open(bench_rig_t *rig, err_t *err)
{
    const comm_config_t config = {
        .backend = comm_data_backend(rig->args->backend,
                                     comm_group_backend(rig->control),
                                     rig->device.dev),
        .timeout = TIMEOUT,
        .table_path = rig->args->table,
        .dev = rig->device.dev};
    err_code_t rc = comm_split_whole(rig->control, &config, &rig->group, err);
    const char *backend = rc == ERR_OK ? comm_group_backend(rig->group) : "";

    rig->staged =
        rc == ERR_OK && comm_group_dev(rig->group) != NULL &&
        (strcmp(backend, "ucx") == 0 || strcmp(backend, "threads") == 0);
    if (rc == ERR_OK)
        dev_watch(rig->device.dev, rig_look, rig);
    return rc;
}

/* ---- the device ---------------------------------------------------------- */

/* The number of this rank among those of its host. */
static int local_of(const bench_rig_t *rig)
{
    const char *mine = comm_group_host(rig->control, rig->rank);
    int local = 0;

    for (int r = 0; r < rig->rank; r++)
        local += strcmp(comm_group_host(rig->control, r), mine) == 0;
    return local;
}

/* If two ranks of a host have one GPU, let NCCL accept that. Collective. */
static err_code_t sharing_find(const bench_rig_t *rig, err_t *err)
{
    int a, b;
    err_code_t rc =
        comm_sharers_find(rig->control, rig->device.info.uuid, &a, &b, err);

    if (rc != ERR_OK || a < 0)
        return rc;
    comm_sharing_allow(rig->rank);
    if (rig->rank == 0)
        log_warn("bench",
                 "ranks %d and %d on %s share a GPU: they take turns on it, "
                 "and their data does not go from GPU to GPU",
                 a, b, comm_group_host(rig->control, a));
    return ERR_OK;
}

static err_code_t device_open(bench_rig_t *rig, err_t *err)
{
    train_config_t config = {0};
    err_code_t rc;

    config.train.device = rig->args->device;
    rc = train_device_open(&config, rig->size > 1 ? rig->control : NULL,
                           local_of(rig), &rig->device, err);
    if (rc == ERR_OK)
        rc = sharing_find(rig, err);
    if (rc == ERR_OK)
        rc = dev_stream_open(rig->device.dev, DEV_STREAM_COMPUTE, &rig->stream,
                             err);
    if (rc == ERR_OK)
        rc = dev_stream_open(rig->device.dev, DEV_STREAM_COPY, &rig->beside,
                             err);
    if (rc == ERR_OK)
        rc = dev_event_open(rig->device.dev, &rig->event, err);
    return rc;
}

static err_code_t buffers_open(bench_rig_t *rig, err_t *err)
{
    dev_device_t *dev = rig->device.dev;
    const size_t bytes = rig->args->largest;
    void *host = NULL;
    err_code_t rc = rig->args->plain
                        ? dev_alloc(dev, bytes, "buffer", &rig->plain, err)
                        : comm_arena_open(rig->group, bytes, &rig->arena, err);

    if (rc == ERR_OK)
        rc = dev_alloc(dev, 2 * bytes, "buffer", &rig->twin, err);
    if (rc == ERR_OK)
        rc = dev_pinned_alloc(dev, 2 * bytes, "buffer", &host, err);
    if (rc == ERR_OK)
        rc = mem_new(double, BENCH_ROUNDS_MAX, "times", &rig->times, err);
    rig->host = host;
    if (rc == ERR_OK)
        rig->data =
            rig->plain != NULL ? rig->plain : comm_arena_data(rig->arena);
    return rc;
}

/* ---- all of it ----------------------------------------------------------- */

err_code_t bench_rig_open(const bench_args_t *args, boot_t *boot,
                          bench_rig_t *out, err_t *err)
{
    err_code_t rc;

    *out = (bench_rig_t){
        .args = args, .rank = boot_rank(boot), .size = boot_size(boot)};
    rc = control_open(out, boot, err);
    boot_close(boot);
    if (rc == ERR_OK)
        rc = device_open(out, err);
    if (rc == ERR_OK)
        rc = data_open(out, err);
    if (rc == ERR_OK)
        rc = buffers_open(out, err);
    return rc;
}

void bench_rig_close(bench_rig_t *rig, bool *lost)
{
    dev_device_t *dev = rig->device.dev;

    mem_free(rig->times);
    if (dev != NULL) {
        dev_pinned_free(dev, rig->host);
        dev_free(dev, rig->twin);
        dev_free(dev, rig->plain);
    }
    comm_arena_close(rig->arena);
    comm_group_close(rig->group);
    rig->group = NULL; /* what follows must not look at it */
    dev_event_close(rig->event);
    dev_stream_close(rig->beside);
    dev_stream_close(rig->stream);
    if (dev != NULL && dev_abandoned(dev))
        *lost = true;
    dev_close(dev);
    comm_group_close(rig->control);
}
