/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Shapes of the output and parameters: the functions that the table of ops
 * (op_table.inc) names. A shape function fills *out with a plain description,
 * or returns ERR_CONFIG with the reason why the configuration is invalid. A
 * parameter function returns the number of parameters. All are pure. (Those of
 * attention and of ops that broadcast are in op_attention.h and
 * op_broadcast.h.)
 */
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
err_code_t op_shape_combine(const op_config_t *config, op_desc_t *out,
                            err_t *err);
err_code_t op_shape_view(const op_config_t *config, op_desc_t *out, err_t *err);
err_code_t op_shape_pad(const op_config_t *config, op_desc_t *out, err_t *err);
err_code_t op_shape_window(const op_config_t *config, op_desc_t *out,
                           err_t *err);
err_code_t op_shape_norm(const op_config_t *config, op_desc_t *out, err_t *err);
err_code_t op_shape_recurrent(const op_config_t *config, op_desc_t *out,
                              err_t *err);
err_code_t op_shape_rotary(const op_config_t *config, op_desc_t *out,
                           err_t *err);
err_code_t op_shape_embedding(const op_config_t *config, op_desc_t *out,
                              err_t *err);
err_code_t op_shape_custom(const op_config_t *config, op_desc_t *out,
                           err_t *err);

int op_params_linear(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int op_params_batchnorm(const op_config_t *config,
                        op_desc_t out[OP_PARAMS_MAX]);
int op_params_position(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int op_params_embedding(const op_config_t *config,
                        op_desc_t out[OP_PARAMS_MAX]);
int op_params_prelu(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int op_params_conv_transpose(const op_config_t *config,
                             op_desc_t out[OP_PARAMS_MAX]);
int op_params_conv(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int op_params_norm(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);
int op_params_recurrent(const op_config_t *config,
                        op_desc_t out[OP_PARAMS_MAX]);
int op_params_custom(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX]);

#endif
