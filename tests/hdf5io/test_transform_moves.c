/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Transforms that move the numbers of a sample: channels first, crops, mirror
 * images, one-hot. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5io/dataset_whole.h"
#include "hdf5io/loader.h"
#include "hdf5io/transform.h"
#include "lib/facts.h"
#include "open.h"

#define MOST 40000

/* The shape of an image. If depth is 1, the image does not have that dimension.
 */
typedef struct image {
    int64_t channels, depth, height, width;
} image_t;

static int image_dims(image_t image, bool last, uint64_t dims[4])
{
    int ndim = 0;

    if (!last)
        dims[ndim++] = (uint64_t)image.channels;
    if (image.depth > 1)
        dims[ndim++] = (uint64_t)image.depth;
    dims[ndim++] = (uint64_t)image.height;
    dims[ndim++] = (uint64_t)image.width;
    if (last)
        dims[ndim++] = (uint64_t)image.channels;
    return ndim;
}

static hdf5io_transform_t make(const hdf5io_field_t *field, image_t image)
{
    uint64_t dims[4];
    const transform_source_t source = {
        .file = "a.h5",
        .path = "/x",
        .key = "data.input",
        .ndim = image_dims(image, field->layout == HDF5IO_NHWC, dims),
        .dims = dims};
    hdf5io_transform_t transform = {.made = false};
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_transform_make(field, &source, &transform, &err),
                 ERR_OK, "%s", err.text);
    return transform;
}

/* The number at a place of the image, by the definition of the settings. */
static float expected(const hdf5io_field_t *field, image_t image,
                      transform_crop_t crop, const int64_t at[4])
{
    const int64_t high = field->crop.items[0];
    const int64_t wide = field->crop.items[1];
    const int64_t y =
        (crop.flip_lines ? high - 1 - at[2] : at[2]) + crop.top - field->pad;
    const int64_t x =
        (crop.flip_pixels ? wide - 1 - at[3] : at[3]) + crop.left - field->pad;
    double stored = 0;

    if (y >= 0 && y < image.height && x >= 0 && x < image.width) {
        int64_t place;

        if (field->layout == HDF5IO_NHWC)
            place = ((at[1] * image.height + y) * image.width + x) *
                        image.channels +
                    at[0];
        else
            place = ((at[0] * image.depth + at[1]) * image.height + y) *
                        image.width +
                    x;
        stored = (double)(uint16_t)(place * 31);
    }
    if (field->mean.count == 0)
        return (float)stored;
    return (float)((stored - field->mean.items[at[0]]) / 0.3);
}

/* Compare a transformed sample with the definition. */
static void check_image(const hdf5io_field_t *field, image_t image,
                        const hdf5io_draw_t *draw, int64_t sample)
{
    static uint16_t in[MOST];
    static float out[MOST];
    hdf5io_transform_t transform = make(field, image);
    const transform_crop_t crop =
        hdf5io_transform_crop(&transform, draw, sample);
    const int64_t high = field->crop.items[0], wide = field->crop.items[1];
    int64_t at[4], i = 0;

    cr_assert_leq(transform.elems, MOST);
    cr_assert_eq(transform.out_elems,
                 image.channels * image.depth * high * wide);
    for (int64_t k = 0; k < transform.elems; k++)
        in[k] = (uint16_t)(k * 31);
    hdf5io_transform_reals(&transform, crop,
                           (convert_type_t){.kind = CONVERT_U16}, in, out);
    for (at[0] = 0; at[0] < image.channels; at[0]++)
        for (at[1] = 0; at[1] < image.depth; at[1]++)
            for (at[2] = 0; at[2] < high; at[2]++)
                for (at[3] = 0; at[3] < wide; at[3]++, i++)
                    cr_assert_eq(out[i], expected(field, image, crop, at),
                                 "[%lld, %lld, %lld, %lld]", (long long)at[0],
                                 (long long)at[1], (long long)at[2],
                                 (long long)at[3]);
    hdf5io_transform_free(&transform);
}

