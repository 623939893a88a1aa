/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * White noise is drawn cell by cell, transformed, and coloured. The six
 * elements of the tidal tensor are real, so two of them come back from one
 * transform, as its real and its imaginary part; the field itself is the
 * tensor's trace.
 *
 * Waves of two cells' length (the Nyquist planes) are left out: their sign
 * along an axis is undefined, and k_i k_j / k^2 needs it.
 */
#include "cmd/data_fields.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cmd/data_fft.h"

enum { PAIRS = 3 };

/* Streams of a sample. */
enum { PARAMS = 0, NOISE = 1, STREAMS = 2 };

/* Elements of the tensor that a transform brings, as its two parts. */
static const int pairs[PAIRS][2][2] = {
    {{0, 0}, {1, 1}}, {{2, 2}, {0, 1}}, {{0, 2}, {1, 2}}};

const cmd_fields_param_t cmd_fields_params[CMD_FIELDS_PARAMS] = {
    {"sigma", 0.4, 1.2}, {"tilt", -2.5, 0}, {"reach", 0.6, 1.6}};

typedef struct field {
    int edge;
    size_t cells;
    double sigma, tilt, reach;
    double complex *noise;        /* its transform, then that of the field */
    double complex *parts[PAIRS]; /* of the tensor */
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

/* Wave vector of element [cell] of a transform, in radians a cell; false where
 * there is none: the mean, and the Nyquist planes. */
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

/* Colour the noise: the field then has the variance sigma^2 on average. */
static void field_colour(field_t *field)
{
    double power = 0, k[3], square, scale;

    for (size_t i = 0; i < field->cells; i++)
        if (wave_of(field->edge, i, k, &square))
            power += wave_power(field, square);
    /* a transform there and back brings a factor of cells */
    scale = field->sigma / sqrt(power * (double)field->cells);
    for (size_t i = 0; i < field->cells; i++)
        field->noise[i] *= wave_of(field->edge, i, k, &square)
                               ? scale * sqrt(wave_power(field, square))
                               : 0;
}

/* The elements of the tensor, in place. */
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

/* How many eigenvalues of a symmetric matrix are positive: as all of them are
 * real, the sign changes of its characteristic polynomial (Descartes). */
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
