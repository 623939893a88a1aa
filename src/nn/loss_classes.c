/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cross_entropy, whose targets are one class for each sample, or one for each
 * position of a sample, or probabilities of all classes. Also the options on
 * classes that bce has as well. */
#include "base/mem.h"
#include "nn/registry.h"

typedef struct classes_options {
    int axis; /* an nn_class_axis_t */
    double smoothing;
    bool soft;
    const tree_t *weight, *ignore;
} classes_options_t;

_Static_assert(sizeof(classes_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

const char *const nn_class_axes[] = {"auto", "first", "last", NULL};

static const opt_row_t classes_rows[] = {
    {.name = "classes",
     .type = OPT_CHOICE,
     .offset = offsetof(classes_options_t, axis),
     .fallback = "auto",
     .choices = nn_class_axes,
     .help =
         "Dimension of the output that holds the classes; the other dimensions "
         "are the target's shape. auto: the last one of [positions, classes], "
         "otherwise the first one ([classes], [classes, height, width])"},
    {.name = "label_smoothing",
     .type = OPT_REAL,
     .offset = offsetof(classes_options_t, smoothing),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help =
         "Fraction of each target that is divided evenly among all classes"},
    {.name = "weight",
     .type = OPT_TREE,
     .offset = offsetof(classes_options_t, weight),
     .fallback = "",
     .help = "List with one weight for each class; absent: all are 1. The "
             "weighted sum is divided by the sum of the weights of the "
             "targets, with soft_target by their number"},
    {.name = "ignore_index",
     .type = OPT_TREE,
     .offset = offsetof(classes_options_t, ignore),
     .fallback = "",
     .help = "Targets of this number are left out; it need not be a class (255 "
             "or -100 are usual). Absent: no target is left out"},
    {.name = "soft_target",
     .type = OPT_BOOL,
     .offset = offsetof(classes_options_t, soft),
     .fallback = "false",
     .help = "true: the target holds a probability for each class, in the "
             "shape of the output; for metrics, the class of the largest one "
             "is the correct one"},
    {.name = NULL},
};

int nn_class_axis_find(nn_class_axis_t axis, int ndim)
{
    if (axis == NN_CLASSES_AUTO)
        return ndim == 3 ? 2 : 1;
    return axis == NN_CLASSES_FIRST ? 1 : ndim - 1;
}

err_code_t nn_class_weights_read(nn_layer_t *layer, const char *key,
                                 const tree_t *list, err_t *err)
{
    const int64_t classes = op_classes_of(&layer->config).classes;
    double sum = 0;
    err_code_t rc;

    if (tree_kind(list) != TREE_LIST || (int64_t)tree_count(list) != classes)
        return nn_fail_at(tree_place(list), err,
                          "loss %s: %s is a list of one number for each of the "
                          "%lld classes of the output, but has %zu",
                          layer->kind->name, key, (long long)classes,
                          tree_count(list));
    rc = mem_new(float, (size_t)classes, "class weights", &layer->class_weights,
                 err);
    if (rc != ERR_OK)
        return rc;
    for (int64_t k = 0; k < classes; k++) {
        const tree_t *item = tree_at(list, (size_t)k);
        double value;

        if (tree_text(item) == NULL || !str_to_real(tree_text(item), &value) ||
            !(value >= 0 && value <= 1e30))
            return nn_fail_at(tree_place(item), err,
                              "loss %s: the weight of class %lld is no number "
                              "from 0 to 1e30 but '%s'",
                              layer->kind->name, (long long)k,
                              tree_text(item) == NULL ? "" : tree_text(item));
        layer->class_weights[k] = (float)value;
        sum += value;
    }
    layer->config.loss.weights = layer->class_weights;
    if (sum > 0)
        return ERR_OK;
    return nn_fail_at(tree_place(list), err,
                      "loss %s: all weights are 0, so nothing would be learnt; "
                      "give a class another",
                      layer->kind->name);
}

static err_code_t ignore_read(op_loss_t *loss, const tree_t *node, err_t *err)
{
    if (tree_text(node) == NULL || !str_to_int(tree_text(node), &loss->ignored))
        return nn_fail_at(tree_place(node), err,
                          "loss cross_entropy: ignore_index is no integer but "
                          "'%s'; give a class, or a number such as -100",
                          tree_text(node) == NULL ? "" : tree_text(node));
    loss->ignore = true;
    return ERR_OK;
}

static err_code_t classes_configure(nn_layer_t *layer, const void *options,
                                    const tree_t *tree, err_t *err)
{
    const classes_options_t *classes = options;
    op_loss_t *loss = &layer->config.loss;
    err_code_t rc = ERR_OK;

    (void)tree;
    loss->axis = nn_class_axis_find((nn_class_axis_t)classes->axis,
                                    layer->config.in.ndim);
    loss->smoothing = classes->smoothing;
    if (classes->soft)
        layer->config.kind = OP_CROSS_ENTROPY_SOFT;
    if (classes->soft && classes->ignore != NULL)
        return nn_fail_at(tree_place(classes->ignore), err,
                          "loss cross_entropy: ignore_index is a class number, "
                          "but with soft_target targets are probabilities; "
                          "take one of the two out (a sample_weight of 0 "
                          "leaves a sample out, too)");
    if (classes->weight != NULL)
        rc = nn_class_weights_read(layer, "weight", classes->weight, err);
    if (rc == ERR_OK && classes->ignore != NULL)
        rc = ignore_read(loss, classes->ignore, err);
    return rc;
}

const nn_kind_t nn_kind_cross_entropy = {
    .name = "cross_entropy",
    .op = OP_CROSS_ENTROPY,
    .help = "Classification: softmax and negative log-likelihood of the "
            "target; mean over all targets. A target is a class (an integer) "
            "for each sample, or for each of its positions (tokens, pixels); "
            "with soft_target it is a probability for each class",
    .rows = classes_rows,
    .classifier = true,
    .configure = classes_configure,
};
