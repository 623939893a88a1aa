/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Directories that a dead run left under temporary names: an intact checkpoint
 * is adopted, anything else is debris. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"

#define STEP "step-0000000020"
#define TMP ".tmp-step-0000000020-00000000000000aa"
#define TRASH ".trash-step-0000000020-00000000000000aa"

static void body_write_as_20(ckpt_rank_t *rank, void *context)
{
    rank->state.progress.step = 20;
    ckpt_body_write(rank, context);
}

/* Store the state [seed] as a checkpoint of step 20 under [name] in [home]. */
static void leave(const char *home, int64_t seed, const char *name)
{
    char *other = ckpt_home_make();
    char *from = str_printf("%s/" STEP, other);
    char *to = str_printf("%s/%s", home, name);
    ckpt_rank_t *ranks = ckpt_ranks_run(other, 2, seed, body_write_as_20, NULL);

    cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
    ckpt_ranks_free(ranks, 2);
    cr_assert_eq(rename(from, to), 0, "%s", strerror(errno));
    free(to);
    free(from);
    ckpt_home_remove(other);
}

static bool str_ends(const char *text, const char *end)
{
    const size_t all = strlen(text), tail = strlen(end);

    return all >= tail && strcmp(text + all - tail, end) == 0;
}

static void cut(const char *home, const char *name, const char *file)
{
    char *path = str_printf("%s/%s/%s", home, name, file);

    cr_assert_eq(truncate(path, 1000), 0);
    free(path);
}

/* A reader may still be refused later, so reading changes nothing. */
Test(checkpoint_debris, a_directory_with_whole_debris_is_not_empty)
{
    const char *const names[] = {TMP, TRASH};

    for (int i = 0; i < 2; i++) {
        char *home = ckpt_home_make();
        char **paths = NULL;
        int count = 0;

        leave(home, 20, names[i]);
        ckpt_expect(home, 2, 20);
        cr_assert_eq(hdf5io_checkpoint_list(home, &paths, &count, NULL),
                     ERR_OK);
        cr_assert_eq(count, 1);
        cr_assert(str_ends(paths[0], names[i]), "%s", paths[0]);
        cr_assert_eq(ckpt_count(home, names[i]), 1);
        cr_assert_eq(ckpt_count(home, STEP), 0);
        free(paths[0]);
        free(paths);
        ckpt_home_remove(home);
    }
}

/* The replacement is newer than the checkpoint that it was to replace. */
Test(checkpoint_debris, of_both_the_new_one_is_taken_if_it_is_whole)
{
    const char *const files[] = {"shard-1.h5", "MANIFEST.json",
                                 "checkpoint.h5"};
    char *home = ckpt_home_make();

    leave(home, 1, TRASH);
    leave(home, 2, TMP);
    cr_assert(ckpt_is(home, 3, 2, 20));
    ckpt_write(home, 2, 30);
    cr_assert_eq(ckpt_count(home, "."), 0);
    ckpt_home_remove(home);
    for (int i = 0; i < 3; i++) {
        home = ckpt_home_make();
        leave(home, 1, TRASH);
        leave(home, 2, TMP);
        cut(home, TMP, files[i]);
        cr_assert(ckpt_is(home, 3, 1, 20));
        ckpt_home_remove(home);
    }
}

Test(checkpoint_debris, only_what_is_newer_is_adopted)
{
    char *home = ckpt_home_make();

    ckpt_write(home, 3, 10);
    leave(home, 20, TRASH);
    ckpt_expect(home, 2, 20);
    ckpt_home_remove(home);
    home = ckpt_home_make();
    ckpt_write(home, 3, 30); /* as if step 20 was being retired */
    leave(home, 20, TRASH);
    ckpt_expect(home, 2, 30);
    cr_assert_eq(ckpt_count(home, STEP), 0);
    ckpt_write(home, 2, 40);
    cr_assert_eq(ckpt_count(home, "."), 0);
    ckpt_home_remove(home);
}

Test(checkpoint_debris, what_is_not_whole_is_not_adopted)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks;

    leave(home, 20, TMP);
    cut(home, TMP, "shard-0.h5");
    ranks = ckpt_ranks_run(home, 2, 20, ckpt_body_read, NULL);
    cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
    cr_assert(!ranks[0].found);
    ckpt_ranks_free(ranks, 2);
    cr_assert_eq(ckpt_count(home, STEP), 0);
    ckpt_home_remove(home);
}

/* A program that writes without reading first must not delete intact
 * checkpoints. */
