/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * lstm and gru (ref/recurrent.c has the formulas). Tokens are copied into the
 * order [step, sample]. One product computes what x contributes to all gates
 * of all steps. Each step has one product with h, and the gradient of each
 * weight matrix is one product. Between the products of the steps, one pass
 * over the samples computes the gates; the samples are divided among threads.
 *
 * With bf16 the factors of all products are rounded into scratch: x and the
 * weights once per call, h and du step by step.
 *
 * The workspace stores the gates [T,N,G] and h [T+1,N,H]. lstm also stores c
 * [T+1,N,H]; gru stores what h contributes to its gate n, [T,N,H].
 *
 * Why not oneDNN's RNN primitives: they take 0.90 to 0.99 of our time (LSTM;
 * GRU in float32), but 1.13 to 1.34 for GRU with bf16 and up to 1.9 for small
 * layers, and would change the bits of all training runs with such a layer.
 * Wide layers would gain most: 0.85 with 512 states, in float32. The figures
 * are in docs/benchmarks/libraries.md.
 */
#include <string.h>

#include "base/check.h"
#include "base/half.h"
#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/onednn/reorder.h"
#include "op/cpu/vector/rows.h"
#include "op/op_geometry.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Minimum features per thread in a step, and columns per thread in a sum. */
#define STEP_GRAIN 2048
#define SUM_GRAIN 64
/* Minimum elements per thread when rounding to bfloat16. */
#define ROUND_GRAIN 16384

typedef struct cpu_recurrent {
    cpu_scratch_t scratch;
    cpu_plain_t plain;
    /* products of x for all steps, and of h for one step */
    cpu_prim_t forward_x, forward_h;
    cpu_prim_t back_h, data, weights_x, weights_h;
    size_t xt, u; /* forward: offsets in scratch */
    size_t dxt, da, du, dh,
        dc;      /* backward: offsets in scratch; xt is used, too */
    size_t back; /* offset of the gradient of h through the next step's gates */
    /* bf16: offsets in scratch of the rounded factors. */
    size_t bf16_x, bf16_h, bf16_wx, bf16_wh, bf16_da, bf16_du;
} cpu_recurrent_t;

/* One call. [op] and [args] are NULL while the op is opened. */
typedef struct recurrent_work {
    const op_t *op;
    const op_args_t *args;
    bool lstm, reverse, last;
    int64_t N, T, F, H, G, step;
    float *gates, *h, *c;
    float *xt, *u, *dxt, *da, *du, *dh, *dc, *back;
    const float *x, *dy;
    float *y, *dx;
} recurrent_work_t;

/* ---- opening ------------------------------------------------------------- */

static err_code_t recurrent_matmuls(op_t *op, const recurrent_work_t *w,
                                    err_t *err)
{
    const bool bias = op->config.bias;
    const int64_t rows = w->T * w->N;
    cpu_recurrent_t *state = op->state;
    cpu_engine_t *engine = &state->scratch.engine;
    struct {
        cpu_prim_t *prim;
        cpu_matmul_spec_t spec;
        bool wanted;
    } all[] = {
        {&state->forward_x,
         {.M = rows, .N = w->G, .K = w->F, .b_transposed = true, .bias = bias},
         true},
        {&state->forward_h,
         {.M = w->N, .N = w->G, .K = w->H, .b_transposed = true, .bias = bias},
         true},
        {&state->back_h,
         {.M = w->N, .N = w->H, .K = w->G},
         op->config.training},
        {&state->weights_x,
         {.M = w->G, .N = w->F, .K = rows, .a_transposed = true},
         op->config.training},
        {&state->weights_h,
         {.M = w->G, .N = w->H, .K = rows, .a_transposed = true},
         op->config.training},
        {&state->data, {.M = rows, .N = w->F, .K = w->G}, op->config.need_dx},
    };
    err_code_t rc = ERR_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && rc == ERR_OK; i++) {
        all[i].spec.bf16 = op_computes_bf16(&op->config);
        if (all[i].wanted)
            rc = cpu_prim_matmul(all[i].prim, engine, &all[i].spec, err);
    }
    return rc;
}

/* Set the sizes for [op]; no pointers. */
static recurrent_work_t recurrent_sizes(const op_t *op)
{
    recurrent_work_t work = {.lstm = op->config.kind == OP_LSTM,
                             .reverse = op->config.recurrent.reverse,
                             .last = op->config.recurrent.last,
                             .N = op->config.in.dims[0],
                             .T = op->config.in.dims[1],
                             .F = op->config.in.dims[2],
                             .H = op->config.out};

    work.G = op_recurrent_gates(&op->config) * work.H;
    return work;
}

