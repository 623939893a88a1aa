/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Slow storage: a rank that is kept in one system call for longer than
 * fault.timeout is no stuck rank, unless fault.io_timeout is over, too. fsync,
 * linkat and pread are this program's own.
 *
 * Time itself is what is tested, and a busy machine has less of it: all times
 * are multiples of fault.timeout, which is several times what a whole small run
 * takes here and now. No rank of a run that works is silent for that long.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "train/harness.h"

/* fault.timeout: this many times as long as a whole run takes here, and never
 * shorter than TIMEOUT_LEAST seconds. */
#define TIMEOUT_PER_RUN 6
#define TIMEOUT_LEAST 1.0
/* Of fault.timeout: a slow call, and limits that are shorter, somewhat longer
 * (but not as long as two slow calls), and much longer than that. */
#define SLOW 3.0
#define IO_SHORT 1.0
#define IO_ONE_CALL 4.5
#define IO_LONG 30.0

typedef struct pace {
    double slow;                                             /* seconds */
    char timeout[64], io_short[64], io_one[64], io_long[64]; /* settings */
} pace_t;

static pace_t pace;

/* global: the functions below are called by the libraries. Calls until the
 * first slow one, of those that count. */
static atomic_int syncs_left, reads_left, place_left;
static int slow_calls = 1;      /* one after the other */
static atomic_int refused_left; /* reads of batches that end in EIO */
static const char *place;       /* in the path of a file, for place_left */

static void stall(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};

    left.tv_nsec = (long)(1e9 * (seconds - (double)left.tv_sec));
    while (nanosleep(&left, &left) != 0)
        continue;
}

static void storage_use(atomic_int *left)
{
    const int call = 1 - atomic_fetch_sub(left, 1);

    if (call >= 0 && call < slow_calls)
        stall(pace.slow);
}

/* Is the file [fd] of the place? */
static void place_use(int fd)
{
    char name[64], path[512];
    ssize_t length;

    if (place == NULL)
        return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    length = readlink(name, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (strstr(path, place) != NULL)
        storage_use(&place_left);
}

int fsync(int fd)
{
    storage_use(&syncs_left);
    place_use(fd);
    return (int)syscall(SYS_fsync, fd);
}

/* A file that was written without a name gets one. */
int linkat(int from_dir, const char *from, int to_dir, const char *to,
           int flags)
{
    if (place != NULL && strstr(to, place) != NULL)
        storage_use(&place_left);
    return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

/* Of the threads that read batches. */
ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
    char name[16] = "";

    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "cddp-loader") == 0) {
        storage_use(&reads_left);
        if (atomic_fetch_sub(&refused_left, 1) > 0) {
            errno = EIO;
            return -1;
        }
    } else
        place_use(fd);
    return (ssize_t)syscall(SYS_pread64, fd, data, bytes, at);
}

static const char *more; /* a setting */

static err_code_t run_slowly(atomic_int *left, int fast, const char *io_timeout,
                             err_t *err)
{
    train_outcome_t out;
    harness_t harness;
    err_code_t rc;

    harness_open(&harness, 101);
    harness.settings[0] = pace.timeout;
    harness.settings[1] = io_timeout;
    harness.settings[2] = "checkpoint.every=5 steps";
    harness.settings[3] = more;
    atomic_store(left, fast);
    rc = harness_run(&harness, 2, &out, err);
    cr_assert_lt(atomic_load(left), 1);
    harness_close(&harness);
    return rc;
}

/* The same where the storage of a place is slow: io_timeout is patience, or is
 * not, and then the phase is named. */
static void expect_patience(const char *where, const char *phase,
                            train_resume_t resume)
{
    const char *const limits[] = {pace.io_long, "fault.io_timeout=0 s"};

    for (int i = 0; i < 2; i++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        err_code_t rc;

        harness_open(&harness, 101);
        harness.settings[0] = pace.timeout;
        harness.settings[1] = limits[i];
        harness.settings[2] = "train.epochs=1";
        place = NULL;
        if (resume == TRAIN_RESUME_AUTO)
            harness_run_ok(&harness, 2, &out);
        place = where;
        atomic_store(&place_left, 1);
        rc = harness_run(&harness, 2, &out, &err);
        cr_expect_lt(atomic_load(&place_left), 1, "%s was not met", where);
        cr_expect_eq(rc, i == 0 ? ERR_OK : ERR_PEER, "%s: %s", where, err.text);
        cr_expect(i == 0 || strstr(err.text, phase) != NULL, "%s", err.text);
        harness_close(&harness);
    }
}

