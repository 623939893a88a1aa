/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The ucx backend: collectives with ranks as threads and as processes, faults
 * with processes that really die. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/collectives.h"
#include "lib/ranks.h"

/* Transports that exist on every machine. */
static void transports(void)
{
    setenv("UCX_TLS", "self,sysv,posix,cma,tcp", 0);
    setenv("UCX_NET_DEVICES", "lo", 0);
}

TestSuite(comm_ucx, .init = transports, .timeout = 120);

static void collectives_on(int count, bool large, bool threads)
{
    collectives_t what = {.backend = "ucx", .large = large};
    int results[RANKS_MAX];

    if (threads)
        cr_assert_eq(ranks_threads(count, collectives_run, &what), 0,
                     "%d ranks", count);
    else
        cr_assert_eq(ranks_forks(count, 60, collectives_run, &what, results), 0,
                     "%d ranks", count);
}

Test(comm_ucx, one_rank)
{
    collectives_on(1, false, true);
}

Test(comm_ucx, threads)
{
    collectives_on(2, true, true);
    collectives_on(3, false, true);
    collectives_on(4, false, true);
}

Test(comm_ucx, processes)
{
    collectives_on(3, true, false);
    collectives_on(5, false, false);
    collectives_on(8, false, false);
}

Test(comm_ucx, many_processes)
{
    collectives_on(17, false, false);
}

Test(comm_ucx, processes_over_tcp)
{
    setenv("UCX_TLS", "tcp,self", 1);
    collectives_on(4, true, false);
}

/* ---- faults -------------------------------------------------------------- */

typedef enum fault_kind { DIES, STOPS, LEAVES, STAYS_AWAY } fault_kind_t;

typedef struct fault_case {
    fault_kind_t kind;
    double timeout;
    double within; /* seconds in which all others must know */
    size_t count;  /* elements of the all-reduce */
} fault_case_t;

#define CULPRIT 1

static int culprit_end(comm_group_t *group, const fault_case_t *fault)
{
    fault_kind_t kind = fault->kind;
    comm_work_t *work;
    static float data[1000000];
    err_t err = ERR_INIT;

    comm_group_report(group, 40, "forward");
    if (kind == LEAVES) {
        comm_group_close(group);
        return 0;
    }
    if (kind == STAYS_AWAY) {
        while (comm_group_check(group, &err) == ERR_OK)
            usleep(10000);
        RANKS_CHECK(err.culprit == CULPRIT);
        comm_group_close(group);
        return 0;
    }
    RANKS_CHECK(comm_allreduce_start(group, data, fault->count, COMM_FLOAT32,
                                     COMM_SUM, &work, &err) == COMM_PENDING);
    usleep(1000);
    raise(kind == DIES ? SIGKILL : SIGSTOP);
    return 1;
}

static int run_fault(const comm_oob_t *oob, void *argument)
{
    const fault_case_t *fault = argument;
    comm_config_t config = {.backend = "ucx", .timeout = fault->timeout};
    comm_group_t *group;
    float *data = calloc(1000000, sizeof *data);
    double begin;
    err_t err = ERR_INIT;
    err_code_t code = ERR_OK;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    begin = clock_now();
    for (int i = 0; code == ERR_OK; i++) {
        if (oob->rank == CULPRIT && i == 5) {
            free(data);
            return culprit_end(group, fault);
        }
        code = comm_allreduce(group, data, fault->count, COMM_FLOAT32, COMM_SUM,
                              &err);
    }
    RANKS_CHECK(code == ERR_PEER);
    RANKS_CHECK(err.culprit == CULPRIT);
    RANKS_CHECK(strcmp(err.host, comm_group_host(group, CULPRIT)) == 0);
    RANKS_CHECK(clock_now() - begin < fault->within);
    RANKS_CHECK(comm_group_check(group, NULL) == ERR_PEER);
    RANKS_CHECK(comm_barrier(group, NULL) == ERR_PEER);
    begin = clock_now();
    comm_group_close(group);
    RANKS_CHECK(clock_now() - begin < 3);
    free(data);
    return 0;
}

static void fault_on(int count, fault_case_t fault, int expected)
{
    int results[RANKS_MAX];

    ranks_forks(count, 8, run_fault, &fault, results);
    for (int rank = 0; rank < count; rank++)
        cr_assert_eq(results[rank], rank == CULPRIT ? expected : 0,
                     "rank %d: %d", rank, results[rank]);
}

Test(comm_ucx, killed_rank_is_named_at_once)
{
    fault_on(4,
             (fault_case_t){
                 .kind = DIES, .timeout = 20, .within = 3, .count = 1000000},
             128 + SIGKILL);
}

Test(comm_ucx, killed_rank_is_named_at_once_in_small_collectives)
{
    fault_on(
        5,
        (fault_case_t){.kind = DIES, .timeout = 20, .within = 3, .count = 10},
        128 + SIGKILL);
}

Test(comm_ucx, killed_rank_is_named_over_tcp)
{
    setenv("UCX_TLS", "tcp,self", 1);
    fault_on(4,
             (fault_case_t){
                 .kind = DIES, .timeout = 20, .within = 3, .count = 1000000},
             128 + SIGKILL);
}

Test(comm_ucx, stopped_rank_is_named_after_the_timeout)
{
    fault_on(3,
             (fault_case_t){
                 .kind = STOPS, .timeout = 2, .within = 4.5, .count = 1000000},
             RANKS_KILLED);
}

Test(comm_ucx, absent_rank_is_named_after_the_timeout)
{
    fault_on(3,
             (fault_case_t){
                 .kind = STAYS_AWAY, .timeout = 2, .within = 4.5, .count = 10},
             0);
}

Test(comm_ucx, leaving_early_is_named_at_once)
{
    fault_on(
        3,
        (fault_case_t){.kind = LEAVES, .timeout = 20, .within = 2, .count = 10},
        0);
}
