/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A failing read is no damage: if storage works again, the checkpoint is read,
 * else reading fails. An older checkpoint is never used instead, since the next
 * save would then replace the newer, intact one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "ckpt_fixture.h"

#define RANKS 2
#define FOR_EVER 1000000

typedef struct plan {
    int rank, call, fails, error;
    double seconds;
} plan_t;

/* global: calls of [alive] on all ranks */
static atomic_int signs;

static void alive(void *context)
{
    (void)context;
    atomic_fetch_add(&signs, 1);
}

static void body_read_ill(ckpt_rank_t *rank, void *context)
{
    const plan_t *plan = context;

    rank->votes.alive = alive;
    rank->config.retry_seconds = plan->seconds;
    if (rank->votes.rank == plan->rank) {
        rank->io.read_fail_at = plan->call;
        rank->io.read_fails = plan->fails;
        rank->io.read_error = plan->error;
    }
    ckpt_body_read(rank, NULL);
}

/* Make two checkpoints, of steps 10 and 20. */
static char *home_make(void)
{
    char *home = ckpt_home_make();

    ckpt_write(home, 3, 10);
    ckpt_write(home, 3, 20);
    return home;
}

Test(checkpoint_retry, what_comes_back_is_read)
{
    const int errors[] = {EIO, ESTALE, ETIMEDOUT, EMFILE, EACCES};
    char *home = home_make();
    int struck = 0;

    for (int rank = 0; rank < RANKS; rank++)
        for (int call = 1, more = 1; more != 0; call++) {
            plan_t plan = {.rank = rank,
                           .call = call,
                           .fails = 1 + call % RETRY_TRIES,
                           .error = errors[call % 5]};
            ckpt_rank_t *ranks =
                ckpt_ranks_run(home, RANKS, 20, body_read_ill, &plan);

            for (int r = 0; r < RANKS; r++) {
                cr_assert_eq(ranks[r].code, ERR_OK, "rank %d call %d: %s", rank,
                             call, ranks[r].err.text);
                cr_assert_eq(ranks[r].info.progress.step, 20, "call %d", call);
            }
            more = ranks[rank].io.read_calls >= call;
            struck += more;
            ckpt_ranks_free(ranks, RANKS);
        }
    cr_assert_gt(struck, 20);
    ckpt_home_remove(home);
}

Test(checkpoint_retry, what_stays_ill_ends_the_reading)
{
    const int errors[] = {EIO, ESTALE, ETIMEDOUT, EMFILE};
    char *home = home_make();
    int struck = 0;

    for (int rank = 0; rank < RANKS; rank++)
        for (int call = 1, more = 1; more != 0; call++) {
            plan_t plan = {.rank = rank,
                           .call = call,
                           .fails = FOR_EVER,
                           .error = errors[call % 4]};
            ckpt_rank_t *ranks =
                ckpt_ranks_run(home, RANKS, 20, body_read_ill, &plan);

            more = ranks[rank].io.read_calls >= call;
            struck += more;
            for (int r = 0; r < RANKS && more != 0; r++) {
                const char *text = ranks[r].err.text;

                cr_assert_eq(ranks[r].code, ERR_IO, "rank %d call %d: %s", rank,
                             call, text);
                cr_assert(strstr(text, "3 more times"), "%s", text);
                cr_assert(strstr(text, strerror(plan.error)), "%s", text);
                cr_assert(strstr(text, home), "%s", text);
            }
            ckpt_ranks_free(ranks, RANKS);
        }
    cr_assert_gt(struck, 20);
    ckpt_expect(home, RANKS, 20);
    ckpt_home_remove(home);
}

Test(checkpoint_retry, a_refused_permission_names_the_owner)
{
    char *home = home_make();

    for (int call = 1; call <= 3; call++) {
        plan_t plan = {.call = call, .fails = FOR_EVER, .error = EACCES};
        ckpt_rank_t *ranks =
            ckpt_ranks_run(home, RANKS, 20, body_read_ill, &plan);

        for (int r = 0; r < RANKS; r++) {
            cr_assert_eq(ranks[r].code, ERR_DATA, "%s", ranks[r].err.text);
            cr_assert(strstr(ranks[r].err.text, "belongs to "), "%s",
                      ranks[r].err.text);
            cr_assert(strstr(ranks[r].err.text, strerror(EACCES)), "%s",
                      ranks[r].err.text);
        }
        ckpt_ranks_free(ranks, RANKS);
    }
    ckpt_home_remove(home);
}

