/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt repair: what it adopts, and what it leaves alone; and when it and
 * prune lock the run directory. */
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

Test(ckpt_repair, adopts_what_is_intact)
{
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);

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
    /* Of an abandoned line: only if the user says so. */
    expect(home, "repair @/checkpoints @/checkpoints/" OLD, 0,
           TEXTS(OLD ": intact, now step-0000000030\n",
                 TRASH ": intact; adopted if it is named\n"));
    ckpt_expect(checkpoints, 2, 30);
    expect(home, "repair @", 0, TEXTS(TRASH ": intact, now step-0000000005"));
    expect(home, "repair @", 0, TEXTS("0 adopted\n"));
    cr_expect_eq(ckpt_count(checkpoints, ""), 4);
    free(checkpoints);
    ckpt_home_remove(home);
}

Test(ckpt_repair, replaces_nothing_and_leaves_a_run_its_files)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);
    char *lock = str_printf("%s/lock", home);
    const int fd = open(lock, O_RDWR | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(fcntl(fd, F_OFD_SETLK, &whole), 0);
    expect(home, "repair @", 73,
           TEXTS(TMP, "has the lock of the run directory", "0 adopted\n"));
    close(fd);
    ckpt_write(checkpoints, 2, 10); /* removes debris */
    free(checkpoints);
    checkpoints = str_printf("%s/checkpoints", home);
    expect(home, "repair @ " OLD, 0, TEXTS("now step-0000000030"));
    expect(home, "repair @ step-0000000030", 65,
           TEXTS("step-0000000030", "it is neither a superseded"));
    expect(home, "repair", 64, TEXTS("name a run directory"));
    cr_expect_eq(ckpt_count(checkpoints, "."), 0);
    free(lock);
    free(checkpoints);
    ckpt_home_remove(home);
}

/* Of two of one step the first one in the list. */
Test(ckpt_repair, adopts_one_of_a_step)
{
    static const char *const names[] = {
        ".tmp-step-0000000010-00000000000000aa",
        ".trash-step-0000000010-00000000000000ab"};
    char *home = ckpt_home_make(), *to[2], *away[2];
    char *checkpoints = str_printf("%s/checkpoints", home);
    char *from = str_printf("%s/step-0000000010", checkpoints);

    for (int i = 0; i < 2; i++) {
        away[i] = str_printf("%s/%s", home, names[i]);
        to[i] = str_printf("%s/%s", checkpoints, names[i]);
        ckpt_write(checkpoints, 2, 10);
        cr_assert_eq(rename(from, away[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(rename(away[i], to[i]), 0);
        free(away[i]);
        free(to[i]);
    }
    expect(home, "repair @", 0,
           TEXTS(".tmp-step-0000000010-00000000000000aa: intact, now step-",
                 "there is a checkpoint of its step: step-0000000010\n",
                 "\n1 adopted\n"));
    ckpt_expect(checkpoints, 2, 10);
    free(from);
    free(checkpoints);
    ckpt_home_remove(home);
}

/* A wrong path is no success, and the sentence names what was given. */
Test(ckpt_repair, says_what_it_cannot_find)
{
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);

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
    free(checkpoints);
    ckpt_home_remove(home);
}

/* Only a lock that another process has says that a run may be writing. */
Test(ckpt_repair, a_directory_that_cannot_be_locked_is_left_alone)
{
    static const char tmp[] = TMP;
    char *home = ckpt_home_make(), *names[] = {(char *)tmp};
    char *checkpoints = leftovers_make(home);
    char *lock = str_printf("%s/lock", home);
    const cmd_ckpt_repair_t repair = {.run = home, .names = names, .count = 1};
    str_buf_t out = {0};
    err_t err = ERR_INIT;
    const int fd = open(lock, O_RDWR | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    close(fd);
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
    free(checkpoints);
    ckpt_home_remove(home);
}

/* What is no file of a checkpoint need not be durable, and is not opened. */
Test(ckpt_repair, other_entries_of_a_directory_are_passed_over)
{
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);
    char *pipe = str_printf("%s/" TMP "/pipe", checkpoints);
    char *link = str_printf("%s/" TMP "/link", checkpoints);

    cr_assert_eq(mkfifo(pipe, 0600), 0);
    cr_assert_eq(symlink("/nowhere", link), 0);
    expect(home, "repair @ " TMP, 0, TEXTS("now step-0000000010\n"));
    free(link);
    free(pipe);
    free(checkpoints);
    ckpt_home_remove(home);
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
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);
    char *lock = str_printf("%s/lock", home);
    cmd_ckpt_repair_t repair = {.run = home, .dry = true};
    str_buf_t out = {0};
    err_t err = ERR_INIT;
    const int fd = open(lock, O_RDWR | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    close(fd);
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
    free(checkpoints);
    ckpt_home_remove(home);
}

/* So that nothing is adopted while it is being removed. */
Test(ckpt_repair, prune_has_the_lock_to_its_end)
{
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);
    char *lock = str_printf("%s/lock", home);
    str_buf_t out = {0};
    err_t err = ERR_INIT;
    const int fd = open(lock, O_RDWR | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    close(fd);
    lock_path = lock;
    cr_expect_eq(cmd_ckpt_prune(home, false, &out, &err), ERR_OK, "%s",
                 err.text);
    cr_expect_eq(removed, 3);
    str_buf_free(&out);
    free(lock);
    free(checkpoints);
    ckpt_home_remove(home);
}
