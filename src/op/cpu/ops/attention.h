/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What attention in float32 and attention in bfloat16 share. */
#ifndef CDDP_OP_CPU_OPS_ATTENTION_H
#define CDDP_OP_CPU_OPS_ATTENTION_H

#include <string.h>

#include "base/check.h"
#include "op/cpu/vector/gemm_small.h"
#include "op/op_attention.h"
#include "op/op_ops.h"

/* Queries in a block of queries, and keys in a block of keys. */
#define CPU_ATTENTION_BLOCK 32

enum { CPU_Q, CPU_K, CPU_V };

typedef struct cpu_attention_work {
    op_attention_t a;
    bool causal;
    float scale; /* 1 / sqrt(D) */
    const float *in[3];
    float *valid; /* [N,S]: 0 where a key is hidden, else 1; NULL: no mask */
    float *gradient[3]; /* of q, k, v; NULL: not computed */
    float *y;
    const float *dy;
    /* For each query, float [N,H,T]: maximum score, 1 / sum of exponentials,
     * dot product of y and dy. NULL in evaluation. */
    float *top, *inverse, *delta;
    /* bfloat16 only: [memory_bytes] of buffers for each thread, and whether to
     * use AMX tiles. */
    char *memory;
    size_t memory_bytes;
    bool tiles;
} cpu_attention_work_t;

typedef float cpu_square_t[CPU_ATTENTION_BLOCK][CPU_ATTENTION_BLOCK];

/* Running softmax of a block of queries: maximum and sum so far, and the
 * factor for earlier results. */
typedef struct cpu_columns {
    float top[CPU_ATTENTION_BLOCK], sum[CPU_ATTENTION_BLOCK],
        factor[CPU_ATTENTION_BLOCK];
    const float *valid; /* mask of the next keys; NULL: no key is hidden */
} cpu_attention_columns_t;

void cpu_attention_start(cpu_attention_columns_t *columns);

/* Mask of sample [n] from key [k0] on; NULL: no mask. */
static inline const float *cpu_attention_mask(const cpu_attention_work_t *work,
                                              int64_t n, int64_t k0)
{
    return work->valid == NULL ? NULL : work->valid + n * work->a.S + k0;
}

/* Does the mask [valid] hide key [j]? */
static inline bool cpu_attention_hidden(const float *valid, int64_t j)
{
    return valid != NULL && valid[j] == 0;
}

/*
 * Turn scores [keys, queries] into exp(score * scale - top). Updates top and
 * sum, and sets factor, by which earlier results must be multiplied. Query i
 * reads the first i + [ahead] of these keys, except those that columns->valid
 * hides.
 */
void cpu_attention_softmax(float (*s)[CPU_ATTENTION_BLOCK], int64_t keys,
                           int64_t ahead, float scale,
                           cpu_attention_columns_t *columns);

/* Offset of token [t] of head [h] of sample [n] in q, k or v; [which] is
 * CPU_Q, CPU_K or CPU_V. */
static inline int64_t cpu_attention_at(const cpu_attention_work_t *work,
                                       int which, int64_t n, int64_t t,
                                       int64_t h)
{
    const op_attention_t *a = &work->a;
    int64_t tokens = which == CPU_Q ? a->T : a->S;

    check(n < a->N && t < tokens && h < (which == CPU_Q ? a->H : a->G),
          "no token %d of head %d", (int)t, (int)h);
    return a->base[which] + (n * tokens + t) * a->stride[which] + h * a->D;
}

/* Offset of token [t] of head [h] of sample [n] in y. */
static inline int64_t cpu_attention_y(const cpu_attention_work_t *work,
                                      int64_t n, int64_t t, int64_t h)
{
    check(n < work->a.N && t < work->a.T && h < work->a.H,
          "no token %d of head %d", (int)t, (int)h);
    return ((n * work->a.T + t) * work->a.H + h) * work->a.D;
}

/* Number of tokens in the block that begins at token [first] of [all]. */
static inline int64_t cpu_attention_count(int64_t first, int64_t all)
{
    return all - first < CPU_ATTENTION_BLOCK ? all - first
                                             : CPU_ATTENTION_BLOCK;
}

/* The block of rows of q, k or v that begins at token [t] of head [h] of sample
 * [n]. */
static inline cpu_rows_t cpu_attention_rows(const cpu_attention_work_t *work,
                                            int which, int64_t n, int64_t t,
                                            int64_t h)
{
    const op_attention_t *a = &work->a;

    return (cpu_rows_t){
        work->in[which] + cpu_attention_at(work, which, n, t, h),
        a->stride[which], cpu_attention_count(t, which == CPU_Q ? a->T : a->S)};
}

/* The same block of dy. */
static inline cpu_rows_t cpu_attention_dy(const cpu_attention_work_t *work,
                                          int64_t n, int64_t t, int64_t h)
{
    const op_attention_t *a = &work->a;

    return (cpu_rows_t){work->dy + cpu_attention_y(work, n, t, h), a->H * a->D,
                        cpu_attention_count(t, a->T)};
}

/* Write [rows] to offset [at] of gradient [which], if it is computed. */
static inline void cpu_attention_store(const cpu_attention_work_t *work,
                                       int which, cpu_rows_t rows, int64_t at)
{
    float *to = work->gradient[which];

    for (int64_t i = 0; to != NULL && i < rows.count; i++)
        memcpy(to + at + i * work->a.stride[which], rows.data + i * rows.row,
               (size_t)work->a.D * sizeof *to);
}

/* Return 1 / sum of query [i] of the block, or 0 if it has no keys. In
 * training, also store its maximum and 1 / sum at row [at] + [i] of the
 * workspace. */
float cpu_attention_keep(const cpu_attention_work_t *work,
                         const cpu_attention_columns_t *columns, int64_t at,
                         int64_t i);

/* The bfloat16 versions. cpu_attention_bf16_bytes: bytes of buffers per
 * thread. The other two are thread bodies, over N * H heads (forward) and N *
 * G key heads (backward). */
size_t cpu_attention_bf16_bytes(const op_attention_t *a, bool training);
void cpu_attention_bf16_forward(void *context, int64_t first, int64_t last);
void cpu_attention_bf16_backward(void *context, int64_t first, int64_t last);

#endif
