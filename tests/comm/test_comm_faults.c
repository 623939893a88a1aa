/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Faults of the ucx backend, with processes that really die, stop, stay away or
 * leave, on one host and on two. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/waits.h"
#include "lib/ranks.h"

/* Seconds after which a test is taken to hang. */
TestSuite(comm_faults, .init = ranks_transports, .timeout = 600);

typedef enum fault_kind {
    DIES,          /* in the middle of a collective */
    DIES_SOMEWHEN, /* at a random time */
    DIES_AWAY,     /* while it computes and the others wait */
    STOPS,
    LEAVES,
    STAYS_AWAY
} fault_kind_t;

typedef struct fault_case {
    fault_kind_t kind;
    double timeout;
    size_t count; /* elements of the all-reduce */
    bool two_hosts;
    bool arena; /* the data is in an arena: the node stage is used */
} fault_case_t;

#define CULPRIT 1
#define MOST 1000000

/* Pretend that ranks 0 and 1 are on one host, and the others on another. */
static comm_oob_t two_hosts(const comm_oob_t *oob)
{
    comm_oob_t pretended = *oob;

    pretended.host = oob->rank < 2 ? "left" : "right";
    return pretended;
}

/* Whether the other ranks find the fault only after the timeout. */
static bool is_silent(const fault_case_t *fault)
{
    return fault->kind == STOPS || fault->kind == STAYS_AWAY;
}

/* Seconds within which all other ranks must know. A fault that is not silent is
 * known before a timeout could end. */
static double within(const fault_case_t *fault)
{
    return is_silent(fault) ? 3 * fault->timeout : fault->timeout;
}

static void culprit_timer(void)
{
    struct itimerval timer = {.it_value.tv_usec = 1 + getpid() % 97 * 800};

    setitimer(ITIMER_REAL, &timer, NULL); /* SIGALRM ends the process */
}

static int culprit_end(comm_group_t *group, const fault_case_t *fault,
                       float *data)
{
    comm_work_t *work;
    err_t err = ERR_INIT;

    comm_group_report(group, 40, "forward");
    if (fault->kind == LEAVES) {
        comm_group_close(group);
        return 0;
    }
    if (fault->kind == STAYS_AWAY) {
        waits_fault(group, &err);
        RANKS_CHECK(err.culprit == CULPRIT);
        comm_group_close(group);
        return 0;
    }
    if (fault->kind == DIES_AWAY) {
        /* Away on purpose, until the other ranks have stopped spinning and
         * sleep. No event tells when that is. */
        usleep(200000);
        raise(SIGKILL);
    }
    RANKS_CHECK(comm_allreduce_start(group, data, fault->count, COMM_FLOAT32,
                                     COMM_SUM, &work, &err) == COMM_PENDING);
    usleep(1000); /* so that it ends in the middle of the collective */
    raise(fault->kind == STOPS ? SIGSTOP : SIGKILL);
    return 1;
}

/* Check what every surviving rank finds. */
static int survivor_check(comm_group_t *group, const err_t *err,
                          const fault_case_t *fault, double begin)
{
    err_t again = ERR_INIT;

    RANKS_CHECK(clock_now() - begin < within(fault));
    if (err->code != ERR_PEER || err->culprit != CULPRIT)
        fprintf(stderr, "rank %d: %s\n", comm_group_rank(group), err->text);
    RANKS_CHECK(err->code == ERR_PEER);
    RANKS_CHECK(err->culprit == CULPRIT);
    RANKS_CHECK(strcmp(err->host, comm_group_host(group, CULPRIT)) == 0);
    RANKS_CHECK(comm_group_check(group, NULL) == ERR_PEER);
    RANKS_CHECK(comm_barrier(group, &again) == ERR_PEER);
    RANKS_CHECK(again.culprit == CULPRIT);
    begin = clock_now();
    comm_group_close(group);
    RANKS_CHECK(clock_now() - begin < 2 * fault->timeout);
    return 0;
}

static int run_fault(const comm_oob_t *oob, void *argument)
{
    const fault_case_t *fault = argument;
    comm_oob_t apart = two_hosts(oob);
    comm_config_t config = {.backend = "ucx", .timeout = fault->timeout};
    float *plain = calloc(MOST, sizeof *plain), *data = plain;
    comm_arena_t *arena = NULL;
    comm_group_t *group;
    int failed = 0;
    double begin;
    err_t err = ERR_INIT;

    /* the default of programs; Criterion ignores SIGPIPE */
    signal(SIGPIPE, SIG_DFL);
    if (fault->two_hosts)
        oob = &apart;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    if (fault->arena) {
        RANKS_OK(comm_arena_open(group, MOST * sizeof *data, &arena, &err),
                 err);
        data = comm_arena_data(arena);
    }
    if (fault->kind == DIES_SOMEWHEN && oob->rank == CULPRIT)
        culprit_timer();
    begin = clock_now();
    for (int i = 0; err.code == ERR_OK && !failed; i++) {
        if (oob->rank == CULPRIT && i == 5 && fault->kind != DIES_SOMEWHEN) {
            failed = culprit_end(group, fault, data);
            free(plain);
            return failed;
        }
        comm_allreduce(group, data, fault->count, COMM_FLOAT32, COMM_SUM, &err);
    }
    failed = survivor_check(group, &err, fault, begin);
    free(plain);
    return failed;
}

