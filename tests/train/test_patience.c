/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Slow storage: a rank that is kept in one system call for longer than
 * fault.timeout is no stuck rank, unless fault.io_timeout is over, too. fsync
 * and pread are this program's own.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "train/harness.h"

static atomic_int syncs_left, reads_left; /* until the slow one */

static void storage_use(atomic_int *left)
{
    if (atomic_fetch_sub(left, 1) == 1)
        sleep(4);
}

int fsync(int fd)
{
    storage_use(&syncs_left);
    return (int)syscall(SYS_fsync, fd);
}

/* Of the threads that read batches. */
ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
    char name[16] = "";

    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "cddp-loader") == 0)
        storage_use(&reads_left);
    return (ssize_t)syscall(SYS_pread64, fd, data, bytes, at);
}

static err_code_t run_slowly(atomic_int *left, int fast, const char *io_timeout,
                             err_t *err)
{
    train_outcome_t out;
    harness_t harness;
    err_code_t rc;

    harness_open(&harness, 101);
    harness.settings[0] = "fault.timeout=1 s";
    harness.settings[1] = io_timeout;
    harness.settings[2] = "checkpoint.every=5 steps";
    atomic_store(left, fast);
    rc = harness_run(&harness, 2, &out, err);
    cr_assert_lt(atomic_load(left), 1);
    harness_close(&harness);
    return rc;
}

#define SYNCS 5  /* the slow one is in the first checkpoint */
#define READS 12 /* after the first batches */

Test(patience, slow_storage_is_no_stuck_rank, .timeout = 60)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&syncs_left, SYNCS, "fault.io_timeout=30 s", &err),
                 ERR_OK, "%s", err.text);
}

Test(patience, storage_that_never_answers_is, .timeout = 60)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&syncs_left, SYNCS, "fault.io_timeout=1 s", &err),
                 ERR_PEER);
    cr_assert(strstr(err.text, "checkpoint"), "%s", err.text);
}

Test(patience, a_slow_read_is_no_stuck_rank, .timeout = 60)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&reads_left, READS, "fault.io_timeout=30 s", &err),
                 ERR_OK, "%s", err.text);
}

Test(patience, a_read_that_never_ends_is, .timeout = 60)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&reads_left, READS, "fault.io_timeout=0 s", &err),
                 ERR_PEER);
}
