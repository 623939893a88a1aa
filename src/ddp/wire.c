/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "ddp/ddp_priv.h"

int ddp_wire_rank(const ddp_wire_t *wire)
{
    return comm_group_rank(wire->group);
}

int ddp_wire_size(const ddp_wire_t *wire)
{
    return comm_group_size(wire->group);
}

dev_stream_t *ddp_wire_stream(const ddp_wire_t *wire)
{
    return wire->stream;
}

/* Note that all works of [wire] are complete. */
static void wire_complete(ddp_wire_t *wire)
{
    if (!wire->flying)
        return;
    wire->flying = false;
    wire->stats->comm_s += clock_now() - wire->started;
    ddp_bucket_trace(wire->trace, wire->bucket, wire->what, wire->started);
}

/* Prepare the start of another work. On a device the work begins behind what
 * the stream has now. ERR_CONFIG if the table of [wire] is full. */
static err_code_t wire_prepare(ddp_wire_t *wire, err_t *err)
{
    if (wire->count == DDP_WIRE_WORKS)
        return err_set(err, ERR_CONFIG,
                       "a comm hook started more than %d collectives of a "
                       "bucket without waiting for them",
                       DDP_WIRE_WORKS);
    return wire->stream == NULL
               ? ERR_OK
               : comm_group_after_stream(wire->group, wire->after[wire->count],
                                         wire->stream, err);
}

/* Count the start of a collective of kind [what] over [bytes] bytes. */
static void wire_account(ddp_wire_t *wire, const char *what, size_t bytes)
{
    if (!wire->flying) {
        wire->started = clock_now();
        wire->what = what;
    }
    wire->flying = true;
    wire->stats->bytes += (int64_t)bytes;
}

/* Add the work that was started with result [state] to the table. */
static err_code_t wire_started(ddp_wire_t *wire, comm_state_t state,
                               const err_t *err)
{
    if (state == COMM_FAILED)
        return err != NULL ? err->code : ERR_PEER;
    wire->count++;
    check(wire->count <= DDP_WIRE_WORKS, "%d works of %d", wire->count,
          DDP_WIRE_WORKS);
    return ERR_OK;
}

static size_t type_bytes(comm_type_t type)
{
    switch (type) {
    case COMM_BFLOAT16:
    case COMM_FLOAT16:
        return sizeof(uint16_t);
    case COMM_FLOAT32:
    case COMM_INT32:
        return sizeof(float);
    case COMM_FLOAT64:
    case COMM_INT64:
        break;
    }
    return sizeof(double);
}

err_code_t ddp_wire_sum(ddp_wire_t *wire, void *data, size_t count,
                        comm_type_t type, err_t *err)
{
    comm_work_t **work = &wire->works[wire->count];
    err_code_t rc = wire_prepare(wire, err);

    if (rc != ERR_OK)
        return rc;
    *work = NULL;
    wire_account(wire, "all-reduce", count * type_bytes(type));
    return wire_started(wire,
                        comm_allreduce_start(wire->group, data, count, type,
                                             COMM_SUM, work, err),
                        err);
}

err_code_t ddp_wire_gather(ddp_wire_t *wire, const void *mine, size_t bytes,
                           void *all, err_t *err)
{
    comm_work_t **work = &wire->works[wire->count];
    err_code_t rc = wire_prepare(wire, err);

    if (rc != ERR_OK)
        return rc;
    *work = NULL;
    wire_account(wire, "all-gather", bytes);
    return wire_started(
        wire, comm_allgather_start(wire->group, mine, bytes, all, work, err),
        err);
}

void ddp_wire_poll(ddp_wire_t *wire)
{
    for (int i = 0; i < wire->count; i++)
        if (wire->works[i] != NULL &&
            comm_work_poll(wire->works[i]) == COMM_PENDING)
            return;
    wire_complete(wire);
}

/* Wait for every work even after a failure, as each work is a handle to be
 * freed. */
err_code_t ddp_wire_wait(ddp_wire_t *wire, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < wire->count; i++) {
        err_code_t one;

        one = wire->stream != NULL
                  ? comm_work_wait_on(wire->works[i], wire->stream,
                                      rc == ERR_OK ? err : NULL)
                  : comm_work_wait(wire->works[i], rc == ERR_OK ? err : NULL);
        if (rc == ERR_OK)
            rc = one;
    }
    wire->count = 0;
    wire_complete(wire);
    return rc;
}
