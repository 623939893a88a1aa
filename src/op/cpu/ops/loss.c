/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/ops/loss.h"

#include "base/check.h"
#include "base/mem.h"
#include "op/op_desc.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Minimum gradients per thread. */
#define LOSS_GRAIN 16384

err_code_t cpu_loss_open_items(op_t *op, int64_t items, err_t *err)
{
    /* a loss and, for cross_entropy, a hit of one byte */
    size_t bytes = (size_t)items * (sizeof(double) + 1);
    cpu_loss_t *loss;
    err_code_t rc = mem_new(cpu_loss_t, 1, "a loss op", &loss, err);

    if (rc != ERR_OK)
        return rc;
    op->state = loss;
    rc = cpu_engine_open(&loss->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_plain_open(&loss->plain, &loss->scratch, op, err);
    if (rc != ERR_OK)
        return rc;
    check(items > 0, "a loss of no items");
    loss->items = items;
    loss->items_at = cpu_scratch_take(&loss->scratch, bytes);
    cpu_scratch_finish(&loss->scratch, op);
    return ERR_OK;
}

err_code_t cpu_loss_open(op_t *op, err_t *err)
{
    return cpu_loss_open_items(op, op->config.in.dims[0], err);
}

void cpu_loss_close(op_t *op)
{
    cpu_loss_t *loss = op->state;

    if (loss == NULL)
        return;
    cpu_plain_close(&loss->plain);
    cpu_engine_close(&loss->scratch.engine);
    mem_free(loss);
}

double *cpu_loss_items(const op_t *op, const op_args_t *args)
{
    const cpu_loss_t *loss = op->state;

    return (double *)((char *)args->scratch + loss->items_at);
}

double cpu_loss_sum(const op_t *op, const op_args_t *args)
{
    const cpu_loss_t *loss = op->state;
    const double *items = cpu_loss_items(op, args);
    const int64_t each = loss->items / op->config.in.dims[0];
    const float *weights = args->sample_weights;
    double sum = 0;

    check(loss->items % op->config.in.dims[0] == 0, "%d items for %d samples",
          (int)loss->items, (int)op->config.in.dims[0]);
    for (int64_t i = 0; i < loss->items; i++)
        sum +=
            weights == NULL ? items[i] : (double)weights[i / each] * items[i];
    return sum;
}

typedef struct loss_weigh {
    const float *weights;
    float *dx;
    int64_t elems; /* of one sample */
} loss_weigh_t;

SIMD_CLONES
static void loss_weigh_body(void *context, int64_t first, int64_t last)
{
    const loss_weigh_t *work = context;

    for (int64_t n = first; n < last; n++) {
        const float weight = work->weights[n];
        float *dx = work->dx + n * work->elems;

        for (int64_t i = 0; i < work->elems; i++)
            dx[i] *= weight;
    }
}

err_code_t cpu_loss_flush(op_t *op, const op_args_t *args, float *dx,
                          err_t *err)
{
    cpu_loss_t *loss = op->state;
    loss_weigh_t work = {.weights = args->sample_weights,
                         .dx = dx,
                         .elems = op_desc_sample(&op->config.in)};

    if (work.weights != NULL)
        simd_team_run(op->config.threads, op->config.in.dims[0],
                      1 + LOSS_GRAIN / work.elems, loss_weigh_body, &work);
    return cpu_reorder_flush(&loss->plain.dx, args, args->dx, err);
}
