/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/mem.h"
#include "ddp/ddp_priv.h"
#include "ddp/powersgd.h"

bool powersgd_device_fits(const op_backend_ops_t *backend)
{
    return op_lowrank_offered(backend);
}

/* Describe matrix [i], which is in [bucket], for the device. */
static op_lowrank_matrix_t matrix_of(const powersgd_t *sgd, int i,
                                     const ddp_hook_bucket_t *bucket)
{
    const powersgd_matrix_t *matrix = &sgd->matrices[i];

    return (op_lowrank_matrix_t){
        .rows = matrix->shape.rows,
        .columns = matrix->shape.columns,
        .m = bucket->grads + (matrix->grad - bucket->offset),
        .residual = sgd->residual == NULL ? NULL : sgd->residual + matrix->grad,
        .p = sgd->messages + matrix->p,
        .q = sgd->q + matrix->q,
        .number = matrix->number};
}

err_code_t powersgd_device_open(powersgd_t *sgd, err_t *err)
{
    const ddp_hook_plan_t *plan = sgd->plan;
    op_lowrank_config_t config = {.count = sgd->matrix_count,
                                  .rank = (int)sgd->options.rank,
                                  .warm = sgd->options.warm_start};
    const op_backend_ops_t *backend = NULL;
    op_lowrank_matrix_t *matrices = NULL;
    err_code_t rc = op_backend_get(dev_name(plan->dev), &backend, err);

    if (rc == ERR_OK)
        rc = mem_new(op_lowrank_matrix_t, (size_t)sgd->matrix_count, "PowerSGD",
                     &matrices, err);
    if (rc != ERR_OK)
        return rc;
    for (int b = 0; b < plan->bucket_count; b++)
        for (int m = 0; m < sgd->parts[b].count; m++)
            matrices[sgd->parts[b].first + m] =
                matrix_of(sgd, sgd->parts[b].first + m, &plan->buckets[b]);
    config.matrices = matrices;
    rc = op_lowrank_open(backend, plan->dev, &config, &sgd->device, err);
    mem_free(matrices);
    return rc;
}

err_code_t powersgd_device_copy(float *to, const float *from, size_t count,
                                const ddp_wire_t *wire, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc = dev_copy(ddp_wire_stream(wire), to, from,
                             count * sizeof *to, DEV_DEV_TO_DEV, &reason);

    return comm_group_result(wire->group, rc, &reason, err);
}

err_code_t powersgd_device_run(powersgd_t *sgd, const powersgd_part_t *part,
                               op_lowrank_turn_t turn, const ddp_wire_t *wire,
                               err_t *err)
{
    const op_lowrank_part_t run = {.turn = turn,
                                   .first = part->first,
                                   .count = part->count,
                                   .step = (uint64_t)sgd->step};
    err_t reason = ERR_INIT;
    err_code_t rc =
        op_lowrank_run(sgd->device, &run, ddp_wire_stream(wire), &reason);

    return comm_group_result(wire->group, rc, &reason, err);
}
