/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The gradient of a convolution's weights as one product of matrices. A row is
 * a position of y. Its columns are the elements of x that its window covers,
 * ordered by tap, then channel. x and dy are bfloat16 with channels last, and
 * dw [O, taps, C] = dy' [O, rows] columns [rows, taps C].
 */
#ifndef CDDP_OP_CPU_OPS_CONV_IM2COL_H
#define CDDP_OP_CPU_OPS_CONV_IM2COL_H

#include "op/cpu/onednn/reorder.h"

typedef struct cpu_im2col {
    bool used;
    const cpu_scratch_t *scratch; /* of the op */
    cpu_prim_t product;
    size_t at; /* offset in scratch of the columns, bfloat16 [rows, taps C] */
} cpu_im2col_t;

/* Sets *suit: is im2col faster for [op] than oneDNN's primitive? [x] is the
 * layout in which the op's forward reads x; [op] may be of any kind. */
err_code_t cpu_im2col_suit(const op_t *op, cpu_engine_t *engine,
                           const cpu_md_t *x, bool *suit, err_t *err);

/* Make the product, and reserve scratch for the columns. */
err_code_t cpu_im2col_open(cpu_im2col_t *columns, const op_t *op,
                           cpu_scratch_t *scratch, err_t *err);
void cpu_im2col_close(cpu_im2col_t *columns); /* [columns] may be zeroed */

typedef struct cpu_im2col_tensors {
    const void *x, *dy;
    float *dw; /* float32 [O, taps, C] */
    float *db; /* float32 [O]; NULL: not computed */
} cpu_im2col_tensors_t;

/* Compute dw and db. */
err_code_t cpu_im2col_run(cpu_im2col_t *columns, const op_t *op,
                          const op_args_t *args, cpu_im2col_tensors_t with,
                          err_t *err);

#endif