/* All settings for images of one shape. */
static void check_images(image_t image)
{
    static double mean[700];

    for (int i = 0; i < 700; i++)
        mean[i] = 0.1 * i - 7;
    for (int way = 0; way < 16; way++) {
        const int64_t pad = way & 4 ? 3 : 0;
        const hdf5io_field_t field = {
            .scale = 1,
            .mean = {way & 1 ? (int)image.channels : 0, mean},
            .std = {way & 1, (double[]){0.3}},
            .layout = way & 2 ? HDF5IO_NHWC : HDF5IO_NCHW,
            .pad = pad,
            .flip = HDF5IO_FLIP_BOTH,
            .crop = {2, {way & 8 ? image.height : 2, image.width - 1 + pad}}};

        for (int64_t sample = 0; sample < 8; sample++) {
            const hdf5io_draw_t draw = {77, sample / 4};

            check_image(&field, image, sample == 0 ? NULL : &draw, sample);
        }
    }
}

Test(transform_moves, images_are_cut_and_mirrored_as_defined)
{
    check_images((image_t){3, 1, 7, 9});
    check_images((image_t){2, 3, 5, 4});
    check_images((image_t){1, 1, 4, 5});
    check_images((image_t){600, 1, 2, 3}); /* more channels than a piece */
}

/* A border that is wider than the crop: some crops hold no pixel. */
Test(transform_moves, a_window_may_be_all_border)
{
    const hdf5io_field_t field = {.scale = 1, .pad = 9, .crop = {2, {3, 3}}};

    for (int64_t sample = 0; sample < 50; sample++)
        check_image(&field, (image_t){1, 1, 2, 2}, &(hdf5io_draw_t){1, 0},
                    sample);
}

Test(transform_moves, the_middle_is_taken_without_a_draw)
{
    const hdf5io_field_t field = {
        .scale = 1, .pad = 4, .flip = HDF5IO_FLIP_BOTH};
    hdf5io_transform_t transform = make(&field, (image_t){3, 1, 32, 40});
    const transform_crop_t crop = hdf5io_transform_crop(&transform, NULL, 5);

    cr_expect_eq(crop.top, 4);
    cr_expect_eq(crop.left, 4);
    cr_expect_not(crop.flip_lines);
    cr_expect_not(crop.flip_pixels);
    cr_expect_eq(transform.out_elems, 3 * 32 * 40);
    hdf5io_transform_free(&transform);
}

Test(transform_moves, windows_are_even_and_depend_on_seed_epoch_and_sample)
{
    const hdf5io_field_t field = {
        .scale = 1, .crop = {1, {4}}, .flip = HDF5IO_FLIP_HORIZONTAL};
    hdf5io_transform_t transform = make(&field, (image_t){1, 1, 6, 7});
    int tops[3] = {0}, lefts[4] = {0}, flips = 0, same[2] = {0};

    for (int64_t sample = 0; sample < 12000; sample++) {
        const hdf5io_draw_t draw = {7, 3}, later = {7, 4}, other = {8, 3};
        const transform_crop_t a =
            hdf5io_transform_crop(&transform, &draw, sample);
        const transform_crop_t b =
            hdf5io_transform_crop(&transform, &later, sample);
        const transform_crop_t c =
            hdf5io_transform_crop(&transform, &other, sample);

        tops[a.top]++;
        lefts[a.left]++;
        flips += a.flip_pixels;
        cr_assert_not(a.flip_lines);
        same[0] += a.top == b.top && a.left == b.left;
        same[1] += a.top == c.top && a.left == c.left;
    }
    for (int i = 0; i < 3; i++)
        cr_expect_lt(abs(tops[i] - 4000), 300);
    for (int i = 0; i < 4; i++)
        cr_expect_lt(abs(lefts[i] - 3000), 300);
    for (int i = 0; i < 2; i++)
        cr_expect_lt(abs(same[i] - 1000), 200);
    cr_expect_lt(abs(flips - 6000), 300);
    hdf5io_transform_free(&transform);
}

