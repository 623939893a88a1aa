/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Activations but relu: one pair of loops each, in whatever layout x has,
 * padding included, as it is zero and stays so; sigmoid and softplus, which
 * would fill it, work on plain tensors. Own loops, as oneDNN's lose NaN and
 * want x in backward, where y would do.
 */
#include "op/cpu/combine.h"
#include "op/cpu/cpu.h"
#include "op/cpu/math.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"

/* Elements that are worth a thread. */
#define CPU_ACTIVATION_GRAIN 4096

typedef struct cpu_activation_work cpu_activation_work_t;
typedef void cpu_activation_loop_t(const cpu_activation_work_t *work,
                                   int64_t first, int64_t last);

struct cpu_activation_work {
    cpu_activation_loop_t *loop;
    const float *x;  /* forward: x; backward: x or y */
    const float *dy; /* backward */
    float *to;
    float alpha;
};

/* A loop [name] that stores [value] of x (alpha, dy) in each element. */
#define CPU_LOOP(name, value)                                          \
    CPU_CLONES                                                         \
    static void name(const cpu_activation_work_t *work, int64_t first, \
                     int64_t last)                                     \
    {                                                                  \
        const float *from = work->x, alpha = work->alpha;              \
        float *to = work->to;                                          \
                                                                       \
        (void)alpha;                                                   \
        CPU_INDEPENDENT                                                \
        for (int64_t i = first; i < last; i++) {                       \
            float x = from[i];                                         \
                                                                       \
            to[i] = (value);                                           \
        }                                                              \
    }

#define CPU_LOOP_BACK(name, slope)                                        \
    CPU_CLONES                                                            \
    static void name(const cpu_activation_work_t *work, int64_t first,    \
                     int64_t last)                                        \
    {                                                                     \
        const float *from = work->x, *dy = work->dy, alpha = work->alpha; \
        float *to = work->to;                                             \
                                                                          \
        (void)alpha;                                                      \
        CPU_INDEPENDENT                                                   \
        for (int64_t i = first; i < last; i++) {                          \
            float x = from[i];                                            \
                                                                          \
            to[i] = dy[i] * (slope);                                      \
        }                                                                 \
    }

/* x for x > 0, [low] for x <= 0; NaN passes. */
#define CPU_ABOVE(x, low) ((x) <= 0 ? (low) : (x))

#define CPU_SQRT_2_PI 0.79788456f /* sqrt(2/pi) */

CPU_INLINE float gelu_gate(float x)
{
    float u = CPU_SQRT_2_PI * (x + 0.044715f * x * x * x);

    return cpu_math_sigmoid(2.0f * u);
}

CPU_INLINE float gelu_tanh_slope(float x)
{
    float s = gelu_gate(x);
    float inner = 2.0f * CPU_SQRT_2_PI * (1.0f + 0.134145f * x * x);

    return s + x * s * (1.0f - s) * inner;
}

CPU_INLINE float gelu_slope(float x)
{
    float density = 0.39894228f * cpu_math_exp(-0.5f * x * x);

    return cpu_math_normal(x) + x * density;
}

CPU_INLINE float silu_slope(float x)
{
    float s = cpu_math_sigmoid(x);

    return s + x * s * (1.0f - s);
}

CPU_INLINE float softplus(float x, float alpha)
{
    float z = alpha * x;

    return CPU_ABOVE(x, 0.0f) + cpu_math_log1p(cpu_math_exp(-fabsf(z))) / alpha;
}

CPU_LOOP(leaky_forward, CPU_ABOVE(x, alpha *x))
CPU_LOOP(elu_forward, CPU_ABOVE(x, alpha *cpu_math_expm1(x)))
CPU_LOOP(sigmoid_forward, cpu_math_sigmoid(x))
CPU_LOOP(tanh_forward, cpu_math_tanh(x))
CPU_LOOP(scale_forward, alpha *x)
CPU_LOOP(gelu_forward, x *cpu_math_normal(x))
CPU_LOOP(gelu_tanh_forward, x *gelu_gate(x))
CPU_LOOP(silu_forward, x *cpu_math_sigmoid(x))
CPU_LOOP(softplus_forward, softplus(x, alpha))

