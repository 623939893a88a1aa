/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Faults of staged groups: whatever fails, on whichever rank, all ranks end
 * with a sentence, and nothing stays open (the device checks that).
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm_split.h"
#include "comm/far_ranks.h"
#include "comm/waits.h"
#include "dev/dev_far.h"
#include "lib/ranks.h"

/* Elements of a collective: a slot and a half. */
#define COUNT ((size_t)400000)
/* Calls of the device that may fail when a rank closes all. */
#define CLOSING 4

/* ---- a call of the device fails ------------------------------------------ */

typedef struct failing {
    far_plan_t plan;
    int culprit;
    int64_t call;          /* number of the culprit's call that fails */
    bool over;             /* the culprit made fewer calls */
    err_t ends[RANKS_MAX]; /* how each rank ended */
} failing_t;

/* Two works whose data the device writes late, and whose result it reads. */
static err_code_t step_run(far_rank_t *far, float *host, float *data,
                           err_t *err)
{
    const size_t bytes = 2 * COUNT * sizeof *data;
    comm_work_t *works[2] = {NULL, NULL};
    err_t own = ERR_INIT;
    err_code_t rc = far_rank_put(far, data, host, bytes, true, err);

    for (int i = 0; rc == ERR_OK && i < 2; i++)
        if (comm_allreduce_start(far->group, data + (size_t)i * COUNT, COUNT,
                                 COMM_FLOAT32, COMM_SUM, &works[i],
                                 err) == COMM_FAILED)
            rc = err->code;
    for (int i = 0; i < 2; i++)
        if (comm_work_wait_on(works[i], far->stream, &own) != ERR_OK &&
            rc == ERR_OK)
            rc = err_copy(err, &own);
    return rc == ERR_OK ? far_rank_get(far, host, data, bytes, err) : rc;
}

static err_code_t failing_run(const failing_t *failing, far_rank_t *far,
                              comm_arena_t **arena, err_t *err)
{
    float *host = calloc(2 * COUNT, sizeof *host);
    err_code_t rc = far_rank_join(far, &failing->plan, err);

    if (rc == ERR_OK)
        rc = comm_arena_open(far->group, 2 * COUNT * sizeof *host, arena, err);
    if (rc == ERR_OK)
        rc = step_run(far, host, comm_arena_data(*arena), err);
    if (rc == ERR_OK)
        rc = comm_barrier(far->group, err);
    /* Of calls of its own the rank tells the others. */
    if (rc == ERR_UNAVAILABLE && far->group != NULL)
        comm_group_fail(far->group, err);
    (void)comm_barrier(far->control, NULL);
    if (rc == ERR_OK) /* the culprit failed after the end of its last work */
        rc = comm_group_check(far->group, err);
    /* What is pending may still use [host]; a wait may be what fails. */
    if (dev_stream_wait(far->stream, NULL) != ERR_OK)
        (void)dev_stream_wait(far->stream, NULL);
    free(host);
    return rc;
}

static int failing_main(const comm_oob_t *oob, void *argument)
{
    failing_t *failing = argument;
    comm_arena_t *arena = NULL;
    int64_t calls;
    far_rank_t far;
    err_t *end = &failing->ends[oob->rank];

    *end = (err_t)ERR_INIT;
    RANKS_OK(far_rank_open(&far, &failing->plan, oob, end), *end);
    calls = dev_far_counts(far.dev).calls;
    if (oob->rank == failing->culprit)
        dev_far_fail(far.dev, failing->call);
    (void)failing_run(failing, &far, &arena, end);
    calls = dev_far_counts(far.dev).calls - calls;
    if (oob->rank == failing->culprit)
        failing->over = calls + CLOSING < failing->call;
    comm_arena_close(arena);
    far_rank_close(&far);
    return 0;
}

/* Either all ranks end well, or none. A rank that fails later than at the start
 * is the culprit. */