/* Take scratch for [count] bfloat16 numbers; none if the op computes in
 * float32. */
static size_t recurrent_take_bf16(op_t *op, int64_t count)
{
    cpu_recurrent_t *state = op->state;

    if (!op_computes_bf16(&op->config))
        return 0;
    return cpu_scratch_take(&state->scratch, (size_t)count * sizeof(uint16_t));
}

static void recurrent_take(op_t *op, const recurrent_work_t *w)
{
    const size_t state_bytes = (size_t)(w->N * w->H) * sizeof(float);
    const size_t gates_bytes = (size_t)(w->T * w->N * w->G) * sizeof(float);
    const size_t x_bytes = (size_t)(w->T * w->N * w->F) * sizeof(float);
    cpu_recurrent_t *state = op->state;
    cpu_scratch_t *scratch = &state->scratch;

    op->workspace_bytes = gates_bytes + 2 * (size_t)(w->T + 1) * state_bytes;
    state->xt = cpu_scratch_take(scratch, x_bytes);
    state->bf16_x = recurrent_take_bf16(op, w->T * w->N * w->F);
    state->bf16_h = recurrent_take_bf16(op, w->T * w->N * w->H);
    state->bf16_wx = recurrent_take_bf16(op, w->G * w->F);
    state->bf16_wh = recurrent_take_bf16(op, w->G * w->H);
    cpu_scratch_keep(scratch);
    state->u = cpu_scratch_take(scratch, gates_bytes / (size_t)w->T);
    if (op->config.training) {
        cpu_scratch_restart(scratch);
        state->da = cpu_scratch_take(scratch, gates_bytes);
        state->du =
            w->lstm ? state->da : cpu_scratch_take(scratch, gates_bytes);
        state->bf16_da = recurrent_take_bf16(op, w->T * w->N * w->G);
        state->bf16_du = w->lstm ? state->bf16_da
                                 : recurrent_take_bf16(op, w->T * w->N * w->G);
        state->dh = cpu_scratch_take(scratch, state_bytes);
        state->dc = cpu_scratch_take(scratch, state_bytes);
        state->back = cpu_scratch_take(scratch, state_bytes);
        state->dxt = cpu_scratch_take(scratch, x_bytes);
    }
    cpu_scratch_finish(scratch, op);
}

static err_code_t cpu_recurrent_open(op_t *op, err_t *err)
{
    const recurrent_work_t sizes = recurrent_sizes(op);
    cpu_recurrent_t *state;
    err_code_t rc = mem_new(cpu_recurrent_t, 1, "a recurrent op", &state, err);

    if (rc != ERR_OK)
        return rc;
    op->state = state;
    rc = cpu_engine_open(&state->scratch.engine, err);
    if (rc == ERR_OK)
        rc = cpu_plain_open(&state->plain, &state->scratch, op, err);
    if (rc == ERR_OK)
        rc = recurrent_matmuls(op, &sizes, err);
    if (rc == ERR_OK)
        recurrent_take(op, &sizes);
    return rc;
}

static void cpu_recurrent_close(op_t *op)
{
    cpu_recurrent_t *state = op->state;

    if (state == NULL)
        return;
    cpu_prim_close(&state->forward_x);
    cpu_prim_close(&state->forward_h);
    cpu_prim_close(&state->back_h);
    cpu_prim_close(&state->data);
    cpu_prim_close(&state->weights_x);
    cpu_prim_close(&state->weights_h);
    cpu_plain_close(&state->plain);
    cpu_engine_close(&state->scratch.engine);
    mem_free(state);
}

/* ---- order of steps ------------------------------------------------------ */

static recurrent_work_t recurrent_make(const op_t *op, const op_args_t *args)
{
    const cpu_recurrent_t *state = op->state;
    recurrent_work_t work = recurrent_sizes(op);
    char *scratch = args->scratch;

    work.op = op;
    work.args = args;
    work.gates = args->workspace;
    work.h = work.gates + work.T * work.N * work.G;
    work.c = work.h + (work.T + 1) * work.N * work.H;
    work.xt = (float *)(scratch + state->xt);
    work.u = (float *)(scratch + state->u);
    work.dxt = (float *)(scratch + state->dxt);
    work.da = (float *)(scratch + state->da);
    work.du = (float *)(scratch + state->du);
    work.dh = (float *)(scratch + state->dh);
    work.dc = (float *)(scratch + state->dc);
    work.back = (float *)(scratch + state->back);
    work.y = args->y;
    work.dy = args->dy;
    return work;
}