CPU_LOOP_BACK(leaky_backward, x > 0 ? 1.0f : alpha)
CPU_LOOP_BACK(elu_backward, x > 0 ? 1.0f : x + alpha)
CPU_LOOP_BACK(sigmoid_backward, x *(1.0f - x))
CPU_LOOP_BACK(tanh_backward, 1.0f - x * x)
CPU_LOOP_BACK(scale_backward, ((void)x, alpha))
CPU_LOOP_BACK(gelu_backward, gelu_slope(x))
CPU_LOOP_BACK(gelu_tanh_backward, gelu_tanh_slope(x))
CPU_LOOP_BACK(silu_backward, silu_slope(x))
CPU_LOOP_BACK(softplus_backward, cpu_math_sigmoid(alpha *x))

typedef struct cpu_activation_kind {
    cpu_activation_loop_t *forward, *backward;
    bool reads_y; /* backward's loop is of y, else of x */
    bool fills;   /* f(0) is not 0 */
} cpu_activation_kind_t;

static const cpu_activation_kind_t kinds[OP_KINDS] = {
    [OP_LEAKY_RELU] = {leaky_forward, leaky_backward, .reads_y = true},
    [OP_ELU] = {elu_forward, elu_backward, .reads_y = true},
    [OP_SIGMOID] = {sigmoid_forward, sigmoid_backward, true, true},
    [OP_TANH] = {tanh_forward, tanh_backward, .reads_y = true},
    [OP_SCALE] = {scale_forward, scale_backward, .reads_y = true},
    [OP_GELU] = {gelu_forward, gelu_backward, false, false},
    [OP_GELU_TANH] = {gelu_tanh_forward, gelu_tanh_backward, false, false},
    [OP_SILU] = {silu_forward, silu_backward, false, false},
    [OP_SOFTPLUS] = {softplus_forward, softplus_backward, .fills = true},
};

static err_code_t cpu_activation_open(op_t *op, err_t *err)
{
    const cpu_activation_kind_t *kind = &kinds[op->config.kind];

    op->reads_y = kind->reads_y;
    op->reads_x = !kind->reads_y;
    op->in_place =
        kind->reads_y && (!kind->fills || op->config.in.layout == NULL);
    return cpu_combine_open(op, kind->fills, err);
}

static void cpu_activation_body(void *context, int64_t first, int64_t last)
{
    const cpu_activation_work_t *work = context;

    work->loop(work, first, last);
}

static void cpu_activation_run(const op_t *op, cpu_activation_work_t *work)
{
    work->alpha = (float)op->config.alpha;
    cpu_team_run(op->config.threads, (int64_t)(op->out.bytes / sizeof(float)),
                 CPU_ACTIVATION_GRAIN, cpu_activation_body, work);
}

static err_code_t cpu_activation_forward(op_t *op, const op_args_t *args,
                                         err_t *err)
{
    cpu_activation_work_t work = {.loop = kinds[op->config.kind].forward,
                                  .to = args->y};
    const float *x[OP_INPUTS_MAX];
    err_code_t code = cpu_combine_read(op, args, x, err);

    work.x = x[0];
    if (code == ERR_OK)
        cpu_activation_run(op, &work);
    return code;
}

static err_code_t cpu_activation_backward(op_t *op, const op_args_t *args,
                                          err_t *err)
{
    cpu_combine_t *combine = op->state;
    cpu_port_t *port = &combine->grad[0];
    cpu_activation_work_t work = {.loop = kinds[op->config.kind].backward,
                                  .dy = args->dy};
    const float *x[OP_INPUTS_MAX] = {args->y};
    err_code_t code = ERR_OK;

    if (!op->config.need_dx)
        return ERR_OK;
    if (op->reads_x)
        code = cpu_combine_read(op, args, x, err);
    if (code != ERR_OK)
        return code;
    work.x = x[0];
    work.to = cpu_port_place(port, args, args->dx);
    cpu_activation_run(op, &work);
    return cpu_port_flush(port, &combine->room, args, args->dx, err);
}

const op_kernel_t cpu_activation_kernel = {
    .open = cpu_activation_open,
    .close = cpu_combine_close,
    .forward = cpu_activation_forward,
    .backward = cpu_activation_backward,
};
