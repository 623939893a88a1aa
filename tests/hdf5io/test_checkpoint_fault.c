/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Each system call that makes a checkpoint durable fails once, on each rank;
 * and the process ends at each of these calls. Published checkpoints must
 * survive. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"

typedef struct plan {
    int rank, call, error;
    bool no_exchange;
    bool together; /* all ranks write one shard */
    int64_t step;  /* 0: the state's own step */
    int keep;      /* 0: the fixture's value */
} plan_t;

static void body_write_faulty(ckpt_rank_t *rank, void *context)
{
    const plan_t *plan = context;

    rank->io.no_exchange = plan->no_exchange;
    rank->config.heads = plan->together ? ckpt_heads_together : NULL;
    if (plan->step != 0)
        rank->state.progress.step = plan->step;
    if (plan->keep != 0)
        rank->config.keep = plan->keep;
    if (rank->votes.rank == plan->rank) {
        rank->io.fail_at = plan->call;
        rank->io.error = plan->error;
    }
    ckpt_body_write(rank, NULL);
}

/* Write with a failing call; true if the call was reached. Then the write must
 * have failed on all ranks, or the fault affected only the removal of old
 * checkpoints. */
static bool write_faulty(const char *home, plan_t *plan, int *failures)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, 3, 20, body_write_faulty, plan);
    bool struck = ranks[plan->rank].io.calls >= plan->call;
    char *who = str_printf("rank %d on ", plan->rank);

    for (int r = 0; r < 3; r++) {
        cr_assert_eq(ranks[r].code, ranks[0].code);
        if (ranks[r].code == ERR_OK)
            continue;
        cr_assert(struck);
        cr_assert_eq(ranks[r].code, ERR_IO);
        cr_assert(strstr(ranks[r].err.text, who), "%s", ranks[r].err.text);
        cr_assert(strstr(ranks[r].err.text, strerror(plan->error)), "%s",
                  ranks[r].err.text);
    }
    *failures += ranks[0].code != ERR_OK;
    free(who);
    ckpt_ranks_free(ranks, 3);
    return struck;
}

/* Every call of rank [rank] fails in turn. Returns the number of failed saves.
 */
static int rank_fails(int rank, bool together)
{
    const int errors[] = {ENOSPC, EIO};
    int failures = 0;

    for (int call = 1;; call++) {
        plan_t plan = {.rank = rank,
                       .call = call,
                       .error = errors[call % 2],
                       .together = together};
        char *home = ckpt_home_make();
        int before = failures;
        bool struck;

        ckpt_write(home, 2, 10);
        struck = write_faulty(home, &plan, &failures);
        if (failures > before) {
            cr_assert_eq(ckpt_count(home, ""), 1, "rank %d call %d", rank,
                         call);
            ckpt_expect(home, 2, 10);
            ckpt_write(home, 3, 20);
        }
        ckpt_expect(home, 2, 20);
        ckpt_home_remove(home);
        if (!struck)
            return failures;
    }
}

Test(checkpoint_fault, any_failing_call_fails_all_ranks_and_spoils_nothing)
{
    for (int together = 0; together < 2; together++) {
        int failures = 0;

        for (int rank = 0; rank < 3; rank++)
            failures += rank_fails(rank, together != 0);
        cr_assert_gt(failures, 12);
    }
}

/* Replacing a checkpoint by another one of its step takes more renames, each of
 * which can fail. */
Test(checkpoint_fault, replacing_fails_whole_or_not_at_all)
{
    for (int mode = 0; mode < 2; mode++)
        for (int call = 1, failures = 0;; call++) {
            plan_t plan = {.call = call,
                           .error = EIO,
                           .no_exchange = mode == 1,
                           .step = 10};
            char *home = ckpt_home_make();
            bool struck;

            failures = 0;
            ckpt_write(home, 2, 10);
            struck = write_faulty(home, &plan, &failures);
            cr_assert_eq(ckpt_count(home, ""), 1);
            if (failures > 0)
                ckpt_expect(home, 2, 10);
            ckpt_home_remove(home);
            if (!struck)
                break;
        }
}

/* End a process during a write; true if it ended before the write was
 * complete. */
static bool write_crashing(const char *home, plan_t *plan)
{
    int status;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        ckpt_ranks_run(home, 3, 20, body_write_faulty, plan);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status) == 9;
}

