/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The data sets of libcddp: what is done to samples, files that are samples,
 * and threads that read ahead. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "base/file.h"
#include "base/str.h"
#include "cddp/cddp.h"
#include "cmd/data_shard.h"

enum { ROWS = 24, HIGH = 4, WIDE = 5, CHANNELS = 2, FILES = 6, EPOCHS = 3 };
enum { CROP_HIGH = 2, CROP_WIDE = 3, CROP = CHANNELS * CROP_HIGH * CROP_WIDE };

static char *directory;

static float pixel(int row, int y, int x, int channel)
{
    return (float)(row * 40 + y * 10 + x * 2 + channel);
}

/* Write images, channels last, and their kinds. */
static void shard_write(const char *name, int first, int rows)
{
    static float image[ROWS][HIGH][WIDE][CHANNELS];
    static int8_t kind[ROWS];
    const cmd_shard_field_t fields[] = {
        {"/image", CMD_SHARD_FLOAT32, 3, {HIGH, WIDE, CHANNELS}, image},
        {"/kind", CMD_SHARD_INT8, 0, {0}, kind}};
    const cmd_shard_t content = {
        .rows = rows, .fields = fields, .field_count = 2, .bound = NAN};
    char *path = str_printf("%s/%s", directory, name);
    err_t err = ERR_INIT;

    for (int i = 0; i < rows; i++) {
        kind[i] = (int8_t)((first + i) % 3);
        for (int y = 0; y < HIGH; y++)
            for (int x = 0; x < WIDE; x++)
                for (int c = 0; c < CHANNELS; c++)
                    image[i][y][x][c] = pixel(first + i, y, x, c);
    }
    cr_assert_eq(cmd_shard_write(path, &content, &err), ERR_OK, "%s", err.text);
    free(path);
}

