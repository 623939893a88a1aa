/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * adaptive_avgpool and adaptive_maxpool of plain tensors, one plane (box.h)
 * after the other. The maximum of a window is the first of
 * equal elements, and NaN wins over every number. In training, the workspace
 * stores the index of each maximum.
 */
#include <string.h>

#include "op/cpu/cpu.h"
#include "op/cpu/ops/box.h"
#include "op/cpu/ops/combine.h"
#include "op/op_desc.h"
#include "simd/team.h"

typedef struct cpu_adaptive_work {
    int64_t in[OP_SPACE_MAX], out[OP_SPACE_MAX];
    int64_t ins, outs;
    const float *from; /* x or dy */
    float *to;         /* y or dx */
    int64_t *winners;  /* indices of the maxima in their planes, [outs] per
                          plane; NULL: not stored */
    bool backward;
} cpu_adaptive_work_t;

/* A window, and 1 / its elements. */
typedef struct cpu_adaptive_window {
    cpu_box_t box;
    float share;
} cpu_adaptive_window_t;

static cpu_adaptive_window_t adaptive_window(const cpu_adaptive_work_t *work,
                                             int64_t o)
{
    cpu_adaptive_window_t window;
    int64_t count = 1;

    for (int d = OP_SPACE_MAX - 1; d >= 0; d--) {
        int64_t I = work->in[d], O = work->out[d];

        window.box.from[d] = o % O * I / O;
        window.box.to[d] = ((o % O + 1) * I + O - 1) / O;
        count *= window.box.to[d] - window.box.from[d];
        o /= O;
    }
    window.share = 1.0f / (float)count;
    return window;
}

/* Index in the plane of the maximum of [box]. */
static int64_t adaptive_winner(const cpu_adaptive_work_t *work,
                               const cpu_box_t *box, const float *x)
{
    int64_t best = -1;

    for (int64_t d = box->from[0]; d < box->to[0]; d++)
        for (int64_t h = box->from[1]; h < box->to[1]; h++)
            for (int64_t w = box->from[2]; w < box->to[2]; w++) {
                int64_t at = (d * work->in[1] + h) * work->in[2] + w;

                if (best < 0 || (x[best] == x[best] && !(x[at] <= x[best])))
                    best = at;
            }
    return best;
}

/* Forward: the maxima of all windows of one plane. Backward: dx of the plane.
 */
static void adaptive_max_plane(const cpu_adaptive_work_t *work, int64_t plane)
{
    int64_t x0 = plane * work->ins, y0 = plane * work->outs;

    if (work->backward) {
        memset(work->to + x0, 0, (size_t)work->ins * sizeof(float));
        for (int64_t o = 0; o < work->outs; o++)
            work->to[x0 + work->winners[y0 + o]] += work->from[y0 + o];
        return;
    }
    for (int64_t o = 0; o < work->outs; o++) {
        cpu_adaptive_window_t window = adaptive_window(work, o);
        int64_t winner = adaptive_winner(work, &window.box, work->from + x0);

        work->to[y0 + o] = work->from[x0 + winner];
        if (work->winners != NULL)
            work->winners[y0 + o] = winner;
    }
}

static void adaptive_max_body(void *context, int64_t first, int64_t last)
{
    for (int64_t plane = first; plane < last; plane++)
        adaptive_max_plane(context, plane);
}

static void adaptive_body(void *context, int64_t first, int64_t last)
{
    const cpu_adaptive_work_t *work = context;

    for (int64_t plane = first; plane < last; plane++) {
        int64_t x0 = plane * work->ins, y0 = plane * work->outs;

        if (work->backward)
            memset(work->to + x0, 0, (size_t)work->ins * sizeof(float));
        for (int64_t o = 0; o < work->outs; o++) {
            cpu_adaptive_window_t window = adaptive_window(work, o);

            if (work->backward)
                cpu_box_add(&window.box, work->in,
                            work->from[y0 + o] * window.share, work->to + x0);
            else
                work->to[y0 + o] =
                    cpu_box_sum(&window.box, work->in, work->from + x0) *
                    window.share;
        }
    }
}

static void adaptive_run(const op_t *op, const float *from, float *to,
                         int64_t *winners, bool backward)
{
    const bool max = op->config.kind == OP_ADAPTIVE_MAXPOOL;
    const op_desc_t *in = &op->config.in;
    cpu_adaptive_work_t work = {.ins = op_desc_space(in),
                                .outs = op_desc_space(&op->out),
                                .from = from,
                                .to = to,
                                .winners = winners,
                                .backward = backward};

    cpu_space_three(in->dims + 2, in->ndim - 2, 1, work.in);
    cpu_space_three(op->out.dims + 2, in->ndim - 2, 1, work.out);
    simd_team_run(op->config.threads, in->dims[0] * in->dims[1],
                  1 + CPU_COMBINE_GRAIN / work.ins,
                  max ? adaptive_max_body : adaptive_body, &work);
}

static err_code_t cpu_adaptive_open(op_t *op, err_t *err)
{
    op->reads_x = false;
    if (op->config.kind == OP_ADAPTIVE_MAXPOOL && op->config.training)
        op->workspace_bytes = (size_t)op_desc_elems(&op->out) * sizeof(int64_t);
    return cpu_combine_open(op, true, err);
}

static err_code_t cpu_adaptive_forward(op_t *op, const op_args_t *args,
                                       err_t *err)
{
    const float *x[OP_INPUTS_MAX];
    err_code_t rc = cpu_combine_read(op, args, x, err);

    if (rc == ERR_OK)
        adaptive_run(op, x[0], args->y,
                     op->config.training ? args->workspace : NULL, false);
    return rc;
}

static err_code_t cpu_adaptive_backward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    if (!op->config.need_dx)
        return ERR_OK;
    adaptive_run(op, args->dy, cpu_combine_place(op, args, 0), args->workspace,
                 true);
    return cpu_combine_flush(op, args, 0, err);
}

const op_kernel_t cpu_adaptive_kernel = {
    .open = cpu_adaptive_open,
    .close = cpu_combine_close,
    .forward = cpu_adaptive_forward,
    .backward = cpu_adaptive_backward,
};