static void refused(const hdf5io_field_t *field, int ndim,
                    const char *const facts[FACTS_MAX])
{
    const uint64_t dims[] = {8, 9, 3};
    const transform_source_t source = {.file = "a.h5",
                                       .path = "/x",
                                       .key = "data.input",
                                       .ndim = ndim,
                                       .dims = dims};
    hdf5io_transform_t transform = {.made = false};
    err_t err = ERR_INIT;

    cr_expect_eq(hdf5io_transform_make(field, &source, &transform, &err),
                 ERR_DATA);
    facts_expect(err.text, facts);
}
#define REFUSED(field, ndim, ...) \
    refused((field), (ndim), (const char *[FACTS_MAX]){__VA_ARGS__})

Test(transform_moves, what_does_not_suit_the_samples_is_refused)
{
    const hdf5io_field_t flip = {.scale = 1, .flip = HDF5IO_FLIP_BOTH};
    const hdf5io_field_t last = {.scale = 1, .layout = HDF5IO_NHWC};
    const hdf5io_field_t large = {.scale = 1, .crop = {2, {10, 12}}, .pad = 1};
    const hdf5io_field_t three = {.scale = 1, .crop = {3, {1, 1, 1}}};
    const hdf5io_field_t many = {.scale = 1, .one_hot = 1 << 26};

    REFUSED(&flip, 1, "a.h5", "/x", "data.input", "flip", "1 dimension,");
    REFUSED(&last, 1, "a.h5", "/x", "layout: nhwc", "2 at least");
    REFUSED(&last, 0, "a.h5", "/x", "0 dimensions", "layout: nhwc");
    REFUSED(&large, 2, "a.h5", "/x", "10 x 12", "8 x 9");
    REFUSED(&three, 2, "a.h5", "data.input.crop", "3 numbers");
    REFUSED(&many, 2, "a.h5", "/x", "one_hot", "too many");
}

Test(transform_moves, it_is_said_in_words)
{
    const hdf5io_field_t field = {.scale = 1,
                                  .layout = HDF5IO_NHWC,
                                  .pad = 4,
                                  .flip = HDF5IO_FLIP_HORIZONTAL};
    hdf5io_transform_t transform = make(&field, (image_t){3, 1, 32, 30});
    str_buf_t text = {0};

    hdf5io_transform_moves_say(&transform, &text);
    FACTS(text.text, "channels first", "32 x 30 of 32 x 30", "border of 4",
          "left to right");
    str_buf_free(&text);
    hdf5io_transform_free(&transform);
}

/* ---- in a dataset -------------------------------------------------------- */

Test(transform_moves, classes_become_one_hot)
{
    const int64_t index[] = {4, 1, 2};
    float spins[3][OPEN_ELEMS], phases[3][OPEN_CLASSES];
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    char *directory;
    err_t err = ERR_INIT;

    open_begin(&directory, &setup, "a.h5");
    open_write(directory, "a.h5", FILES_CHUNKED, 0, 5);
    setup.target.one_hot = OPEN_CLASSES;
    setup.config.targets[0].as = HDF5IO_AS_REALS;
    setup.config.targets[0].elems = OPEN_CLASSES;
    dataset = open_dataset(&setup);
    cr_assert_eq(
        hdf5io_dataset_read(dataset, index, 3, spins[0], phases[0], &err),
        ERR_OK, "%s", err.text);
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < OPEN_CLASSES; c++)
            cr_expect_eq(phases[i][c],
                         (float)(open_phase(index[i], 0) == (double)c));
    hdf5io_dataset_close(dataset);

    setup.target.one_hot = OPEN_CLASSES - 1;
    setup.config.targets[0].elems = OPEN_CLASSES - 1;
    dataset = open_dataset(&setup);
    cr_expect_eq(
        hdf5io_dataset_read(dataset, index, 3, spins[0], phases[0], &err),
        ERR_DATA);
    FACTS(err.text, "a.h5", "/phase", "row 2", "label 2", "one_hot is 2");
    hdf5io_dataset_close(dataset);
    setup.target.scale = 2;
    OPEN_REFUSED(&setup, ERR_CONFIG, "data.target", "scale 2");
    open_end(directory, &setup);
}

