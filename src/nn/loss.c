/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The losses except cross_entropy (loss_classes.c). An op computes the sum over
 * samples. nn_loss_weigh computes the denominator, as only train knows the
 * samples of all ranks. */
#include "nn/registry.h"

static const opt_row_t no_rows[] = {{.name = NULL}};

const nn_kind_t nn_kind_mse = {
    .name = "mse",
    .op = OP_MSE,
    .help = "Regression: squared difference from the target, which has the "
            "output's shape; mean over samples and elements",
    .rows = no_rows,
};

const nn_kind_t nn_kind_mae = {
    .name = "mae",
    .op = OP_MAE,
    .help = "Regression: absolute difference from the target, which has the "
            "output's shape; mean over samples and elements",
    .rows = no_rows,
};

typedef struct huber_options {
    double delta;
} huber_options_t;

_Static_assert(sizeof(huber_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t huber_rows[] = {
    {.name = "delta",
     .type = OPT_REAL,
     .offset = offsetof(huber_options_t, delta),
     .fallback = "1",
     .min = 1e-30,
     .max = 1e30,
     .help = "Difference from which on the loss is linear"},
    {.name = NULL},
};

static err_code_t huber_configure(nn_layer_t *layer, const void *options,
                                  const tree_t *tree, err_t *err)
{
    const huber_options_t *huber = options;

    (void)tree;
    (void)err;
    layer->config.alpha = huber->delta;
    return ERR_OK;
}

const nn_kind_t nn_kind_huber = {
    .name = "huber",
    .op = OP_HUBER,
    .help = "Regression: half the squared difference from the target where the "
            "difference is at most delta, and linear in it beyond; mean over "
            "samples and elements",
    .rows = huber_rows,
    .configure = huber_configure,
};

typedef struct bce_options {
    const tree_t *pos_weight;
    int axis; /* an nn_class_axis_t */
} bce_options_t;

_Static_assert(sizeof(bce_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t bce_rows[] = {
    {.name = "pos_weight",
     .type = OPT_TREE,
     .offset = offsetof(bce_options_t, pos_weight),
     .fallback = "",
     .help =
         "Factor of the loss's term for target 1, such as where such targets "
         "are rare: a number, or a list with one for each class; absent: 1"},
    {.name = "classes",
     .type = OPT_CHOICE,
     .offset = offsetof(bce_options_t, axis),
     .fallback = "auto",
     .choices = nn_class_axes,
     .help = "Dimension of the output that holds the classes of a list in "
             "pos_weight; auto: the last one of [positions, classes], "
             "otherwise the first one"},
    {.name = NULL},
};

static err_code_t bce_configure(nn_layer_t *layer, const void *options,
                                const tree_t *tree, err_t *err)
{
    const bce_options_t *bce = options;
    op_loss_t *loss = &layer->config.loss;
    const tree_t *weight = bce->pos_weight;

    (void)tree;
    loss->positive = 1;
    if (weight == NULL)
        return ERR_OK;
    if (tree_kind(weight) == TREE_LIST) {
        loss->axis = nn_class_axis_find((nn_class_axis_t)bce->axis,
                                        layer->config.in.ndim);
        return nn_class_weights_read(layer, "pos_weight", weight, err);
    }
    if (tree_text(weight) != NULL &&
        str_to_real(tree_text(weight), &loss->positive) &&
        loss->positive >= 1e-30 && loss->positive <= 1e30)
        return ERR_OK;
    return nn_fail_at(tree_place(weight), err,
                      "loss bce: pos_weight is a number from 1e-30 to 1e30, or "
                      "a list of one for each class, but this is '%s'",
                      tree_text(weight) == NULL ? "" : tree_text(weight));
}

const nn_kind_t nn_kind_bce = {
    .name = "bce",
    .op = OP_BCE,
    .help = "Classification with two classes: binary cross entropy of the "
            "output's sigmoid and the target, which has the output's shape and "
            "values from 0 to 1; mean over samples and elements",
    .rows = bce_rows,
    .configure = bce_configure,
};

typedef struct kl_options {
    bool log_target;
} kl_options_t;

_Static_assert(sizeof(kl_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t kl_rows[] = {
    {.name = "log_target",
     .type = OPT_BOOL,
     .offset = offsetof(kl_options_t, log_target),
     .fallback = "false",
     .help = "true: the target holds logarithms of probabilities, too"},
    {.name = NULL},
};

static err_code_t kl_configure(nn_layer_t *layer, const void *options,
                               const tree_t *tree, err_t *err)
{
    const kl_options_t *kl = options;

    (void)tree;
    (void)err;
    layer->config.alpha = kl->log_target ? 1 : 0;
    return ERR_OK;
}

const nn_kind_t nn_kind_kl = {
    .name = "kl",
    .op = OP_KL,
    .help = "Kullback-Leibler divergence of the target from the output. The "
            "target holds probabilities that sum to 1, the output holds "
            "logarithms of probabilities; mean over samples and elements",
    .rows = kl_rows,
    .configure = kl_configure,
};
