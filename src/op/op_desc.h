/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Functions of the description of a tensor (op_desc_t), and the check of an
 * op's input, for all backends (op_desc.c). Pure functions. */
#ifndef CDDP_OP_OP_DESC_H
#define CDDP_OP_OP_DESC_H

#include "op/op.h"

/* The name of a kind of op, such as "linear" (op_rules.c). */
const char *op_kind_name(op_kind_t kind);

/* FLOPs per element of x from op_table.inc; 0 for OP_NONE. */
double op_kind_flops(op_kind_t kind);

/* Maximum bytes of the text of op_desc_text, including the NUL. */
#define OP_TEXT_MAX 160

/* Write the dimensions, such as "[8, 32, 16, 16]", to [out]. Returns [out]. */
char *op_desc_text(const op_desc_t *desc, char out[OP_TEXT_MAX]);

/* Number of elements of the tensor. */
int64_t op_desc_elems(const op_desc_t *desc);
/* Elements of one sample: the product of the dimensions after the first. */
int64_t op_desc_sample(const op_desc_t *desc);
/* Elements of one channel of one sample: the product of the dimensions after
 * the second. */
int64_t op_desc_space(const op_desc_t *desc);
/* Bytes of one element. */
size_t op_type_bytes(op_type_t type);

/* The type of the op's outputs and parameters. */
op_type_t op_number_type(const op_config_t *config);

/* Make [desc] a plain tensor of [type] and [ndim] dimensions. */
void op_desc_fill(op_desc_t *desc, op_type_t type, int ndim,
                  const int64_t *dims);

/* Check that config.in is a tensor of real numbers (embedding: of int32) with
 * [ndim_min] to [ndim_max] dimensions. If not, return ERR_CONFIG; [expected] is
 * the shape that the message names. */
err_code_t op_check_input(const op_config_t *config, int ndim_min, int ndim_max,
                          const char *expected, err_t *err);

#endif