/* Class numbers of positions move with their image. */
Test(transform_moves, class_numbers_move_with_the_image)
{
    enum { OUT = 5 * 6 };
    const hdf5io_draw_t draw = {5, 2};
    int64_t index[5], classes[5][OUT];
    float image[5][OUT];
    void *const fields[] = {image, classes};
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    char *directory;
    err_t err = ERR_INIT;

    open_begin(&directory, &setup, "a.h5");
    open_write(directory, "a.h5", FILES_CHUNKED, 0, 5);
    setup.input.shift = 100;
    setup.input.flip = setup.target.flip = HDF5IO_FLIP_BOTH;
    setup.input.pad = setup.target.pad = 2;
    setup.input.crop = setup.target.crop = (opt_ints_t){2, {5, 6}};
    setup.target.path = setup.input.path;
    setup.config.inputs[0].elems = setup.config.targets[0].elems = OUT;
    setup.config.targets[0].limit = 1000;
    OPEN_REFUSED(&setup, ERR_CONFIG, "data.target", "pad", "ignore_index");
    setup.config.targets[0].ignore = true;
    setup.config.targets[0].ignored = -100;
    setup.target.shift = 200;
    dataset = open_dataset(&setup);
    for (int i = 0; i < 5; i++)
        index[i] = 4 - i;
    cr_assert_eq(
        hdf5io_dataset_read_drawn(dataset, &draw, index, 5, fields, &err),
        ERR_OK, "%s", err.text);
    for (int i = 0; i < 5; i++)
        for (int e = 0; e < OUT; e++)
            cr_assert_eq(
                (float)(classes[i][e] == -100 ? 100 : classes[i][e] - 100),
                image[i][e]);
    hdf5io_dataset_close(dataset);
    open_end(directory, &setup);
}

/* Write [bad] to element [e] of row 2, and check all numbers of the image.
 * Returns whether the check finds an error. */
static bool found(const open_setup_t *setup, const char *path, int e,
                  double bad)
{
    enum { LARGEST = 5 * 6 }; /* of the largest crop */
    static float image[3][LARGEST];
    static int64_t classes[3][LARGEST];
    void *const fields[] = {image, classes};
    const int64_t index[] = {0, 2, 1};
    hdf5io_dataset_t *dataset;
    err_t err = ERR_INIT;
    err_code_t rc;

    files_poke(path, "/spins", 2 * OPEN_ELEMS + e, bad);
    dataset = open_dataset(setup);
    rc = hdf5io_dataset_read_whole(dataset, index, 3, fields, &err);
    hdf5io_dataset_close(dataset);
    files_poke(path, "/spins", 2 * OPEN_ELEMS + e, open_spin(2, e));
    if (rc == ERR_OK)
        return false;
    cr_assert_eq(rc, ERR_DATA);
    cr_assert_not_null(strstr(err.text, "row 2 of"), "%s", err.text);
    return true;
}

/* A bad number must be found in each element, inside and outside of the crop in
 * the middle. */
Test(transform_moves, a_check_looks_at_all_of_an_image)
{
    static const opt_ints_t crops[] = {{1, {1}},    {1, {2}},    {2, {2, 3}},
                                       {2, {3, 2}}, {2, {1, 4}}, {2, {5, 6}}};
    const files_column_t columns[] = {
        {"/spins", 2, {3, 4}, H5T_NATIVE_FLOAT, open_spin},
        {"/phase", 0, {0}, H5T_NATIVE_FLOAT, open_phase}};
    open_setup_t setup;
    char *directory, *path;

    open_begin(&directory, &setup, "a.h5");
    path = files_path(directory, "a.h5");
    files_write(path, FILES_CONTIGUOUS, 0, 4, columns, 2);
    setup.target.path = setup.input.path;
    setup.target.shift = 200;
    setup.config.targets[0].limit = 1000;
    setup.config.targets[0].ignore = true;
    setup.config.targets[0].ignored = -100;
    for (size_t i = 0; i < sizeof crops / sizeof crops[0]; i++) {
        const opt_ints_t *crop = &crops[i];
        const int64_t elems =
            crop->items[0] * crop->items[crop->count == 2 ? 1 : 0];

        setup.input.crop = setup.target.crop = *crop;
        setup.input.pad = setup.target.pad = i == 5 ? 1 : 0;
        setup.config.inputs[0].elems = setup.config.targets[0].elems = elems;
        for (int e = 0; e < OPEN_ELEMS; e++) {
            cr_expect(found(&setup, path, e, (double)NAN),
                      "crop %zu: nan in element %d", i, e);
            cr_expect(found(&setup, path, e, 5000.0),
                      "crop %zu: class 5200 in element %d", i, e);
        }
        cr_expect_not(found(&setup, path, 0, open_spin(2, 0)), "crop %zu", i);
    }
    free(path);
    open_end(directory, &setup);
}

