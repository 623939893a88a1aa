/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tests writing and reading back: bits, numbers of ranks, keep, names, other
 * models. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "ckpt_fixture.h"

Test(checkpoint, comes_back_bit_for_bit_on_any_number_of_ranks)
{
    for (int writers = 1; writers <= 5; writers++) {
        char *home = ckpt_home_make();

        ckpt_write(home, writers, 100 + writers);
        for (int readers = 1; readers <= 5; readers++)
            ckpt_expect(home, readers, 100 + writers);
        ckpt_home_remove(home);
    }
}

Test(checkpoint, progress_comes_back_exactly)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks;
    ckpt_state_t want;

    ckpt_write(home, 2, 7);
    ranks = ckpt_ranks_run(home, 3, 7, ckpt_body_read, NULL);
    ckpt_state_make(&want, 7);
    for (int r = 0; r < 3; r++) {
        cr_assert_arr_eq(&ranks[r].info.progress, &want.progress,
                         sizeof want.progress);
        cr_assert_eq(ranks[r].info.world_size, 2);
        cr_assert(strstr(ranks[r].info.path, "/step-0000000007") != NULL);
    }
    ckpt_state_free(&want);
    ckpt_ranks_free(ranks, 3);
    ckpt_home_remove(home);
}

Test(checkpoint, nobody_writes_more_than_a_share)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks = ckpt_ranks_run(home, 4, 1, ckpt_body_write, NULL);
    int64_t all = 0;

    for (int r = 0; r < 4; r++)
        all += ranks[r].info.bytes_written;
    for (int r = 1; r < 4;
         r++) /* equal shares, so files of equal size up to metadata */
        cr_assert_lt(ranks[r].info.bytes_written, all / 2);
    ckpt_ranks_free(ranks, 4);
    ckpt_home_remove(home);
}

Test(checkpoint, an_empty_or_absent_directory_has_none)
{
    char *home = ckpt_home_make();
    char *absent = str_printf("%s/not/there", home);
    const char *homes[] = {home, absent};

    for (int i = 0; i < 2; i++) {
        ckpt_rank_t *ranks =
            ckpt_ranks_run(homes[i], 2, 1, ckpt_body_read, NULL);

        for (int r = 0; r < 2; r++) {
            cr_assert_eq(ranks[r].code, ERR_OK);
            cr_assert_not(ranks[r].found);
        }
        ckpt_ranks_free(ranks, 2);
    }
    ckpt_write(absent, 2, 5);
    ckpt_expect(absent, 1, 5);
    free(absent);
    ckpt_home_remove(home);
}

Test(checkpoint, keeps_the_newest)
{
    char *home = ckpt_home_make();
    char **paths;
    int count;

    for (int step = 10; step <= 60; step += 10)
        ckpt_write(home, 2, step);
    cr_assert_eq(hdf5io_checkpoint_list(home, &paths, &count, NULL), ERR_OK);
    cr_assert_eq(count, 3);
    cr_assert_str_eq(strrchr(paths[0], '/'), "/step-0000000060");
    cr_assert_str_eq(strrchr(paths[2], '/'), "/step-0000000040");
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    cr_assert_eq(ckpt_count(home, ""), 3);
    ckpt_home_remove(home);
}

static void body_write_kept(ckpt_rank_t *rank, void *context)
{
    rank->config.keep = 2;
    rank->config.keep_every = 20;
    ckpt_body_write(rank, context);
}

/* Beside the two newest, 50 and 60, those at multiples of 20 stay. */
Test(checkpoint, multiples_are_kept)
{
    char *home = ckpt_home_make();

    for (int step = 10; step <= 60; step += 10) {
        ckpt_rank_t *ranks =
            ckpt_ranks_run(home, 2, step, body_write_kept, NULL);

        cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
        ckpt_ranks_free(ranks, 2);
    }
    cr_expect_eq(ckpt_count(home, ""), 4);
    cr_expect_eq(ckpt_count(home, "step-0000000020"), 1);
    cr_expect_eq(ckpt_count(home, "step-0000000040"), 1);
    cr_expect_eq(ckpt_count(home, "step-0000000050"), 1);
    ckpt_expect(home, 2, 60);
    ckpt_home_remove(home);
}

Test(checkpoint, going_back_sets_the_abandoned_line_aside)
{
    char *home = ckpt_home_make();

    ckpt_write(home, 2, 10);
    ckpt_write(home, 2, 20);
    ckpt_write(home, 1, 15);
    ckpt_expect(home, 2, 15);
    cr_assert_eq(ckpt_count(home, "step-"), 2);
    cr_assert_eq(ckpt_count(home, "superseded-step-0000000020-"), 1);
    ckpt_home_remove(home);
}