static void ends_check(const failing_t *failing, int ranks)
{
    const err_t *own = &failing->ends[failing->culprit];

    for (int r = 0; r < ranks; r++) {
        const err_t *end = &failing->ends[r];

        cr_assert_eq(end->code == ERR_OK, own->code == ERR_OK,
                     "call %lld: rank %d: %s", (long long)failing->call, r,
                     end->text);
        if (end->code == ERR_OK)
            continue;
        cr_assert(strstr(end->text, "far: dev_"), "%s", end->text);
        if (r == failing->culprit || strstr(end->text, "cannot join"))
            continue;
        cr_assert_eq(end->code, ERR_PEER, "%s", end->text);
        cr_assert_eq(end->culprit, failing->culprit, "%s", end->text);
    }
}

/* A sanitizer makes a run up to twenty times as long: there each call fails in
 * one order only, without one it fails in all of them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void every_call_fails(const char *backend, int order)
{
    const int64_t step = SANITIZED ? DEV_FAR_ORDERS : 1;
    failing_t *failing = calloc(1, sizeof *failing);
    int64_t failures = 0;

    *failing = (failing_t){.plan = {backend, order, 60}, .culprit = 1};
    failing->call = SANITIZED ? order + 1 : 1;
    while (!failing->over) {
        cr_assert_eq(ranks_threads(3, failing_main, failing), 0);
        ends_check(failing, 3);
        failures += failing->ends[0].code != ERR_OK;
        failing->call += step;
    }
    cr_assert_gt(failures, 50 / step);
    free(failing);
}

Test(staged_faults, every_call_that_fails_ends_all_ranks, .timeout = 300)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        every_call_fails("threads", order);
}

/* ---- what other ranks do ------------------------------------------------- */

typedef enum away {
    AWAY_ABSENT,  /* it never starts the collective */
    AWAY_LEAVES,  /* it closes the group with its collective pending */
    AWAY_DIFFERS, /* it starts another collective */
    AWAY_SLOW     /* it is late, but reports progress */
} away_t;

typedef struct fault {
    far_plan_t plan;
    away_t away;
    err_code_t expected;
} fault_t;

/* Rank 1. The others have started their collectives when the control group's
 * barrier ends. */
static int culprit_run(far_rank_t *far, const fault_t *fault, float *data)
{
    const double end = clock_now() + 3 * fault->plan.timeout;
    const size_t count = fault->away == AWAY_DIFFERS ? 7 : COUNT;
    comm_work_t *work = NULL;
    err_t err = ERR_INIT;

    if (fault->away == AWAY_LEAVES)
        RANKS_CHECK(comm_allreduce_start(far->group, data, COUNT, COMM_FLOAT32,
                                         COMM_SUM, &work,
                                         &err) == COMM_PENDING);
    RANKS_OK(comm_barrier(far->control, &err), err);
    if (fault->away == AWAY_LEAVES)
        return 0;
    while (fault->away != AWAY_DIFFERS && clock_now() < end) {
        usleep(20000); /* away on purpose: how long is what is tested */
        if (fault->away == AWAY_SLOW)
            comm_group_report(far->group, 4, "backward");
        comm_group_report(far->control, 4, "backward");
    }
    for (int i = 0; i < 2; i++)
        RANKS_CHECK(comm_allreduce(far->group, data, count, COMM_FLOAT32,
                                   COMM_SUM, &err) == fault->expected);
    return 0;
}

/* The other ranks. One of their collectives waits behind the other. */
static int waiter_run(far_rank_t *far, const fault_t *fault, float *data)
{
    comm_work_t *works[2];
    err_t err = ERR_INIT;

    for (int i = 0; i < 2; i++)
        RANKS_CHECK(comm_allreduce_start(far->group, data, COUNT, COMM_FLOAT32,
                                         COMM_SUM, &works[i],
                                         &err) == COMM_PENDING);
    RANKS_OK(comm_barrier(far->control, &err), err);
    /* The culprit may have finished the first one before it leaves. */
    if (comm_work_wait(works[0], &err) != fault->expected)
        RANKS_CHECK(fault->away == AWAY_LEAVES);
    RANKS_CHECK(comm_work_wait(works[1], &err) == fault->expected);
    if (fault->expected == ERR_OK)
        return 0;
    RANKS_CHECK(fault->expected != ERR_PEER || err.culprit == 1);
    RANKS_CHECK(comm_group_check(far->group, &err) == fault->expected);
    RANKS_CHECK(comm_barrier(far->group, &err) == fault->expected);
    return 0;
}

