/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What attention in float32 and attention in bfloat16 share. */
#ifndef CDDP_OP_CPU_OPS_ATTENTION_H
#define CDDP_OP_CPU_OPS_ATTENTION_H

#include "base/check.h"
#include "op/op_attention.h"
#include "op/op_ops.h"

/* Queries, and keys, of a block. */
#define CPU_ATTENTION_BLOCK 32

enum { CPU_Q, CPU_K, CPU_V };

typedef struct cpu_attention_work {
    op_attention_t a;
    bool causal;
    float scale; /* 1 / sqrt(D) */
    const float *in[3];
    float *open; /* [N,S]: 1, or 0 where a key is hidden; NULL: no mask */
    float *gradient[3]; /* NULL: not wanted */
    float *y;
    const float *dy;
    float *top, *part, *delta; /* [N,H,T], of each row: the maximum, 1 / the sum
                                  of exponentials, y dy; NULL in evaluation */
    /* bfloat16: memory of [room_bytes] for each thread; are there AMX tiles? */
    char *memory;
    size_t memory_bytes;
    bool tiles;
} cpu_attention_work_t;

typedef float cpu_square_t[CPU_ATTENTION_BLOCK][CPU_ATTENTION_BLOCK];

/* A block of queries, in columns: what it has of its softmax so far. */
typedef struct cpu_columns {
    float top[CPU_ATTENTION_BLOCK], sum[CPU_ATTENTION_BLOCK],
        factor[CPU_ATTENTION_BLOCK];
    const float *open; /* of the keys that come next; NULL: all are there */
} cpu_attention_columns_t;

void cpu_attention_start(cpu_attention_columns_t *columns);

/* What the mask says of the keys of sample [n] from [k0] on; NULL: no mask. */
static inline const float *cpu_attention_mask(const cpu_attention_work_t *work,
                                              int64_t n, int64_t k0)
{
    return work->open == NULL ? NULL : work->open + n * work->a.S + k0;
}

/* Does the mask [open] hide key [j]? */
static inline bool cpu_attention_hidden(const float *open, int64_t j)
{
    return open != NULL && open[j] == 0;
}

/*
 * Scores [keys, queries] become exp(score * scale - top); top and sum go on,
 * and factor is what earlier results must be multiplied by. Query i reads the
 * first i + [ahead] of these keys, but for those that columns->open hides.
 */
void cpu_attention_softmax(float (*s)[CPU_ATTENTION_BLOCK], int64_t keys,
                           int64_t ahead, float scale,
                           cpu_attention_columns_t *columns);

/* Where token [t] of head [h] of sample [n] begins in q, k or v, as [which]
 * says. */
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

/* Where token [t] of head [h] of sample [n] begins in y. */
static inline int64_t cpu_attention_y(const cpu_attention_work_t *work,
                                      int64_t n, int64_t t, int64_t h)
{
    check(n < work->a.N && t < work->a.T && h < work->a.H,
          "no token %d of head %d", (int)t, (int)h);
    return ((n * work->a.T + t) * work->a.H + h) * work->a.D;
}

/* Tokens of the block that begins at [first]. */
static inline int64_t cpu_attention_count(int64_t first, int64_t all)
{
    return all - first < CPU_ATTENTION_BLOCK ? all - first
                                             : CPU_ATTENTION_BLOCK;
}

/* Keep top and 1 / sum of query [i] for backward, if there is one; 1 / sum, or
 * 0 if it had no keys. */
float cpu_attention_keep(const cpu_attention_work_t *work,
                         const cpu_attention_columns_t *columns, int64_t at,
                         int64_t i);

/* Bodies of a team in bfloat16, over N * H and N * G; room for a thread. */
size_t cpu_attention_bf16_bytes(const op_attention_t *a, bool training);
void cpu_attention_bf16_forward(void *context, int64_t first, int64_t last);
void cpu_attention_bf16_backward(void *context, int64_t first, int64_t last);

#endif
