/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Draws random densities in a periodic cube, for `cddp-data make fields`. The
 * logarithm of a density is a Gaussian field with the spectrum
 *
 *     P(k) ~ k^tilt exp(-(k reach)^2),     k in radians per cell,
 *
 * and the variance sigma^2, as in the lognormal model of the large-scale
 * structure (Coles and Jones, 1991); the mean density is 1. Each cell is in a
 * void (0), a sheet (1), a filament (2) or a knot (3) of the cosmic web: the
 * number of axes along which matter flows into the cell, which is the number of
 * positive eigenvalues of the tidal tensor (Hahn et al., 2007). In Fourier
 * space the elements of the tensor are the field times k_i k_j / k^2.
 */
#ifndef CDDP_CMD_DATA_FIELDS_H
#define CDDP_CMD_DATA_FIELDS_H

#include <stdint.h>

#include "base/err.h"

enum { CMD_FIELDS_PARAMS = 3, CMD_FIELDS_WEBS = 4 };

/* A parameter of a sample, drawn uniformly between its bounds. */
typedef struct cmd_fields_param {
    const char *name;
    double least, most;
} cmd_fields_param_t;

/* The parameters are sigma, tilt, and reach (in cells). */
extern const cmd_fields_param_t cmd_fields_params[CMD_FIELDS_PARAMS];

typedef struct cmd_fields_spec {
    uint64_t seed, split;
    int edge; /* cells along an edge: a power of two, 4 to CMD_FFT_EDGE_MAX */
} cmd_fields_spec_t;

/* Draw the parameters of sample [number]; [scaled] are the same parameters,
 * mapped to [-1, 1]. Pure. */
void cmd_fields_draw_params(const cmd_fields_spec_t *spec, uint64_t number,
                            double params[CMD_FIELDS_PARAMS],
                            float scaled[CMD_FIELDS_PARAMS]);

/* Draw sample [number]: [density] and [web] of its edge^3 cells. Pure: the
 * result depends neither on threads nor on how many samples are drawn.
 * ERR_MEMORY. */
err_code_t cmd_fields_draw(const cmd_fields_spec_t *spec, uint64_t number,
                           float *density, uint8_t *web, err_t *err);

#endif
