/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/transform.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/facts.h"
#include "open.h"

/* More numbers than are transformed at a time. */
#define MANY 3000

/* hdf5io_transform_make for samples of [dims] (ends with 0). */
static err_code_t made(const hdf5io_field_t *field, const uint64_t *dims,
                       hdf5io_transform_t *transform, err_t *err)
{
    transform_source_t source = {
        .file = "a.h5", .path = "/x", .key = "data.input", .dims = dims};

    while (dims[source.ndim] > 0)
        source.ndim++;
    return hdf5io_transform_make(field, &source, transform, err);
}

static hdf5io_transform_t make(const hdf5io_field_t *field,
                               const uint64_t *dims)
{
    hdf5io_transform_t transform = {.made = false};
    err_t err = ERR_INIT;

    cr_assert_eq(made(field, dims, &transform, &err), ERR_OK, "%s", err.text);
    return transform;
}
#define MAKE(field, ...) make((field), (const uint64_t[]){__VA_ARGS__, 0})

static void refused(const hdf5io_field_t *field, const uint64_t *dims,
                    const char *const facts[FACTS_MAX])
{
    hdf5io_transform_t transform = {.made = false};
    err_t err = ERR_INIT;

    cr_expect_eq(made(field, dims, &transform, &err), ERR_DATA);
    facts_expect(err.text, facts);
}

/* The expected numbers are from Python: ((x * 0.1 + 0.7) - mean) / std,
 * computed with its floats (float64) and rounded by struct.pack('f'). */
Test(transform, the_bits_are_those_of_the_formula_in_float64)
{
    const int16_t x[] = {-7, 0, 1, 100, 32767, -32768};
    const float expected[] = {-0x1.fd4e26p+0F, 0x1.b066dp-1F,  0x1.fa4p+13F,
                              0x1.b3fp+15F,    0x1.89ae7ap+6F, -0x1.898690p+6F};
    double mean[] = {0.4914, -3.25, 1e-3}, std[] = {0.247, 2.5e-4, 33.3};
    const hdf5io_field_t field = {
        .scale = 0.1, .shift = 0.7, .mean = {3, mean}, .std = {3, std}};
    hdf5io_transform_t transform = MAKE(&field, 3, 2, 1);
    float out[6];

    hdf5io_transform_reals(&transform, (transform_crop_t){0},
                           (convert_type_t){.kind = CONVERT_I16}, x, out);
    for (int i = 0; i < 6; i++)
        cr_expect_eq(out[i], expected[i], "%a, not %a", (double)out[i],
                     (double)expected[i]);
    hdf5io_transform_free(&transform);
}

/* Samples of [channels] x [inner] numbers, with a mean and a std for each
 * channel ([lists]) or with one mean for all. */
static void check_channels(int64_t channels, int64_t inner, bool lists)
{
    static float in[MANY], out[MANY];
    double mean[MANY], std[MANY];
    const hdf5io_field_t field = {.scale = 1.1,
                                  .shift = -3,
                                  .mean = {lists ? (int)channels : 1, mean},
                                  .std = {lists ? (int)channels : 0, std}};
    hdf5io_transform_t transform;

    for (int64_t i = 0; i < channels * inner; i++)
        in[i] = (float)(i * 37 % 1001) / 7;
    for (int64_t c = 0; c < channels; c++) {
        mean[c] = (double)c * 0.3;
        std[c] = 1 / (double)(c + 3);
    }
    transform = inner == 1
                    ? MAKE(&field, (uint64_t)channels)
                    : MAKE(&field, (uint64_t)channels, (uint64_t)inner, 1);
    hdf5io_transform_reals(&transform, (transform_crop_t){0},
                           (convert_type_t){.kind = CONVERT_F32}, in, out);
    for (int64_t i = 0; i < channels * inner; i++) {
        const int64_t c = lists ? i / inner : 0;
        const volatile double scaled = (double)in[i] * 1.1;
        const volatile double shifted = scaled + -3.0;
        const volatile double apart = shifted - mean[c];

        cr_assert_eq(out[i], (float)(apart / (lists ? std[c] : 1)),
                     "%lld channels of %lld: number %lld", (long long)channels,
                     (long long)inner, (long long)i);
    }
    hdf5io_transform_free(&transform);
}

