/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Questions about the description of a tensor (op_desc_t) or about the input of
 * an op, for all backends (op_desc.c). Pure functions. */
#ifndef CDDP_OP_OP_DESC_H
#define CDDP_OP_OP_DESC_H

#include "op/op.h"

/* "linear", "conv" ...: the name in the run file (op_rules.c). */
const char *op_kind_name(op_kind_t kind);

/* FLOPs per element of x, as in op_table.inc; OP_NONE: 0. */
double op_kind_flops(op_kind_t kind);

/* Longest text of op_desc_text, with the NUL. */
#define OP_TEXT_MAX 160

/* "[8, 32, 16, 16]" into [out], which is returned. */
char *op_desc_text(const op_desc_t *desc, char out[OP_TEXT_MAX]);

/* Elements of the tensor. */
int64_t op_desc_elems(const op_desc_t *desc);
/* Elements of one sample: the dimensions after the first. */
int64_t op_desc_sample(const op_desc_t *desc);
/* Elements of one channel of one sample: the dimensions after the second. */
int64_t op_desc_space(const op_desc_t *desc);
/* Bytes of one element. */
size_t op_type_bytes(op_type_t type);

/* The type of the op's outputs and parameters. */
op_type_t op_number_type(const op_config_t *config);

/* Make [desc] a plain tensor of [type] and [ndim] dimensions. */
void op_desc_fill(op_desc_t *desc, op_type_t type, int ndim,
                  const int64_t *dims);

/* Is config.in a tensor of real numbers (embedding: of int32) with [ndim_min]
 * to [ndim_max] dimensions? If not: ERR_CONFIG; [expected] is the shape that
 * the sentence of the error names. */
err_code_t op_check_input(const op_config_t *config, int ndim_min, int ndim_max,
                          const char *expected, err_t *err);

#endif