Test(checkpoint_fault, a_crash_at_any_call_leaves_a_whole_checkpoint)
{
    int crashes = 0;

    for (int rank = 0; rank < 2; rank++)
        for (int call = 1;; call++, crashes++) {
            plan_t plan = {.rank = rank, .call = call};
            char *home = ckpt_home_make();
            ckpt_rank_t *ranks;
            int64_t step;
            bool crashed;

            ckpt_write(home, 2, 10);
            crashed = write_crashing(home, &plan);
            ranks = ckpt_ranks_run(home, 2, 0, ckpt_body_read, NULL);
            cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
            step = ranks[0].info.progress.step;
            ckpt_ranks_free(ranks, 2);
            cr_assert(step == 10 || step == 20);
            ckpt_expect(home, 2, step);
            ckpt_write(home, 2, 30);
            cr_assert_eq(ckpt_count(home, "."), 0);
            ckpt_home_remove(home);
            if (!crashed)
                break;
        }
    cr_assert_gt(crashes, 8);
}

/* Replacing the only checkpoint of a run, also on a file system that cannot
 * exchange names: the old or the new one exists and is intact. */
Test(checkpoint_fault, a_crash_while_replacing_leaves_one_of_both)
{
    for (int mode = 0; mode < 2; mode++) {
        int old = 0, new = 0, nameless = 0;

        for (int call = 1, crashed = 1; crashed != 0; call++) {
            plan_t plan = {
                .call = call, .no_exchange = mode == 1, .step = 10, .keep = 1};
            char *home = ckpt_home_make();
            bool is_old;

            ckpt_write(home, 2, 10);
            crashed = write_crashing(home, &plan);
            nameless += ckpt_count(home, "step-") == 0;
            is_old = ckpt_is(home, 2, 10, 10);
            cr_assert(is_old || ckpt_is(home, 2, 20, 10), "call %d", call);
            old += is_old;
            new += !is_old;
            ckpt_write(home, 2, 30);
            cr_assert_eq(ckpt_count(home, "."), 0);
            cr_assert_eq(ckpt_count(home, "step-"), 2);
            ckpt_home_remove(home);
        }
        cr_assert_gt(old, 8);
        cr_assert_gt(new, 1);
        cr_assert_eq(nameless, mode); /* ended between the two renames */
    }
}

Test(checkpoint_fault, a_crash_while_retiring_leaves_the_newest)
{
    for (int call = 1;; call++) {
        plan_t plan = {.call = call};
        char *home = ckpt_home_make();
        ckpt_rank_t *ranks;
        bool crashed;

        for (int step = 1; step <= 4; step++)
            ckpt_write(home, 2, step);
        crashed = write_crashing(home, &plan);
        ranks = ckpt_ranks_run(home, 1, 0, ckpt_body_read, NULL);
        cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
        cr_assert(ranks[0].info.progress.step == 4 ||
                  ranks[0].info.progress.step == 20);
        ckpt_ranks_free(ranks, 1);
        ckpt_home_remove(home);
        if (!crashed)
            break;
    }
}

/* If the directory cannot be created, there is an error message. */
Test(checkpoint_fault, a_directory_that_cannot_be_made_fails_all)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run("/proc/no/such", 2, 1, ckpt_body_write, NULL);

    for (int r = 0; r < 2; r++) {
        cr_assert_eq(ranks[r].code, ERR_IO);
        cr_assert(strstr(ranks[r].err.text, "rank 0 on "), "%s",
                  ranks[r].err.text);
        cr_assert(strstr(ranks[r].err.text, "/proc/no"), "%s",
                  ranks[r].err.text);
    }
    ckpt_ranks_free(ranks, 2);
}

/* Limit files to [bytes] bytes. HDF5's own writes fail then, too, as on a full
 * disk, which the io table cannot simulate. */
static void file_limit(rlim_t bytes)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Defined only under the leak sanitizer. */
extern void __lsan_do_leak_check(void) __attribute__((weak));

static void full_disk(const char *home)
{
    const rlim_t limits[] = {0, 1, 100, 1000, 2000, 2100, 4000, 8000, 10000};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        ckpt_rank_t *ranks;

        file_limit(limits[i]);
        ranks = ckpt_ranks_run(home, 2, 20, ckpt_body_write, NULL);
        file_limit(RLIM_INFINITY);
        for (int r = 0; r < 2; r++)
            cr_assert_eq(ranks[r].code, ERR_IO, "limit %ld", (long)limits[i]);
        ckpt_ranks_free(ranks, 2);
        cr_assert_eq(ckpt_count(home, ""), 1);
        ckpt_expect(home, 2, 10);
    }
    ckpt_write(home, 2, 20);
    ckpt_expect(home, 2, 20);
}

/* HDF5 must not crash at exit after a failed close. */
Test(checkpoint_fault, hdf5_on_a_full_disk_fails_and_recovers)
{
    char *home = ckpt_home_make();
    int status;
    pid_t child;

    signal(SIGXFSZ, SIG_IGN);
    ckpt_write(home, 2, 10);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        full_disk(home);
        if (__lsan_do_leak_check != NULL)
            _exit(7); /* HDF5 leaks a file that it cannot close */
        exit(7);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%d", status);
    ckpt_expect(home, 2, 20);
    ckpt_home_remove(home);
}
