/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Models and layers of one's own, in a shared object that cddp loads:
 *
 *     model: {plugin: ./libmine.so, input: [3, 32, 32], width: 16}
 *
 * builds the graph by the plugin's build function, with the further keys as its
 * options;
 *
 *     model: {plugin: ./libmine.so, input: [3, 32, 32], layers: [...]}
 *
 * is a model in the run file that may use the plugin's layers, by their names.
 * A plugin includes this header, defines one CDDP_PLUGIN, and links nothing:
 *
 *     cc -shared -fPIC mine.c $(pkg-config --cflags cddp) -o libmine.so
 *
 * examples/c/plugin.c is one; examples/c/plugin-two.c builds a model with
 * several inputs, and brings its losses. Tensors are float32, row-major, batch
 * first.
 *
 * Thread rule: several ranks may be threads of one process, so functions of a
 * plugin may run in several threads at a time: keep no state in variables of
 * the file. They neither end the process nor wait for other ranks.
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

/* The version of this header; plugins of another one are refused. */
#define CDDP_PLUGIN_INTERFACE 2

#define CDDP_LAYERS_MAX 32

/* ---- models -------------------------------------------------------------- */

typedef struct cddp_builder cddp_builder_t;

/* A loss that a build function brings. */
typedef struct cddp_built_loss {
    const char *kind;    /* as in run files: "cross_entropy" */
    const char *from;    /* the layer that it reads; NULL: the last one */
    const char *target;  /* its target in data.target; NULL: "target" */
    const char *name;    /* NULL: the target's */
    const char *weight;  /* "0.3"; NULL: 1 */
    const char *options; /* of its kind, as those of add; NULL: none */
} cddp_built_loss_t;

/* What a build function calls. */
typedef struct cddp_host {
    const char *version; /* of the library that has loaded the plugin */
    /* Add a layer of [kind] called [name] (NULL: as the run file would), which
     * takes the outputs of the layers [from] (names separated by blanks; NULL:
     * the one before), with [options], keys and values in turn, separated by
     * blanks, lists by commas: "out 8 kernel 3,3 bias false" (NULL: none). A
     * name of an input in [from] is that input, which the first layer needs
     * where there are several. */
    void (*add)(cddp_builder_t *builder, const char *kind, const char *name,
                const char *from, const char *options);
    /* Add a loss. They count where the run file says `loss: plugin`; else its
     * own do, whose from may name any layer of the plugin. */
    void (*loss)(cddp_builder_t *builder, const cddp_built_loss_t *loss);
} cddp_host_t;

/* What a build function gets. */
typedef struct cddp_build {
    const cddp_host_t *host;
    cddp_builder_t *builder;
    const double *options; /* by the table's order */
    /* model.input: names ("input" where the only one has none) and shapes of
     * one sample, without the batch. */
    int inputs;
    const char *names[CDDP_INPUTS_MAX];
    cddp_shape_t input[CDDP_INPUTS_MAX];
} cddp_build_t;

/* The number of the input called [name]; -1: model.input has none. */
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
    int interface; /* these four stay first in all versions */
    int major, minor, patch;
    const cddp_layer_t *const *layers; /* ended by NULL; NULL: none */
    const cddp_option_t *options;      /* of build; NULL: none */
    cddp_code_t (*build)(const cddp_build_t *build, cddp_error_t *error);
} cddp_plugin_t;

/* CDDP_PLUGIN(.layers = ..., .build = ...); the one definition of a plugin. */
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
