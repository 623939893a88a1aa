/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Densities have the spectrum and the cosmic web that the parameters describe,
 * and equal bits on any number of threads. */
#include "cmd/make_fields.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "cmd/data_fft.h"
#include "cmd/data_fields.h"
#include "cmd/data_info.h"
#include "cmd/make_team.h"

enum { EDGE = 16, CELLS = EDGE * EDGE * EDGE };

/* ---- the transform ------------------------------------------------------- */

Test(fft, a_wave_is_one_number_and_comes_back)
{
    double complex cube[8 * 8 * 8];
    const int wave[3] = {1, 6, 3};

    for (int i = 0; i < 512; i++) {
        const int turns =
            wave[0] * (i / 64) + wave[1] * (i / 8 % 8) + wave[2] * (i % 8);

        cube[i] = cexp(2 * M_PI * turns / 8 * I);
    }
    cmd_fft_cube(cube, 8, false);
    for (int i = 0; i < 512; i++)
        cr_expect_lt(cabs(cube[i] - (i == 64 + 6 * 8 + 3 ? 512 : 0)), 1e-9,
                     "element %d", i);
    cmd_fft_cube(cube, 8, true);
    cr_expect_lt(cabs(cube[0] - 512), 1e-9);
    cr_expect_lt(cabs(cube[1] - 512 * cexp(2 * M_PI * 3 / 8 * I)), 1e-9);
}

/* ---- the fields ---------------------------------------------------------- */

static const cmd_fields_spec_t spec = {.seed = 7, .split = 0, .edge = EDGE};

static void draw(uint64_t number, float *density, uint8_t *web,
                 double params[CMD_FIELDS_PARAMS])
{
    float scaled[CMD_FIELDS_PARAMS];
    err_t err = ERR_INIT;

    cmd_fields_draw_params(&spec, number, params, scaled);
    for (int i = 0; i < CMD_FIELDS_PARAMS; i++) {
        const cmd_fields_param_t *range = &cmd_fields_params[i];

        cr_expect(params[i] >= range->least && params[i] <= range->most);
        cr_expect_float_eq((double)scaled[i],
                           (2 * params[i] - range->least - range->most) /
                               (range->most - range->least),
                           1e-6);
    }
    cr_assert_eq(cmd_fields_draw(&spec, number, density, web, &err), ERR_OK,
                 "%s", err.text);
}

/* Fill [waves] with the Fourier transform of the Gaussian field of which
 * [density] is the lognormal one. */
static void waves_of(const float *density, double sigma, double complex *waves)
{
    for (int i = 0; i < CELLS; i++)
        waves[i] = log((double)density[i]) + sigma * sigma / 2;
    cmd_fft_cube(waves, EDGE, false);
}

static double square_of(int cell)
{
    const int at[3] = {cell / EDGE / EDGE, cell / EDGE % EDGE, cell % EDGE};
    double square = 0;

    for (int i = 0; i < 3; i++) {
        const int turns = at[i] < EDGE / 2 ? at[i] : at[i] - EDGE;

        square += pow(2 * M_PI * turns / EDGE, 2);
    }
    return square;
}

/* Averaged over many samples, the power of long and of middle waves, relative
 * to the parameters' spectrum, is equal, and the variance is sigma^2. */
Test(fields, spectra_are_those_of_the_parameters)
{
    enum { SAMPLES = 40 };
    double parts[2] = {0}, counts[2] = {0}, variance = 0;
    float *density = malloc(CELLS * sizeof *density);
    double complex *waves = malloc(CELLS * sizeof *waves);
    uint8_t *web = malloc(CELLS);

    for (uint64_t n = 0; n < SAMPLES; n++) {
        double p[CMD_FIELDS_PARAMS], total = 0, all = 0, ratio[2] = {0};
        int found[2] = {0};

        draw(n, density, web, p);
        waves_of(density, p[0], waves);
        for (int i = 1; i < CELLS; i++) {
            const double square = square_of(i);
            const double power =
                pow(square, p[1] / 2) * exp(-square * p[2] * p[2]);
            const double here = pow(cabs(waves[i]), 2);
            const int band = square > 2;

            if (i % EDGE == EDGE / 2 || i / EDGE % EDGE == EDGE / 2 ||
                i / EDGE / EDGE == EDGE / 2)
                continue;
            total += power;
            all += here;
            if (square > 3 || (square > 1 && square < 2))
                continue;
            ratio[band] += here / power;
            found[band]++;
        }
        variance += all / CELLS / CELLS / (p[0] * p[0]) / SAMPLES;
        for (int b = 0; b < 2; b++) {
            parts[b] += ratio[b] * total / (p[0] * p[0]) / CELLS / CELLS;
            counts[b] += found[b];
        }
    }
    cr_expect_float_eq(variance, 1, 0.1, "variance %.3f sigma^2", variance);
    for (int b = 0; b < 2; b++)
        cr_expect_float_eq(parts[b] / counts[b], 1, 0.03,
                           "band %d has %.3f of its power", b,
                           parts[b] / counts[b]);
    free(web);
    free(waves);
    free(density);
}

