/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The files of retired checkpoints are deleted after the save. No reader takes
 * what is left of them for a checkpoint. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"
#include "hdf5io/checkpoint_sweep.h"

#define RANKS 2

/* Nothing in a directory of this name can be deleted; NULL: everything can. It
 * is global, because libraries call the function below. */
static const char *stays;

int unlinkat(int dir, const char *path, int flags)
{
    if (stays != NULL && strstr(path, stays) != NULL) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_unlinkat, dir, path, flags);
}

static void body_save(ckpt_rank_t *rank, void *context)
{
    rank->config.keep = 1;
    rank->config.retire_later = *(const bool *)context;
    ckpt_body_write(rank, NULL);
}

static void save(const char *home, int64_t step, bool later)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, RANKS, step, body_save, &later);

    cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
    ckpt_ranks_free(ranks, RANKS);
}

/* [context] is the number of files that may still be deleted. */
static bool is_over(void *context)
{
    int *left = context;

    return (*left)-- <= 0;
}

static void sweep(const char *home, int files)
{
    hdf5io_sweep(&hdf5io_io_system, &(hdf5io_sweep_t){.directory = home,
                                                      .stop = is_over,
                                                      .context = &files});
}

Test(checkpoint_sweep, files_of_old_checkpoints_stay_until_they_are_swept)
{
    char *home = ckpt_home_make();

    save(home, 1, true);
    save(home, 2, true);
    save(home, 3, true);
    cr_assert_eq(ckpt_count(home, "step-"), 1);
    cr_assert_eq(ckpt_count(home, ".trash-"), 2);
    ckpt_expect(home, RANKS, 3);
    sweep(home, 3); /* looks at the first remainder, and deletes two files */
    cr_assert_eq(ckpt_count(home, ".trash-"), 2);
    save(home, 4, true);
    cr_assert_eq(ckpt_count(home, ".trash-"), 3);
    sweep(home, 1000);
    cr_assert_eq(ckpt_count(home, "."), 0);
    ckpt_expect(home, RANKS, 4);
    ckpt_home_remove(home);
}

/* The newer and the older remainders are deleted. */
Test(checkpoint_sweep, a_remainder_that_cannot_be_deleted_keeps_no_other)
{
    char *home = ckpt_home_make();

    for (int64_t step = 1; step <= 4; step++)
        save(home, step, true);
    cr_assert_eq(ckpt_count(home, ".trash-"), 3);
    stays = "/.trash-step-0000000002-";
    sweep(home, 1000);
    cr_assert_eq(ckpt_count(home, ".trash-"), 1);
    stays = NULL;
    sweep(home, 1000);
    cr_assert_eq(ckpt_count(home, "."), 0);
    ckpt_home_remove(home);
}

/* Without checkpoint.async no thread sweeps: the save deletes remainders. */
Test(checkpoint_sweep, a_save_deletes_remainders_too)
{
    char *home = ckpt_home_make();

    save(home, 1, true);
    save(home, 2, true);
    cr_assert_eq(ckpt_count(home, ".trash-"), 1);
    save(home, 3, false);
    cr_assert_eq(ckpt_count(home, "."), 0);
    ckpt_home_remove(home);
}

/* The run goes back to a step before that of a retired checkpoint: no reader
 * may take the retired one for the newest. */
Test(checkpoint_sweep, an_old_checkpoint_does_not_come_back)
{
    char *home = ckpt_home_make();

    save(home, 10, true);
    save(home, 20, true);
    cr_assert_eq(ckpt_count(home, ".trash-"), 1);
    save(home, 5, true); /* step 20 is superseded */
    cr_assert_eq(ckpt_count(home, ".trash-"), 1);
    ckpt_expect(home, RANKS, 5);
    ckpt_home_remove(home);
}

/* A kill while step 20 is replaced may leave the intact checkpoint under this
 * name. */
Test(checkpoint_sweep, an_intact_checkpoint_is_not_swept)
{
    char *home = ckpt_home_make();
    char *from = str_printf("%s/step-%010d", home, 20);
    char *to = str_printf("%s/.trash-step-%010d-00000000000000aa", home, 20);

    save(home, 20, true);
    cr_assert_eq(rename(from, to), 0);
    sweep(home, 1000);
    ckpt_expect(home, RANKS, 20);
    free(to);
    free(from);
    ckpt_home_remove(home);
}
