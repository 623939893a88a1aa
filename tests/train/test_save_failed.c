/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole runs whose checkpoints cannot be written for a while: they go on with
 * the same bits, try again, and end with 74 if it stays so. fsync, which
 * storage reports its errors by, is replaced.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "train/save_failed.h"
#include "train/saves.h"

/* ---- storage that refuses ------------------------------------------------ */

/* Which syncs of a file called [name] fail, counted from 1: bit k of [fails] is
 * that of sync k. global, because fsync below is called by libraries. */
static struct {
    const char *name;
    unsigned fails;
    int error;
    atomic_int syncs;
} refusal;

static void refuse(const char *name, unsigned fails, int error)
{
    refusal.name = name;
    refusal.fails = fails;
    refusal.error = error;
    atomic_store(&refusal.syncs, 0);
}

/* With [closed], a sync that fails does so when a rank waits for its save. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool closed;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

static void gate_set(bool closed)
{
    pthread_mutex_lock(&gate.lock);
    gate.closed = closed;
    pthread_cond_broadcast(&gate.moved);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_wait(void)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.closed)
        pthread_cond_wait(&gate.moved, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

err_code_t __real_train_saver_join(train_saver_t *saver, double *seconds,
                                   err_t *err);
err_code_t __wrap_train_saver_join(train_saver_t *saver, double *seconds,
                                   err_t *err);
err_code_t __wrap_train_saver_join(train_saver_t *saver, double *seconds,
                                   err_t *err)
{
    gate_set(false);
    return __real_train_saver_join(saver, seconds, err);
}

int fsync(int fd)
{
    char entry[64], path[4096];
    const char *slash;
    ssize_t length;

    snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd);
    length = readlink(entry, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    slash = strrchr(path, '/');
    if (refusal.name != NULL && slash != NULL &&
        strcmp(slash + 1, refusal.name) == 0 &&
        (refusal.fails >> (atomic_fetch_add(&refusal.syncs, 1) + 1) & 1) != 0) {
        gate_wait();
        errno = refusal.error;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

#define ALL 0xffffffffu
#define SYNC(k) (1u << (k))

/* The number of files that were to be read from the disk. */
static atomic_int forgotten;

int posix_fadvise(int fd, off_t offset, off_t length, int advice)
{
    atomic_fetch_add(&forgotten, advice == POSIX_FADV_DONTNEED);
    return (int)syscall(SYS_fadvise64, fd, offset, length, advice);
}

/* ---- runs ---------------------------------------------------------------- */

/* Text of metrics.jsonl; free() it. */
static char *metrics_read(const harness_t *harness)
{
    char *path = str_printf("%s/run/metrics.jsonl", harness->dir), *text;
    err_t err = ERR_INIT;
    size_t bytes;

    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK, "%s", err.text);
    free(path);
    text = realloc(text, bytes + 1);
    cr_assert_not_null(text);
    text[bytes] = '\0';
    return text;
}

/* The number of rows of failed saves, and of those, of the [failures]-th in a
 * row. */
static int failures_count(const harness_t *harness, int failures)
{
    char *text = metrics_read(harness), *rest = text, *row;
    char *number = str_printf("\"failures\": %d}", failures);
    int count = 0;

    while ((row = strsep(&rest, "\n")) != NULL)
        count += strstr(row, "\"event\": \"checkpoint_failed\"") != NULL &&
                 (failures == 0 || strstr(row, number) != NULL);
    free(number);
    free(text);
    return count;
}

