/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* If a file system deletes slowly, neither a step nor a save waits for the
 * deletes of old checkpoints, and at the end of the run all are deleted. If a
 * file system is full, retired checkpoints are deleted before the run gives up.
 */
#include "train/sweeper.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "train/saves.h"

#define SAVES 5     /* of the run */
#define HANGS 200.0 /* seconds; a longer wait is a fault */

/* ---- a delete that takes until all saves are done ------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
/* Under lock. They are global, because libraries call the functions below. */
static int published, wanted;
static bool late;

static void publish_note(const char *to)
{
    if (strstr(to, "/checkpoints/step-") == NULL)
        return;
    pthread_mutex_lock(&lock);
    published++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int rename(const char *from, const char *to)
{
    const int status = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);

    if (status == 0)
        publish_note(to);
    return status;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to,
              unsigned flags)
{
    const int status =
        (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);

    if (status == 0)
        publish_note(to);
    return status;
}

/* ---- a file system that is full ------------------------------------------ */

/* What is tested. It is global for the same reason. */
static enum {
    SLOW, /* only slow deletes */
    FULL, /* the first delete fails; no space until the second sweep */
    LAST  /* no space for the last save before train_sweeper_wait */
} scene;
static const harness_t *tested;
static bool failed, refused, waited; /* under lock */

int unlinkat(int dir, const char *path, int flags)
{
    bool fails = false;

    if (strstr(path, "/.trash-") != NULL) {
        const double until = clock_now() + HANGS;

        pthread_mutex_lock(&lock);
        while (((scene == SLOW && published < wanted) ||
                (scene == LAST && !waited)) &&
               !late)
            late = !thread_cond_wait(&changed, &lock, until);
        fails = scene == FULL && !failed;
        failed |= fails;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    errno = EIO;
    return fails ? -1 : (int)syscall(SYS_unlinkat, dir, path, flags);
}

/* Is there no space, in the scene FULL? The first call waits until the first
 * sweep has failed, and finds no space. Later calls wait until the remainder is
 * deleted, and find space. */
static bool room_full(void)
{
    const double until = clock_now() + HANGS;
    bool full = false;

    pthread_mutex_lock(&lock);
    while (!failed && !late)
        late = !thread_cond_wait(&changed, &lock, until);
    full = !refused;
    refused = true;
    while (!full && !late && saves_count(tested, ".trash-") > 0)
        late = !thread_cond_wait(&changed, &lock, until) && clock_now() > until;
    pthread_mutex_unlock(&lock);
    return full || late;
}

/* Is there no space, in the scene LAST? Only the last save may lack space. */
static bool room_last(void)
{
    bool last;

    pthread_mutex_lock(&lock);
    last = published == wanted - 1;
    pthread_mutex_unlock(&lock);
    return last && saves_count(tested, ".trash-") > 0;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if ((scene == FULL && room_full()) || (scene == LAST && room_last())) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

/* ---- waiting for the deletes --------------------------------------------- */

static bool pretends;    /* the last deletes seem to take for ever */
static int wait_records; /* lines "end" in lives.jsonl at the last wait */
static int waits;        /* waits with a time, after the line "end" */

bool __real_train_sweeper_wait(train_sweeper_t *sweeper, double seconds);
bool __wrap_train_sweeper_wait(train_sweeper_t *sweeper, double seconds);
bool __wrap_train_sweeper_wait(train_sweeper_t *sweeper, double seconds)
{
    if (sweeper == NULL)
        return true;
    pthread_mutex_lock(&lock);
    waited = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    wait_records = tested == NULL ? 0 : harness_events(tested, "end");
    waits += wait_records > 0 && seconds > 0;
    if (wait_records > 0 && pretends)
        return false;
    /* The load of the machine must not decide the result. */
    return __real_train_sweeper_wait(sweeper, seconds > 0 ? HANGS : 0);
}

static slurm_signal_t signal_at_end(void)
{
    return wait_records > 0 ? SLURM_SIGNAL_TERM : SLURM_SIGNAL_NONE;
}

/* ---- tests --------------------------------------------------------------- */

static void run_open(harness_t *harness)
{
    saves_open(harness, "checkpoint.async=true", "checkpoint.every=2 steps",
               NULL);
    harness->settings[2] = "checkpoint.keep=1"; /* instead of all */
    thread_cond_init(&changed);
}

Test(sweeper, no_save_waits_for_a_delete, .timeout = 600)
{
    train_outcome_t out;
    harness_t harness;

    run_open(&harness);
    wanted = SAVES - 1; /* the last save waits */
    harness_run_ok(&harness, 2, &out);
    cr_expect(!late, "a delete kept a save waiting");
    cr_expect_geq(published, SAVES);
    cr_expect_eq(saves_count(&harness, "step-"), 1);
    cr_expect_eq(saves_count(&harness, ".trash-"), 0);
    harness_close(&harness);
}

/* Make a remainder, as a killed run leaves it. */
static void remainder_make(const harness_t *harness)
{
    err_t err = ERR_INIT;
    char *path = str_printf("%s/run/checkpoints/.trash-step-0000000001-"
                            "0123456789abcdef",
                            harness->dir);
    char *file = str_printf("%s/shard-0.h5", path);

    cr_assert_eq(file_make_dirs(path, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(file_publish(file, "x", 1, &err), ERR_OK, "%s", err.text);
    free(file);
    free(path);
}

/* There is no space for the first save until the remainder is deleted. The
 * start tries to delete it, and a save that fails makes the thread try again.
 */
Test(sweeper, a_start_deletes_what_a_killed_run_has_left, .timeout = 600)
{
    train_outcome_t out;
    harness_t harness;

    run_open(&harness);
    scene = FULL;
    tested = &harness;
    remainder_make(&harness);
    harness_run_ok(&harness, 1, &out);
    cr_expect(!late, "a remainder was not deleted before a save");
    cr_expect(refused);
    cr_expect_eq(saves_count(&harness, "."), 0);
    harness_close(&harness);
}

/* The last save begins as soon as the save before has ended. */
Test(sweeper, the_last_save_waits_for_space, .timeout = 600)
{
    train_outcome_t out;
    harness_t harness;

    run_open(&harness);
    scene = LAST;
    wanted = SAVES;
    tested = &harness;
    harness_run_ok(&harness, 1, &out);
    cr_expect(!late, "no delete was waited for");
    cr_expect_eq(published, SAVES);
    harness_close(&harness);
}

/* A complete run first writes its record. Then a signal ends its wait. */
Test(sweeper, a_signal_ends_the_wait_for_deletes, .timeout = 600)
{
    train_outcome_t out;
    harness_t harness;

    run_open(&harness);
    tested = &harness;
    pretends = true;
    harness.signal = signal_at_end;
    harness_run_ok(&harness, 1, &out);
    cr_expect_eq(wait_records, 1, "the wait came before the record");
    cr_expect_eq(waits, 0, "the signal was not seen");
    harness_close(&harness);
}

/* The end of a thread waits for nothing but the file that it deletes. */
Test(sweeper, a_thread_without_work_ends, .timeout = 240)
{
    train_sweeper_t *sweeper = NULL;
    err_t err = ERR_INIT;

    train_sweeper_ask(NULL);
    cr_expect(train_sweeper_wait(NULL, 1.0));
    train_sweeper_close(NULL);
    cr_assert_eq(train_sweeper_open("/does/not/exist", &sweeper, &err), ERR_OK);
    train_sweeper_ask(sweeper);
    cr_expect(train_sweeper_wait(sweeper, HANGS));
    train_sweeper_close(sweeper);
}