static void fault_on(int count, fault_case_t fault, int expected)
{
    int results[RANKS_MAX];

    if (is_silent(&fault)) /* no other rank may seem silent */
        fault.timeout = waits_timeout(fault.timeout);
    ranks_forks(count, 6 * fault.timeout, run_fault, &fault, results);
    for (int rank = 0; rank < count; rank++)
        cr_assert_eq(results[rank], rank == CULPRIT ? expected : 0,
                     "rank %d: %d", rank, results[rank]);
}

static const fault_case_t dies = {.kind = DIES, .timeout = 30, .count = MOST};

Test(comm_faults, killed_rank_is_named_at_once)
{
    fault_on(4, dies, 128 + SIGKILL);
}

Test(comm_faults, killed_rank_is_named_in_small_collectives)
{
    fault_case_t fault = dies;

    fault.count = 10;
    fault_on(5, fault, 128 + SIGKILL);
}

Test(comm_faults, killed_rank_is_named_over_tcp)
{
    setenv("UCX_TLS", "tcp,self", 1);
    fault_on(4, dies, 128 + SIGKILL);
}

Test(comm_faults, killed_rank_is_named_on_two_hosts)
{
    fault_case_t fault = dies;

    fault.two_hosts = true;
    fault_on(4, fault, 128 + SIGKILL);
    fault.count = 10;
    fault_on(4, fault, 128 + SIGKILL);
}

/* More ranks than a rank has neighbours: the news of the fault has to be passed
 * on. */
Test(comm_faults, killed_rank_is_named_in_a_large_group)
{
    fault_case_t fault = dies;

    fault.count = 100;
    fault_on(40, fault, 128 + SIGKILL);
}

Test(comm_faults, killed_at_random_moments)
{
    for (int i = 0; i < 6; i++) {
        fault_case_t fault = dies;

        fault.kind = DIES_SOMEWHEN;
        fault.count = i % 2 ? 50000 : 20;
        fault.two_hosts = i % 3 == 2;
        fault_on(3 + i % 2, fault, 128 + SIGALRM);
    }
}

static const fault_case_t stops = {.kind = STOPS, .timeout = 2, .count = 5000};

/* The other ranks of its node also kill the stopped rank, so that the job step
 * ends. */
Test(comm_faults, stopped_rank_is_named_after_the_timeout)
{
    fault_on(3, stops, 128 + SIGKILL);
}

Test(comm_faults, stopped_rank_is_named_on_two_hosts)
{
    fault_case_t fault = stops;

    fault.two_hosts = true;
    fault_on(4, fault, 128 + SIGKILL);
}

Test(comm_faults, absent_rank_is_named_after_the_timeout)
{
    fault_case_t fault = stops;

    fault.kind = STAYS_AWAY;
    fault.timeout = 4;
    fault_on(3, fault, 0);
}

Test(comm_faults, leaving_early_is_named_at_once)
{
    fault_case_t fault = dies;

    fault.kind = LEAVES;
    fault_on(3, fault, 0);
    fault.two_hosts = true;
    fault_on(4, fault, 0);
}

/* As above, but the data is exchanged through shared memory. */
Test(comm_faults, in_the_node_stage)
{
    fault_case_t fault = dies;

    fault.arena = true;
    fault_on(4, fault, 128 + SIGKILL);
    fault.count = 10;
    fault_on(3, fault, 128 + SIGKILL);
    for (int i = 0; i < 4; i++) {
        fault.kind = DIES_SOMEWHEN;
        fault.count = i % 2 ? 500000 : 20;
        fault_on(3, fault, 128 + SIGALRM);
    }
    fault = stops;
    fault.arena = true;
    fault_on(3, fault, 128 + SIGKILL);
    fault = dies;
    fault.arena = true;
    fault.kind = LEAVES;
    fault_on(3, fault, 0);
    fault = stops;
    fault.arena = true;
    fault.kind = STAYS_AWAY;
    fault.timeout = 4;
    fault_on(3, fault, 0);
}

/* A waiting rank wakes the comm thread of a rank that computes. Here that rank
 * has died. */
Test(comm_faults, killed_rank_is_named_while_it_is_rung_for)
{
    fault_case_t fault = dies;

    fault.kind = DIES_AWAY;
    fault.count = 500000;
    fault_on(2, fault, 128 + SIGKILL);
    fault_on(5, fault, 128 + SIGKILL);
    fault.arena = fault.two_hosts = true;
    fault_on(4, fault, 128 + SIGKILL);
}

/* On two hosts: of four ranks the culprit owns a slice; of three it owns none.
 */