static void body_write_other(ckpt_rank_t *rank, void *context)
{
    rank->io.no_exchange = *(bool *)context;
    rank->state.progress.step = 10;
    ckpt_body_write(rank, NULL);
}

Test(checkpoint, the_same_step_is_replaced)
{
    for (int i = 0; i < 2; i++) {
        bool no_exchange = i == 1;
        char *home = ckpt_home_make();
        ckpt_rank_t *ranks;
        ckpt_state_t want;

        ckpt_write(home, 3, 10);
        ranks = ckpt_ranks_run(home, 2, 11, body_write_other, &no_exchange);
        cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
        ckpt_ranks_free(ranks, 2);
        ranks = ckpt_ranks_run(home, 1, 11, ckpt_body_read, NULL);
        ckpt_state_make(&want, 11);
        cr_assert(ckpt_state_same(&ranks[0].state, &want));
        cr_assert_eq(ckpt_count(home, ""), 1);
        ckpt_state_free(&want);
        ckpt_ranks_free(ranks, 1);
        ckpt_home_remove(home);
    }
}

static void body_write_half(ckpt_rank_t *rank, void *context)
{
    rank->io.half = true;
    ckpt_body_write(rank, context);
}

Test(checkpoint, short_writes_are_continued)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks = ckpt_ranks_run(home, 2, 10, body_write_half, NULL);

    cr_assert_gt(ranks[0].io.calls, 20);
    ckpt_ranks_free(ranks, 2);
    ckpt_expect(home, 2, 10);
    ckpt_home_remove(home);
}

Test(checkpoint, debris_is_no_checkpoint_and_goes_at_the_next_write)
{
    char *home = ckpt_home_make();
    const char *names[] = {".tmp-step-0000000099-0123456789abcdef",
                           ".trash-step-0000000098-0123456789abcdef"};

    ckpt_write(home, 2, 10);
    for (int i = 0; i < 2; i++) {
        char *path = str_printf("%s/%s", home, names[i]);
        char *inside = str_printf("%s/shard-0.h5", path);

        cr_assert_eq(mkdir(path, 0777), 0);
        cr_assert_eq(file_publish(inside, "x", 1, NULL), ERR_OK);
        free(inside);
        free(path);
    }
    ckpt_expect(home, 2, 10);
    ckpt_write(home, 2, 20);
    cr_assert_eq(ckpt_count(home, "."), 0);
    cr_assert_eq(ckpt_count(home, ""), 2);
    ckpt_home_remove(home);
}

Test(checkpoint, other_names_are_left_alone)
{
    char *home = ckpt_home_make();
    const char *names[] = {"step-12", "step-0000000012x", "steps",
                           "step-00000000012", "notes"};

    for (int i = 0; i < 5; i++) {
        char *path = str_printf("%s/%s", home, names[i]);

        cr_assert_eq(mkdir(path, 0777), 0);
        free(path);
    }
    ckpt_write(home, 1, 5);
    ckpt_expect(home, 1, 5);
    cr_assert_eq(ckpt_count(home, ""), 6);
    ckpt_home_remove(home);
}

/* How the reading run differs from the writing one. */
typedef enum change { RENAMED, RESHAPED, RANKED, FEWER, MORE, TWICE } change_t;

static void body_read_changed(ckpt_rank_t *rank, void *context)
{
    hdf5io_tensor_t *t = rank->state.tensors;

    switch (*(change_t *)context) {
    case RENAMED:
        t[5].name = "model/fc2.weight";
        break;
    case RESHAPED: /* same number of elements */
        t[5].dims[0] = 45, t[5].dims[1] = 7;
        break;
    case RANKED:
        t[1].ndim = 2, t[1].dims[1] = 1;
        break;
    case FEWER: /* the last tensor belongs to the optimizer */
        rank->state.count--;
        break;
    case MORE:
        t[7].name = "optimizer/exp_avg_sq/fc.weight";
        break;
    case TWICE: /* of the same shape */
        t[6].name = "model/conv1.weight";
        break;
    }
    ckpt_body_read(rank, NULL);
}