static int fault_main(const comm_oob_t *oob, void *argument)
{
    const fault_t *fault = argument;
    void *data = NULL;
    far_rank_t far;
    err_t err = ERR_INIT;
    int failed;

    RANKS_OK(far_rank_open(&far, &fault->plan, oob, &err), err);
    RANKS_OK(far_rank_join(&far, &fault->plan, &err), err);
    RANKS_OK(dev_alloc(far.dev, COUNT * sizeof(float), "data", &data, &err),
             err);
    failed = (oob->rank == 1 ? culprit_run : waiter_run)(&far, fault, data);
    comm_group_close(far.group); /* before the memory that it works on */
    far.group = NULL;
    dev_free(far.dev, data);
    far_rank_close(&far);
    return failed;
}

/* Over ucx the ranks are processes, and one that stalls may be killed. */
static void fault_ranks(away_t away, double timeout, err_code_t expected)
{
    fault_t fault = {.plan = {"threads", DEV_FAR_NEEDED_ONLY, timeout},
                     .away = away,
                     .expected = expected};
    int results[3];

    cr_assert_eq(ranks_threads(3, fault_main, &fault), 0);
    fault.plan.backend = "ucx";
    ranks_forks(3, waits_deadline(timeout), fault_main, &fault, results);
    cr_assert_eq(results[0], 0);
    cr_assert_eq(results[2], 0);
}

Test(staged_faults, an_absent_rank_is_named, .timeout = 1800)
{
    fault_ranks(AWAY_ABSENT, waits_timeout(0.5), ERR_PEER);
}

Test(staged_faults, leaving_early_is_named_at_once, .timeout = 120)
{
    const double begin = clock_now();

    ranks_transports();
    fault_ranks(AWAY_LEAVES, 30, ERR_PEER);
    cr_assert_lt(clock_now() - begin, 30);
}

Test(staged_faults, different_calls_are_found, .timeout = 120)
{
    ranks_transports();
    fault_ranks(AWAY_DIFFERS, 30, ERR_CONFIG);
}

Test(staged_faults, a_slow_rank_that_reports_is_no_culprit, .timeout = 1800)
{
    fault_ranks(AWAY_SLOW, waits_timeout(0.5), ERR_OK);
}

/* ---- devices ------------------------------------------------------------- */

/* Rank 0 computes on the host, the others on devices. */
static int mixed_main(const comm_oob_t *oob, void *argument)
{
    const far_plan_t plan = {"threads", DEV_FAR_LAST_FIRST, 20};
    const comm_config_t host = {.backend = "threads", .timeout = 20};
    comm_group_t *group = NULL;
    far_rank_t far;
    err_t err = ERR_INIT;
    err_code_t rc;

    (void)argument;
    RANKS_OK(far_rank_open(&far, &plan, oob, &err), err);
    rc = oob->rank == 0 ? comm_split_whole(far.control, &host, &group, &err)
                        : far_rank_join(&far, &plan, &err);
    RANKS_CHECK(rc == ERR_CONFIG);
    RANKS_CHECK(group == NULL && far.group == NULL);
    RANKS_CHECK(strstr(err.text, "\"cpu\"") && strstr(err.text, "\"far\""));
    far_rank_close(&far);
    return 0;
}

Test(staged_faults, all_ranks_need_the_same_device, .timeout = 60)
{
    cr_assert_eq(ranks_threads(3, mixed_main, NULL), 0);
}
