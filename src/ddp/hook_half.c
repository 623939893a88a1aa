/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * fp16 and bf16: gradients are sent as 16-bit floats, which comm adds in 32
 * bits. Most sums are rounded once; sums along a ring of NCCL are rounded at
 * each rank. The rounding error of a rank's gradients is its residual, which it
 * adds in the next step (error feedback; the idea is from Seide et al., "1-bit
 * stochastic gradient descent", Interspeech 2014). So gradients too small for
 * fp16 count after several steps, and gradients whose sum could be too large
 * are sent over several steps. Infinity and NaN are sent unchanged, so that
 * divergence is noticed. The rounding error of the sum itself is dropped: it is
 * relative to the sum, and unbiased.
 */
#include <math.h>

#include "base/half.h"
#include "base/mem.h"
#include "ddp/hook_priv.h"

/* Elements rounded together: a block fits into the first-level cache. */
#define BLOCK ((size_t)1024)

typedef struct half_options {
    bool error_feedback;
} half_options_t;

/* A 16-bit format. */
typedef struct half_format {
    comm_type_t type;
    float largest; /* limit of a sum, so that rounding leaves it finite */
    double unit;   /* largest relative error of a rounding to nearest */
    void (*round)(uint16_t *to, const float *from, size_t count);
    void (*widen)(float *to, const uint16_t *from, size_t count);
} half_format_t;

static const half_format_t fp16 = {.type = COMM_FLOAT16,
                                   .largest = 65504.0f * (1 - 0x1p-10f),
                                   .unit = 0x1p-11,
                                   .round = half_round_fp16,
                                   .widen = half_widen_fp16};
static const half_format_t bf16 = {.type = COMM_BFLOAT16,
                                   .largest = 0x1.fep127f * (1 - 0x1p-7f),
                                   .unit = 0x1p-8,
                                   .round = half_round_bf16,
                                   .widen = half_widen_bf16};

typedef struct half {
    const half_format_t *format;
    size_t elems;
    float largest; /* limit of the absolute value of this rank's gradients */
    bool feedback;
    uint16_t *sent;  /* [elems]: rounded gradients */
    float *residual; /* [elems]: rounding errors; NULL: no error feedback */
} half_t;

static const opt_row_t half_rows[] = {
    {.name = "error_feedback",
     .type = OPT_BOOL,
     .offset = offsetof(half_options_t, error_feedback),
     .fallback = "true",
     .help = "true: add the rounding error to the next step's gradients; the "
             "stored error takes as much memory as the gradients"},
    {.name = NULL}};

/* A sum along a chain of [size] ranks is rounded at most [size] times; this
 * counts the rounding of the ranks' own numbers. Each rounding makes the sum
 * larger by a factor of at most 1 + unit. There is a second bound. Before an
 * addition, the partial sum is already rounded. So the rounding after the
 * addition makes the sum larger by at most the number that was added. So a
 * chain at most doubles the sum. A chain of chains, as over the GPUs of several
 * nodes, makes it at most four times as large. */
#define GROWTH_MOST 4.0

float ddp_rounding_limit(const ddp_rounding_t *rounding, int size)
{
    double growth = 1;

    for (int r = 0; r < size && growth < GROWTH_MOST; r++)
        growth *= 1 + rounding->unit;
    return (float)(rounding->largest / (size * fmin(growth, GROWTH_MOST)));
}

static void half_close(void *state)
{
    half_t *half = state;

    mem_free(half->residual);
    mem_free(half->sent);
    mem_free(half);
}

static void rounding_of(const half_format_t *format, const void *options,
                        ddp_rounding_t *out)
{
    const half_options_t *given = options;

    *out = (ddp_rounding_t){.type = format->type,
                            .largest = format->largest,
                            .unit = format->unit,
                            .feedback = given->error_feedback};
}

static err_code_t half_open(const half_format_t *format,
                            const ddp_hook_plan_t *plan, void **state,
                            err_t *err)
{
    const half_options_t *options = plan->options;
    half_t *half = NULL;
    ddp_rounding_t rounding;
    err_code_t rc;

    rc = mem_new(half_t, 1, "comm hook", &half, err);
    if (rc != ERR_OK)
        return rc;
    half->format = format;
    half->elems = plan->elems;
    rounding_of(format, options, &rounding);
    half->largest = ddp_rounding_limit(&rounding, plan->size);
    half->feedback = options->error_feedback;
    if (!plan->counted)
        rc = mem_new(uint16_t, plan->elems, "comm hook", &half->sent, err);
    if (rc == ERR_OK && half->feedback && !plan->counted)
        rc = mem_new(float, plan->elems, "residual of the comm hook",
                     &half->residual, err);
    if (rc != ERR_OK) {
        half_close(half);
        return rc;
    }
    *state = half;
    return ERR_OK;
}

static size_t half_bytes(const void *state)
{
    const half_t *half = state;

    return half->elems *
           (sizeof *half->sent + (half->feedback ? sizeof *half->residual : 0));
}

static void fp16_rounds(const void *options, ddp_rounding_t *out)
{
    rounding_of(&fp16, options, out);
}

static void bf16_rounds(const void *options, ddp_rounding_t *out)
{
    rounding_of(&bf16, options, out);
}

static err_code_t fp16_open(const ddp_hook_plan_t *plan, void **state,
                            err_t *err)
{
    return half_open(&fp16, plan, state, err);
}

static err_code_t bf16_open(const ddp_hook_plan_t *plan, void **state,
                            err_t *err)
{
    return half_open(&bf16, plan, state, err);
}

/* Clamp a finite number to [-largest, largest]. */
static float bounded(float x, float largest)
{
    if (x > largest && x < INFINITY)
        return largest;
    return x < -largest && x > -INFINITY ? -largest : x;
}

/* Round [count] <= BLOCK gradients from element [at] on, and store the rounding
 * errors. */
static void block_round(const half_t *half, const float *grads, size_t at,
                        size_t count)
{
    float *residual = half->residual != NULL ? half->residual + at : NULL;
    float exact[BLOCK], finite[BLOCK], wide[BLOCK];

    for (size_t i = 0; i < count; i++)
        exact[i] = residual != NULL ? grads[i] + residual[i] : grads[i];
    for (size_t i = 0; i < count; i++)
        finite[i] = bounded(exact[i], half->largest);
    half->format->round(half->sent + at, finite, count);
    if (residual == NULL)
        return;
    half->format->widen(wide, half->sent + at, count);
    for (size_t i = 0; i < count; i++)
        residual[i] = exact[i] - wide[i];
}

static err_code_t half_turn(void *state, const ddp_hook_bucket_t *bucket,
                            int turn, ddp_wire_t *wire, err_t *err)
{
    const half_t *half = state;
    uint16_t *sent = half->sent + bucket->offset;
    err_code_t rc;

    if (turn == 0) {
        for (size_t at = 0; at < bucket->count; at += BLOCK) {
            size_t left = bucket->count - at;

            block_round(half, bucket->grads + at, bucket->offset + at,
                        left < BLOCK ? left : BLOCK);
        }
        return ddp_wire_sum(wire, sent, bucket->count, half->format->type, err);
    }
    rc = ddp_wire_wait(wire, err);
    if (rc == ERR_OK)
        half->format->widen(bucket->grads, sent, bucket->count);
    return rc;
}

static int half_parts(void *state, ddp_hook_part_t *parts)
{
    half_t *half = state;

    if (half->residual == NULL)
        return 0;
    parts[0] = (ddp_hook_part_t){.name = "residual",
                                 .data = half->residual,
                                 .count = half->elems,
                                 .own = true};
    return 1;
}

const ddp_hook_ops_t ddp_hook_fp16 = {
    .row = {.name = "fp16",
            .help = "Gradients are reduced as fp16, with error feedback",
            .options = half_rows},
    .option_bytes = sizeof(half_options_t),
    .turns = 2,
    .open = fp16_open,
    .close = half_close,
    .turn = half_turn,
    .parts = half_parts,
    .bytes = half_bytes,
    .rounds = fp16_rounds};

const ddp_hook_ops_t ddp_hook_bf16 = {
    .row = {.name = "bf16",
            .help = "Gradients are reduced as bf16, with error feedback",
            .options = half_rows},
    .option_bytes = sizeof(half_options_t),
    .turns = 2,
    .open = bf16_open,
    .close = half_close,
    .turn = half_turn,
    .parts = half_parts,
    .bytes = half_bytes,
    .rounds = bf16_rounds};