/* Stored float32 numbers. Without a transform they are read directly to their
 * place. */
Test(transform_moves, stored_floats_move_too)
{
    const files_column_t columns[] = {
        {"/spins", 2, {3, 4}, H5T_NATIVE_FLOAT, open_spin},
        {"/phase", 0, {0}, H5T_NATIVE_FLOAT, open_phase}};
    const hdf5io_draw_t draw = {1, 1};
    const int64_t index[] = {0, 1, 2, 3, 4, 5, 6, 7};
    float mirrored[8][OPEN_ELEMS], phases[8][OPEN_CLASSES];
    void *const fields[] = {mirrored, phases};
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    char *directory, *path;
    int other = 0;
    err_t err = ERR_INIT;

    open_begin(&directory, &setup, "a.h5");
    path = files_path(directory, "a.h5");
    files_write(path, FILES_CONTIGUOUS, 0, 8, columns, 2);
    setup.input.flip = HDF5IO_FLIP_HORIZONTAL;
    setup.target.one_hot = OPEN_CLASSES;
    setup.config.targets[0].as = HDF5IO_AS_REALS;
    setup.config.targets[0].elems = OPEN_CLASSES;
    dataset = open_dataset(&setup);
    cr_assert_eq(
        hdf5io_dataset_read_drawn(dataset, &draw, index, 8, fields, &err),
        ERR_OK, "%s", err.text);
    for (int i = 0; i < 8; i++) {
        const bool back = mirrored[i][0] != (float)open_spin(i, 0);

        other += back;
        for (int e = 0; e < OPEN_ELEMS; e++)
            cr_assert_eq(mirrored[i][e],
                         (float)open_spin(i, back ? e / 4 * 4 + 3 - e % 4 : e));
        for (int c = 0; c < OPEN_CLASSES; c++)
            cr_assert_eq(phases[i][c], (float)(open_phase(i, 0) == (double)c));
    }
    cr_assert(other > 0 && other < 8, "%d of 8 are mirrored", other);
    hdf5io_dataset_close(dataset);
    open_end(directory, &setup);
    free(path);
}

/* Row 3 has the number 2^24 + 1. */
static double large_value(int64_t row, int64_t element)
{
    return row == 3 && element == 1 ? 0x1p24 + 1 : (double)(row * 4);
}

Test(transform_moves, integers_that_float32_rounds_need_a_cast)
{
    const hid_t types[] = {H5T_STD_I32LE, H5T_STD_U32BE, H5T_STD_I64LE,
                           H5T_STD_U64BE};
    const int64_t index[] = {2, 3};

    for (int t = 0; t < 4; t++) {
        const files_column_t columns[] = {
            {"/spins", 1, {2}, types[t], large_value},
            {"/phase", 0, {0}, H5T_STD_U8LE, open_phase}};
        hdf5io_dataset_t *dataset;
        open_setup_t setup;
        char *directory, *path;
        float spins[2][2];
        int64_t phases[2];
        err_t err = ERR_INIT;

        open_begin(&directory, &setup, "a.h5");
        path = files_path(directory, "a.h5");
        files_write(path, FILES_CONTIGUOUS, 0, 5, columns, 2);
        setup.config.inputs[0].elems = 2;
        dataset = open_dataset(&setup);
        cr_assert_eq(
            hdf5io_dataset_read(dataset, index, 1, spins[0], phases, &err),
            ERR_OK, "%s", err.text);
        cr_assert_eq(
            hdf5io_dataset_read(dataset, index, 2, spins[0], phases, &err),
            ERR_DATA);
        FACTS(err.text, "a.h5", "row 3", "/spins", "16777217", "cast: float32");
        hdf5io_dataset_close(dataset);
        setup.input.cast = HDF5IO_CAST_FLOAT32;
        dataset = open_dataset(&setup);
        cr_assert_eq(
            hdf5io_dataset_read(dataset, index, 2, spins[0], phases, &err),
            ERR_OK);
        cr_assert_eq(spins[1][1], 0x1p24F);
        hdf5io_dataset_close(dataset);
        open_end(directory, &setup);
        free(path);
    }
}