Test(checkpoint_debris, writing_adopts_before_it_removes)
{
    char *home = ckpt_home_make();

    leave(home, 20, TMP);
    ckpt_write(home, 2, 30);
    cr_assert_eq(ckpt_count(home, STEP), 1);
    ckpt_home_remove(home);
    home = ckpt_home_make();
    leave(home, 20, TMP);
    ckpt_write(home, 2, 10);
    cr_assert_eq(ckpt_count(home, "superseded-" STEP), 1);
    ckpt_expect(home, 2, 10);
    ckpt_home_remove(home);
}

static void body_read_ill(ckpt_rank_t *rank, void *context)
{
    (void)context;
    if (rank->votes.rank == 0) {
        rank->io.read_fail_at = 2; /* the first read after the listing */
        rank->io.read_fails = 1000;
        rank->io.read_error = EIO;
    }
    ckpt_body_read(rank, NULL);
}

Test(checkpoint_debris, what_cannot_be_read_is_not_passed_over)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks;

    ckpt_write(home, 3, 10);
    leave(home, 20, TMP);
    ranks = ckpt_ranks_run(home, 2, 20, body_read_ill, NULL);
    for (int r = 0; r < 2; r++) {
        cr_assert_eq(ranks[r].code, ERR_IO, "%s", ranks[r].err.text);
        cr_assert(strstr(ranks[r].err.text, TMP), "%s", ranks[r].err.text);
    }
    ckpt_ranks_free(ranks, 2);
    ckpt_expect(home, 2, 20);
    ckpt_home_remove(home);
}

/* Complete debris of steps after the point of return would be the newest
 * checkpoint at the next start. */
Test(checkpoint_debris, going_back_supersedes_debris_too)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/step-0000000010", home);
    bool elsewhere = true;

    ckpt_write(home, 2, 10);
    leave(home, 1, TRASH);
    leave(home, 2, TMP);
    cr_assert_eq(hdf5io_checkpoint_supersede(home, path, 10, &elsewhere, NULL),
                 ERR_OK);
    cr_assert(!elsewhere);
    cr_assert_eq(ckpt_count(home, "superseded-" STEP), 2);
    cr_assert_eq(ckpt_count(home, "."), 0);
    ckpt_expect(home, 2, 10);
    free(path);
    ckpt_home_remove(home);
}

/* A program that reads while another one publishes may rename the directory
 * first. */
static int rename_raced(void *context, const char *from, const char *to,
                        unsigned flags)
{
    (void)context;
    if (strstr(to, "/step-") != NULL && flags == 0)
        cr_assert_eq(rename(from, to), 0);
    return hdf5io_io_system.rename(NULL, from, to, flags);
}

static void body_write_raced(ckpt_rank_t *rank, void *context)
{
    rank->io.table.rename = rename_raced;
    ckpt_body_write(rank, context);
}

Test(checkpoint_debris, a_reader_that_was_faster_is_no_failure)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks = ckpt_ranks_run(home, 2, 20, body_write_raced, NULL);

    for (int r = 0; r < 2; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
    ckpt_ranks_free(ranks, 2);
    ckpt_expect(home, 2, 20);
    ckpt_home_remove(home);
}

/* The checkpoint that was read gets its final name once it is known to be
 * used. */
Test(checkpoint_debris, adopting_what_was_read)
{
    char *home = ckpt_home_make(), *path;
    ckpt_rank_t *ranks;
    err_t err = ERR_INIT;

    leave(home, 20, TRASH);
    ranks = ckpt_ranks_run(home, 2, 20, ckpt_body_read, NULL);
    for (int r = 0; r < 2; r++)
        cr_assert(str_ends(ranks[r].info.path, TRASH), "%s",
                  ranks[r].info.path);
    /* A path in another directory is left alone. */
    cr_assert_eq(hdf5io_checkpoint_adopt("/nowhere", ranks[0].info.path, &err),
                 ERR_OK);
    cr_assert_eq(ckpt_count(home, STEP), 0);
    for (int i = 0; i < 2; i++) { /* the second call does nothing */
        cr_assert_eq(hdf5io_checkpoint_adopt(home, ranks[0].info.path, &err),
                     ERR_OK, "%s", err.text);
        cr_assert_eq(ckpt_count(home, STEP), 1);
        cr_assert_eq(ckpt_count(home, "."), 0);
    }
    ckpt_ranks_free(ranks, 2);
    path = str_printf("%s/" STEP, home);
    cr_assert_eq(hdf5io_checkpoint_adopt(home, path, &err), ERR_OK);
    cr_assert_eq(ckpt_count(home, STEP), 1);
    free(path);
    ckpt_home_remove(home);
}
