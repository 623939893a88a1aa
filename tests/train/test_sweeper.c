/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A file system that deletes slowly: neither a step nor a save waits for the
 * deletes of old checkpoints, and at the end of the run all are deleted. */
#include "train/sweeper.h"

#include <criterion/criterion.h>
#include <dirent.h>
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
#include "train/harness.h"

#define SAVES 5     /* of the run */
#define HANGS 200.0 /* seconds: only a delete that keeps a save waiting */

/* ---- a delete that takes until all saves are done ------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
/* Under lock. global, because the functions below are called by libraries. */
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

int unlinkat(int dir, const char *path, int flags)
{
    if (strstr(path, "/.trash-") != NULL) {
        const double until = clock_now() + HANGS;

        pthread_mutex_lock(&lock);
        while (published < wanted && !late)
            late = !thread_cond_wait(&changed, &lock, until);
        pthread_mutex_unlock(&lock);
    }
    return (int)syscall(SYS_unlinkat, dir, path, flags);
}

/* ---- tests --------------------------------------------------------------- */

/* Entries of the run's checkpoints that begin with [prefix]. */
static int entries(const harness_t *harness, const char *prefix)
{
    char *path = str_printf("%s/run/checkpoints", harness->dir);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int count = 0;

    cr_assert_not_null(dir);
    while ((entry = readdir(dir)) != NULL)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    free(path);
    return count;
}

static void run_open(harness_t *harness)
{
    harness_open(harness, 101);
    harness->settings[0] = "train.batch=24"; /* 5 steps in an epoch */
    harness->settings[1] = "train.epochs=2";
    harness->settings[2] = "checkpoint.async=true";
    harness->settings[3] = "checkpoint.every=2 steps";
    harness->settings[4] = "checkpoint.keep=1";
    thread_cond_init(&changed);
}

Test(sweeper, no_save_waits_for_a_delete, .timeout = 600)
{
    train_outcome_t out;
    harness_t harness;

    run_open(&harness);
    wanted = SAVES;
    harness_run_ok(&harness, 2, &out);
    cr_expect(!late, "a delete kept a save waiting");
    cr_expect_geq(published, SAVES);
    cr_expect_eq(entries(&harness, "step-"), 1);
    cr_expect_eq(entries(&harness, ".trash-"), 0);
    harness_close(&harness);
}

/* A run that was killed has left a remainder; the next start deletes it. */
Test(sweeper, what_a_run_has_left_the_next_one_deletes, .timeout = 240)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    char *path, *file;

    run_open(&harness);
    path = str_printf("%s/run/checkpoints/.trash-step-0000000001-"
                      "0123456789abcdef",
                      harness.dir);
    file = str_printf("%s/shard-0.h5", path);
    cr_assert_eq(file_make_dirs(path, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(file_publish(file, "x", 1, &err), ERR_OK, "%s", err.text);
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(entries(&harness, "."), 2, "more than . and ..");
    free(file);
    free(path);
    harness_close(&harness);
}

/* The end of a thread waits for nothing but the file that it deletes. */
Test(sweeper, a_thread_without_work_ends, .timeout = 240)
{
    train_sweeper_t *sweeper = NULL;
    err_t err = ERR_INIT;

    train_sweeper_ask(NULL);
    train_sweeper_wait(NULL, 1.0);
    train_sweeper_close(NULL);
    cr_assert_eq(train_sweeper_open("/does/not/exist", &sweeper, &err), ERR_OK);
    train_sweeper_ask(sweeper);
    train_sweeper_wait(sweeper, HANGS);
    train_sweeper_close(sweeper);
}