Test(checkpoint, another_model_is_refused_by_name)
{
    static const char *const sentences[][3] = {
        [RENAMED] = {"model/fc2.weight", "[7, 45]", "no tensor"},
        [RESHAPED] = {"model/fc.weight", "has shape [7, 45]",
                      "expected [45, 7]"},
        [RANKED] = {"model/conv1.bias", "has shape [5]", "expected [5, 1]"},
        [FEWER] = {"optimizer/exp_avg/fc.weight", "does not have", "--fresh"},
        [MORE] = {"optimizer/exp_avg_sq/fc.weight", "no tensor", "--fresh"},
        [TWICE] = {"model/conv1.weight", "is wanted twice", "its own name"},
    };
    char *home = ckpt_home_make();

    ckpt_write(home, 2, 10);
    for (int change = RENAMED; change <= TWICE; change++) {
        ckpt_rank_t *ranks =
            ckpt_ranks_run(home, 2, 10, body_read_changed, &change);

        for (int r = 0; r < 2; r++) {
            cr_assert_eq(ranks[r].code, ERR_CONFIG);
            for (int i = 0; i < 3; i++)
                cr_assert(strstr(ranks[r].err.text, sentences[change][i]),
                          "%s: %s", sentences[change][i], ranks[r].err.text);
        }
        ckpt_ranks_free(ranks, 2);
    }
    ckpt_home_remove(home);
}

static void body_read_model(ckpt_rank_t *rank, void *context)
{
    rank->state.count = 6; /* without the optimizer's tensors */
    ckpt_body_read(rank, context);
}

Test(checkpoint, the_model_alone_can_be_read)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks;
    ckpt_state_t want;

    ckpt_write(home, 3, 10);
    ranks = ckpt_ranks_run(home, 2, 10, body_read_model, NULL);
    ckpt_state_make(&want, 10);
    want.count = 6;
    cr_assert_eq(ranks[1].code, ERR_OK, "%s", ranks[1].err.text);
    cr_assert(ckpt_state_same(&want, &ranks[1].state));
    ckpt_state_free(&want);
    ckpt_ranks_free(ranks, 2);
    ckpt_home_remove(home);
}

Test(checkpoint, an_explicit_path_is_taken_or_refused)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/step-0000000010", home);
    char *absent = str_printf("%s/step-0000000030", home);
    ckpt_rank_t *ranks;

    ckpt_write(home, 2, 10);
    ckpt_write(home, 2, 20);
    ranks = ckpt_ranks_run(home, 2, 10, ckpt_body_read, path);
    cr_assert_eq(ranks[1].code, ERR_OK);
    cr_assert_eq(ranks[1].info.progress.step, 10);
    ckpt_ranks_free(ranks, 2);
    ranks = ckpt_ranks_run(home, 2, 10, ckpt_body_read, absent);
    cr_assert_eq(ranks[1].code, ERR_DATA);
    cr_assert(strstr(ranks[1].err.text, absent));
    ckpt_ranks_free(ranks, 2);
    free(absent);
    free(path);
    ckpt_home_remove(home);
}

static void body_write_negative(ckpt_rank_t *rank, void *context)
{
    rank->state.progress.samples = -1;
    ckpt_body_write(rank, context);
}

Test(checkpoint, what_could_not_be_read_back_is_not_published)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks = ckpt_ranks_run(home, 2, 3, body_write_negative, NULL);

    cr_assert_eq(ranks[1].code, ERR_CONFIG);
    cr_assert(strstr(ranks[1].err.text, "\"samples\""), "%s",
              ranks[1].err.text);
    cr_assert_eq(ckpt_count(home, ""), 0);
    ckpt_ranks_free(ranks, 2);
    ckpt_home_remove(home);
}

/* Keep only conv1.bias, with 5 elements. */
static void bias_only(ckpt_state_t *state)
{
    hdf5io_tensor_t first = state->tensors[0];

    state->tensors[0] = state->tensors[1];
    state->tensors[1] = first;
    state->count = 1;
}

static void body_write_small(ckpt_rank_t *rank, void *context)
{
    bias_only(&rank->state);
    ckpt_body_write(rank, context);
}

static void body_read_small(ckpt_rank_t *rank, void *context)
{
    bias_only(&rank->state);
    ckpt_body_read(rank, context);
}

Test(checkpoint, ranks_without_elements_write_no_file)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/step-0000000003", home);
    ckpt_rank_t *ranks = ckpt_ranks_run(home, 9, 3, body_write_small, NULL);
    ckpt_state_t want;

    cr_assert_eq(ranks[8].code, ERR_OK, "%s", ranks[8].err.text);
    ckpt_ranks_free(ranks, 9);
    cr_assert_eq(ckpt_count(path, "shard-"), 5);
    ranks = ckpt_ranks_run(home, 2, 3, body_read_small, NULL);
    ckpt_state_make(&want, 3);
    bias_only(&want);
    cr_assert_eq(ranks[1].code, ERR_OK, "%s", ranks[1].err.text);
    cr_assert(ckpt_state_same(&ranks[1].state, &want));
    ckpt_ranks_free(ranks, 2);
    ckpt_state_free(&want);
    free(path);
    ckpt_home_remove(home);
}
