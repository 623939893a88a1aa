/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Slow storage: a rank that spends longer than fault.timeout in one system
 * call is not reported as stuck, unless it also exceeds fault.io_timeout. This
 * program replaces fsync, linkat and pread by its own.
 *
 * These tests depend on real time, and a busy machine is slow: all times are
 * therefore multiples of fault.timeout, which is several times the duration of
 * a whole small run on this machine. No rank of a working run is silent for
 * that long.
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

/* fault.timeout is this multiple of the duration of a whole run here, and at
 * least TIMEOUT_LEAST seconds. */
#define TIMEOUT_PER_RUN 6
#define TIMEOUT_LEAST 1.0
/* All in units of fault.timeout. SLOW is the duration of a slow call. IO_SHORT
 * is shorter than SLOW, IO_ONE_CALL is longer than one slow call but shorter
 * than two, and IO_LONG is much longer. */
#define SLOW 3.0
#define IO_SHORT 1.0
#define IO_ONE_CALL 4.5
#define IO_LONG 30.0

typedef struct pace {
    double slow;                                             /* seconds */
    char timeout[64], io_short[64], io_one[64], io_long[64]; /* settings */
} pace_t;

static pace_t pace;

/* Counted calls until the first slow one. global, because fsync, linkat and
 * pread below are called by libraries. */
static atomic_int syncs_left, reads_left, place_left;
static int slow_calls = 1;      /* number of slow calls in a row */
static atomic_int refused_left; /* reads of batches that will fail with EIO */
/* place_left counts calls on files whose path contains this; NULL: none */
static const char *place;

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

/* Count a call on file [fd] if its path contains [place]. */
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

/* The syncs of rank 0's shard in the saver's thread wait until another rank has
 * written exit.json, but no longer than [most] seconds. global, as above. */
static struct {
    double most;      /* 0: none waits */
    atomic_bool left; /* exit.json was there while one waited */
} alone;

static void alone_wait(int fd)
{
    const double end = clock_now() + alone.most;
    char name[64] = "", path[600], *part;
    ssize_t length;

    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "cddp-saver") != 0)
        return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    length = readlink(name, path, sizeof path - 1 - sizeof "exit.json");
    path[length > 0 ? length : 0] = '\0';
    part = strstr(path, "/shard-0.h5") == NULL ? NULL
                                               : strstr(path, "checkpoints/");
    if (part == NULL)
        return;
    snprintf(part, sizeof "exit.json", "exit.json");
    while (clock_now() < end && access(path, F_OK) != 0)
        stall(0.02);
    atomic_store(&alone.left, access(path, F_OK) == 0);
}

int fsync(int fd)
{
    if (alone.most > 0)
        alone_wait(fd);
    storage_use(&syncs_left);
    place_use(fd);
    return (int)syscall(SYS_fsync, fd);
}

/* linkat gives a name to a file that was written without one. */
int linkat(int from_dir, const char *from, int to_dir, const char *to,
           int flags)
{
    if (place != NULL && strstr(to, place) != NULL)
        storage_use(&place_left);
    return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

/* Only reads by the threads that load batches count in reads_left; reads by
 * other threads may count in place_left. */
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

static const char *more; /* one more setting; NULL: none */

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
    harness.settings[3] = "data.memory=1"; /* rows are not kept */
    harness.settings[4] = more;
    atomic_store(left, fast);
    rc = harness_run(&harness, 2, &out, err);
    cr_assert_lt(atomic_load(left), 1);
    harness_close(&harness);
    return rc;
}

/* Slow calls on files whose path contains [where]: the run succeeds with a long
 * io_timeout; with none it fails, and the message names [phase]. */
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
        harness.settings[3] = "data.memory=1";
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

/* Measure how long a run like those below takes on this machine without slow
 * calls. */
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

/* Seconds after which a test is taken to hang; far more than any working
 * machine needs. */
#define PATIENCE 1800

TestSuite(patience, .init = pace_set);

#define SYNCS 5  /* the slow fsync is in the first checkpoint */
#define READS 12 /* the slow read is after the first batches */

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

/* ---- storage that never answers rank 0's saver --------------------------- */

/* A look for a signal in each step keeps the steps from being too many. */
static slurm_signal_t slow_look(void)
{
    stall(0.005);
    return SLURM_SIGNAL_NONE;
}

/* With checkpoint.every as a time no save is due while one is in progress, and
 * rank 0's thread does not end: the others end all the same, as without
 * checkpoint.async. */
Test(patience, storage_that_never_answers_rank_0_is, .timeout = PATIENCE)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;

    harness_open(&harness, 101);
    harness.settings[0] = pace.timeout;
    harness.settings[1] = pace.io_short;
    harness.settings[2] = "checkpoint.every=0.01 s";
    harness.settings[3] = "checkpoint.async=true";
    harness.settings[4] = "train.epochs=1000000";
    harness.settings[5] = "train.eval_every=never";
    harness.settings[6] = "train.log_every=1000000";
    harness.signal = slow_look;
    alone.most = pace.slow * IO_LONG;
    cr_expect_eq(harness_run(&harness, 2, &out, &err), ERR_PEER, "%s",
                 err.text);
    alone.most = 0;
    cr_expect(atomic_load(&alone.left), "the others went on without it");
    cr_expect_eq(err.culprit, 0);
    cr_expect_not_null(strstr(err.text, "checkpoint"), "%s", err.text);
    harness_close(&harness);
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

/* Not tested for the opening of a shard: ranks that are threads all wait there
 * for HDF5's lock, and none waits for another rank. */
Test(patience, of_opening_data_and_the_run_directory, .timeout = PATIENCE)
{
    expect_patience("/run/lock", "run directory", TRAIN_RESUME_NEVER);
    expect_patience("/config.yaml", "run directory", TRAIN_RESUME_NEVER);
}

Test(patience, of_a_checkpoint_that_is_read, .timeout = PATIENCE)
{
    expect_patience("/checkpoints/step-", "resume", TRAIN_RESUME_AUTO);
}

/* Of three slow reads one of the two ranks does two. Together they exceed the
 * limit, which begins anew after each. */
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

/* The next [times] reads of batches fail. Returns the seconds that the run
 * took. */
static double run_refused(int times, err_code_t expected, err_t *err)
{
    const double begin = clock_now();
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, 101);
    harness.settings[0] = "fault.io_timeout=4 s";
    harness.settings[1] = "train.epochs=1";
    harness.settings[2] = "data.memory=1"; /* batches are read one by one */
    atomic_store(&refused_left, times);
    cr_expect_eq(harness_run(&harness, 1, &out, err), expected, "%s",
                 err->text);
    atomic_store(&refused_left, 0);
    harness_close(&harness);
    return clock_now() - begin;
}

/* All waits between the tries add up to a quarter of io_timeout; with
 * its default that would be 150 seconds. The first of three waits is 1/7 of the
 * total. */
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

/* A rank that waits for the sums of a syncbatchnorm layer waits in another
 * communication group. Progress of the other ranks counts in that group, too.
 */
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