/* One rank cannot read while another finds damage. Nothing is known about the
 * unread files, so no older checkpoint is used. */
Test(checkpoint_retry, ill_storage_weighs_more_than_damage)
{
    char *home = home_make();
    char *path = str_printf("%s/step-0000000020/shard-0.h5", home);
    plan_t plan = {.rank = 1, .call = 3, .fails = FOR_EVER, .error = EIO};
    ckpt_rank_t *ranks;

    cr_assert_eq(truncate(path, 100), 0); /* a file that rank 0 verifies */
    ranks = ckpt_ranks_run(home, RANKS, 20, body_read_ill, &plan);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(ranks[r].code, ERR_IO, "%s", ranks[r].err.text);
        cr_assert(strstr(ranks[r].err.text, "rank 1 on "), "%s",
                  ranks[r].err.text);
    }
    ckpt_ranks_free(ranks, RANKS);
    ckpt_expect(home, RANKS, 10);
    free(path);
    ckpt_home_remove(home);
}

/* Waits between tries last as long as configured. */
Test(checkpoint_retry, waits_show_signs_of_life)
{
    char *home = home_make();
    plan_t plan = {
        .call = 1, .fails = RETRY_TRIES, .error = EIO, .seconds = 0.07};
    ckpt_rank_t *ranks;
    double begin = clock_now();
    int usual;

    ckpt_ranks_free(
        ckpt_ranks_run(home, RANKS, 20, body_read_ill, &(plan_t){0}), RANKS);
    usual = atomic_exchange(&signs, 0);
    ranks = ckpt_ranks_run(home, RANKS, 20, body_read_ill, &plan);
    cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
    cr_assert_geq(clock_now() - begin, 0.07);
    cr_assert_geq(signs, usual + RETRY_TRIES);
    ckpt_ranks_free(ranks, RANKS);
    ckpt_home_remove(home);
}

/* ---- the best checkpoint ------------------------------------------------- */

/* Reads of best.json fail on this rank. */
static int best_ill_open(void *context, const char *path, int flags)
{
    (void)context;
    if (strstr(path, "/best.json") != NULL) {
        errno = EIO;
        return -1;
    }
    return hdf5io_io_system.open(NULL, path, flags);
}

typedef struct best_plan {
    bool best, ill;
} best_plan_t;

/* Keep one checkpoint beside the best one. */
static void body_write_best(ckpt_rank_t *rank, void *context)
{
    const best_plan_t *plan = context;
    const hdf5io_best_t best = {"valid_loss", 0.5, rank->state.progress.step};

    rank->config.keep = 1;
    rank->config.best = plan->best ? &best : NULL;
    if (plan->ill)
        rank->io.table.open = best_ill_open;
    ckpt_body_write(rank, NULL);
}

static void best_write(const char *home, int64_t step, best_plan_t plan)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, RANKS, step, body_write_best, &plan);

    cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
    ckpt_ranks_free(ranks, RANKS);
}

/* While storage does not tell which one it is, none is deleted. */
Test(checkpoint_retry, the_best_one_outlives_a_failed_read)
{
    char *home = ckpt_home_make();

    best_write(home, 10, (best_plan_t){.best = true});
    best_write(home, 20, (best_plan_t){0});
    best_write(home, 30, (best_plan_t){.ill = true});
    cr_expect_eq(ckpt_count(home, "step-"), 3);
    best_write(home, 40, (best_plan_t){0});
    cr_expect_eq(ckpt_count(home, "step-"), 2);
    cr_expect_eq(ckpt_count(home, "step-0000000010"), 1);
    ckpt_expect(home, RANKS, 40);
    ckpt_home_remove(home);
}

/* The run went back before its best checkpoint, and was killed before it could
 * remove best.json: there is no best checkpoint then. A later checkpoint with
 * the same name does not become the best one. */