static int64_t recurrent_token(const recurrent_work_t *work, int64_t step)
{
    check(step >= 0 && step < work->T, "step %d of %d", (int)step,
          (int)work->T);
    return work->reverse ? work->T - 1 - step : step;
}

/* Copy samples [first, last) of x into the order of steps or, if dx is set,
 * samples of dx back. */
static void recurrent_order_body(void *context, int64_t first, int64_t last)
{
    const recurrent_work_t *w = context;
    const size_t bytes = (size_t)w->F * sizeof(float);

    for (int64_t n = first; n < last; n++)
        for (int64_t s = 0; s < w->T; s++) {
            int64_t at = (n * w->T + recurrent_token(w, s)) * w->F;
            int64_t to = (s * w->N + n) * w->F;

            if (w->dx == NULL)
                memcpy(w->xt + to, w->x + at, bytes);
            else
                memcpy(w->dx + at, w->dxt + to, bytes);
        }
}

static void recurrent_order(recurrent_work_t *work)
{
    simd_team_run(work->op->config.threads, work->N,
                  1 + STEP_GRAIN * 8 / (work->T * work->F),
                  recurrent_order_body, work);
}

static void recurrent_team(recurrent_work_t *work, simd_team_body_t *body)
{
    simd_team_run(work->op->config.threads, work->N, 1 + STEP_GRAIN / work->H,
                  body, work);
}

typedef struct recurrent_round {
    const float *from;
    uint16_t *to;
} recurrent_round_t;

static void recurrent_round_body(void *context, int64_t first, int64_t last)
{
    const recurrent_round_t *work = context;

    half_round_bf16(work->to + first, work->from + first,
                    (size_t)(last - first));
}

/* Return elements [at, at + count) of [from] as a factor of a product. With
 * bf16 they are rounded into the buffer at offset [buffer] of scratch, from
 * its element [at] on. */
static const void *recurrent_factor(const recurrent_work_t *w, size_t buffer,
                                    const float *from, int64_t at,
                                    int64_t count)
{
    uint16_t *to = (uint16_t *)(void *)((char *)w->args->scratch + buffer);
    recurrent_round_t work = {from + at, to + at};

    if (!op_computes_bf16(&w->op->config))
        return from + at;
    simd_team_run(w->op->config.threads, count, ROUND_GRAIN,
                  recurrent_round_body, &work);
    return work.to;
}

/* The weights of x, and those of h, as factors. */
static const void *recurrent_wx(const recurrent_work_t *w)
{
    const cpu_recurrent_t *state = w->op->state;

    return recurrent_factor(w, state->bf16_wx, w->args->params[0], 0,
                            w->G * w->F);
}

static const void *recurrent_wh(const recurrent_work_t *w)
{
    const cpu_recurrent_t *state = w->op->state;

    return recurrent_factor(w, state->bf16_wh, w->args->params[1], 0,
                            w->G * w->H);
}

static err_code_t recurrent_product(const recurrent_work_t *w, cpu_prim_t *prim,
                                    cpu_factors_t with, err_t *err)
{
    const cpu_recurrent_t *state = w->op->state;

    return cpu_scratch_matmul(&state->scratch, prim, w->args, with, err);
}

/* Begin a call: fill [work], and copy x into the order of steps. */
static err_code_t recurrent_begin(op_t *op, const op_args_t *args,
                                  recurrent_work_t *work, err_t *err)
{
    cpu_recurrent_t *state = op->state;
    const void *x;
    err_code_t rc = cpu_reorder_read(&state->plain.x, args, args->x, &x, err);

    if (rc != ERR_OK)
        return rc;
    *work = recurrent_make(op, args);
    work->x = x;
    recurrent_order(work);
    return ERR_OK;
}

/* ---- forward ------------------------------------------------------------- */

SIMD_CLONES
static void lstm_row(float *restrict gate, const float *restrict u,
                     const float *restrict c, float *restrict next_c,
                     float *restrict h, int64_t H)
{
    for (int64_t k = 0; k < H; k++) {
        float i = simd_math_sigmoid(gate[k] + u[k]);
        float f = simd_math_sigmoid(gate[H + k] + u[H + k]);
        float g = simd_math_tanh(gate[2 * H + k] + u[2 * H + k]);
        float o = simd_math_sigmoid(gate[3 * H + k] + u[3 * H + k]);

        gate[k] = i;
        gate[H + k] = f;
        gate[2 * H + k] = g;
        gate[3 * H + k] = o;
        next_c[k] = f * c[k] + i * g;
        h[k] = o * simd_math_tanh(next_c[k]);
    }
}