static void start(void)
{
    directory =
        str_printf("%s/cddp-data-XXXXXX",
                   getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    cr_assert_not_null(mkdtemp(directory));
}

static void stop(void)
{
    cr_expect_eq(file_remove_tree(directory, NULL), ERR_OK);
    free(directory);
}

TestSuite(data, .init = start, .fini = stop, .timeout = 60);

/* ---- what is done to samples --------------------------------------------- */

/* What the ranks got, by epoch and number of the sample. */
typedef struct got {
    int augment, threads;
    float crops[EPOCHS][ROWS][CROP];
    float kinds[EPOCHS][ROWS][3];
} got_t;

static cddp_code_t crops_read(cddp_group_t *group, void *context,
                              cddp_error_t *error)
{
    got_t *got = context;
    char *path = str_printf("%s/a.h5", directory);
    const char *const files[] = {path, NULL};
    const cddp_data_config_t config = {
        .files = files,
        .input = "/image",
        .input_elems = CROP,
        .input_options = "{layout: nhwc, crop: [2, 3], flip: horizontal, "
                         "mean: [3, 5], std: [2, 4]}",
        .target = "/kind",
        .target_elems = 3,
        .target_options = "one_hot: 3",
        .batch = 5,
        .shuffle = "full",
        .seed = 8,
        .epochs = EPOCHS,
        .prefetch = 4,
        .augment = got->augment,
        .threads = got->threads};
    const cddp_batch_t *batch;
    cddp_data_t *data = NULL;
    cddp_code_t code = cddp_data_open(group, &config, &data, error);

    while (code == CDDP_OK) {
        code = cddp_data_next(data, &batch, error);
        if (code != CDDP_OK || batch == NULL)
            break;
        for (int64_t i = 0; i < batch->count; i++) {
            const uint64_t id = batch->ids[i];

            memcpy(got->crops[batch->epoch][id],
                   (float *)batch->input + i * CROP, sizeof got->crops[0][0]);
            memcpy(got->kinds[batch->epoch][id], (float *)batch->target + i * 3,
                   sizeof got->kinds[0][0]);
        }
    }
    cddp_data_close(data);
    free(path);
    return code;
}

static void crops_get(got_t *got, int ranks, int augment, int threads)
{
    const cddp_run_config_t run = {.local = ranks};
    cddp_error_t error;

    memset(got, 0, sizeof *got);
    got->augment = augment;
    got->threads = threads;
    cr_assert_eq(cddp_run(&run, crops_read, got, &error), CDDP_OK, "%s",
                 error.text);
}

/* Is [crop] the window of [row] at (top, left)? */
static bool is_window(const float crop[CROP], int row, int top, int left,
                      bool mirrored)
{
    for (int i = 0; i < CROP; i++) {
        const int c = i / (CROP_HIGH * CROP_WIDE);
        const int y = i / CROP_WIDE % CROP_HIGH, x = i % CROP_WIDE;
        const float stored =
            pixel(row, top + y, left + (mirrored ? CROP_WIDE - 1 - x : x), c);

        if (crop[i] != (stored - (c == 0 ? 3 : 5)) / (c == 0 ? 2 : 4))
            return false;
    }
    return true;
}

/* Is [crop] any window of [row]? *middle: is it the window in the middle? */
static bool is_any_window(const float crop[CROP], int row, bool *middle)
{
    bool found = false;

    *middle = is_window(crop, row, 1, 1, false);
    for (int w = 0; w < 18; w++)
        found = found || is_window(crop, row, w / 6, w / 2 % 3, w % 2 == 1);
    return found;
}

Test(data, options_of_the_run_file_are_applied)
{
    static got_t got;

    shard_write("a.h5", 0, ROWS);
    for (int ranks = 1; ranks <= 3; ranks++) {
        crops_get(&got, ranks, 0, ranks);
        for (int e = 0; e < EPOCHS; e++)
            for (int r = 0; r < ROWS; r++) {
                cr_assert(is_window(got.crops[e][r], r, 1, 1, false),
                          "%d ranks, epoch %d, row %d", ranks, e, r);
                for (int k = 0; k < 3; k++)
                    cr_assert_eq(got.kinds[e][r][k], k == r % 3);
            }
    }
}

/* Neither ranks nor threads change a window. */
Test(data, training_takes_other_windows)
{
    static got_t one, some;
    int middles = 0;

    shard_write("a.h5", 0, ROWS);
    crops_get(&one, 1, 1, 0);
    for (int e = 0; e < EPOCHS; e++)
        for (int r = 0; r < ROWS; r++) {
            bool middle;

            cr_assert(is_any_window(one.crops[e][r], r, &middle));
            middles += middle;
        }
    cr_expect_lt(middles, EPOCHS * ROWS / 2);
    for (int ranks = 1; ranks <= 3; ranks++) {
        crops_get(&some, ranks, 1, 3);
        cr_expect_arr_eq(one.crops, some.crops, sizeof one.crops, "%d ranks",
                         ranks);
    }
}

/* ---- files that are samples ---------------------------------------------- */

static cddp_code_t files_read(cddp_group_t *group, void *context,
                              cddp_error_t *error)
{
    enum { ALL = 2 * HIGH * WIDE * CHANNELS };
    int *seen = context;
    char *pattern = str_printf("%s/s-*.h5", directory);
    const char *const files[] = {pattern, NULL};
    const cddp_data_config_t config = {.files = files,
                                       .samples = "files",
                                       .input = "/image",
                                       .input_elems = ALL,
                                       .target = "/kind",
                                       .target_elems = 2,
                                       .classes = 3,
                                       .batch = 4,
                                       .epochs = 1};
    const cddp_batch_t *batch;
    cddp_data_t *data = NULL;

    OK(cddp_data_open(group, &config, &data, error));
    CHECK(cddp_data_samples(data) == FILES);
    for (;;) {
        OK(cddp_data_next(data, &batch, error));
        if (batch == NULL)
            break;
        for (int64_t i = 0; i < batch->count; i++) {
            const int id = (int)batch->ids[i];

            CHECK(((int64_t *)batch->target)[2 * i + 1] == (2 * id + 1) % 3);
            CHECK(((float *)batch->input)[i * ALL] == pixel(2 * id, 0, 0, 0));
            CHECK(((float *)batch->input)[(i + 1) * ALL - 1] ==
                  pixel(2 * id + 1, HIGH - 1, WIDE - 1, CHANNELS - 1));
            seen[id]++;
        }
    }
    cddp_data_close(data);
    free(pattern);
    return CDDP_OK;
}

Test(data, each_file_may_be_one_sample)
{
    const cddp_run_config_t run = {.local = 2};
    int seen[FILES] = {0};
    cddp_error_t error;

    for (int f = 0; f < FILES; f++) {
        char name[16];

        snprintf(name, sizeof name, "s-%d.h5", f);
        shard_write(name, 2 * f, 2);
    }
    cr_expect_eq(cddp_run(&run, files_read, seen, &error), CDDP_OK, "%s",
                 error.text);
    for (int f = 0; f < FILES; f++)
        cr_expect_eq(seen[f], 1);
}

/* ---- sentences ----------------------------------------------------------- */

static const struct {
    const char *options, *samples;
    int64_t sequence;
    int threads;
    const char *words[2];
} wrongs[] = {
    {"{corp: 2}", NULL, 0, 0, {"options of /image:1:2", "'crop'"}},
    {"{path: /x}", NULL, 0, 0, {"options of /image", "'path'"}},
    {"{scale: 2}", NULL, 0, 0, {"options of /image", "'scale'"}},
    {"{crop: [9, 9]}", NULL, 0, 0, {"/image", "crop"}},
    {"crop", NULL, 0, 0, {"options of /image", ""}},
    {"{crop: 2}", NULL, 4, 0, {"sequence", "options"}},
    {NULL, "files", 4, 0, {"sequence", "samples"}},
    {NULL, "shards", 0, 0, {"'shards'", "rows or files"}},
    {NULL, NULL, 0, -1, {"threads", "negative"}},
};

static cddp_code_t try_wrongs(cddp_group_t *group, void *context,
                              cddp_error_t *error)
{
    char *path = str_printf("%s/a.h5", directory);
    const char *const files[] = {path, NULL};

    (void)context;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const cddp_data_config_t config = {.files = files,
                                           .input = "/image",
                                           .input_elems =
                                               HIGH * WIDE * CHANNELS,
                                           .input_options = wrongs[i].options,
                                           .target = "/kind",
                                           .samples = wrongs[i].samples,
                                           .sequence = wrongs[i].sequence,
                                           .threads = wrongs[i].threads,
                                           .batch = 4};
        cddp_data_t *data = NULL;
        cddp_error_t why = {0};
        const cddp_code_t code = cddp_data_open(group, &config, &data, &why);

        if (code != CDDP_CONFIG && code != CDDP_DATA)
            return cddp_error_set(error, CDDP_DATA, "case %zu: %d", i, code);
        for (int w = 0; w < 2; w++)
            if (strstr(why.text, wrongs[i].words[w]) == NULL)
                return cddp_error_set(error, CDDP_DATA, "case %zu: %.400s", i,
                                      why.text);
    }
    free(path);
    return CDDP_OK;
}

Test(data, wrong_options_are_sentences)
{
    const cddp_run_config_t run = {.local = 2};
    cddp_error_t error;

    shard_write("a.h5", 0, ROWS);
    cr_expect_eq(cddp_run(&run, try_wrongs, NULL, &error), CDDP_OK, "%s",
                 error.text);
}