Test(checkpoint_retry, a_best_one_that_is_gone_is_none)
{
    char *home = ckpt_home_make();
    char *old = str_printf("%s/step-0000000020", home);
    char *new =
        str_printf("%s/superseded-step-0000000020-00000000000000aa", home);
    char *file = str_printf("%s/best.json", home);
    hdf5io_best_t best = {.step = 7};
    err_t err = ERR_INIT;

    best_write(home, 10, (best_plan_t){0});
    best_write(home, 20, (best_plan_t){.best = true});
    cr_assert_eq(rename(old, new), 0);
    cr_expect_eq(hdf5io_best_read(&hdf5io_io_system, home, &best, &err),
                 ERR_OK);
    cr_expect_eq(best.step, -1);
    cr_expect_eq(access(file, F_OK), 0);
    best_write(home, 20, (best_plan_t){0});
    cr_expect_eq(hdf5io_best_read(&hdf5io_io_system, home, &best, &err),
                 ERR_OK);
    cr_expect_eq(best.step, -1);
    cr_expect_neq(access(file, F_OK), 0, "%s is still there", file);
    free(file);
    free(new);
    free(old);
    ckpt_home_remove(home);
}

/* best.json cannot be read. This does not mean that there is none. */
Test(checkpoint_retry, what_is_the_best_may_be_unknown)
{
    char *home = ckpt_home_make();
    hdf5io_io_t io = hdf5io_io_system;
    hdf5io_best_t best = {.step = 7};
    err_t err = ERR_INIT;

    cr_expect_eq(hdf5io_best_read(&io, home, &best, &err), ERR_OK);
    cr_expect_eq(best.step, -1);
    best_write(home, 10, (best_plan_t){.best = true});
    cr_expect_eq(hdf5io_best_read(&io, home, &best, &err), ERR_OK);
    cr_expect_eq(best.step, 10);
    io.open = best_ill_open;
    cr_expect_eq(hdf5io_best_read(&io, home, &best, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, "/best.json: "), "%s", err.text);
    cr_expect_eq(best.step, -1);
    ckpt_home_remove(home);
}

/* A save before the best one, which is then of a line that the run has left. */
Test(checkpoint_retry, no_best_one_of_an_abandoned_line)
{
    char *home = ckpt_home_make();

    best_write(home, 10, (best_plan_t){0});
    best_write(home, 20, (best_plan_t){.best = true});
    best_write(home, 15, (best_plan_t){0});
    cr_expect_eq(ckpt_count(home, "best.json"), 0);
    best_write(home, 20, (best_plan_t){0});
    best_write(home, 25, (best_plan_t){0});
    cr_expect_eq(ckpt_count(home, "step-"), 1);
    ckpt_expect(home, RANKS, 25);
    ckpt_home_remove(home);
}

/* A pipe in place of a file must not block, and counts as damage. */
Test(checkpoint_retry, what_is_no_file_is_damage)
{
    const char *const files[] = {"MANIFEST.json", "shard-1.h5"};

    for (int i = 0; i < 2; i++) {
        char *home = home_make();
        char *path = str_printf("%s/step-0000000020/%s", home, files[i]);

        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(mkfifo(path, 0666), 0);
        ckpt_expect(home, RANKS, 10);
        free(path);
        ckpt_home_remove(home);
    }
}

/* If a run goes on from an earlier checkpoint, the best checkpoint is renamed.
 * Then best.json is deleted at once, not by the next save. */
Test(checkpoint_retry, best_json_does_not_name_a_superseded_checkpoint)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/step-%010d", home, 10);
    const hdf5io_best_t best = {"valid_loss", 0.5, 20};
    bool elsewhere = true;
    err_t err = ERR_INIT;

    ckpt_write(home, RANKS, 10);
    ckpt_write(home, RANKS, 20);
    cr_assert_eq(hdf5io_best_write(home, &best, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(ckpt_count(home, "best.json"), 1);
    cr_assert_eq(hdf5io_checkpoint_supersede(home, path, 10, &elsewhere, &err),
                 ERR_OK, "%s", err.text);
    cr_expect_not(elsewhere);
    cr_expect_eq(ckpt_count(home, "superseded-"), 1);
    cr_expect_eq(ckpt_count(home, "best.json"), 0);
    free(path);
    ckpt_home_remove(home);
}
