/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A run is killed while its thread writes a checkpoint behind training, at any
 * stage, and started again on another number of ranks. It ends with the bits of
 * a run that was never killed.
 *
 * The linker replaces the functions that a save calls, in the thread and in the
 * training, by those of this file (ASYNC_WRAPS in local.mk). Ranks are threads
 * of a process that the test starts for each life, so all of them die at once.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hdf5io/checkpoint_dir.h"
#include "obs/lives.h"
#include "train/harness.h"
#include "train/saver.h"

enum { SAMPLES = 118, LAST_STEP = 10, KILLS = 30 };

/* ---- points -------------------------------------------------------------- */

/* Points that are left before this process dies; 0 at first: it never dies.
 * Points count from the first save on, over all threads. */
static atomic_int left;
static atomic_bool counts;

static void point(void)
{
    if (atomic_load(&counts) && atomic_load(&left) > 0 &&
        atomic_fetch_sub(&left, 1) == 1)
        kill(getpid(), SIGKILL);
}

/* The linker's option --wrap demands these names. */
// NOLINTBEGIN(bugprone-reserved-identifier)
#define WRAP(name, parameters, ...)      \
    err_code_t __real_##name parameters; \
    err_code_t __wrap_##name parameters; \
    err_code_t __wrap_##name parameters  \
    {                                    \
        err_code_t rc;                   \
                                         \
        point();                         \
        rc = __real_##name(__VA_ARGS__); \
        point();                         \
        return rc;                       \
    }

WRAP(hdf5io_io_create,
     (const hdf5io_io_t *io, const char *path, const void *bytes, size_t count,
      err_t *err),
     io, path, bytes, count, err)
WRAP(hdf5io_io_flush,
     (const hdf5io_io_t *io, int fd, const char *path, err_t *err), io, fd,
     path, err)
WRAP(hdf5io_io_sync, (const hdf5io_io_t *io, const char *path, err_t *err), io,
     path, err)
WRAP(hdf5io_dir_publish,
     (const hdf5io_io_t *io, const char *directory, const char *tmp,
      int64_t step, uint64_t nonce, err_t *err),
     io, directory, tmp, step, nonce, err)
WRAP(obs_lives_append,
     (const char *run_dir, const obs_lives_start_t *start,
      const obs_lives_line_t *line, err_t *err),
     run_dir, start, line, err)
WRAP(train_saver_join, (train_saver_t * saver, double *seconds, err_t *err),
     saver, seconds, err)

void __real_train_saver_start(train_saver_t *saver, const train_save_t *save);
void __wrap_train_saver_start(train_saver_t *saver, const train_save_t *save);
void __wrap_train_saver_start(train_saver_t *saver, const train_save_t *save)
{
    atomic_store(&counts, true);
    point();
    __real_train_saver_start(saver, save);
    point();
}
// NOLINTEND(bugprone-reserved-identifier)

/* ---- lives --------------------------------------------------------------- */

static void run_open(harness_t *harness)
{
    static const char *const settings[] = {
        "train.epochs=2",           "train.reproducible=true",
        "train.microbatch=4",       "checkpoint.async=true",
        "checkpoint.every=2 steps", "checkpoint.keep=2",
        "fault.timeout=20 s"};

    harness_open(harness, SAMPLES);
    for (int i = 0; i < (int)(sizeof settings / sizeof *settings); i++)
        harness->settings[i] = settings[i];
}

/* Run once on [ranks] ranks, and die at point [at] (0: never). Returns whether
 * it was killed. */
static bool live(const harness_t *harness, int ranks, int at)
{
    const pid_t child = fork();
    train_outcome_t out;
    int status;

    cr_assert_geq(child, 0);
    if (child == 0) {
        atomic_store(&left, at);
        harness_run_ok(harness, ranks, &out);
        _exit(out.step == LAST_STEP ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x",
              (unsigned)status);
    return false;
}

Test(async_kill, a_killed_save_is_no_loss, .timeout = 600)
{
    harness_t whole, parts;

    run_open(&whole);
    cr_assert(!live(&whole, 1, 0));
    for (int at = 1; at <= KILLS; at++) {
        run_open(&parts);
        cr_assert(live(&parts, 2, at), "a run has fewer than %d points", at);
        cr_assert(!live(&parts, at % 2 == 0 ? 1 : 4, 0));
        harness_compare(&whole, &parts, LAST_STEP, 0, "killed");
        harness_close(&parts);
    }
    harness_close(&whole);
}
