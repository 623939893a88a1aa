/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The hooks fp16 and bf16 on a device: the device rounds the gradients, and the
 * data group adds the rounded numbers. hook_half.c explains the arithmetic.
 * The sums have the same bits as with a hook on the host, unless the data group
 * rounds a sum more often. No gradient passes through the host, so a graph of
 * the device can contain such a step.
 */
#include "base/mem.h"
#include "ddp/ddp_priv.h"
#include "op/op_half.h"

struct ddp_half {
    const op_backend_ops_t *backend;
    ddp_rounding_t rounding;
    float largest;   /* limit of this rank's gradients */
    uint16_t *sent;  /* [grad_elems], memory of the device */
    float *residual; /* [grad_elems], of the device; NULL: no error feedback */
};

static err_code_t state_open(ddp_t *ddp, const ddp_rounding_t *rounding,
                             const op_backend_ops_t *backend, err_t *err)
{
    const size_t elems = ddp->grad_elems;
    void *sent = NULL, *residual = NULL;
    err_code_t rc = mem_new(ddp_half_t, 1, "comm hook", &ddp->half, err);

    if (rc != ERR_OK)
        return rc;
    ddp->half->backend = backend;
    ddp->half->rounding = *rounding;
    ddp->half->largest =
        ddp_rounding_limit(rounding, comm_group_size(ddp->group));
    rc = dev_alloc(ddp->dev, elems * sizeof *ddp->half->sent, "comm hook",
                   &sent, err);
    ddp->half->sent = sent;
    if (rc == ERR_OK && rounding->feedback)
        rc = dev_alloc(ddp->dev, elems * sizeof *ddp->half->residual,
                       "residual of the comm hook", &residual, err);
    ddp->half->residual = residual;
    return rc;
}

err_code_t ddp_half_open(ddp_t *ddp, const ddp_rounding_t *rounding, err_t *err)
{
    const op_backend_ops_t *backend = NULL;
    err_code_t rc = op_backend_get(dev_name(ddp->dev), &backend, err);

    return rc == ERR_OK && op_half_offered(backend)
               ? state_open(ddp, rounding, backend, err)
               : rc;
}

void ddp_half_close(ddp_t *ddp)
{
    if (ddp->half == NULL)
        return;
    dev_free(ddp->dev, ddp->half->residual);
    dev_free(ddp->dev, ddp->half->sent);
    mem_free(ddp->half);
}

size_t ddp_half_bytes(const ddp_t *ddp, int index)
{
    return ddp->buckets[index].count * sizeof *ddp->half->sent;
}

/* [count] elements of the arena from [first] on. */
static op_half_t part_of(const ddp_t *ddp, size_t first, size_t count)
{
    const ddp_half_t *half = ddp->half;

    return (op_half_t){
        .bf16 = half->rounding.type == COMM_BFLOAT16,
        .count = count,
        .grads = ddp->grads + first,
        .sent = half->sent + first,
        .residual = half->residual == NULL ? NULL : half->residual + first,
        .largest = half->largest};
}

err_code_t ddp_half_round(ddp_t *ddp, int index, err_t *err)
{
    const op_half_t part =
        part_of(ddp, ddp->buckets[index].offset, ddp->buckets[index].count);
    err_t reason = ERR_INIT;
    err_code_t rc =
        op_half_round(ddp->half->backend, &part, ddp->stream, &reason);

    return ddp_place_result(ddp, rc, &reason, err);
}

comm_state_t ddp_half_start(ddp_t *ddp, int index, comm_work_t **work,
                            err_t *err)
{
    const ddp_bucket_t *bucket = &ddp->buckets[index];

    return comm_allreduce_start(ddp->group, ddp->half->sent + bucket->offset,
                                bucket->count, ddp->half->rounding.type,
                                COMM_SUM, work, err);
}

err_code_t ddp_half_widen(ddp_t *ddp, dev_stream_t *on, err_t *err)
{
    const op_half_t whole = part_of(ddp, 0, ddp->grad_elems);
    dev_stream_t *stream = on != NULL ? on : ddp->stream;
    err_t reason = ERR_INIT;
    err_code_t rc = op_half_widen(ddp->half->backend, &whole, stream, &reason);

    if (rc == ERR_OK && on == NULL)
        rc = dev_stream_wait(stream, &reason);
    return ddp_place_result(ddp, rc, &reason, err);
}

int ddp_half_parts(const ddp_t *ddp, ddp_hook_part_t *parts)
{
    if (ddp->half->residual == NULL)
        return 0;
    parts[0] = (ddp_hook_part_t){.name = "residual",
                                 .data = ddp->half->residual,
                                 .count = ddp->grad_elems,
                                 .own = true,
                                 .device = true};
    return 1;
}
