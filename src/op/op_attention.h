/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* attention, shared by the backends: positions of its tensors, and its mask. */
#ifndef CDDP_OP_OP_ATTENTION_H
#define CDDP_OP_OP_ATTENTION_H

#include "op/op_ops.h"

/* Sizes, and positions of q, k and v. Token t of head h of sample n begins at
 * element base + (n * tokens + t) * stride + h * D of its tensor, where tokens
 * is T for q and S for k and v. */
typedef struct op_attention {
    int64_t N,    /* batch */
        T,        /* tokens of q */
        S,        /* tokens of k and v */
        H,        /* query heads */
        G,        /* key and value heads */
        D;        /* features of a head */
    int input[3]; /* numbers of the inputs that have q, k and v; 0 is x, 1 is
                     other[0] */
    int64_t base[3], stride[3];
} op_attention_t;

op_attention_t op_attention_of(const op_config_t *config);
/* If heads.masked: write 1 (valid) or 0 for each key to valid[N * S], from the
 * last input, which is [mask]. ERR_DATA if the mask has other values. */
err_code_t op_attention_valid_keys(const op_config_t *config, const void *mask,
                                   float *valid, err_t *err);
double op_attention_flops(const op_config_t *config);
err_code_t op_shape_attention(const op_config_t *config, op_desc_t *out,
                              err_t *err);

#endif
