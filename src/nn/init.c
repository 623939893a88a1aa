/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Initial values by name: a layer's `init`. Without it parameters are
 * initialized as in PyTorch's modules (the fills in the kind's row). With it
 * weights are drawn as by the function of that name in torch.nn.init, and
 * biases are zero by default.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "nn/nn_build.h"

enum { LINEAR, RELU, LEAKY_RELU, TANH, SELU };
static const char *const gains[] = {"linear", "relu", "leaky_relu",
                                    "tanh",   "selu", NULL};
static const char *const modes[] = {"fan_in", "fan_out", NULL};
static const char *const laws[] = {"normal", "uniform", NULL};
static const char *const biases[] = {"zeros", "default", NULL};

#define CHOICE(key, field, value, list, text)                      \
    {                                                              \
        .name = (key), .type = OPT_CHOICE,                         \
        .offset = offsetof(nn_init_t, field), .fallback = (value), \
        .choices = (list), .help = (text)                          \
    }
#define REAL(key, field, value, least, most, text)                             \
    {                                                                          \
        .name = (key), .type = OPT_REAL, .offset = offsetof(nn_init_t, field), \
        .fallback = (value), .min = (least), .max = (most), .help = (text)     \
    }
#define LAW                                     \
    CHOICE("distribution", law, "normal", laws, \
           "Distribution of the initial weights; both have the same variance")
#define BIAS                              \
    CHOICE("bias", bias, "zeros", biases, \
           "Initial biases. zeros: all are zero; default: as without init")

static const opt_row_t kaiming_rows[] = {
    CHOICE("mode", mode, "fan_in", modes,
           "fan_in: keep the variance of the outputs; fan_out: keep the "
           "variance of the gradients"),
    LAW,
    CHOICE("nonlinearity", nonlinearity, "relu", gains,
           "Activation after the layer; it determines the gain"),
    REAL("slope", slope, "0.01", 0, 1e3,
         "Slope of leaky_relu for negative numbers; used with nonlinearity "
         "leaky_relu only"),
    BIAS,
    {.name = NULL}};
static const opt_row_t xavier_rows[] = {
    LAW,
    REAL("gain", gain, "1", 0, 1e6,
         "Factor by which the standard deviation is multiplied"),
    BIAS,
    {.name = NULL}};
static const opt_row_t normal_rows[] = {
    REAL("std", std, "0.02", 0, 1e6,
         "Standard deviation of the initial weights"),
    REAL("mean", mean, "0", -1e6, 1e6, "Mean of the initial weights"),
    BIAS,
    {.name = NULL}};
static const opt_row_t zeros_rows[] = {BIAS, {.name = NULL}};

typedef struct init_kind {
    const char *name, *help;
    const opt_row_t *rows;
    bool fans; /* std depends on the fans, thus on the weight's shape */
    /* Standard deviation for the fans in and out. NULL: all values are zero. */
    double (*std)(const nn_init_t *init, double in, double out);
} init_kind_t;

static double kaiming_std(const nn_init_t *init, double in, double out)
{
    static const double known[] = {
        [LINEAR] = 1, [RELU] = 2, [TANH] = 25.0 / 9, [SELU] = 9.0 / 16};
    double square = init->nonlinearity == LEAKY_RELU
                        ? 2 / (1 + init->slope * init->slope)
                        : known[init->nonlinearity];

    return sqrt(square / (init->mode == 0 ? in : out));
}

static double xavier_std(const nn_init_t *init, double in, double out)
{
    return init->gain * sqrt(2 / (in + out));
}

static double normal_std(const nn_init_t *init, double in, double out)
{
    (void)in;
    (void)out;
    return init->std;
}

