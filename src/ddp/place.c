/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <string.h>

#include "ddp/ddp_priv.h"

err_code_t ddp_place_result(ddp_t *ddp, err_code_t rc, const err_t *reason,
                            err_t *err)
{
    return comm_group_result(ddp->group, rc, reason, err);
}

err_code_t ddp_place_join(ddp_t *ddp, dev_stream_t *on, err_t *reason)
{
    dev_event_t *event = ddp->flights[0].after;
    err_code_t rc;

    if (on == NULL)
        return dev_stream_wait(ddp->stream, reason);
    if (on == ddp->stream)
        return ERR_OK;
    rc = dev_event_record(event, ddp->stream, reason);
    return rc == ERR_OK ? dev_event_wait_on(event, on, reason) : rc;
}

err_code_t ddp_place_zero(ddp_t *ddp, size_t first, size_t count, err_t *err)
{
    float *at = ddp->grads + first;
    err_t reason = ERR_INIT;
    err_code_t rc;

    if (ddp->dev == NULL) {
        memset(at, 0, count * sizeof *at);
        return ERR_OK;
    }
    rc = dev_fill(ddp->stream, at, 0, count * sizeof *at, &reason);
    return ddp_place_result(ddp, rc, &reason, err);
}

err_code_t ddp_place_after(ddp_t *ddp, dev_event_t *event, dev_stream_t *stream,
                           err_t *err)
{
    return ddp->dev == NULL
               ? ERR_OK
               : comm_group_after_stream(ddp->group, event, stream, err);
}

/* A collective of one rank may have no work; then the event is what remains to
 * be waited for. */
err_code_t ddp_place_wait(ddp_t *ddp, comm_work_t *work, dev_event_t *event,
                          dev_stream_t *on, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc;

    if (work != NULL || ddp->dev == NULL)
        return on != NULL ? comm_work_wait_on(work, on, err)
                          : comm_work_wait(work, err);
    rc = on != NULL ? dev_event_wait_on(event, on, &reason)
                    : dev_event_wait(event, &reason);
    return ddp_place_result(ddp, rc, &reason, err);
}