SIMD_CLONES
static void gru_row(float *restrict gate, const float *restrict u,
                    float *restrict part, const float *restrict h,
                    float *restrict next_h, int64_t H)
{
    for (int64_t k = 0; k < H; k++) {
        float r = simd_math_sigmoid(gate[k] + u[k]);
        float z = simd_math_sigmoid(gate[H + k] + u[H + k]);
        float n = simd_math_tanh(gate[2 * H + k] + r * u[2 * H + k]);

        gate[k] = r;
        gate[H + k] = z;
        gate[2 * H + k] = n;
        part[k] = u[2 * H + k];
        next_h[k] = (1.0f - z) * n + z * h[k];
    }
}

static void recurrent_forward_body(void *context, int64_t first, int64_t last)
{
    const recurrent_work_t *w = context;
    const int64_t s = w->step, H = w->H;

    for (int64_t n = first; n < last; n++) {
        const int64_t now = (s * w->N + n) * H, next = now + w->N * H;
        float *gate = w->gates + (s * w->N + n) * w->G;
        const float *u = w->u + n * w->G;

        if (w->lstm)
            lstm_row(gate, u, w->c + now, w->c + next, w->h + next, H);
        else
            gru_row(gate, u, w->c + now, w->h + now, w->h + next, H);
        if (!w->last)
            memcpy(w->y + (n * w->T + recurrent_token(w, s)) * H, w->h + next,
                   (size_t)H * sizeof(float));
        else if (s == w->T - 1)
            memcpy(w->y + n * H, w->h + next, (size_t)H * sizeof(float));
    }
}

static err_code_t cpu_recurrent_forward(op_t *op, const op_args_t *args,
                                        err_t *err)
{
    cpu_recurrent_t *state = op->state;
    recurrent_work_t w;
    const void *x, *wh;
    err_code_t rc = recurrent_begin(op, args, &w, err);

    if (rc != ERR_OK)
        return rc;
    memset(w.h, 0, (size_t)(w.N * w.H) * sizeof(float));
    memset(w.c, 0, (size_t)(w.N * w.H) * sizeof(float));
    x = recurrent_factor(&w, state->bf16_x, w.xt, 0, w.T * w.N * w.F);
    rc = recurrent_product(
        &w, &state->forward_x,
        (cpu_factors_t){x, recurrent_wx(&w), args->params[2], w.gates}, err);
    wh = recurrent_wh(&w);
    for (w.step = 0; w.step < w.T && rc == ERR_OK; w.step++) {
        const void *h = recurrent_factor(&w, state->bf16_h, w.h,
                                         w.step * w.N * w.H, w.N * w.H);

        rc = recurrent_product(&w, &state->forward_h,
                               (cpu_factors_t){h, wh, args->params[3], w.u},
                               err);
        if (rc == ERR_OK)
            recurrent_team(&w, recurrent_forward_body);
    }
    return rc;
}

/* ---- backward ------------------------------------------------------------ */

SIMD_CLONES
static void lstm_row_back(const float *restrict gate, const float *restrict c,
                          const float *restrict next_c, float *restrict dh,
                          float *restrict dc, float *restrict da, int64_t H)
{
    for (int64_t k = 0; k < H; k++) {
        float i = gate[k], f = gate[H + k], g = gate[2 * H + k];
        float o = gate[3 * H + k], t = simd_math_tanh(next_c[k]);
        float slope = dc[k] + dh[k] * o * (1.0f - t * t);

        da[k] = slope * g * i * (1.0f - i);
        da[H + k] = slope * c[k] * f * (1.0f - f);
        da[2 * H + k] = slope * i * (1.0f - g * g);
        da[3 * H + k] = dh[k] * t * o * (1.0f - o);
        dc[k] = slope * f;
        dh[k] = 0;
    }
}

SIMD_CLONES
static void gru_row_back(const float *restrict gate, const float *restrict part,
                         const float *restrict h, float *restrict dh,
                         float *restrict da, float *restrict du, int64_t H)
{
    for (int64_t k = 0; k < H; k++) {
        float r = gate[k], z = gate[H + k], n = gate[2 * H + k];
        float dn = dh[k] * (1.0f - z) * (1.0f - n * n);

        da[2 * H + k] = dn;
        da[H + k] = dh[k] * (h[k] - n) * z * (1.0f - z);
        da[k] = dn * part[k] * r * (1.0f - r);
        du[k] = da[k];
        du[H + k] = da[H + k];
        du[2 * H + k] = dn * r;
        dh[k] = dh[k] * z;
    }
}

