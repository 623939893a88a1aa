/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The self and threads backends: collectives, faults, leaving. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/collectives.h"
#include "comm/waits.h"
#include "lib/ranks.h"

Test(comm_threads, self, .timeout = 60)
{
    collectives_t what = {.backend = "self", .large = true};

    cr_assert_eq(ranks_threads(1, collectives_run, &what), 0);
}

Test(comm_threads, collectives, .timeout = 120)
{
    static const int counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        collectives_t what = {
            .backend = "threads", .large = counts[i] == 3, .rank_order = true};

        cr_assert_eq(ranks_threads(counts[i], collectives_run, &what), 0,
                     "%d ranks", counts[i]);
    }
}

static int run_barrier(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "threads", .timeout = 20};
    atomic_int *arrivals = argument;
    comm_group_t *group;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (int round = 1; round <= 1000; round++) {
        atomic_fetch_add(arrivals, 1);
        RANKS_OK(comm_barrier(group, &err), err);
        RANKS_CHECK(atomic_load(arrivals) >= round * oob->size);
    }
    comm_group_close(group);
    return 0;
}

Test(comm_threads, barrier, .timeout = 60)
{
    atomic_int arrivals = 0;

    cr_assert_eq(ranks_threads(3, run_barrier, &arrivals), 0);
}

/* ---- faults -------------------------------------------------------------- */

typedef struct fault_case {
    double timeout;
    int culprit;
    double late;  /* seconds that the culprit stays away */
    bool leaves;  /* instead of staying away, it closes its group early */
    bool reports; /* it reports progress while it is away */
    err_code_t expected;
} fault_case_t;

static int culprit_run(comm_group_t *group, const fault_case_t *fault)
{
    double end = clock_now() + fault->late;
    float one = 1;
    err_t err = ERR_INIT;
    err_code_t code;

    if (fault->leaves)
        return 0;
    comm_group_report(group, 40, "forward");
    while (clock_now() < end) {
        usleep(20000); /* away on purpose: how long is what is tested */
        if (fault->reports)
            comm_group_report(group, 41, "staging");
    }
    code = comm_allreduce(group, &one, 1, COMM_FLOAT32, COMM_SUM, &err);
    RANKS_CHECK(code == fault->expected);
    return 0;
}

static int run_fault(const comm_oob_t *oob, void *argument)
{
    const fault_case_t *fault = argument;
    comm_config_t config = {.backend = "threads", .timeout = fault->timeout};
    comm_group_t *group;
    double begin;
    float one = 1;
    err_t err = ERR_INIT;
    err_code_t code;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_barrier(group, &err), err);
    if (oob->rank == fault->culprit) {
        int failed = culprit_run(group, fault);

        comm_group_close(group);
        return failed;
    }
    begin = clock_now();
    code = comm_allreduce(group, &one, 1, COMM_FLOAT32, COMM_SUM, &err);
    RANKS_CHECK(code == fault->expected);
    if (code != ERR_OK) {
        RANKS_CHECK(err.culprit == fault->culprit);
        RANKS_CHECK(strcmp(err.host, comm_group_host(group, err.culprit)) == 0);
        RANKS_CHECK(clock_now() - begin < fault->timeout * 2 + 1);
        RANKS_CHECK(comm_group_check(group, &err) == ERR_PEER);
        RANKS_CHECK(comm_barrier(group, &err) == ERR_PEER);
        RANKS_CHECK(err.culprit == fault->culprit);
        RANKS_CHECK(fault->leaves || strstr(err.text, "forward") != NULL);
    }
    comm_group_close(group);
    return 0;
}

Test(comm_threads, absent_rank_is_named, .timeout = 60)
{
    fault_case_t fault = {
        .timeout = waits_timeout(0.4), .culprit = 2, .expected = ERR_PEER};

    fault.late = 4 * fault.timeout;
    cr_assert_eq(ranks_threads(4, run_fault, &fault), 0);
}

Test(comm_threads, leaving_early_is_named_at_once, .timeout = 60)
{
    fault_case_t fault = {
        .timeout = 30, .culprit = 1, .leaves = true, .expected = ERR_PEER};
    double begin = clock_now();

    cr_assert_eq(ranks_threads(3, run_fault, &fault), 0);
    cr_assert_lt(clock_now() - begin, fault.timeout);
}

Test(comm_threads, a_slow_rank_that_reports_is_no_culprit, .timeout = 60)
{
    fault_case_t fault = {.timeout = waits_timeout(0.5),
                          .culprit = 0,
                          .reports = true,
                          .expected = ERR_OK};

    fault.late = 3 * fault.timeout;
    cr_assert_eq(ranks_threads(3, run_fault, &fault), 0);
}

/* The all-reduce that rank 1 starts; the other ranks start one of one float32.
 */
typedef struct mismatch {
    size_t count;
    comm_type_t type;
    const char *text;
} mismatch_t;

