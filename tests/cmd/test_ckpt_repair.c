/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt repair: what it adopts and what it leaves alone. Also: when repair
 * and prune lock the run directory. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cmd/ckpt_command.h"
#include "cmd/ckpt_prune.h"
#include "cmd/ckpt_repair.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_prune.h"
#include "hdf5io/ckpt_fixture.h"
#include "lib/facts.h"
#include "lib/no_locks.h"

static char *home, *checkpoints;

static void setup(void)
{
    home = ckpt_home_make();
    checkpoints = leftovers_make(home);
}

static void teardown(void)
{
    free(checkpoints);
    ckpt_home_remove(home);
}

TestSuite(ckpt_repair, .init = setup, .fini = teardown);

Test(ckpt_repair, adopts_what_is_intact)
{
    flip(home, "checkpoints/" TRASH "/shard-1.h5");
    expect(home, "repair @ --dry-run", 0,
           TEXTS(TMP ": intact, would become step-0000000010\n",
                 TRASH ": not adopted: ", "shard-1.h5",
                 OLD ": intact; adopted if it is named\n",
                 "\n1 would be adopted\n"));
    cr_expect_eq(ckpt_count(checkpoints, "step-"), 1);
    expect(home, "repair @", 0,
           TEXTS(TMP ": intact, now step-0000000010\n", "\n1 adopted\n"));
    expect(home, "verify @/checkpoints/step-0000000010", 0, TEXTS("ok "));
    ckpt_expect(checkpoints, 2, 20);
    expect(home, "repair @ " TRASH, 65, TEXTS(TRASH, "shard-1.h5"));
    flip(home, "checkpoints/" TRASH "/shard-1.h5");
    /* A superseded checkpoint is adopted only if the user names it. */
    expect(home, "repair @/checkpoints @/checkpoints/" OLD, 0,
           TEXTS(OLD ": intact, now step-0000000030\n",
                 TRASH ": intact; adopted if it is named\n"));
    ckpt_expect(checkpoints, 2, 30);
    expect(home, "repair @", 0, TEXTS(TRASH ": intact, now step-0000000005"));
    expect(home, "repair @", 0, TEXTS("0 adopted\n"));
    cr_expect_eq(ckpt_count(checkpoints, ""), 4);
}

Test(ckpt_repair, replaces_nothing_and_leaves_a_run_its_files)
{
    const int fd = lock_take(home);

    expect(home, "repair @", 73,
           TEXTS(TMP, "has the lock of the run directory", "0 adopted\n"));
    close(fd);
    ckpt_write(checkpoints, 2, 10); /* removes debris */
    expect(home, "repair @ " OLD, 0, TEXTS("now step-0000000030"));
    expect(home, "repair @ step-0000000030", 65,
           TEXTS("step-0000000030", "it is neither a superseded"));
    expect(home, "repair", 64, TEXTS("name a run directory"));
    cr_expect_eq(ckpt_count(checkpoints, "."), 0);
}

/* Of two checkpoints of one step, the first one in the list is adopted. */
Test(ckpt_repair, adopts_one_of_a_step)
{
    static const char second[] = ".trash-step-0000000010-00000000000000aa";
    char *from = str_printf("%s/step-0000000010", home);
    char *to = str_printf("%s/%s", checkpoints, second);

    ckpt_write(home, 2, 10);
    cr_assert_eq(rename(from, to), 0);
    expect(home, "repair @", 0,
           TEXTS(TMP ": intact, now step-0000000010\n",
                 "there is a checkpoint of its step: step-0000000010\n",
                 "\n2 adopted\n"));
    flip(home, "checkpoints/step-0000000020/shard-0.h5");
    ckpt_expect(checkpoints, 2, 10);
    free(to);
    free(from);
}

/* A wrong path is no success, and the message names the path that the user
 * gave. */
Test(ckpt_repair, says_what_it_cannot_find)
{
    expect(home, "repair @/nowhere", 65, TEXTS("/nowhere: ", "No such file"));
    expect(home, "repair /dev/null", 65, TEXTS("/dev/null: ", "Not a direct"));
    expect(home, "repair @/checkpoints/step-0000000020", 65,
           TEXTS("/step-0000000020 is one checkpoint", "a run directory"));
    expect(home, "repair @/checkpoints/" TMP, 65,
           TEXTS(TMP " is one checkpoint"));
    expect(home, "repair @ none/", 65,
           TEXTS("cddp-ckpt: none/ is not adopted"));
    expect(home, "repair @ x" OLD, 65, TEXTS("x" OLD " is not adopted"));
    cr_expect_eq(ckpt_count(checkpoints, "step-"), 1);
    expect(home, "repair @/ @/checkpoints/" OLD "// " TMP "/", 0,
           TEXTS(OLD ": intact, now step-0000000030\n", "\n2 adopted\n"));
}

