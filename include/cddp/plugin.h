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
 * examples/c/plugin.c is one. Tensors are float32, row-major, batch first.
 *
 * Thread rule: several ranks may be threads of one process, so functions of a
 * plugin may run in several threads at a time: keep no state in variables of
 * the file. They neither end the process nor wait for other ranks.
 */
#ifndef CDDP_PLUGIN_H
#define CDDP_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cddp/error.h>
#include <cddp/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; plugins of another one are refused. */
#define CDDP_PLUGIN_INTERFACE 1

#define CDDP_DIMS_MAX 6
#define CDDP_INPUTS_MAX 8
#define CDDP_PARAMS_MAX 4
#define CDDP_OPTIONS_MAX 16
#define CDDP_LAYERS_MAX 32

typedef struct cddp_shape {
    int ndim;
    int64_t dims[CDDP_DIMS_MAX]; /* dims[0] is the batch, but of parameters */
} cddp_shape_t;

/* An option of a layer or model, a number. A table ends with a NULL name. */
typedef struct cddp_option {
    const char *name, *help;
    const char *fallback; /* "0.25"; NULL: it must be given */
    double min, max;
    int whole; /* whole numbers only */
} cddp_option_t;

/* Fill [error] with CDDP_CONFIG and the formatted sentence; returns the code.
 */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3), unused))
#endif
static inline cddp_code_t
cddp_refuse(cddp_error_t *error, const char *format, ...)
{
    va_list args;

    error->code = CDDP_CONFIG;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return CDDP_CONFIG;
}

/* ---- layers -------------------------------------------------------------- */

/* What a layer's shape function gets and fills. */
typedef struct cddp_shapes {
    const double *options; /* by the table's order */
    int inputs;
    cddp_shape_t in[CDDP_INPUTS_MAX];
    cddp_shape_t out;                    /* to be filled */
    int params;                          /* to be filled, may stay 0 */
    cddp_shape_t param[CDDP_PARAMS_MAX]; /* to be filled */
    size_t workspace; /* bytes kept from forward to backward, may stay 0 */
    double flops;     /* of one forward, for reports; may stay 0 */
} cddp_shapes_t;

/* Pointers of one call. */
typedef struct cddp_call {
    const cddp_shapes_t *shapes;
    int training, threads;
    const float *x[CDDP_INPUTS_MAX];
    const float *params[CDDP_PARAMS_MAX];
    float *y;        /* forward: to be written; backward: as it was */
    const float *dy; /* backward, as all below */
    float *dx[CDDP_INPUTS_MAX];      /* to be overwritten; NULL: not wanted */
    float *dparams[CDDP_PARAMS_MAX]; /* to be overwritten */
    void *workspace;
} cddp_call_t;

typedef enum cddp_begin {
    CDDP_BEGIN_ZERO,
    CDDP_BEGIN_ONE,
    CDDP_BEGIN_FAN_IN /* uniform in +-1/sqrt(elements of a row of the first) */
} cddp_begin_t;

typedef struct cddp_layer_param {
    const char *name; /* "weight" */
    cddp_begin_t begin;
} cddp_layer_param_t;

/* A kind of layer. All functions answer CDDP_OK, or fill [error]. */
typedef struct cddp_layer {
    const char *name; /* in run files; no built-in one */
    const char *help;
    const cddp_option_t *options; /* NULL: none */
    int several; /* takes 2 to CDDP_INPUTS_MAX inputs, else 1 */
    cddp_layer_param_t params[CDDP_PARAMS_MAX];
    /* Pure. The sentence of an error says which shapes do not fit. */
    cddp_code_t (*shape)(cddp_shapes_t *shapes, cddp_error_t *error);
    cddp_code_t (*forward)(const cddp_call_t *call, cddp_error_t *error);
    cddp_code_t (*backward)(const cddp_call_t *call, cddp_error_t *error);
} cddp_layer_t;

/* ---- models -------------------------------------------------------------- */

typedef struct cddp_builder cddp_builder_t;

/* What a build function calls. */
typedef struct cddp_host {
    const char *version; /* of the library that has loaded the plugin */
    /* Add a layer of [kind] called [name] (NULL: as the run file would), which
     * takes the outputs of the layers [from] (names separated by blanks; NULL:
     * the one before), with [options], keys and values in turn, separated by
     * blanks, lists by commas: "out 8 kernel 3,3 bias false" (NULL: none). */
    void (*add)(cddp_builder_t *builder, const char *kind, const char *name,
                const char *from, const char *options);
} cddp_host_t;

/* What a build function gets. */
typedef struct cddp_build {
    const cddp_host_t *host;
    cddp_builder_t *builder;
    const double *options; /* by the table's order */
    cddp_shape_t input;    /* model.input: one sample, without the batch */
} cddp_build_t;

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