static int run_mismatch(const comm_oob_t *oob, void *argument)
{
    const mismatch_t *odd = argument;
    comm_config_t config = {.backend = "threads", .timeout = 5};
    comm_group_t *group;
    float data[2] = {0, 0};
    err_t err = ERR_INIT;
    err_code_t code;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    code =
        oob->rank == 1
            ? comm_allreduce(group, data, odd->count, odd->type, COMM_SUM, &err)
            : comm_allreduce(group, data, 1, COMM_FLOAT32, COMM_SUM, &err);
    RANKS_CHECK(code == ERR_CONFIG);
    RANKS_CHECK(strstr(err.text, odd->text) != NULL);
    RANKS_CHECK(strstr(err.text, "rank 0 an all-reduce of 1 float32, sum:") !=
                NULL);
    comm_group_close(group);
    return 0;
}

static int run_two_roots(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "threads", .timeout = 5};
    comm_group_t *group;
    float data[2] = {0, 0};
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_CHECK(comm_broadcast(group, data, sizeof data, oob->rank, &err) ==
                ERR_CONFIG);
    RANKS_CHECK(strstr(err.text, "broadcast of 8 bytes from rank 1") != NULL);
    RANKS_CHECK(strstr(err.text, "broadcast of 8 bytes from rank 0") != NULL);
    comm_group_close(group);
    return 0;
}

Test(comm_threads, different_arguments_are_told, .timeout = 60)
{
    mismatch_t odd[] = {
        {2, COMM_FLOAT32, "rank 1 called an all-reduce of 2 float32, sum, "},
        {1, COMM_INT32, "rank 1 called an all-reduce of 1 int32, sum, "}};

    cr_assert_eq(ranks_threads(3, run_mismatch, &odd[0]), 0);
    cr_assert_eq(ranks_threads(3, run_mismatch, &odd[1]), 0);
    cr_assert_eq(ranks_threads(2, run_two_roots, NULL), 0);
}

/* Rank 0 closes its group with work pending: the other ranks name it, and none
 * hangs. */
static int run_pending(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "threads", .timeout = 20};
    comm_group_t *group;
    comm_work_t *work;
    float data = 1;
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    if (oob->rank == 0) {
        RANKS_CHECK(comm_allreduce_start(group, &data, 1, COMM_FLOAT32,
                                         COMM_SUM, &work,
                                         &err) == COMM_PENDING);
    } else {
        waits_fault(group, &err);
        RANKS_CHECK(err.culprit == 0);
    }
    comm_group_close(group);
    return 0;
}

Test(comm_threads, closing_with_pending_work, .timeout = 60)
{
    cr_assert_eq(ranks_threads(3, run_pending, NULL), 0);
}

static int run_full(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "threads", .timeout = 20};
    comm_group_t *group;
    comm_work_t *works[256], *extra;
    float data[256] = {0};
    char met = 1, all_met[2];
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (int i = 0; i < 256; i++)
        RANKS_CHECK(comm_allreduce_start(group, &data[i], 1, COMM_FLOAT32,
                                         COMM_SUM, &works[i],
                                         &err) == COMM_PENDING);
    RANKS_CHECK(comm_barrier_start(group, &extra, &err) == COMM_FAILED);
    RANKS_CHECK(err.code == ERR_CONFIG);
    RANKS_OK(oob->exchange(oob->context, &met, sizeof met, all_met, &err), err);
    for (int i = 0; i < 256; i++)
        RANKS_OK(comm_work_wait(works[i], &err), err);
    RANKS_OK(comm_barrier(group, &err), err);
    comm_group_close(group);
    return 0;
}

Test(comm_threads, too_many_in_flight_is_an_error, .timeout = 60)
{
    cr_assert_eq(ranks_threads(2, run_full, NULL), 0);
}

Test(comm_threads, one_error_for_unknown_backends)
{
    comm_config_t config = {.backend = "smoke", .timeout = 1};
    comm_oob_t oob = {.rank = 0, .size = 1};
    comm_group_t *group;
    err_t err = ERR_INIT;

    cr_assert_eq(comm_group_open(&config, &oob, &group, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "smoke"));
}

/* ---- the forked ranks of tests/lib --------------------------------------- */

static int run_forked(const comm_oob_t *oob, void *argument)
{
    int mine[2], all[8] = {0};
    err_t err = ERR_INIT;

    (void)argument;
    for (int round = 0; round < 3; round++) {
        mine[0] = oob->rank;
        mine[1] = round;
        RANKS_OK(oob->exchange(oob->context, mine, sizeof mine, all, &err),
                 err);
        for (int i = 0; i < oob->size; i++)
            RANKS_CHECK(all[2 * i] == i && all[2 * i + 1] == round);
    }
    if (oob->rank == 1)
        return 7;
    if (oob->rank == 2)
        raise(SIGKILL);
    if (oob->rank == 3)
        raise(SIGSTOP);
    return 0;
}

Test(ranks, forks_tell_how_they_ended, .timeout = 60)
{
    int results[4];

    cr_assert_eq(ranks_forks(4, 50, run_forked, NULL, results), 3);
    cr_assert_eq(results[0], 0);
    cr_assert_eq(results[1], 7);
    cr_assert_eq(results[2], 128 + SIGKILL);
    cr_assert_eq(results[3], RANKS_KILLED);
}