/* ---- in training --------------------------------------------------------- */

enum { EPOCHS = 2, SAMPLES = 23, WINDOW = 2 * 3 };

/* What the loaders of [size] ranks deliver from [step] of epoch 0 on, by epoch
 * and sample. */
static void deliver(open_setup_t *setup, int size, int64_t step, bool augment,
                    float out[EPOCHS][SAMPLES][WINDOW])
{
    for (int rank = 0; rank < size; rank++) {
        hdf5io_dataset_t *dataset = open_dataset(setup);
        const hdf5io_sampler_config_t order = {.samples = SAMPLES,
                                               .batch = 5,
                                               .rank = rank,
                                               .size = size,
                                               .shuffle = HDF5IO_SHUFFLE_FULL,
                                               .seed = 9};
        hdf5io_loader_config_t config = {.dataset = dataset,
                                         .prefetch = 2 * (rank % 2),
                                         .epochs = EPOCHS,
                                         .step = step,
                                         .augment = augment,
                                         .seed = 9};
        hdf5io_loader_t *loader = NULL;
        hdf5io_batch_t *batch = NULL;
        err_t err = ERR_INIT;

        cr_assert_eq(hdf5io_sampler_open(&order, &config.sampler, &err), 0);
        cr_assert_eq(hdf5io_loader_open(&config, &loader, &err), 0);
        while (hdf5io_loader_next(loader, &batch, &err) == ERR_OK &&
               batch != NULL)
            for (int64_t i = 0; i < batch->count; i++)
                memcpy(out[batch->epoch][batch->sample_ids[i]],
                       (float *)batch->input + i * WINDOW,
                       WINDOW * sizeof(float));
        hdf5io_loader_close(loader);
        hdf5io_sampler_close(config.sampler);
        hdf5io_dataset_close(dataset);
    }
}

static int differences(float a[EPOCHS][SAMPLES][WINDOW],
                       float b[EPOCHS][SAMPLES][WINDOW], int epoch)
{
    int count = 0;

    for (int s = 0; s < SAMPLES; s++)
        count += memcmp(a[epoch][s], b[epoch][s], sizeof a[epoch][s]) != 0;
    return count;
}

Test(transform_moves, any_number_of_ranks_and_a_resume_give_the_same_windows)
{
    static float one[EPOCHS][SAMPLES][WINDOW], some[EPOCHS][SAMPLES][WINDOW];
    open_setup_t setup;
    char *directory;

    open_begin(&directory, &setup, "a.h5");
    open_write(directory, "a.h5", FILES_CHUNKED, 0, SAMPLES);
    setup.input.flip = HDF5IO_FLIP_BOTH;
    setup.input.crop = (opt_ints_t){2, {2, 3}};
    setup.config.inputs[0].elems = WINDOW;
    deliver(&setup, 1, 0, true, one);
    for (int size = 2; size < 6; size++) {
        memset(some, 0, sizeof some);
        deliver(&setup, size, 0, true, some);
        cr_expect_arr_eq(one, some, sizeof one, "%d ranks", size);
    }
    memset(some, 0, sizeof some);
    deliver(&setup, 3, 4, true, some); /* the last step of epoch 0 */
    cr_expect_eq(differences(one, some, 0), SAMPLES - 3);
    cr_expect_eq(differences(one, some, 1), 0);
    deliver(&setup, 1, 0, false, some);
    cr_expect_gt(differences(one, some, 0), SAMPLES / 2, "not in evaluation");
    cr_expect_eq(memcmp(some[0], some[1], sizeof some[0]), 0,
                 "an evaluation is the same in every epoch");
    open_end(directory, &setup);
}
