/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A run is killed at a point inside a rollback, or in the steps after it, and
 * started again on another number of ranks. It ends with the bits of a run that
 * was never killed, whatever the point is.
 *
 * The linker replaces the functions that a rollback calls by those of this
 * file (ROLLBACK_WRAPS in local.mk). Ranks are threads of a process that the
 * test starts for each life, so all of them die at once.
 */
#include <criterion/criterion.h>
#include <float.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hdf5io/checkpoint.h"
#include "hdf5io/loader.h"
#include "obs/lives.h"
#include "train/harness.h"
#include "train/mirror.h"
#include "train/run_priv.h"

enum { SAMPLES = 118, BAD = 60, LAST_STEP = 10 };

/* ---- points -------------------------------------------------------------- */

/* Points that are left before this process dies; 0 at first: it never dies.
 * The points of all ranks count from the first rollback on. A rollback reads a
 * checkpoint after a batch was loaded; a start reads it before. */
static atomic_int left;
static atomic_bool loaded, counts;

static void point(void)
{
    if (atomic_load(&counts) && atomic_load(&left) > 0 &&
        atomic_fetch_sub(&left, 1) == 1)
        kill(getpid(), SIGKILL);
}

/* The linker's option --wrap demands these names. */
// NOLINTBEGIN(bugprone-reserved-identifier)
#define WRAP(type, name, parameters, ...)  \
    type __real_##name parameters;         \
    type __wrap_##name parameters;         \
    type __wrap_##name parameters          \
    {                                      \
        point();                           \
        return __real_##name(__VA_ARGS__); \
    }

WRAP(err_code_t, train_mirror_push, (train_mirror_t * mirror, err_t *err),
     mirror, err)
WRAP(err_code_t, hdf5io_loader_open,
     (const hdf5io_loader_config_t *config, hdf5io_loader_t **out, err_t *err),
     config, out, err)
WRAP(err_code_t, obs_metrics_open,
     (const char *path, int64_t step, obs_metrics_t **out, err_t *err), path,
     step, out, err)

err_code_t
__real_hdf5io_checkpoint_read(const hdf5io_checkpoint_config_t *config,
                              const char *path, const hdf5io_tensor_t *tensors,
                              int count, bool *found,
                              hdf5io_checkpoint_info_t *info, err_t *err);
err_code_t
__wrap_hdf5io_checkpoint_read(const hdf5io_checkpoint_config_t *config,
                              const char *path, const hdf5io_tensor_t *tensors,
                              int count, bool *found,
                              hdf5io_checkpoint_info_t *info, err_t *err);
err_code_t
__wrap_hdf5io_checkpoint_read(const hdf5io_checkpoint_config_t *config,
                              const char *path, const hdf5io_tensor_t *tensors,
                              int count, bool *found,
                              hdf5io_checkpoint_info_t *info, err_t *err)
{
    if (atomic_load(&loaded))
        atomic_store(&counts, true);
    point();
    return __real_hdf5io_checkpoint_read(config, path, tensors, count, found,
                                         info, err);
}

err_code_t __real_train_turn_load(train_state_t *run, int64_t step, err_t *err);
err_code_t __wrap_train_turn_load(train_state_t *run, int64_t step, err_t *err);
err_code_t __wrap_train_turn_load(train_state_t *run, int64_t step, err_t *err)
{
    atomic_store(&loaded, true);
    point();
    return __real_train_turn_load(run, step, err);
}

void __real_hdf5io_loader_close(hdf5io_loader_t *loader);
void __wrap_hdf5io_loader_close(hdf5io_loader_t *loader);
void __wrap_hdf5io_loader_close(hdf5io_loader_t *loader)
{
    point();
    __real_hdf5io_loader_close(loader);
}

err_code_t __real_obs_lives_append(const char *run_dir,
                                   const obs_lives_start_t *start,
                                   const obs_lives_line_t *line, err_t *err);
err_code_t __wrap_obs_lives_append(const char *run_dir,
                                   const obs_lives_start_t *start,
                                   const obs_lives_line_t *line, err_t *err);
err_code_t __wrap_obs_lives_append(const char *run_dir,
                                   const obs_lives_start_t *start,
                                   const obs_lives_line_t *line, err_t *err)
{
    err_code_t rc;

    point();
    rc = __real_obs_lives_append(run_dir, start, line, err);
    point();
    return rc;
}
// NOLINTEND(bugprone-reserved-identifier)

/* ---- lives --------------------------------------------------------------- */

static void bad_open(harness_t *harness)
{
    static const char *const settings[] = {
        "data.shuffle=none",
        "train.epochs=2",
        ("model.layers=[{linear: {out: 16}}, relu, {dropout: {rate: 0.1}}, "
         "{linear: {out: 2}}]"),
        "train.reproducible=true",
        "train.microbatch=4",
        "checkpoint.every=2 steps",
        "fault={diverge: rollback, spike: 50, timeout: 20 s}"};

    harness_open(harness, SAMPLES);
    for (int i = 0; i < (int)(sizeof settings / sizeof *settings); i++)
        harness->settings[i] = settings[i];
    harness_input_set(harness, BAD, FLT_MAX);
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

Test(rollback_kill, a_killed_rollback_is_made_again, .timeout = 600)
{
    harness_t whole, parts;
    bool killed = true;
    int at;

    bad_open(&whole);
    cr_assert(!live(&whole, 1, 0));
    cr_expect_eq(harness_events(&whole, "rollback"), 2);
    for (at = 1; killed && at <= 24; at++) {
        bad_open(&parts);
        killed = live(&parts, 2, at);
        if (killed)
            cr_assert(!live(&parts, at % 2 == 0 ? 1 : 4, 0));
        harness_compare(&whole, &parts, LAST_STEP, 0, "killed");
        harness_close(&parts);
    }
    /* A rollback has more points than these; with fewer points the loop has
     * tested nothing. */
    cr_expect_gt(at, 16, "%d points", at);
    harness_close(&whole);
}