static bool is_there(const harness_t *harness, int step)
{
    char *path =
        str_printf("%s/run/checkpoints/step-%010d", harness->dir, step);
    const bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

static const char *const ways[] = {"checkpoint.async=false",
                                   "checkpoint.async=true"};

/* ---- the run goes on ----------------------------------------------------- */

/* One save fails on one of two ranks, in each way in which storage refuses. The
 * run ends with the bits of one whose saves succeed. */
Test(save_failed, one_failure_costs_no_step, .timeout = 300)
{
    static const int errors[] = {ENOSPC, EDQUOT, EIO};

    for (int i = 0; i < 6; i++) {
        train_outcome_t straight, out;
        harness_t whole, hurt;

        saves_open(&whole, ways[i % 2], "checkpoint.every=4 steps", NULL);
        saves_open(&hurt, ways[i % 2], "checkpoint.every=4 steps", NULL);
        harness_run_ok(&whole, 2, &straight);
        refuse("shard-1.h5", SYNC(1), errors[i / 2]);
        harness_run_ok(&hurt, 2, &out);
        refuse(NULL, 0, 0);
        cr_expect_eq(memcmp(&out.loss, &straight.loss, sizeof(double)), 0);
        cr_expect_eq(out.step, SAVES_STEPS);
        harness_compare(&whole, &hurt, SAVES_STEPS, 0, ways[i % 2]);
        cr_expect_eq(failures_count(&hurt, 0), 1);
        cr_expect_eq(failures_count(&hurt, 1), 1);
        cr_expect_eq(saves_count(&hurt, "."), 0, "debris is left");
        cr_expect(!is_there(&hurt, 4));
        harness_close(&hurt);
        harness_close(&whole);
    }
}

/* The next try comes after a quarter of the interval, in steps or epochs. */
Test(save_failed, the_next_try_comes_after_a_quarter, .timeout = 120)
{
    static const struct {
        const char *every;
        int failed, again;
    } cases[] = {{"checkpoint.every=7 steps", 7, 9},
                 {"checkpoint.every=1 epochs", 5, 7},
                 {"checkpoint.every=1 steps", 1, 2}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        train_outcome_t out;
        harness_t harness;

        saves_open(&harness, ways[0], cases[i].every, NULL);
        refuse("shard-0.h5", SYNC(1), ENOSPC);
        harness_run_ok(&harness, 1, &out);
        refuse(NULL, 0, 0);
        cr_expect(!is_there(&harness, cases[i].failed), "%s", cases[i].every);
        cr_expect(is_there(&harness, cases[i].again), "%s", cases[i].every);
        cr_expect(is_there(&harness, SAVES_STEPS), "%s", cases[i].every);
        harness_close(&harness);
    }
}

/* The sentence has what happened, and what follows. */
Test(save_failed, a_failure_is_said, .timeout = 120)
{
    static const char *const words[] = {
        "no checkpoint of step 4 was written: rank 1 on ",
        "shard-1.h5: fsync failed: No space left on device; failure 1 of 3 in "
        "a row (checkpoint.failures): the run goes on and tries again at step "
        "5; there is no checkpoint yet",
        "no checkpoint of step 8 was written: ",
        "the newest checkpoint is of step 5",
    };
    harness_t harness;
    char *said;

    saves_open(&harness, ways[0], "checkpoint.every=4 steps", NULL);
    refuse("shard-1.h5", SYNC(1) | SYNC(3), ENOSPC);
    said = harness_listen(&harness, 2);
    refuse(NULL, 0, 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        cr_expect_not_null(strstr(said, words[i]), "%s\nin\n%s", words[i],
                           said);
    free(said);
    said = metrics_read(&harness);
    cr_expect_not_null(strstr(said, "\"event\": \"checkpoint_failed\", "
                                    "\"step\": 4, "));
    cr_expect_not_null(strstr(said, "run/checkpoints/step-0000000004\", "
                                    "\"reason\": \"rank 1 on "));
    free(said);
    harness_close(&harness);
}

/* The save of step 5 fails while that of step 10, in the next epoch, waits for
 * it: the next try is at once. */
Test(save_failed, what_waits_is_the_next_try, .timeout = 120)
{
    harness_t harness;
    char *said;

    saves_open(&harness, ways[1], "checkpoint.every=5 steps", NULL);
    harness.settings[3] = "train.epochs=3";
    refuse("shard-1.h5", SYNC(1), ENOSPC);
    gate_set(true);
    said = harness_listen(&harness, 2);
    refuse(NULL, 0, 0);
    cr_expect_not_null(strstr(said, "no checkpoint of step 5 was written: "),
                       "%s", said);
    cr_expect_not_null(strstr(said, "tries again at once; there is no "
                                    "checkpoint yet"),
                       "%s", said);
    free(said);
    said = metrics_read(&harness);
    cr_expect_not_null(strstr(said, "\"event\": \"checkpoint_failed\", "
                                    "\"step\": 5, \"epoch\": 0, "),
                       "%s", said);
    free(said);
    cr_expect(!is_there(&harness, 5) && is_there(&harness, 10));
    harness_close(&harness);
}

/* A checkpoint that is written makes earlier failures count no more. */
Test(save_failed, a_success_between_failures_begins_anew, .timeout = 120)
{
    for (int i = 0; i < 2; i++) {
        train_outcome_t out;
        harness_t harness;

        saves_open(&harness, ways[i], "checkpoint.every=1 steps", NULL);
        refuse("shard-1.h5",
               SYNC(1) | SYNC(2) | SYNC(4) | SYNC(5) | SYNC(7) | SYNC(8), EIO);
        harness_run_ok(&harness, 2, &out);
        refuse(NULL, 0, 0);
        cr_expect_eq(failures_count(&harness, 1), 3);
        cr_expect_eq(failures_count(&harness, 2), 3);
        cr_expect_eq(failures_count(&harness, 0), 6);
        cr_expect_eq(saves_count(&harness, "step-"), 4);
        harness_close(&harness);
    }
}

/* A run that goes back does so to the newest checkpoint that was written. */
Test(save_failed, a_rollback_passes_over_what_was_not_written, .timeout = 240)
{
    for (int i = 0; i < 2; i++) {
        train_outcome_t out;
        harness_t harness;

        saves_open(&harness, ways[i], "checkpoint.every=1 steps", NULL);
        harness.settings[5] = "fault.diverge=rollback";
        harness.settings[6] = "data.shuffle=none";
        harness_input_set(&harness, 50, FLT_MAX);
        refuse("shard-0.h5", SYNC(2), ENOSPC);
        harness_run_ok(&harness, 2, &out);
        refuse(NULL, 0, 0);
        cr_expect_eq(harness_events(&harness, "rollback"), 2);
        cr_expect_eq(out.step, SAVES_STEPS);
        harness_close(&harness);
    }
}

/* ---- the run ends -------------------------------------------------------- */

static void expect_io(const harness_t *harness, int ranks, const char *words)
{
    train_outcome_t out;
    err_t err = ERR_INIT;

    cr_expect_eq(harness_run(harness, ranks, &out, &err), ERR_IO, "%s",
                 err.text);
    cr_expect_not_null(strstr(err.text, words), "%s\nin\n%s", words, err.text);
    cr_expect_not_null(strstr(err.text, "Disk quota exceeded"), "%s", err.text);
}

/* As many failures in a row as checkpoint.failures end the run; what was
 * written before stays, and the next start goes on from there. */
Test(save_failed, failures_in_a_row_end_the_run, .timeout = 300)
{
    for (int i = 0; i < 4; i++) {
        const bool one = i / 2 == 1;
        train_outcome_t straight, out;
        harness_t whole, hurt;

        saves_open(&whole, ways[i % 2], "checkpoint.every=1 steps", NULL);
        saves_open(&hurt, ways[i % 2], "checkpoint.every=1 steps",
                   one ? "checkpoint.failures=1" : "checkpoint.failures=3");
        harness_run_ok(&whole, 2, &straight);
        refuse("shard-1.h5", ALL << 2, EDQUOT);
        expect_io(&hurt, 2,
                  one ? "no checkpoint was written 1 times in a row "
                        "(checkpoint.failures); the newest checkpoint is of "
                        "step 1"
                      : "no checkpoint was written 3 times in a row "
                        "(checkpoint.failures); the newest checkpoint is of "
                        "step 1");
        refuse(NULL, 0, 0);
        cr_expect_eq(failures_count(&hurt, 0), one ? 1 : 3);
        cr_expect_eq(saves_count(&hurt, ""), 1);
        harness_run_ok(&hurt, 2, &out);
        harness_compare(&whole, &hurt, SAVES_STEPS, 0, ways[i % 2]);
        harness_close(&hurt);
        harness_close(&whole);
    }
}

/* The last checkpoint of a run, or of a start that a signal ends, has one try.
 */
Test(save_failed, the_last_checkpoint_has_one_try, .timeout = 240)
{
    for (int i = 0; i < 4; i++) {
        train_outcome_t out;
        harness_t harness;

        saves_open(&harness, ways[i % 2], "checkpoint.every=never", NULL);
        if (i >= 2)
            harness_interrupt(&harness, 7);
        refuse("shard-1.h5", ALL, EDQUOT);
        expect_io(&harness, 2,
                  "this was the last checkpoint of this start; there is no "
                  "checkpoint yet");
        refuse(NULL, 0, 0);
        harness.signal = NULL;
        cr_expect_eq(failures_count(&harness, 1), 1);
        harness_run_ok(&harness, 2, &out);
        cr_expect_eq(out.step, SAVES_STEPS);
        harness_close(&harness);
    }
}

/* A save that fails in the thread while the run leaves is followed by the last
 * one, whatever checkpoint.failures is. */
Test(save_failed, the_last_one_is_tried_after_a_failure, .timeout = 120)
{
    train_outcome_t out;
    harness_t harness;

    saves_open(&harness, ways[1], "checkpoint.every=9 steps",
               "checkpoint.failures=2");
    refuse("shard-1.h5", SYNC(1), EDQUOT);
    harness_run_ok(&harness, 2, &out);
    refuse(NULL, 0, 0);
    cr_expect_eq(failures_count(&harness, 0), 1);
    cr_expect(is_there(&harness, SAVES_STEPS));
    harness_close(&harness);
}

/* ---- what is read back --------------------------------------------------- */

/* Two checkpoints of two shards, the view and the manifest. */
Test(save_failed, all_files_are_read_back_from_disk, .timeout = 120)
{
    static const char *const where[] = {"checkpoint.verify=cache",
                                        "checkpoint.verify=disk"};

    for (int i = 0; i < 4; i++) {
        train_outcome_t out;
        harness_t harness;

        saves_open(&harness, ways[i % 2], "checkpoint.every=6 steps",
                   where[i / 2]);
        atomic_store(&forgotten, 0);
        harness_run_ok(&harness, 2, &out);
        cr_expect_eq(atomic_load(&forgotten), i < 2 ? 0 : 8);
        harness_close(&harness);
    }
}

/* ---- what stays ---------------------------------------------------------- */

Test(save_failed, multiples_of_keep_every_stay, .timeout = 120)
{
    train_outcome_t out;
    harness_t harness;

    saves_open(&harness, ways[1], "checkpoint.every=1 steps",
               "checkpoint.keep_every=4");
    harness.settings[2] = "checkpoint.keep=1";
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(saves_count(&harness, ""), 3);
    cr_expect(is_there(&harness, 4) && is_there(&harness, 8));
    cr_expect(is_there(&harness, SAVES_STEPS));
    harness_close(&harness);
}

/* ---- a time -------------------------------------------------------------- */

Test(save_failed, after_a_time_a_quarter_of_it)
{
    static train_state_t run;
    static train_config_t config;

    config.checkpoint.every = (opt_every_t){.value = 600, .unit = OPT_TIME};
    run.config = &config;
    run.dir.saved_at = 1000;
    cr_expect_float_eq(train_save_instant(&run), 1600, 1e-9);
    run.saving.failures = (train_failures_t){.row = 2, .at = 1700};
    cr_expect_float_eq(train_save_instant(&run), 1850, 1e-9);
    cr_expect(!train_save_again(&run));
    train_save_done(&run);
    cr_expect_float_eq(train_save_instant(&run), 1600, 1e-9);
}
