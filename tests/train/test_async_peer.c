/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A rank, which is a process here, dies while its thread writes a checkpoint
 * behind training. The others end with its name, and what is in the directory
 * leads to the end of the run. If the thread of one rank is the first to learn
 * that a rank died, all ranks end with the name of that rank.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "train/harness_forks.h"
#include "train/saver.h"

#define RANKS 3
#define VICTIM 1
#define FIRST 2       /* its thread is the first to learn of a death */
#define SECONDS 120.0 /* only a rank that hangs takes so long */

/* ---- dying ----------------------------------------------------------------
 */

/* Calls of fsync in the saver's thread until the process dies; 0: never.
 * global, because fsync below is called by libraries. */
static atomic_int left;

int fsync(int fd)
{
    char name[16] = "";

    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "cddp-saver") == 0 && atomic_load(&left) > 0 &&
        atomic_fetch_sub(&left, 1) == 1)
        kill(getpid(), SIGKILL);
    return (int)syscall(SYS_fsync, fd);
}

static void victim_prepare(int rank, int ranks, void *context)
{
    (void)ranks;
    if (rank == VICTIM)
        atomic_store(&left, *(const int *)context);
}

/* ---- the others -----------------------------------------------------------
 */

static void run_open(harness_t *harness)
{
    harness_open(harness, 101);
    harness->settings[0] = "train.epochs=2";
    harness->settings[1] = "train.batch=24";
    harness->settings[2] = "train.reproducible=true";
    harness->settings[3] = "train.microbatch=4";
    harness->settings[4] = "checkpoint.async=true";
    harness->settings[5] = "checkpoint.every=2 steps";
    harness->settings[6] = "fault.timeout=20 s";
}

Test(async_peer, a_rank_that_dies_in_a_save_is_named, .timeout = 300)
{
    train_outcome_t straight, out;
    harness_t whole, parts;

    run_open(&whole);
    harness_run_ok(&whole, 2, &straight);
    for (int at = 1; at <= 3; at++) {
        const harness_forks_t forks = {.harness = &parts,
                                       .prepare = victim_prepare,
                                       .context = &at,
                                       .seconds = SECONDS};
        char texts[RANKS][512];
        int results[RANKS_MAX];

        run_open(&parts);
        harness_forks_run(&forks, RANKS, results, texts);
        for (int r = 0; r < RANKS; r++) {
            if (r == VICTIM) {
                cr_expect_eq(results[r], 128 + SIGKILL, "%d", results[r]);
                continue;
            }
            cr_expect_eq(results[r], ERR_PEER, "%d: rank %d: %d: %s", at, r,
                         results[r], texts[r]);
            cr_expect_eq(strncmp(texts[r], "1: ", 3), 0, "rank %d: %s", r,
                         texts[r]);
        }
        harness_run_ok(&parts, 2, &out);
        cr_expect_eq(memcmp(&out.loss, &straight.loss, sizeof(double)), 0,
                     "%.17g, not %.17g", out.loss, straight.loss);
        harness_compare(&whole, &parts, 10, 0, "after a death");
        harness_close(&parts);
    }
    harness_close(&whole);
}

/* ---- learning of it first -------------------------------------------------
 */

static bool learns;

err_code_t __real_train_saver_join(train_saver_t *saver, double *seconds,
                                   err_t *err);
err_code_t __wrap_train_saver_join(train_saver_t *saver, double *seconds,
                                   err_t *err);
err_code_t __wrap_train_saver_join(train_saver_t *saver, double *seconds,
                                   err_t *err)
{
    const err_code_t rc = __real_train_saver_join(saver, seconds, err);

    if (rc != ERR_OK || !learns)
        return rc;
    return err_set_peer(err, VICTIM, "", "rank %d is lost", VICTIM);
}

static void first_prepare(int rank, int ranks, void *context)
{
    (void)ranks;
    (void)context;
    learns = rank == FIRST;
}

/* No rank names the rank that leaves first as the culprit. (The rank that is
 * reported as lost is alive here. It may be killed, or end by itself.) */
Test(async_peer, what_one_thread_learns_is_told_to_all, .timeout = 300)
{
    harness_t parts;
    const harness_forks_t forks = {
        .harness = &parts, .prepare = first_prepare, .seconds = SECONDS};
    char texts[RANKS][512];
    int results[RANKS_MAX];

    run_open(&parts);
    harness_forks_run(&forks, RANKS, results, texts);
    cr_expect_eq(results[FIRST], ERR_PEER, "%d", results[FIRST]);
    cr_expect_eq(results[0], ERR_PEER, "%d: %s", results[0], texts[0]);
    cr_expect_str_eq(texts[0], "1: rank 1 is lost");
    cr_expect_str_eq(texts[FIRST], "1: rank 1 is lost");
    harness_close(&parts);
}