/* Measure the machine: a run like those below, with nothing slow in it. */
static void pace_set(void)
{
    train_outcome_t out;
    harness_t harness;
    double timeout, begin = clock_now();

    harness_open(&harness, 101);
    harness.settings[0] = "train.epochs=1";
    harness.settings[1] = "fault.timeout=300 s";
    harness_run_ok(&harness, 2, &out);
    harness_close(&harness);
    timeout = fmax(TIMEOUT_LEAST, TIMEOUT_PER_RUN * (clock_now() - begin));
    pace.slow = SLOW * timeout;
    snprintf(pace.timeout, sizeof pace.timeout, "fault.timeout=%.3f s",
             timeout);
    snprintf(pace.io_short, sizeof pace.io_short, "fault.io_timeout=%.3f s",
             IO_SHORT * timeout);
    snprintf(pace.io_one, sizeof pace.io_one, "fault.io_timeout=%.3f s",
             IO_ONE_CALL * timeout);
    snprintf(pace.io_long, sizeof pace.io_long, "fault.io_timeout=%.3f s",
             IO_LONG * timeout);
}

/* Seconds after which a test hangs; reached on no machine that works. */
#define PATIENCE 1800

TestSuite(patience, .init = pace_set);

#define SYNCS 5  /* the slow one is in the first checkpoint */
#define READS 12 /* after the first batches */

Test(patience, slow_storage_is_no_stuck_rank, .timeout = PATIENCE)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&syncs_left, SYNCS, pace.io_long, &err), ERR_OK,
                 "%s", err.text);
}

Test(patience, storage_that_never_answers_is, .timeout = PATIENCE)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&syncs_left, SYNCS, pace.io_short, &err), ERR_PEER);
    cr_assert(strstr(err.text, "checkpoint"), "%s", err.text);
}

Test(patience, a_slow_read_is_no_stuck_rank, .timeout = PATIENCE)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&reads_left, READS, pace.io_long, &err), ERR_OK,
                 "%s", err.text);
}

Test(patience, a_read_that_never_ends_is, .timeout = PATIENCE)
{
    err_t err = ERR_INIT;

    cr_assert_eq(run_slowly(&reads_left, READS, "fault.io_timeout=0 s", &err),
                 ERR_PEER);
}

/* Not of a shard: ranks that are threads wait together for HDF5's lock, and
 * nobody for anybody. */
Test(patience, of_opening_data_and_the_run_directory, .timeout = PATIENCE)
{
    expect_patience("/run/lock", "run directory", TRAIN_RESUME_NEVER);
    expect_patience("/config.yaml", "run directory", TRAIN_RESUME_NEVER);
}

Test(patience, of_a_checkpoint_that_is_read, .timeout = PATIENCE)
{
    expect_patience("/checkpoints/step-", "resume", TRAIN_RESUME_AUTO);
}

/* Of three slow reads one of two ranks has two, longer together than any may
 * be. */
Test(patience, begins_anew_with_progress, .timeout = PATIENCE)
{
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, 101);
    harness.settings[0] = "train.epochs=1";
    harness_run_ok(&harness, 2, &out);
    harness.settings[1] = pace.timeout;
    harness.settings[2] = pace.io_one;
    place = "/checkpoints/step-";
    slow_calls = 3;
    atomic_store(&place_left, 1);
    harness_run_ok(&harness, 2, &out);
    cr_expect_leq(atomic_load(&place_left), 1 - slow_calls);
    harness_close(&harness);
}

/* Reads of batches are refused [times]; the seconds that the run took. */
static double run_refused(int times, err_code_t expected, err_t *err)
{
    const double begin = clock_now();
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, 101);
    harness.settings[0] = "fault.io_timeout=4 s";
    harness.settings[1] = "train.epochs=1";
    atomic_store(&refused_left, times);
    cr_expect_eq(harness_run(&harness, 1, &out, err), expected, "%s",
                 err->text);
    atomic_store(&refused_left, 0);
    harness_close(&harness);
    return clock_now() - begin;
}

/* All waits between the tries are a quarter of io_timeout, whose default would
 * make them 150 seconds. The first of three is 1/7 of that. */
Test(patience, refused_reads_are_tried_again_for_a_part_of_it,
     .timeout = PATIENCE)
{
    err_t err = ERR_INIT;
    double seconds;

    cr_expect_geq(run_refused(2, ERR_OK, &err), 1.0 / 7);
    seconds = run_refused(1 << 20, ERR_IO, &err);
    cr_expect(seconds >= 1 && seconds < 100, "%g seconds", seconds);
    cr_expect_eq((int)ERR_IO, 74);
    cr_expect_not_null(strstr(err.text, "train.h5"), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "that is storage, not damage"), "%s",
                       err.text);
}

Test(patience, of_shutdown, .timeout = PATIENCE)
{
    expect_patience("/summary.json", "shutdown", TRAIN_RESUME_NEVER);
}

/* Who waits for the sums of a syncbatchnorm layer does so in a group of its
 * own, which hears of the same progress. */
Test(patience, nor_to_who_waits_for_sums_of_batch_norm, .timeout = PATIENCE)
{
    const char *const model =
        "model={input: [12], layers: [{linear: {out: 8}}, syncbatchnorm, "
        "{linear: {out: 2}}]}";
    err_t err = ERR_INIT;

    more = model;
    cr_assert_eq(run_slowly(&reads_left, READS, pace.io_long, &err), ERR_OK,
                 "%s", err.text);
}
