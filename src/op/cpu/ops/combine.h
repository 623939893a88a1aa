/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the ops of several inputs share: all inputs in one layout, that of the
 * first input that has a private one, so that blocked tensors are combined
 * without leaving their layout; or all of them plain.
 */
#ifndef CDDP_OP_CPU_OPS_COMBINE_H
#define CDDP_OP_CPU_OPS_COMBINE_H

#include "op/cpu/onednn/reorder.h"

/* Elements that are worth a thread. */
#define CPU_COMBINE_GRAIN 16384

typedef struct cpu_combine {
    cpu_scratch_t scratch;
    cpu_md_t layout; /* of y; unless all are plain */
    cpu_reorder_t in[OP_INPUTS_MAX], grad[OP_INPUTS_MAX];
} cpu_combine_t;

/* Make the state; [plain]: all inputs are wanted plain (they may differ in
 * shape then). */
err_code_t cpu_combine_open(op_t *op, bool plain, err_t *err);
/* The same in a zeroed state of [bytes] that begins with a cpu_combine_t. */
err_code_t cpu_combine_open_in(op_t *op, size_t bytes, bool plain, err_t *err);
/* Of plain inputs whose x backward does not read: y may lie over it, where it
 * needs no other layout. */
err_code_t cpu_combine_open_over(op_t *op, err_t *err);
void cpu_combine_close(op_t *op);

/* Input [k] of a call, 0 is x, as it came in; where its gradient goes, or NULL
 * if nobody wants it. */
const void *cpu_combine_input(const op_args_t *args, int k);
void *cpu_combine_gradient(const op_t *op, const op_args_t *args, int k);

/* Bring in all inputs: inside[0 .. others]; in the common layout, which may be
 * one of bfloat16 (op_stored_bf16(&op->out)). */
err_code_t cpu_combine_bring(op_t *op, const op_args_t *args,
                             const void *inside[OP_INPUTS_MAX], err_t *err);
/* The same where they are float32: of ops on plain tensors, and of those that
 * take no bfloat16. */
err_code_t cpu_combine_read(op_t *op, const op_args_t *args,
                            const float *inside[OP_INPUTS_MAX], err_t *err);

#endif
