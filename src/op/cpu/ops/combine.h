/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Shared by the ops with several inputs, which are all converted to one layout:
 * that of the first blocked input (of the first one in bfloat16, if there is
 * any), so that blocked tensors are combined without a reorder. An op may ask
 * for plain inputs instead.
 */
#ifndef CDDP_OP_CPU_OPS_COMBINE_H
#define CDDP_OP_CPU_OPS_COMBINE_H

#include "op/cpu/onednn/reorder.h"

/* Minimum elements per thread. */
#define CPU_COMBINE_GRAIN 16384

typedef struct cpu_combine {
    cpu_scratch_t scratch;
    cpu_md_t layout; /* layout of y; unused if all inputs are plain */
    cpu_reorder_t in[OP_INPUTS_MAX], grad[OP_INPUTS_MAX];
} cpu_combine_t;

/* Make the state of [op]. [plain]: all inputs are converted to plain layout;
 * only then may they differ in shape. */
err_code_t cpu_combine_open(op_t *op, bool plain, err_t *err);
/* Like cpu_combine_open, in a zeroed state of [bytes] that begins with a
 * cpu_combine_t. */
err_code_t cpu_combine_open_in(op_t *op, size_t bytes, bool plain, err_t *err);
/* Open an op on plain inputs whose backward does not read x. y may overwrite x
 * if x needs no reorder. */
err_code_t cpu_combine_open_over(op_t *op, err_t *err);
void cpu_combine_close(op_t *op);

/* cpu_combine_input: input [k] as the caller passed it; 0 is x.
 * cpu_combine_gradient: the caller's buffer for the gradient of input [k];
 * NULL: not needed. */
const void *cpu_combine_input(const op_args_t *args, int k);
void *cpu_combine_gradient(const op_t *op, const op_args_t *args, int k);

/* cpu_combine_place: the buffer in which the op writes the gradient of input
 * [k]; NULL: not needed. cpu_combine_flush: convert the written gradient to
 * the caller's buffer; does nothing if it is not needed. */
void *cpu_combine_place(const op_t *op, const op_args_t *args, int k);
err_code_t cpu_combine_flush(const op_t *op, const op_args_t *args, int k,
                             err_t *err);

/* Convert all inputs to the common layout: inside[0 .. others]. Elements are
 * bfloat16 if op_stored_bf16(&op->out). */
err_code_t cpu_combine_convert(op_t *op, const op_args_t *args,
                               const void *inside[OP_INPUTS_MAX], err_t *err);
/* Like cpu_combine_convert, for ops whose inputs are always float32: ops on
 * plain tensors, and ops that do not support bfloat16. */
err_code_t cpu_combine_read(op_t *op, const op_args_t *args,
                            const float *inside[OP_INPUTS_MAX], err_t *err);

#endif
