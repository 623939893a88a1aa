/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A bucket is copied to the host after the operations that compute it. When all
 * of backward is enqueued, the host waits for the copies one after the other
 * and takes the hook's turns. So the hook sends the first buckets to the other
 * ranks while the device computes the gradients of the last buckets.
 */
#include "ddp/ddp_priv.h"

err_code_t ddp_mirror_open(ddp_t *ddp, err_t *err)
{
    void *mirror = NULL;
    err_code_t rc =
        dev_pinned_alloc(ddp->dev, ddp->grad_elems * sizeof *ddp->mirror,
                         "gradients for a comm hook", &mirror, err);

    ddp->mirror = mirror;
    return rc;
}

void ddp_mirror_close(ddp_t *ddp)
{
    if (ddp->mirror != NULL)
        dev_pinned_free(ddp->dev, ddp->mirror);
}

/* Return [rc], the result of a call of dev with the error [reason]. Tell an
 * error to both groups, as the other ranks may wait in either. */
static err_code_t mirror_result(ddp_t *ddp, err_code_t rc, const err_t *reason,
                                err_t *err)
{
    if (rc != ERR_OK)
        comm_group_fail(ddp->control, reason);
    return ddp_place_result(ddp, rc, reason, err);
}

err_code_t ddp_mirror_start(ddp_t *ddp, int index, err_t *err)
{
    const ddp_bucket_t *bucket = &ddp->buckets[index];
    err_t reason = ERR_INIT;
    err_code_t rc = dev_copy(
        ddp->stream, ddp->mirror + bucket->offset, ddp->grads + bucket->offset,
        bucket->count * sizeof *ddp->grads, DEV_DEV_TO_HOST, &reason);

    if (rc == ERR_OK)
        rc = dev_event_record(ddp->flights[index].after, ddp->stream, &reason);
    ddp->mirrored += rc == ERR_OK;
    return mirror_result(ddp, rc, &reason, err);
}

/* Wait for the copy of bucket [index], and take its turn 0. */
static err_code_t bucket_begin(ddp_t *ddp, int index, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc = dev_event_wait(ddp->flights[index].after, &reason);

    rc = mirror_result(ddp, rc, &reason, err);
    return rc == ERR_OK ? ddp_hooked_start(ddp->hooked, index, err) : rc;
}

static err_code_t sums_return(ddp_t *ddp, dev_stream_t *on, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc = dev_copy(ddp->stream, ddp->grads, ddp->mirror,
                             ddp->grad_elems * sizeof *ddp->grads,
                             DEV_HOST_TO_DEV, &reason);

    if (rc == ERR_OK)
        rc = ddp_place_join(ddp, on, &reason);
    return mirror_result(ddp, rc, &reason, err);
}

err_code_t ddp_mirror_finish(ddp_t *ddp, dev_stream_t *on, err_t *err)
{
    int started = 0;
    err_code_t rc = ERR_OK, ended;

    while (rc == ERR_OK && started < ddp->mirrored) {
        rc = bucket_begin(ddp, started, err);
        started += rc == ERR_OK;
    }
    ended = ddp_hooked_finish(ddp->hooked, started, rc == ERR_OK ? err : NULL);
    if (rc == ERR_OK)
        rc = ended;
    return rc == ERR_OK && started == ddp->bucket_count
               ? sums_return(ddp, on, err)
               : rc;
}