/* If the lock cannot be taken although no run has it, the message does not say
 * that a run has it. */
Test(ckpt_repair, a_directory_that_cannot_be_locked_is_left_alone)
{
    static const char tmp[] = TMP;
    char *names[] = {(char *)tmp};
    char *lock = lock_make(home);
    const cmd_ckpt_repair_t repair = {.run = home, .names = names, .count = 1};
    str_buf_t out = {0};
    err_t err = ERR_INIT;

    no_locks = true;
    cr_expect_eq(cmd_ckpt_repair(&repair, &out, &err), ERR_IO);
    FACTS(err.text, TMP " is not adopted: cannot lock ", "/lock: No locks ");
    cr_expect_null(strstr(out.text, "has the lock"), "%s", out.text);
    no_locks = false;
    cr_assert_eq(unlink(lock), 0);
    cr_assert_eq(mkdir(lock, 0700), 0);
    expect(home, "repair @", 74, TEXTS("/lock: Is a directory", "0 adopted\n"));
    expect(home, "prune @", 0,
           TEXTS(TMP, "kept: cannot lock ", "/lock: Is a ", "\n1 removed, "));
    cr_expect_eq(ckpt_count(checkpoints, "."), 2);
    str_buf_free(&out);
    free(lock);
}

/* Other entries than the files of a checkpoint need not be durable, and are not
 * opened. */
Test(ckpt_repair, other_entries_of_a_directory_are_passed_over)
{
    char *pipe = str_printf("%s/" TMP "/pipe", checkpoints);
    char *link = str_printf("%s/" TMP "/link", checkpoints);

    cr_assert_eq(mkfifo(pipe, 0600), 0);
    cr_assert_eq(symlink("/nowhere", link), 0);
    expect(home, "repair @ " TMP, 0, TEXTS("now step-0000000010\n"));
    free(link);
    free(pipe);
}

static const char *lock_path; /* NULL: nothing is watched */
static int verified, removed;

/* Could a run lock its directory now? */
static bool is_free(void)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = open(lock_path, O_RDWR);
    const bool locked = fcntl(fd, F_OFD_SETLK, &whole) == 0;

    cr_assert_geq(fd, 0);
    close(fd);
    return locked;
}

/* The linker is told to call these instead (--wrap), and gives the wrapped
 * functions the other name. */
// NOLINTBEGIN(bugprone-reserved-identifier)
err_code_t __real_hdf5io_checkpoint_verify(const char *path,
                                           hdf5io_checkpoint_info_t *info,
                                           err_t *err);
err_code_t __wrap_hdf5io_checkpoint_verify(const char *path,
                                           hdf5io_checkpoint_info_t *info,
                                           err_t *err);
err_code_t __wrap_hdf5io_checkpoint_verify(const char *path,
                                           hdf5io_checkpoint_info_t *info,
                                           err_t *err)
{
    if (lock_path != NULL) {
        cr_expect(is_free(), "%s", path);
        verified++;
    }
    return __real_hdf5io_checkpoint_verify(path, info, err);
}

err_code_t __real_hdf5io_prune_remove(const hdf5io_leftover_t *leftover,
                                      err_t *err);
err_code_t __wrap_hdf5io_prune_remove(const hdf5io_leftover_t *leftover,
                                      err_t *err);
err_code_t __wrap_hdf5io_prune_remove(const hdf5io_leftover_t *leftover,
                                      err_t *err)
{
    cr_expect_not(is_free(), "%s", leftover->path);
    removed++;
    return __real_hdf5io_prune_remove(leftover, err);
}
// NOLINTEND(bugprone-reserved-identifier)

Test(ckpt_repair, a_run_can_start_while_bytes_are_verified)
{
    char *lock = lock_make(home);
    cmd_ckpt_repair_t repair = {.run = home, .dry = true};
    str_buf_t out = {0};
    err_t err = ERR_INIT;

    lock_path = lock;
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(cmd_ckpt_repair(&repair, &out, &err), ERR_OK, "%s",
                     err.text);
        repair.dry = false;
    }
    cr_expect_eq(verified, 6);
    cr_expect_eq(ckpt_count(checkpoints, "step-"), 3);
    str_buf_free(&out);
    free(lock);
}

/* prune has the lock while it removes directories, so that repair does not
 * adopt one of them. */
Test(ckpt_repair, prune_has_the_lock_to_its_end)
{
    char *lock = lock_make(home);
    str_buf_t out = {0};
    err_t err = ERR_INIT;

    lock_path = lock;
    cr_expect_eq(cmd_ckpt_prune(home, false, &out, &err), ERR_OK, "%s",
                 err.text);
    cr_expect_eq(removed, 3);
    str_buf_free(&out);
    free(lock);
}