static const init_kind_t kinds[] = {
    {"kaiming",
     "Random numbers; with their variance the layer and its activation keep "
     "the variance of outputs or gradients (He et al., 2015)",
     kaiming_rows, true, kaiming_std},
    {"xavier",
     "Random numbers; their variance is a compromise between keeping that of "
     "outputs and that of gradients (Glorot and Bengio, 2010)",
     xavier_rows, true, xavier_std},
    {"normal", "Random numbers of a normal distribution", normal_rows, false,
     normal_std},
    {"zeros", "All zero, such as for the last norm of a residual block",
     zeros_rows, false, NULL},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static err_code_t fail_unknown(const char *name, tree_place_t place, err_t *err)
{
    const char *names[KINDS + 1] = {NULL}, *near;

    for (int i = 0; i < KINDS; i++)
        names[i] = kinds[i].name;
    near = str_nearest(name, names);
    return nn_fail_at(place, err,
                      "unknown init '%s'%s%s%s (known: kaiming, xavier, "
                      "normal, zeros)",
                      name, near == NULL ? "" : "; did you mean '",
                      near == NULL ? "" : near, near == NULL ? "" : "'?");
}

/* Find the kind of init called [name], and fill [init] from [options] (may be
 * NULL). */
static err_code_t init_fill(const char *name, tree_place_t place,
                            const tree_t *options, const char *path,
                            nn_init_t *init, err_t *err)
{
    char *where = str_printf("%s.init.%s", path, name);
    err_code_t rc = ERR_OK;
    int i = 0;

    while (i < KINDS && strcmp(kinds[i].name, name) != 0)
        i++;
    if (i == KINDS)
        rc = fail_unknown(name, place, err);
    else
        rc = opt_fill(kinds[i].rows, options, where, init, err);
    init->kind = i + 1;
    free(where);
    return rc;
}

err_code_t nn_init_read(nn_layer_t *layer, const nn_item_t *item, err_t *err)
{
    const tree_t *tree = item->init;

    if (tree == NULL)
        return ERR_OK;
    if (item->share != NULL)
        return nn_fail_at(tree_place(tree), err,
                          "layer %s shares its parameters; write init where "
                          "they belong",
                          layer->name);
    if (layer->kind->params[0].name == NULL)
        return nn_fail_at(tree_place(tree), err,
                          "layer %s: a %s has no parameters to begin with",
                          layer->name, layer->kind->name);
    if (tree_kind(tree) == TREE_SCALAR)
        return init_fill(tree_text(tree), tree_place(tree), NULL, item->path,
                         &layer->init, err);
    if (tree_kind(tree) == TREE_MAP && tree_count(tree) == 1)
        return init_fill(tree_key(tree, 0), tree_key_place(tree, 0),
                         tree_at(tree, 0), item->path, &layer->init, err);
    return nn_fail_at(tree_place(tree), err,
                      "layer %s: init is a name or a map with one name as "
                      "key, such as {kaiming: {mode: fan_out}}",
                      layer->name);
}

/* Compute both fans as torch.nn.init does, for a weight of shape [out, in,
 * kernel...]. */
static void fans(const nn_param_t *param, double *in, double *out)
{
    double field = 1;

    for (int d = 2; d < param->ndim; d++)
        field *= (double)param->dims[d];
    *in = (double)param->dims[1] * field;
    *out = (double)param->dims[0] * field;
}

err_code_t nn_init_tensor(const nn_layer_t *layer, const nn_slot_t *slot,
                          nn_tensor_t *tensor, err_t *err)
{
    const nn_init_t *init = &layer->init;
    const init_kind_t *kind = kinds + init->kind - 1;
    double in = 1, out = 1, std;

    if (init->kind == 0)
        return ERR_OK;
    if (strstr(slot->name, "bias") != NULL) {
        if (init->bias == 0)
            tensor->fill = NN_FILL_ZERO;
        return ERR_OK;
    }
    if (kind->fans && tensor->public.ndim < 2)
        return err_set(err, ERR_CONFIG,
                       "%s: layer %s: init %s needs a weight of two or more "
                       "dimensions, and that of a %s has one; use zeros or "
                       "normal",
                       layer->place, layer->name, kind->name,
                       layer->kind->name);
    if (kind->fans)
        fans(&tensor->public, &in, &out);
    std = kind->std == NULL ? 0 : kind->std(init, in, out);
    tensor->fill = kind->std == NULL ? NN_FILL_ZERO
                   : init->law == 0  ? NN_FILL_NORMAL
                                     : NN_FILL_UNIFORM;
    tensor->mean = init->mean;
    tensor->bound = init->law == 0 ? std : sqrt(3) * std;
    return ERR_OK;
}

void nn_init_document(str_buf_t *out)
{
    char *name;

    str_buf_add(
        out,
        "## Initial values\n\n"
        "Parameters are initialized like those of PyTorch's modules. A layer's "
        "`init` (`{conv:\n{out: 8, kernel: 3}, init: kaiming}`, or `init: "
        "{normal: {std: 0.01}}`) chooses\nother values for its weights; its "
        "biases are then zero by default.\n\n");
    for (int i = 0; i < KINDS; i++) {
        str_buf_add(out, "%s.\n\n", kinds[i].help);
        name = str_printf("init.%s", kinds[i].name);
        opt_document(kinds[i].rows, name, out);
        free(name);
    }
}
