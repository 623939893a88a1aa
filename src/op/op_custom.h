/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Ops of plugins (cddp/plugin.h). The functions of plugins are called here, for
 * both backends, with plain float32 tensors. The shapes that they return are
 * checked.
 */
#ifndef CDDP_OP_OP_CUSTOM_H
#define CDDP_OP_OP_CUSTOM_H

#include "cddp/plugin.h"
#include "op/op_ops.h"

/* Call the shape function of config->custom. ERR_CONFIG with the plugin's
 * message, or if the shapes are impossible. */
err_code_t op_custom_shapes(const op_config_t *config, cddp_shapes_t *out,
                            err_t *err);

/* Call the plugin's forward or backward. x[k] and dx[k] (NULL: not computed)
 * are the plain tensors of input k. All other tensors are in [args]. */
err_code_t op_custom_forward(const op_t *op, const cddp_shapes_t *shapes,
                             const float *const *x, const op_args_t *args,
                             err_t *err);
err_code_t op_custom_backward(const op_t *op, const cddp_shapes_t *shapes,
                              const float *const *x, float *const *dx,
                              const op_args_t *args, err_t *err);

#endif