/* Shares of the four kinds of regions in a Gaussian field (Doroshkevich, 1970):
 * 8, 42, 42 and 8 per cent. Matter is dense where it flows in from all
 * directions. */
Test(fields, the_web_has_the_shares_of_a_gaussian_field)
{
    static const double shares[CMD_FIELDS_WEBS] = {0.08, 0.42, 0.42, 0.08};
    double found[CMD_FIELDS_WEBS] = {0}, mean[CMD_FIELDS_WEBS] = {0};
    float *density = malloc(CELLS * sizeof *density);
    uint8_t *web = malloc(CELLS);

    for (uint64_t n = 0; n < 40; n++) {
        double p[CMD_FIELDS_PARAMS];

        draw(n, density, web, p);
        for (int i = 0; i < CELLS; i++) {
            cr_assert_lt(web[i], CMD_FIELDS_WEBS);
            found[web[i]] += 1.0 / CELLS / 40;
            mean[web[i]] += (double)density[i] / CELLS / 40;
        }
    }
    for (int w = 0; w < CMD_FIELDS_WEBS; w++) {
        cr_expect_float_eq(found[w], shares[w], 0.02, "kind %d: %.3f", w,
                           found[w]);
        if (w > 0)
            cr_expect_gt(mean[w] / found[w], 1.3 * mean[w - 1] / found[w - 1]);
    }
    free(web);
    free(density);
}

/* ---- the team ------------------------------------------------------------ */

static err_code_t fail_at_20(void *context, int64_t row, err_t *err)
{
    (void)context;
    return row == 20 ? err_set(err, ERR_DATA, "row 20 is bad") : ERR_OK;
}

Test(team, the_first_failure_is_returned)
{
    err_t err = ERR_INIT;

    for (int threads = 1; threads <= 3; threads++) {
        cr_expect_eq(
            cmd_team_draw("test", threads, 1000, fail_at_20, NULL, &err),
            ERR_DATA);
        cr_expect_str_eq(err.text, "row 20 is bad");
    }
}

/* ---- the files ----------------------------------------------------------- */

static char scratch[64];

static void scratch_make(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/cddp-test-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
}

static void scratch_remove(void)
{
    err_t err = ERR_INIT;

    cr_expect_eq(file_remove_tree(scratch, &err), ERR_OK, "%s", err.text);
}

TestSuite(make, .init = scratch_make, .fini = scratch_remove);

static uint64_t make(const char *name, uint64_t seed, int threads, bool force,
                     err_code_t expected)
{
    char *directory = str_printf("%s/%s", scratch, name);
    char *path = str_printf("%s/train-01.h5", directory);
    const cmd_fields_config_t config = {.directory = directory,
                                        .seed = seed,
                                        .train = 11,
                                        .valid = 5,
                                        .edge = 8,
                                        .shards = 2,
                                        .threads = threads,
                                        .force = force};
    cmd_fields_report_t report;
    uint64_t hash = 0, bytes;
    err_t err = ERR_INIT;

    cr_assert_eq(cmd_make_fields(&config, &report, &err), expected, "%s",
                 err.text);
    if (expected == ERR_OK) {
        cr_expect(report.web_guess > 0.25 && report.web_guess < 0.7);
        cr_assert_eq(hash_file(path, &hash, &bytes, &err), ERR_OK);
    }
    free(path);
    free(directory);
    return hash;
}

Test(make, same_bytes_on_any_number_of_threads_and_never_a_mixture)
{
    const uint64_t hash = make("a", 1, 1, false, ERR_OK);

    cr_expect_eq(make("b", 1, 3, false, ERR_OK), hash);
    cr_expect_neq(make("c", 2, 1, false, ERR_OK), hash);
    make("c", 1, 1, false, ERR_USAGE);
    cr_expect_eq(make("c", 1, 2, true, ERR_OK), hash);
}

Test(make, shards_have_what_the_header_says)
{
    char *path = str_printf("%s/a/train-01.h5", scratch);
    str_buf_t text = {0};
    err_t err = ERR_INIT;

    make("a", 1, 1, false, ERR_OK);
    cr_assert_eq(cmd_data_info(path, &text, &err), ERR_OK, "%s", err.text);
    cr_expect_not_null(strstr(text.text, "[6, 8, 8, 8]"), "%s", text.text);
    cr_expect_not_null(strstr(text.text, "[6, 3]"));
    cr_expect_not_null(strstr(text.text, "/web"));
    cr_expect_not_null(strstr(text.text, "/scaled"));
    str_buf_free(&text);
    free(path);
}
