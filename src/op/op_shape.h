/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes and parameters of the kinds that have no file of their own: functions
 * of a row of op_rules.c. Others are declared in op_ops.h, op_attention.h and
 * op_spread.h. */
#ifndef CDDP_OP_OP_SHAPE_H
#define CDDP_OP_OP_SHAPE_H

#include "op/op.h"

err_code_t op_shape_linear(const op_config_t *config, op_desc_t *out,
                           err_t *err);
err_code_t op_shape_same(const op_config_t *config, op_desc_t *out, err_t *err);
err_code_t op_shape_activation(const op_config_t *config, op_desc_t *out,
                               err_t *err);
err_code_t op_shape_flatten(const op_config_t *config, op_desc_t *out,
                            err_t *err);
err_code_t op_shape_loss(const op_config_t *config, op_desc_t *out, err_t *err);

int op_params_linear(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int op_params_batchnorm(const op_config_t *config,
                        op_desc_t out[OP_PARAMS_MAX]);
int op_params_position(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int op_params_embedding(const op_config_t *config,
                        op_desc_t out[OP_PARAMS_MAX]);
int op_params_prelu(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);

#endif