Test(transform, each_channel_has_its_mean_and_std)
{
    for (int lists = 0; lists < 2; lists++) {
        check_channels(1, MANY, lists);
        check_channels(3, MANY / 3, lists);
        check_channels(MANY / 3, 3, lists);
        check_channels(MANY, 1, lists);
    }
}

Test(transform, without_settings_nothing_changes)
{
    const hdf5io_field_t field = {.scale = 1};
    hdf5io_transform_t transform = MAKE(&field, 4);
    const float x[] = {-0.0F, INFINITY, 1e-42F, 3.3F};
    str_buf_t text = {0};
    float out[4];

    hdf5io_transform_reals(&transform, (transform_crop_t){0},
                           (convert_type_t){.kind = CONVERT_F32}, x, out);
    cr_expect_arr_eq(out, x, sizeof x);
    hdf5io_transform_say(&transform, &text);
    cr_expect_eq(text.length, 0);
    hdf5io_transform_free(&transform);
}

Test(transform, lists_have_a_number_for_each_channel)
{
    double numbers[] = {1, 2, 3};
    const hdf5io_field_t mean = {.scale = 1, .mean = {3, numbers}};
    const hdf5io_field_t std = {.scale = 1, .std = {2, numbers}};

    refused(&mean, (const uint64_t[]){4, 8, 8, 0},
            (const char *[FACTS_MAX]){"a.h5", "/x", "data.input.mean", "3",
                                      "4 channels"});
    refused(&std, (const uint64_t[]){2, 8, 0},
            (const char *[FACTS_MAX]){"a.h5", "/x", "data.input.std", "2",
                                      "1 channel:"});
}

Test(transform, it_is_said_in_words)
{
    double numbers[] = {1, 2, 3};
    const hdf5io_field_t field = {
        .scale = 0.5, .shift = -3, .mean = {3, numbers}};
    hdf5io_transform_t transform = MAKE(&field, 3, 2, 2);
    str_buf_t text = {0};

    hdf5io_transform_say(&transform, &text);
    cr_expect_str_eq(text.text, "(x * 0.5 - 3 - mean) / std, 3 channels");
    str_buf_free(&text);
    hdf5io_transform_free(&transform);
}

/* Tested for every layout, for inputs and for targets. */
Test(transform, samples_of_a_dataset_are_normalized)
{
    double mean = -2, std = 0.3;
    double heat_mean = 4, heat_std[] = {3, 7};

    for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
        const int64_t index[] = {4, 0};
        float spins[2][OPEN_ELEMS], heat[2][2];
        hdf5io_dataset_t *dataset;
        open_setup_t setup;
        char *directory;
        err_t err = ERR_INIT;

        open_begin(&directory, &setup, "a.h5");
        open_write(directory, "a.h5", (files_layout_t)layout, 0, 5);
        setup.input.mean = (opt_reals_t){1, &mean};
        setup.input.std = (opt_reals_t){1, &std};
        setup.target.path = (char *)"/temperature";
        setup.target.mean = (opt_reals_t){1, &heat_mean};
        setup.target.std = (opt_reals_t){2, heat_std};
        setup.config.targets[0].as = HDF5IO_AS_REALS;
        setup.config.targets[0].elems = 2;
        dataset = open_dataset(&setup);
        cr_assert_eq(
            hdf5io_dataset_read(dataset, index, 2, spins[0], heat[0], &err),
            ERR_OK, "%s", err.text);
        for (int i = 0; i < 2; i++) {
            for (int e = 0; e < OPEN_ELEMS; e++)
                cr_assert_eq(spins[i][e],
                             (float)((open_spin(index[i], e) - mean) / std));
            for (int e = 0; e < 2; e++)
                cr_assert_eq(
                    heat[i][e],
                    (float)((open_temperature(index[i], e) - 4) / heat_std[e]));
        }
        hdf5io_dataset_close(dataset);
        open_end(directory, &setup);
    }
}

Test(transform, class_numbers_have_no_mean)
{
    double mean = 1;
    open_setup_t setup;
    char *directory;

    open_begin(&directory, &setup, "a.h5");
    open_write(directory, "a.h5", FILES_CONTIGUOUS, 0, 5);
    setup.target.mean = (opt_reals_t){1, &mean};
    OPEN_REFUSED(&setup, ERR_CONFIG, "data.target", "mean", "class numbers");
    open_end(directory, &setup);
}
