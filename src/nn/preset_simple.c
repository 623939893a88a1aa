/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The presets mlp and lenet: chains of a few layers. */
#include "nn/preset.h"

typedef struct mlp_options {
    int64_t classes;
    opt_ints_t hidden;
    double dropout;
    bool batchnorm;
} mlp_options_t;

_Static_assert(sizeof(mlp_options_t) <= NN_OPTIONS_MAX, "NN_OPTIONS_MAX");

static const opt_row_t mlp_rows[] = {
    {.name = "classes",
     .type = OPT_INT,
     .offset = offsetof(mlp_options_t, classes),
     .min = 1,
     .max = 1 << 28,
     .help = "Number of features of the output"},
    {.name = "hidden",
     .type = OPT_INTS,
     .offset = offsetof(mlp_options_t, hidden),
     .fallback = "[512, 512]",
     .min = 1,
     .max = 1 << 28,
     .help = "Number of features of each hidden layer"},
    {.name = "batchnorm",
     .type = OPT_BOOL,
     .offset = offsetof(mlp_options_t, batchnorm),
     .fallback = "false",
     .help = "true: batch norm after each hidden layer"},
    {.name = "dropout",
     .type = OPT_REAL,
     .offset = offsetof(mlp_options_t, dropout),
     .fallback = "0",
     .min = 0,
     .max = 0.9999,
     .help = "Rate of dropout after each hidden layer; 0: no dropout"},
    {.name = NULL},
};

static err_code_t mlp_write(nn_recipe_t *recipe, const void *options,
                            err_t *err)
{
    const mlp_options_t *mlp = options;

    (void)err;
    if (recipe->ndim > 1)
        nn_recipe_plain(recipe, "flatten", NULL, NULL);
    for (int i = 0; i < mlp->hidden.count; i++) {
        nn_recipe_add(recipe, "linear", NULL, NULL, "out %lld bias %s",
                      (long long)mlp->hidden.items[i],
                      mlp->batchnorm ? "false" : "true");
        if (mlp->batchnorm)
            nn_recipe_plain(recipe, "batchnorm", NULL, NULL);
        nn_recipe_plain(recipe, "relu", NULL, NULL);
        if (mlp->dropout > 0)
            nn_recipe_add(recipe, "dropout", NULL, NULL, "rate %.17g",
                          mlp->dropout);
    }
    nn_recipe_add(recipe, "linear", NULL, NULL, "out %lld",
                  (long long)mlp->classes);
    return ERR_OK;
}

const nn_preset_t nn_preset_mlp = {
    .name = "mlp",
    .help = "Fully connected layers with relu between them",
    .rows = mlp_rows,
    .write = mlp_write,
};

/* ---- lenet --------------------------------------------------------------- */

static const opt_row_t lenet_rows[] = {
    {.name = "classes",
     .type = OPT_INT,
     .offset = offsetof(mlp_options_t, classes),
     .min = 1,
     .max = 1 << 28,
     .help = "Number of features of the output"},
    {.name = NULL},
};

static err_code_t lenet_write(nn_recipe_t *recipe, const void *options,
                              err_t *err)
{
    const mlp_options_t *lenet = options;
    err_code_t rc = nn_recipe_check_input(recipe, "lenet", 3,
                                          "[channels, height, width]", err);

    if (rc != ERR_OK)
        return rc;
    nn_recipe_add(recipe, "conv", NULL, NULL, "out 6 kernel 5 pad 2");
    nn_recipe_plain(recipe, "relu", NULL, NULL);
    nn_recipe_add(recipe, "maxpool", NULL, NULL, "kernel 2");
    nn_recipe_add(recipe, "conv", NULL, NULL, "out 16 kernel 5");
    nn_recipe_plain(recipe, "relu", NULL, NULL);
    nn_recipe_add(recipe, "maxpool", NULL, NULL, "kernel 2");
    nn_recipe_plain(recipe, "flatten", NULL, NULL);
    nn_recipe_add(recipe, "linear", NULL, NULL, "out 120");
    nn_recipe_plain(recipe, "relu", NULL, NULL);
    nn_recipe_add(recipe, "linear", NULL, NULL, "out 84");
    nn_recipe_plain(recipe, "relu", NULL, NULL);
    nn_recipe_add(recipe, "linear", NULL, NULL, "out %lld",
                  (long long)lenet->classes);
    return ERR_OK;
}

const nn_preset_t nn_preset_lenet = {
    .name = "lenet",
    .help = "LeNet-5 with relu and maxpool (LeCun et al., 1998): two "
            "convolutions and three fully connected layers",
    .rows = lenet_rows,
    .write = lenet_write,
};
