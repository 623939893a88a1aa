/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Describes a layer of a plugin: its options, its shapes, and its functions
 * forward and backward. Part of plugin.h, whose rules apply here, too.
 */
#ifndef CDDP_LAYER_H
#define CDDP_LAYER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cddp/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CDDP_DIMS_MAX 6
#define CDDP_INPUTS_MAX 8
#define CDDP_PARAMS_MAX 4
#define CDDP_OPTIONS_MAX 16

typedef struct cddp_shape {
    int ndim;
    /* dims[0] is the batch, except of parameters */
    int64_t dims[CDDP_DIMS_MAX];
} cddp_shape_t;

/* An option of a layer or model. Its value is a number. A table of options ends
 * with a NULL name. */
typedef struct cddp_option {
    const char *name, *help;
    /* default, such as "0.25"; NULL: the option is required */
    const char *fallback;
    double min, max;
    int whole; /* 1: only whole numbers are allowed */
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

/* Arguments and results of a layer's shape function. */
typedef struct cddp_shapes {
    const double *options; /* values, in the order of the option table */
    int inputs;
    cddp_shape_t in[CDDP_INPUTS_MAX];
    cddp_shape_t out;                    /* set by shape */
    int params;                          /* set by shape; may stay 0 */
    cddp_shape_t param[CDDP_PARAMS_MAX]; /* set by shape */
    size_t workspace; /* bytes kept from forward to backward, may stay 0 */
    double flops;     /* FLOPs of one forward, for reports; may stay 0 */
} cddp_shapes_t;

/* Arguments of one call of forward or backward. */
typedef struct cddp_call {
    const cddp_shapes_t *shapes;
    int training; /* 0: evaluation, without backward and workspace */
    int threads;  /* threads that the call may use */
    const float *x[CDDP_INPUTS_MAX];
    const float *params[CDDP_PARAMS_MAX];
    float *y;        /* forward writes it; backward gets it unchanged */
    const float *dy; /* gradient of y; backward only */
    float *dx[CDDP_INPUTS_MAX]; /* backward overwrites it; NULL: not wanted */
    float *dparams[CDDP_PARAMS_MAX]; /* backward overwrites it */
    void *workspace;
} cddp_call_t;

typedef enum cddp_begin {
    CDDP_BEGIN_ZERO,
    CDDP_BEGIN_ONE,
    /* Uniform in +-1/sqrt(n), where n is the number of elements in a row of the
     * first parameter. */
    CDDP_BEGIN_FAN_IN
} cddp_begin_t;

typedef struct cddp_layer_param {
    const char *name; /* "weight" */
    cddp_begin_t begin;
} cddp_layer_param_t;

/* A kind of layer. All functions return CDDP_OK, or fill [error]. */
typedef struct cddp_layer {
    const char *name; /* name in run files; not the name of a built-in layer */
    const char *help;
    const cddp_option_t *options; /* NULL: none */
    int several; /* 1: takes 2 to CDDP_INPUTS_MAX inputs; 0: takes 1 */
    cddp_layer_param_t params[CDDP_PARAMS_MAX];
    /* Pure. An error says which shapes do not fit. */
    cddp_code_t (*shape)(cddp_shapes_t *shapes, cddp_error_t *error);
    cddp_code_t (*forward)(const cddp_call_t *call, cddp_error_t *error);
    cddp_code_t (*backward)(const cddp_call_t *call, cddp_error_t *error);
} cddp_layer_t;

#ifdef __cplusplus
}
#endif
#endif
