/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A plugin adds models and layers. It is a shared object that cddp loads:
 *
 *     model: {plugin: ./libmine.so, input: [3, 32, 32], width: 16}
 *
 * calls the plugin's build function, whose options are the further keys, and
 *
 *     model: {plugin: ./libmine.so, input: [3, 32, 32], layers: [...]}
 *
 * describes the model in the run file, where the plugin's layers may be used by
 * their names. A plugin includes this header, defines one CDDP_PLUGIN, and
 * links nothing:
 *
 *     cc -shared -fPIC mine.c $(pkg-config --cflags cddp) -o libmine.so
 *
 * Examples: examples/c/plugin.c, and examples/c/plugin-two.c, which builds a
 * model with several inputs and adds its losses. Tensors are float32,
 * row-major, batch first.
 *
 * Thread rule: several ranks may be threads of one process, so functions of a
 * plugin may run in several threads at a time: keep no state in variables of
 * the file. These functions must neither end the process nor wait for other
 * ranks.
 */
#ifndef CDDP_PLUGIN_H
#define CDDP_PLUGIN_H

#include <string.h>

#include <cddp/error.h>
#include <cddp/layer.h>
#include <cddp/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. Plugins built with another version are refused.
 */
#define CDDP_PLUGIN_INTERFACE 2

#define CDDP_LAYERS_MAX 32

/* ---- models -------------------------------------------------------------- */

typedef struct cddp_builder cddp_builder_t;

/* A loss that a build function adds. */
typedef struct cddp_built_loss {
    const char *kind; /* name of the kind as in run files: "cross_entropy" */
    /* name of the layer whose output it reads; NULL: the last layer */
    const char *from;
    const char *target; /* name of its target in data.target; NULL: "target" */
    const char *name;   /* name of the loss; NULL: name of the target */
    const char *weight; /* factor in the total loss, such as "0.3"; NULL: 1 */
    /* options of its kind, written as for add; NULL: none */
    const char *options;
} cddp_built_loss_t;

/* Functions that a build function calls. */
typedef struct cddp_host {
    const char *version; /* version of the library that loads the plugin */
    /* Add a layer of kind [kind]. [name]: its name (NULL: the default name, as
     * in a run file). [from]: names of the layers or inputs whose outputs it
     * takes, separated by blanks (NULL: the layer before; the first layer must
     * name its input if the model has several). [options]: keys and values in
     * turn, separated by blanks, lists by commas: "out 8 kernel 3,3 bias false"
     * (NULL: none). */
    void (*add)(cddp_builder_t *builder, const char *kind, const char *name,
                const char *from, const char *options);
    /* Add a loss. Losses of the plugin are used if the run file says `loss:
     * plugin`. Otherwise the losses of the run file are used; they may read any
     * layer of the plugin by its name. */
    void (*loss)(cddp_builder_t *builder, const cddp_built_loss_t *loss);
} cddp_host_t;

/* Arguments of a build function. */
typedef struct cddp_build {
    const cddp_host_t *host;
    cddp_builder_t *builder;
    const double *options; /* values, in the order of the option table */
    /* The inputs in model.input: their names (a single input without a name is
     * called "input"), and the shape of one sample, without the batch. */
    int inputs;
    const char *names[CDDP_INPUTS_MAX];
    cddp_shape_t input[CDDP_INPUTS_MAX];
} cddp_build_t;

/* Returns the index of the input called [name]; -1 if model.input has none. */
#ifdef __GNUC__
__attribute__((unused))
#endif
static inline int
cddp_input_find(const cddp_build_t *build, const char *name)
{
    for (int k = 0; k < build->inputs; k++)
        if (strcmp(build->names[k], name) == 0)
            return k;
    return -1;
}

/* ---- the plugin ---------------------------------------------------------- */

typedef struct cddp_plugin {
    int interface; /* these four fields stay first in all versions */
    int major, minor, patch;
    const cddp_layer_t *const *layers; /* ended by NULL; NULL: none */
    const cddp_option_t *options;      /* options of build; NULL: none */
    cddp_code_t (*build)(const cddp_build_t *build, cddp_error_t *error);
} cddp_plugin_t;

/* Defines the plugin: CDDP_PLUGIN(.layers = ..., .build = ...); once per
 * plugin. */
#ifdef __GNUC__
#define CDDP_VISIBLE __attribute__((visibility("default")))
#else
#define CDDP_VISIBLE
#endif
#define CDDP_PLUGIN(...)                                                   \
    extern CDDP_VISIBLE const cddp_plugin_t cddp_plugin;                   \
    const cddp_plugin_t cddp_plugin = {.interface = CDDP_PLUGIN_INTERFACE, \
                                       .major = CDDP_VERSION_MAJOR,        \
                                       .minor = CDDP_VERSION_MINOR,        \
                                       .patch = CDDP_VERSION_PATCH,        \
                                       __VA_ARGS__}

#ifdef __cplusplus
}
#endif
#endif
