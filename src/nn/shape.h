/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes of tensors: sizes, and text for messages. */
#ifndef CDDP_NN_SHAPE_H
#define CDDP_NN_SHAPE_H

#include "base/opt.h"
#include "op/op.h"

#define NN_SHAPE_TEXT 160

/* Number of elements of one sample of [desc] (without the batch dimension). */
int64_t nn_sample_elems(const op_desc_t *desc);

/* Write the shape of a sample, such as "[16, 8, 8]", to [out]. Returns
 * [out]. */
char *nn_shape_format(const op_desc_t *desc, char out[NN_SHAPE_TEXT]);

/* Describe a plain float32 tensor of [batch] samples of shape [dims]. */
void nn_desc_plain(op_desc_t *desc, int64_t batch, int ndim,
                   const int64_t *dims);

/* Write [ints], one integer or one for each spatial dimension of [in], to
 * [out]; other counts are ERR_CONFIG at [key] of [tree]. */
err_code_t nn_space(const opt_ints_t *ints, const op_desc_t *in,
                    const tree_t *tree, const char *key,
                    int64_t out[OP_SPACE_MAX], err_t *err);

#endif
