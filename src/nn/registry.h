/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The rows of all kinds of layers and losses; finding a row by name; reading
 * the options of a row. For the files that define rows, and those that build a
 * graph from them. */
#ifndef CDDP_NN_REGISTRY_H
#define CDDP_NN_REGISTRY_H

#include "nn/nn_priv.h"

/* Maximum number of kinds of layers, including those of a plugin. */
#define NN_KINDS_MAX 160

/* All kinds, in the order of the documentation. Each row (nn_kind_linear, ...)
 * is defined in the file of its layer or loss. */
/* clang-format off */
#define NN_LAYER_KINDS(KIND) \
    KIND(linear) \
    KIND(conv) \
    KIND(conv_transpose) \
    KIND(relu) \
    KIND(leaky_relu) \
    KIND(gelu) \
    KIND(silu) \
    KIND(hardswish) \
    KIND(elu) \
    KIND(sigmoid) \
    KIND(tanh) \
    KIND(softplus) \
    KIND(scale) \
    KIND(prelu) \
    KIND(softmax) \
    KIND(log_softmax) \
    KIND(maxpool) \
    KIND(avgpool) \
    KIND(adaptive_avgpool) \
    KIND(adaptive_maxpool) \
    KIND(batchnorm) \
    KIND(syncbatchnorm) \
    KIND(layernorm) \
    KIND(rmsnorm) \
    KIND(groupnorm) \
    KIND(instancenorm) \
    KIND(dropout) \
    KIND(flatten) \
    KIND(embedding) \
    KIND(attention) \
    KIND(position) \
    KIND(rotary) \
    KIND(lstm) \
    KIND(gru) \
    KIND(add) \
    KIND(mul) \
    KIND(matmul) \
    KIND(concat) \
    KIND(reshape) \
    KIND(permute) \
    KIND(slice) \
    KIND(split) \
    KIND(pad) \
    KIND(mean) \
    KIND(max) \
    KIND(upsample)
#define NN_LOSS_KINDS(KIND) \
    KIND(cross_entropy) \
    KIND(mse) \
    KIND(mae) \
    KIND(huber) \
    KIND(bce) \
    KIND(kl)
/* clang-format on */

#define NN_DECLARE(name) extern const nn_kind_t nn_kind_##name;
NN_LAYER_KINDS(NN_DECLARE)
NN_LOSS_KINDS(NN_DECLARE)

/* NULL-terminated lists of the rows. */
const nn_kind_t *const *nn_layer_kinds(void);
const nn_kind_t *const *nn_loss_kinds(void);

/* Find the row called [name], or return ERR_CONFIG at [place] with the nearest
 * name and all known ones. [what] is "layer" or "loss". */
err_code_t nn_kind_find(const nn_kind_t *const *kinds, const char *what,
                        const char *name, tree_place_t place,
                        const nn_kind_t **out, err_t *err);

/* Fill the layer's config from the options [tree] written at [place]. NULL
 * or a null tree: all options have their defaults. [path]: option path, for
 * errors. */
err_code_t nn_kind_configure(nn_layer_t *layer, const tree_t *tree,
                             tree_place_t place, const char *path, err_t *err);

/* graph_hash.c: print those [options] of a [kind] that enter a model's hash
 * by their rows: those that are not default and not covered by the fields of
 * op_config_t. A list of equal numbers in [options] is shortened to one
 * number. */
void nn_hash_options(const nn_kind_t *kind, void *options, str_buf_t *out);

/* Options that several losses have: which dimension of the loss's input counts
 * the classes, and a weight for each class. */
typedef enum nn_class_axis {
    NN_CLASSES_AUTO,
    NN_CLASSES_FIRST,
    NN_CLASSES_LAST
} nn_class_axis_t;

extern const char *const nn_class_axes[];
/* Index of the dimension that counts the classes; the batch is dimension 0. */
int nn_class_axis_find(nn_class_axis_t axis, int ndim);
/* Read the option [key], a [list] of one number from 0 to 1e30 for each class,
 * into the layer's class_weights and config. config.loss.axis must be set
 * before. */
err_code_t nn_class_weights_read(nn_layer_t *layer, const char *key,
                                 const tree_t *list, err_t *err);

#endif
