/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The rows of all kinds of layers and losses, and what is done with a row: find
 * it, read its options. For the files that have rows, and those that build a
 * graph from them. */
#ifndef CDDP_NN_REGISTRY_H
#define CDDP_NN_REGISTRY_H

#include "nn/nn_priv.h"

/* Kinds of layers, those of a plugin included. */
#define NN_KINDS_MAX 160

extern const nn_kind_t nn_kind_linear, nn_kind_conv, nn_kind_relu,
    nn_kind_maxpool, nn_kind_batchnorm, nn_kind_syncbatchnorm, nn_kind_dropout,
    nn_kind_flatten;
extern const nn_kind_t nn_kind_leaky_relu, nn_kind_gelu, nn_kind_silu,
    nn_kind_elu, nn_kind_sigmoid, nn_kind_tanh, nn_kind_softplus, nn_kind_scale,
    nn_kind_prelu, nn_kind_softmax, nn_kind_log_softmax;
extern const nn_kind_t nn_kind_layernorm, nn_kind_rmsnorm, nn_kind_groupnorm,
    nn_kind_instancenorm;
extern const nn_kind_t nn_kind_attention, nn_kind_position, nn_kind_embedding,
    nn_kind_rotary;
extern const nn_kind_t nn_kind_conv_transpose;
extern const nn_kind_t nn_kind_lstm, nn_kind_gru;
extern const nn_kind_t nn_kind_avgpool, nn_kind_adaptive_avgpool,
    nn_kind_adaptive_maxpool, nn_kind_split, nn_kind_pad, nn_kind_max;
extern const nn_kind_t nn_kind_add, nn_kind_mul, nn_kind_matmul, nn_kind_concat,
    nn_kind_reshape, nn_kind_permute, nn_kind_slice, nn_kind_mean,
    nn_kind_upsample;
extern const nn_kind_t nn_kind_cross_entropy, nn_kind_mse, nn_kind_mae,
    nn_kind_huber, nn_kind_bce, nn_kind_kl;

/* NULL-terminated lists of the rows. */
const nn_kind_t *const *nn_layer_kinds(void);
const nn_kind_t *const *nn_loss_kinds(void);

/* The row called [name], or ERR_CONFIG at [place] with the nearest name and
 * all known ones; [what] is "layer" or "loss". */
err_code_t nn_kind_find(const nn_kind_t *const *kinds, const char *what,
                        const char *name, tree_place_t place,
                        const nn_kind_t **out, err_t *err);

/* Fill the layer's config from the options [tree] written at [place] (NULL or
 * a null: all defaults); [path] leads to it in errors. */
err_code_t nn_kind_configure(nn_layer_t *layer, const tree_t *tree,
                             tree_place_t place, const char *path, err_t *err);

/* graph_hash.c: print those [options] of a [kind] that a model's hash takes
 * from here: neither defaults nor covered by the fields of op_config_t. Writes
 * a list of equal numbers into [options] as one number. */
void nn_hash_options(const nn_kind_t *kind, void *options, str_buf_t *out);

/* Which dimension of what a loss reads holds the classes, and a weight for each
 * of them: options that several losses have. */
typedef enum nn_class_axis {
    NN_CLASSES_AUTO,
    NN_CLASSES_FIRST,
    NN_CLASSES_LAST
} nn_class_axis_t;

extern const char *const nn_class_axes[];
/* Its number, counted with the batch. */
int nn_class_axis_find(nn_class_axis_t axis, int ndim);
/* Read [list], the option [key], a number of 0 to 1e30 for each class, into the
 * layer's class_weights and config. config.loss.axis is set before. */
err_code_t nn_class_weights_read(nn_layer_t *layer, const char *key,
                                 const tree_t *list, err_t *err);

#endif
