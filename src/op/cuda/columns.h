/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Passes over a matrix [rows, columns] of float32: rounding, an activation, and
 * the backward of an activation together with sums of columns. Sums are added
 * in an order that depends on the shape alone. All run on args->stream; [op]
 * names them in messages.
 */
#ifndef CDDP_OP_CUDA_COLUMNS_H
#define CDDP_OP_CUDA_COLUMNS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "op/op.h"

/* to[i] = from[i], rounded to bfloat16. */
err_code_t cuda_columns_round(const op_t *op, const op_args_t *args, void *to,
                              const void *from, int64_t count, err_t *err);

/* to[i] = from[i]: bfloat16 to float32. */
err_code_t cuda_columns_widen(const op_t *op, const op_args_t *args, void *to,
                              const void *from, int64_t count, err_t *err);

typedef struct cuda_curve {
    op_kind_t kind; /* one of op_config_t.activation */
    const float *h;
    void *y;
    bool bf16; /* y is stored as bfloat16; otherwise it may be h */
    int64_t count;
} cuda_curve_t;

/* y[i] = curve(h[i]) */
err_code_t cuda_columns_activate(const op_t *op, const op_args_t *args,
                                 const cuda_curve_t *curve, err_t *err);

typedef struct cuda_columns {
    int64_t rows, columns;
    op_kind_t curve; /* of h; OP_NONE: there is no h */
    const void *dy;  /* bfloat16 if dy_bf16, which goes without curve and dh */
    const float *h;
    bool dy_bf16;
    void *dh;   /* dy curve'(h); NULL: not written */
    bool bf16;  /* store dh rounded to bfloat16; the sums are of the exact dh */
    float *sum; /* [columns], of dh; NULL: none */
    int64_t kept;  /* only the first [kept] sums are stored; 0: all */
    bool add;      /* to [sum], instead of overwriting it */
    void *scratch; /* cuda_columns_scratch bytes, if there is a sum */
} cuda_columns_t;

size_t cuda_columns_scratch(int64_t rows, int64_t columns);
err_code_t cuda_columns_run(const op_t *op, const op_args_t *args,
                            const cuda_columns_t *columns, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
