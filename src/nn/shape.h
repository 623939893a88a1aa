/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* shape: shapes of tensors, as sizes and as text. */
#ifndef CDDP_NN_SHAPE_H
#define CDDP_NN_SHAPE_H

#include "base/opt.h"
#include "op/op.h"

#define NN_SHAPE_TEXT 160

/* Elements of a sample of [desc] (its batch dimension left out). */
int64_t nn_sample_elems(const op_desc_t *desc);

/* "[16, 8, 8]", the sample's shape, into [out], which is returned. */
char *nn_shape_format(const op_desc_t *desc, char out[NN_SHAPE_TEXT]);

/* A plain float32 tensor of [batch] samples. */
void nn_desc_plain(op_desc_t *desc, int64_t batch, int ndim,
                   const int64_t *dims);

/* One integer, or one for each dimension of space of [in]; otherwise ERR_CONFIG
 * at [key] of [tree]. */
err_code_t nn_space(const opt_ints_t *ints, const op_desc_t *in,
                    const tree_t *tree, const char *key,
                    int64_t out[OP_SPACE_MAX], err_t *err);

#endif