Test(comm_faults, in_the_node_stage_on_two_hosts)
{
    fault_case_t fault = dies;

    fault.arena = fault.two_hosts = true;
    fault_on(4, fault, 128 + SIGKILL);
    fault.count = 10;
    fault_on(3, fault, 128 + SIGKILL);
    for (int i = 0; i < 4; i++) {
        fault.kind = DIES_SOMEWHEN;
        fault.count = i % 2 ? 500000 : 20;
        fault_on(3 + i / 2, fault, 128 + SIGALRM);
    }
    fault.count = 5000;
    fault.kind = LEAVES;
    fault_on(4, fault, 0);
}

Test(comm_faults, stopped_in_the_node_stage_on_two_hosts)
{
    fault_case_t fault = stops;

    fault.arena = fault.two_hosts = true;
    fault_on(4, fault, 128 + SIGKILL);
    fault.kind = STAYS_AWAY;
    fault.timeout = 4;
    fault_on(3, fault, 0);
}

/* ---- what is no fault ---------------------------------------------------- */

typedef struct leave {
    double timeout;
    bool two_hosts;
} leave_t;

/* A rank closes its group and exits early, when the other ranks no longer need
 * it. */
static int run_leave(const comm_oob_t *oob, void *argument)
{
    const leave_t *leave = argument;
    comm_config_t config = {.backend = "ucx", .timeout = leave->timeout};
    comm_oob_t apart = two_hosts(oob);
    comm_group_t *group;
    double begin;
    err_t err = ERR_INIT;

    if (leave->two_hosts)
        oob = &apart;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_barrier(group, &err), err);
    /* Time itself is what is tested: longer than the timeout, because the
     * silence of a rank that has left is no fault. */
    if (oob->rank > 0)
        usleep((useconds_t)(1.5e6 * leave->timeout));
    RANKS_OK(comm_group_check(group, &err), err);
    begin = clock_now();
    comm_group_close(group);
    RANKS_CHECK(clock_now() - begin < 0.9 * leave->timeout);
    return 0;
}

Test(comm_faults, clean_close_is_silent)
{
    leave_t leave = {.timeout = waits_timeout(1)};
    const double deadline = waits_deadline(leave.timeout);
    int results[4];

    cr_assert_eq(ranks_forks(3, deadline, run_leave, &leave, results), 0);
    leave.two_hosts = true;
    cr_assert_eq(ranks_forks(4, deadline, run_leave, &leave, results), 0);
}

/* Fork a process that waits until the group works and then stops all ranks for
 * longer than the timeout, as when a machine is suspended. A byte written to
 * *go starts it. */
static pid_t suspender(const int *pids, int count, double seconds, int *go)
{
    int ends[2];
    char byte;
    pid_t child;

    if (pipe(ends) != 0)
        return -1;
    child = fork();
    if (child != 0) {
        close(ends[0]);
        *go = ends[1];
        return child;
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        _exit(1); /* rank 0 has ended */
    for (int i = 0; i < count; i++)
        kill(pids[i], SIGSTOP);
    /* Time itself is what is tested: the ranks are stopped for this long. */
    usleep((useconds_t)(seconds * 1e6));
    for (int i = 0; i < count; i++)
        kill(pids[i], SIGCONT);
    _exit(0);
}

/* On rank 0: is the suspension over, and the timeout after it as well? */
static bool suspend_over(pid_t child, double timeout, double *end)
{
    if (*end == 0 && waitpid(child, NULL, WNOHANG) == child)
        *end = clock_now() + 1.5 * timeout;
    return *end > 0 && clock_now() >= *end;
}

static int run_suspend(const comm_oob_t *oob, void *argument)
{
    const double timeout = *(const double *)argument;
    comm_config_t config = {.backend = "ucx", .timeout = timeout};
    int pid = getpid(), pids[RANKS_MAX], go = -1;
    double end = 0, sum = 0;
    pid_t child = -1;
    comm_group_t *group;
    err_t err = ERR_INIT;

    RANKS_OK(oob->exchange(oob->context, &pid, sizeof pid, pids, &err), err);
    if (oob->rank == 0) {
        child = suspender(pids, oob->size, 2.5 * timeout, &go);
        RANKS_CHECK(child > 0);
    }
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_barrier(group, &err), err);
    RANKS_CHECK(oob->rank > 0 || write(go, "", 1) == 1);
    do { /* until rank 0 sees the end of the suspension */
        sum = oob->rank == 0 && suspend_over(child, timeout, &end);
        usleep(2000); /* away on purpose, as a rank that computes */
        RANKS_OK(comm_allreduce(group, &sum, 1, COMM_FLOAT64, COMM_SUM, &err),
                 err);
    } while (sum < 0.5);
    comm_group_close(group);
    return 0;
}

Test(comm_faults, a_suspended_machine_blames_nobody)
{
    double timeout = waits_timeout(1);
    int results[3];

    cr_assert_eq(ranks_forks(3, 20 * timeout, run_suspend, &timeout, results),
                 0);
}
