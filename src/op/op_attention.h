/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the backends share of attention: where its tensors lie, and its mask. */
#ifndef CDDP_OP_OP_ATTENTION_H
#define CDDP_OP_OP_ATTENTION_H

#include "op/op_ops.h"

/* Where q, k and v lie. Row t of head h of sample n begins at element base +
 * (n * tokens + t) * stride + h * size of its tensor. */
typedef struct op_attention {
    int64_t N, T, S, H, G, D; /* tokens of q, of k; heads, kv heads, size */
    int input[3];             /* of q, k, v: 0 is x */
    int64_t base[3], stride[3];
} op_attention_t;

op_attention_t op_attention_of(const op_config_t *config);
/* heads.masked: 1 or 0 for each key into open[N * S], from the last input,
 * which is [mask]. ERR_DATA where that holds something else. */
err_code_t op_attention_open_keys(const op_config_t *config, const void *mask,
                                  float *open, err_t *err);
double op_attention_flops(const op_config_t *config);
err_code_t op_shape_attention(const op_config_t *config, op_desc_t *out,
                              err_t *err);

#endif
