/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * White noise is drawn cell by cell, transformed to Fourier space, and
 * multiplied by the root of the spectrum. The six elements of the tidal tensor
 * are real, so one transform back gives two of them, as its real and its
 * imaginary part. The field itself is the trace of the tensor.
 *
 * Waves with a wavelength of two cells along an axis (the Nyquist planes) are
 * left out: the sign of their k_i is undefined, and k_i k_j / k^2 needs it.
 */
#include "cmd/data_fields.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cmd/data_fft.h"

enum { PAIRS = 3 };

/* Numbers of the random streams that a sample uses. */
enum { PARAMS = 0, NOISE = 1, STREAMS = 2 };

/* pairs[p]: the two elements (row, column) of the tensor that transform p
 * gives, as its real and its imaginary part. */
static const int pairs[PAIRS][2][2] = {
    {{0, 0}, {1, 1}}, {{2, 2}, {0, 1}}, {{0, 2}, {1, 2}}};

const cmd_fields_param_t cmd_fields_params[CMD_FIELDS_PARAMS] = {
    {"sigma", 0.4, 1.2}, {"tilt", -2.5, 0}, {"reach", 0.6, 1.6}};

typedef struct field {
    int edge;
    size_t cells;
    double sigma, tilt, reach;
    /* Fourier transform of the noise, later of the field */
    double complex *noise;
    /* elements of the tensor, two per transform; see pairs */
    double complex *parts[PAIRS];
} field_t;

static void stream_open(rng_t *rng, const cmd_fields_spec_t *spec,
                        uint64_t number, uint64_t stream)
{
    rng_open(rng, spec->seed, RNG_FIELDS, spec->split,
             number * STREAMS + stream);
}

void cmd_fields_draw_params(const cmd_fields_spec_t *spec, uint64_t number,
                            double params[CMD_FIELDS_PARAMS],
                            float scaled[CMD_FIELDS_PARAMS])
{
    rng_t rng;

    stream_open(&rng, spec, number, PARAMS);
    for (int i = 0; i < CMD_FIELDS_PARAMS; i++) {
        const cmd_fields_param_t *range = &cmd_fields_params[i];
        const double at = rng_uniform(&rng);

        params[i] = range->least + (range->most - range->least) * at;
        scaled[i] = (float)(2 * at - 1);
    }
}

/* ---- waves --------------------------------------------------------------- */

/* Set [k] to the wave vector of element [cell] of a transform, in radians per
 * cell, and [square] to k^2. False if the element is left out: the mean, and
 * the Nyquist planes. */
static bool wave_of(int edge, size_t cell, double k[3], double *square)
{
    const size_t row = (size_t)edge;
    const size_t at[3] = {cell / row / row, cell / row % row, cell % row};

    *square = 0;
    for (int i = 0; i < 3; i++) {
        const double turns =
            at[i] < row / 2 ? (double)at[i] : (double)at[i] - edge;

        if (at[i] == row / 2)
            return false;
        k[i] = turns * 2 * M_PI / edge;
        *square += k[i] * k[i];
    }
    return cell != 0;
}

static double wave_power(const field_t *field, double square)
{
    return pow(square, field->tilt / 2) *
           exp(-square * field->reach * field->reach);
}

/* Give the noise the spectrum of the field, scaled so that the field has the
 * variance sigma^2 on average. */
static void field_colour(field_t *field)
{
    double power = 0, k[3], square, scale;

    for (size_t i = 0; i < field->cells; i++)
        if (wave_of(field->edge, i, k, &square))
            power += wave_power(field, square);
    /* transforming there and back multiplies by the number of cells */
    scale = field->sigma / sqrt(power * (double)field->cells);
    for (size_t i = 0; i < field->cells; i++)
        field->noise[i] *= wave_of(field->edge, i, k, &square)
                               ? scale * sqrt(wave_power(field, square))
                               : 0;
}

/* Compute the elements of the tensor in every cell. */
static void field_tides(field_t *field)
{
    for (int p = 0; p < PAIRS; p++) {
        for (size_t i = 0; i < field->cells; i++) {
            double k[3], square;

            field->parts[p][i] = 0;
            if (wave_of(field->edge, i, k, &square))
                field->parts[p][i] =
                    field->noise[i] *
                    (k[pairs[p][0][0]] * k[pairs[p][0][1]] / square +
                     k[pairs[p][1][0]] * k[pairs[p][1][1]] / square * I);
        }
        cmd_fft_cube(field->parts[p], field->edge, true);
    }
}

/* Number of positive eigenvalues of a symmetric matrix. All eigenvalues are
 * real, so it is the number of sign changes in the coefficients of the
 * characteristic polynomial (rule of Descartes). */
static uint8_t positive_eigenvalues(const double t[3][3])
{
    const double trace = t[0][0] + t[1][1] + t[2][2];
    const double minors = t[0][0] * t[1][1] - t[0][1] * t[0][1] +
                          t[0][0] * t[2][2] - t[0][2] * t[0][2] +
                          t[1][1] * t[2][2] - t[1][2] * t[1][2];
    const double determinant =
        t[0][0] * (t[1][1] * t[2][2] - t[1][2] * t[1][2]) -
        t[0][1] * (t[0][1] * t[2][2] - t[1][2] * t[0][2]) +
        t[0][2] * (t[0][1] * t[1][2] - t[1][1] * t[0][2]);
    const double terms[] = {1, -trace, minors, -determinant};
    uint8_t changes = 0;

    for (int i = 1; i < 4; i++)
        changes += (terms[i] < 0) != (terms[i - 1] < 0);
    return changes;
}

static void field_read(const field_t *field, float *density, uint8_t *web)
{
    const double shift = field->sigma * field->sigma / 2;

    for (size_t i = 0; i < field->cells; i++) {
        double t[3][3] = {{0}};

        for (int p = 0; p < PAIRS; p++) {
            t[pairs[p][0][0]][pairs[p][0][1]] = creal(field->parts[p][i]);
            t[pairs[p][1][0]][pairs[p][1][1]] = cimag(field->parts[p][i]);
        }
        density[i] = (float)exp(t[0][0] + t[1][1] + t[2][2] - shift);
        web[i] = positive_eigenvalues(t);
    }
}

err_code_t cmd_fields_draw(const cmd_fields_spec_t *spec, uint64_t number,
                           float *density, uint8_t *web, err_t *err)
{
    const size_t edge = (size_t)spec->edge, cells = edge * edge * edge;
    field_t field = {.edge = spec->edge, .cells = cells};
    double params[CMD_FIELDS_PARAMS];
    float scaled[CMD_FIELDS_PARAMS];
    err_code_t rc = mem_new(double complex, (1 + PAIRS) * cells, "a field",
                            &field.noise, err);
    rng_t rng;

    if (rc != ERR_OK)
        return rc;
    for (int p = 0; p < PAIRS; p++)
        field.parts[p] = field.noise + (size_t)(p + 1) * cells;
    cmd_fields_draw_params(spec, number, params, scaled);
    field.sigma = params[0];
    field.tilt = params[1];
    field.reach = params[2];
    stream_open(&rng, spec, number, NOISE);
    for (size_t i = 0; i < cells; i++)
        field.noise[i] = rng_normal(&rng);
    cmd_fft_cube(field.noise, field.edge, false);
    field_colour(&field);
    field_tides(&field);
    field_read(&field, density, web);
    mem_free(field.noise);
    return ERR_OK;
}
