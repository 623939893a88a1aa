/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What a plugin's layer is: its options, shapes, and functions forward and
 * backward. Part of plugin.h, whose rules hold here, too.
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
    int training; /* 0: forward only, and no workspace */
    int threads;  /* that it may use */
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
    /* Uniform in +-1/sqrt(elements of a row of the first parameter). */
    CDDP_BEGIN_FAN_IN
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

#ifdef __cplusplus
}
#endif
#endif