static void recurrent_backward_body(void *context, int64_t first, int64_t last)
{
    const recurrent_work_t *w = context;
    const int64_t s = w->step, H = w->H;

    for (int64_t n = first; n < last; n++) {
        const int64_t at = s * w->N + n, now = at * H, next = now + w->N * H;
        float *dh = w->dh + n * H, *dc = w->dc + n * H;

        if (s < w->T - 1)
            cpu_row_add(dh, w->back + n * H, H);
        if (!w->last)
            cpu_row_add(dh, w->dy + (n * w->T + recurrent_token(w, s)) * H, H);
        else if (s == w->T - 1)
            cpu_row_add(dh, w->dy + n * H, H);
        if (w->lstm)
            lstm_row_back(w->gates + at * w->G, w->c + now, w->c + next, dh, dc,
                          w->da + at * w->G, H);
        else
            gru_row_back(w->gates + at * w->G, w->c + now, w->h + now, dh,
                         w->da + at * w->G, w->du + at * w->G, H);
    }
}

/* Compute the gradients of the parameters; [da] and [du] are factors for all
 * steps. */
static err_code_t recurrent_weights(const recurrent_work_t *w, const void *da,
                                    const void *du, err_t *err)
{
    cpu_recurrent_t *state = w->op->state;
    const int64_t rows = w->T * w->N;
    const void *x = recurrent_factor(w, state->bf16_x, w->xt, 0, rows * w->F);
    const void *h;
    err_code_t rc = recurrent_product(
        w, &state->weights_x,
        (cpu_factors_t){.a = da, .b = x, .c = w->args->dparams[0]}, err);

    if (rc != ERR_OK)
        return rc;
    h = recurrent_factor(w, state->bf16_h, w->h, 0, rows * w->H);
    rc = recurrent_product(
        w, &state->weights_h,
        (cpu_factors_t){.a = du, .b = h, .c = w->args->dparams[1]}, err);
    for (int i = 0; i < 2 && w->op->config.bias && rc == ERR_OK; i++) {
        cpu_column_sums_t sums = {i == 0 ? w->da : w->du,
                                  w->args->dparams[2 + i], rows, w->G};

        simd_team_run(w->op->config.threads, w->G, SUM_GRAIN,
                      cpu_column_sums_body, &sums);
    }
    return rc;
}

static err_code_t recurrent_data(recurrent_work_t *w, const void *da,
                                 err_t *err)
{
    const op_args_t *args = w->args;
    cpu_recurrent_t *state = w->op->state;
    cpu_reorder_t *reorder = &state->plain.dx;
    err_code_t rc = recurrent_product(
        w, &state->data,
        (cpu_factors_t){.a = da, .b = recurrent_wx(w), .c = w->dxt}, err);

    if (rc != ERR_OK)
        return rc;
    w->dx = cpu_reorder_place(reorder, args, args->dx);
    recurrent_order(w);
    return cpu_reorder_flush(reorder, args, args->dx, err);
}

static err_code_t cpu_recurrent_backward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    cpu_recurrent_t *state = op->state;
    recurrent_work_t w;
    const void *wh, *da, *du = NULL;
    int64_t count;
    err_code_t rc = recurrent_begin(op, args, &w, err);

    if (rc != ERR_OK)
        return rc;
    count = w.N * w.G;
    memset(w.dh, 0, (size_t)(w.N * w.H) * sizeof(float));
    memset(w.dc, 0, (size_t)(w.N * w.H) * sizeof(float));
    wh = recurrent_wh(&w);
    for (w.step = w.T - 1; w.step >= 0 && rc == ERR_OK; w.step--) {
        recurrent_team(&w, recurrent_backward_body);
        du = recurrent_factor(&w, state->bf16_du, w.du, w.step * count, count);
        if (w.step > 0)
            rc = recurrent_product(
                &w, &state->back_h,
                (cpu_factors_t){.a = du, .b = wh, .c = w.back}, err);
    }
    if (rc != ERR_OK)
        return rc;
    /* du points to step 0; the other steps follow it in memory */
    da = w.lstm ? du
                : recurrent_factor(&w, state->bf16_da, w.da, 0, w.T * count);
    rc = recurrent_weights(&w, da, du, err);
    if (rc == ERR_OK && op->config.need_dx)
        rc = recurrent_data(&w, da, err);
    return rc;
}

const op_kernel_t cpu_recurrent_kernel = {
    .open = cpu_recurrent_open,
    .close = cpu_recurrent_close,
    .forward = cpu_recurrent_forward,
    .backward = cpu_recurrent_backward,
};
