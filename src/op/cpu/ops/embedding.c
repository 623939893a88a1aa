/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * embedding. Forward copies rows of w. Backward adds each row of dy to the row
 * of dw of its token. Threads divide the features among them, so that each
 * element of dw is summed by one thread in the order of the batch.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/op_desc.h"
#include "op/op_tokens.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Minimum work per thread: COPY_GRAIN elements in forward, ADD_GRAIN features
 * in backward. */
#define COPY_GRAIN 16384
#define ADD_GRAIN 64

typedef struct embedding_work {
    int64_t count, rows, features;
    const int32_t *tokens;
    const float *from; /* w or dy */
    float *to;         /* y or dw */
    bool add;          /* add to dw instead of overwriting it */
} embedding_work_t;

static embedding_work_t embedding_make(const op_t *op, const op_args_t *args)
{
    return (embedding_work_t){.count = op_desc_elems(&op->config.in),
                              .rows = op->config.embedding.rows,
                              .features = op->config.out,
                              .tokens = args->x};
}

/* Backward can add to dw. Few rows of a large table have a gradient, so adding
 * in place is cheaper than clearing and adding a separate dw. */
static err_code_t cpu_embedding_open(op_t *op, err_t *err)
{
    (void)err;
    op->adds = true;
    return ERR_OK;
}

static void embedding_forward_body(void *context, int64_t first, int64_t last)
{
    const embedding_work_t *work = context;
    const size_t bytes = (size_t)work->features * sizeof(float);

    for (int64_t i = first; i < last; i++)
        memcpy(work->to + i * work->features,
               work->from + work->tokens[i] * work->features, bytes);
}

/* Features [first, last) of all rows. */
SIMD_CLONES
static void embedding_backward_body(void *context, int64_t first, int64_t last)
{
    const embedding_work_t *work = context;
    const int64_t width = work->features;

    if (!work->add && last - first == width)
        memset(work->to, 0, (size_t)(work->rows * width) * sizeof(float));
    for (int64_t r = 0; r < work->rows && !work->add && last - first < width;
         r++)
        memset(work->to + r * width + first, 0,
               (size_t)(last - first) * sizeof(float));
    for (int64_t i = 0; i < work->count; i++) {
        const float *dy = work->from + i * width;
        float *restrict dw = work->to + work->tokens[i] * width;

        for (int64_t f = first; f < last; f++)
            dw[f] += dy[f];
    }
}

static err_code_t cpu_embedding_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    embedding_work_t work = embedding_make(op, args);
    err_code_t rc = op_check_tokens(&op->config, args->x, err);

    if (rc != ERR_OK)
        return rc;
    work.from = args->params[0];
    work.to = args->y;
    simd_team_run(op->config.threads, work.count,
                  1 + COPY_GRAIN / work.features, embedding_forward_body,
                  &work);
    return ERR_OK;
}

static err_code_t cpu_embedding_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    embedding_work_t work = embedding_make(op, args);

    (void)err;
    work.from = args->dy;
    work.to = args->dparams[0];
    work.add = args->add;
    simd_team_run(op->config.threads, work.features, ADD_GRAIN,
                  embedding_backward_body, &work);
    return ERR_OK;
}

const op_kernel_t cpu_embedding_kernel = {
    .open = cpu_embedding_open,
    .forward = cpu_embedding_forward,
    .backward = cpu_embedding_backward,
};
