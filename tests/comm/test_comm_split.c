/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Sub-groups of groups of threads and of processes: their members, works in
 * several of them at once, wrong lists of ranks, no memory, faults. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/comm_split.h"
#include "comm/waits.h"
#include "lib/alloc_fail.h"
#include "lib/ranks.h"

TestSuite(comm_split, .init = ranks_transports, .timeout = 600);

/* Nodes of two, three and two ranks; ranks of one node are not consecutive. */
static const char *const hosts[] = {"n0", "n1", "n1", "n0", "n2", "n1", "n2"};
#define SIZE 7

typedef struct split_case {
    const char *backend;
    double timeout;
} split_case_t;

static err_code_t parent_open(const comm_oob_t *given, const split_case_t *what,
                              comm_group_t **out, err_t *err)
{
    comm_config_t config = {.backend = what->backend, .timeout = what->timeout};
    comm_oob_t oob = *given;

    if (strcmp(what->backend, "threads") != 0)
        oob.host = hosts[oob.rank];
    return comm_group_open(&config, &oob, out, err);
}

/* Check the sum of the parent's rank numbers over the sub-group. */
static int check_sum(comm_group_t *group, int mine, const int *ranks, int count)
{
    int32_t sum = mine, expected = 0;
    int all[SIZE];
    err_t err = ERR_INIT;

    RANKS_CHECK(comm_group_size(group) == count);
    RANKS_CHECK(ranks[comm_group_rank(group)] == mine);
    for (int i = 0; i < count; i++)
        expected += ranks[i];
    RANKS_OK(comm_allreduce(group, &sum, 1, COMM_INT32, COMM_SUM, &err), err);
    RANKS_CHECK(sum == expected);
    RANKS_OK(comm_allgather(group, &mine, sizeof mine, all, &err), err);
    for (int i = 0; i < count; i++)
        RANKS_CHECK(all[i] == ranks[i]);
    return 0;
}

/* ---- who is in ----------------------------------------------------------- */

static const int nodes[][4] = {{2, 0, 3}, {3, 1, 2, 5}, {2, 4, 6}};
static const int across[][4] = {{3, 0, 1, 4}, {3, 2, 3, 6}, {1, 5}};

static int check_split(comm_group_t *parent, comm_split_t how,
                       const int (*expected)[4])
{
    int rank = comm_group_rank(parent), ranks[SIZE], failed, count;
    const int *row = expected[0];
    comm_group_t *group;
    err_t err = ERR_INIT;

    for (int i = 0; i < 3; i++)
        for (int j = 1; j <= expected[i][0]; j++)
            row = expected[i][j] == rank ? expected[i] : row;
    count = comm_split_ranks(parent, how, ranks);
    RANKS_CHECK(count == row[0]);
    RANKS_CHECK(memcmp(ranks, row + 1, (size_t)count * sizeof *ranks) == 0);
    RANKS_OK(comm_split_open(parent, ranks, count, &group, &err), err);
    failed = check_sum(group, rank, ranks, count);
    comm_group_close(group);
    return failed;
}

static int run_split(const comm_oob_t *oob, void *argument)
{
    comm_group_t *parent;
    err_t err = ERR_INIT;
    int failed;

    RANKS_OK(parent_open(oob, argument, &parent, &err), err);
    failed = check_split(parent, COMM_SPLIT_NODE, nodes) ||
             check_split(parent, COMM_SPLIT_ACROSS, across);
    comm_group_close(parent);
    return failed;
}

Test(comm_split, node_and_across)
{
    split_case_t what = {.backend = "ucx", .timeout = 20};
    int results[SIZE];

    cr_assert_eq(ranks_forks(SIZE, 60, run_split, &what, results), 0);
}

/* ---- lists --------------------------------------------------------------- */

/* A sub-group of three ranks that are not in ascending order, one of two ranks,
 * one of a single rank, and a rank in no sub-group. All work at the same time
 * as the parent, and one sub-group is split again. */
static const int three[] = {5, 0, 3}, two[] = {1, 4}, one[] = {2};
static const int inner[] = {3, 5};

static int check_inner(comm_group_t *group, int rank)
{
    static const int places[] = {2, 0}; /* ranks 3 and 5 in [three] */
    int count = rank == 0 ? 0 : 2;
    comm_group_t *within = group;
    err_t err = ERR_INIT;
    int failed;

    RANKS_OK(comm_split_open(group, places, count, &within, &err), err);
    RANKS_CHECK((within == NULL) == (count == 0));
    failed = within != NULL && check_sum(within, rank, inner, 2);
    comm_group_close(within);
    return failed;
}

static int run_lists(const comm_oob_t *oob, void *argument)
{
    static const int *const lists[] = {three, two,   one, three,
                                       two,   three, NULL};
    static const int counts[] = {3, 2, 1, 3, 2, 3, 0};
    const int *list = lists[oob->rank];
    int count = counts[oob->rank], failed = 0;
    comm_group_t *parent, *group = NULL;
    comm_work_t *work;
    double total = oob->rank;
    err_t err = ERR_INIT;

    RANKS_OK(parent_open(oob, argument, &parent, &err), err);
    RANKS_OK(comm_split_open(parent, list, count, &group, &err), err);
    RANKS_CHECK((group == NULL) == (count == 0));
    RANKS_CHECK(comm_allreduce_start(parent, &total, 1, COMM_FLOAT64, COMM_SUM,
                                     &work, &err) != COMM_FAILED);
    if (group != NULL)
        failed = check_sum(group, oob->rank, list, count);
    RANKS_OK(comm_work_wait(work, &err), err);
    RANKS_CHECK(total == SIZE * (SIZE - 1) / 2);
    if (!failed && list == three)
        failed = check_inner(group, oob->rank);
    comm_group_close(group);
    comm_group_close(parent);
    return failed;
}

Test(comm_split, lists_of_threads)
{
    split_case_t what = {.backend = "threads", .timeout = 20};

    cr_assert_eq(ranks_threads(SIZE, run_lists, &what), 0);
}

Test(comm_split, lists_of_processes)
{
    split_case_t what = {.backend = "ucx", .timeout = 20};
    int results[SIZE];

    cr_assert_eq(ranks_forks(SIZE, 60, run_lists, &what, results), 0);
}

static int run_alone(const comm_oob_t *oob, void *argument)
{
    static const int list[] = {0};
    comm_group_t *parent, *group;
    err_t err = ERR_INIT;
    int failed;

    RANKS_OK(parent_open(oob, argument, &parent, &err), err);
    RANKS_OK(comm_split_open(parent, list, 1, &group, &err), err);
    failed = check_sum(group, 0, list, 1);
    comm_group_close(group);
    comm_group_close(parent);
    return failed;
}

Test(comm_split, of_one_rank)
{
    split_case_t what = {.backend = "self", .timeout = 20};

    cr_assert_eq(ranks_threads(1, run_alone, &what), 0);
}

/* ---- wrong lists --------------------------------------------------------- */

static int check_wrong(comm_group_t *parent, const int *list, int count,
                       const char *why)
{
    comm_group_t *group = NULL;
    err_t err = ERR_INIT;
    err_code_t code = comm_split_open(parent, list, count, &group, &err);

    RANKS_CHECK(code == (why == NULL ? ERR_OK : ERR_CONFIG));
    RANKS_CHECK(why == NULL || strstr(err.text, why) != NULL);
    RANKS_CHECK(group == NULL);
    return 0;
}

static int run_wrong(const comm_oob_t *oob, void *argument)
{
    static const int pair[] = {0, 1}, whole[] = {0, 1, 2}, twice[] = {1, 1},
                     far[] = {0, 9};
    int rank = oob->rank;
    comm_group_t *parent;
    err_t err = ERR_INIT;
    int failed;

    RANKS_OK(parent_open(oob, argument, &parent, &err), err);
    failed = check_wrong(parent, rank == 0 ? pair : whole, rank == 0 ? 2 : 3,
                         "different lists") ||
             check_wrong(parent, twice, rank == 1 ? 2 : 0,
                         rank == 1 ? "twice" : NULL) ||
             check_wrong(parent, far, rank == 0 ? 2 : 0,
                         rank == 0 ? "rank 9" : NULL) ||
             check_wrong(parent, pair, rank == 2 ? 2 : 0,
                         rank == 2 ? "not in" : NULL);
    if (!failed)
        RANKS_OK(comm_barrier(parent, &err), err);
    comm_group_close(parent);
    return failed;
}

Test(comm_split, wrong_lists_are_told)
{
    split_case_t threads = {.backend = "threads", .timeout = 20};
    split_case_t ucx = {.backend = "ucx", .timeout = 20};
    int results[3];

    cr_assert_eq(ranks_threads(3, run_wrong, &threads), 0);
    cr_assert_eq(ranks_forks(3, 60, run_wrong, &ucx, results), 0);
}

/* ---- no memory ----------------------------------------------------------- */

typedef struct memory_case {
    const char *backend;
    int culprit; /* is refused blocks of memory */
    long stride; /* refuse blocks 1, 1 + stride, ... */
    bool whole;  /* a group of all ranks; else one of ranks 0 and 1 of three */
} memory_case_t;

/* Open a group, and refuse block [number] of the culprit. All ranks get its
 * error, and learn from *more whether the culprit needed so many blocks. Only
 * the gate of ucx (ucx_gate.h) can be missing. */
static int open_once(comm_group_t *parent, const memory_case_t *what,
                     long number, bool *more)
{
    static const int pair[] = {1, 0};
    const comm_config_t config = {.backend = comm_group_backend(parent),
                                  .timeout = comm_group_timeout(parent)};
    const int rank = comm_group_rank(parent);
    const bool gate = strcmp(what->backend, "ucx") == 0;
    comm_group_t *group = NULL;
    err_t err = ERR_INIT, why = ERR_INIT;
    err_code_t rc, its;

    if (rank == what->culprit)
        alloc_fail(number);
    rc = its = what->whole ? comm_split_whole(parent, &config, &group, &err)
                           : comm_split_open(parent, pair, rank < 2 ? 2 : 0,
                                             &group, &err);
    *more = alloc_fail_end();
    RANKS_OK(comm_broadcast(parent, more, sizeof *more, what->culprit, &why),
             why);
    RANKS_OK(comm_broadcast(parent, &its, sizeof its, what->culprit, &why),
             why);
    RANKS_CHECK(rc == its);
    if (rc == ERR_OK) {
        RANKS_CHECK(!*more || gate);
    } else {
        RANKS_CHECK(*more && rc == ERR_MEMORY && group == NULL);
        RANKS_CHECK(strstr(err.text, "no memory left") != NULL);
        RANKS_CHECK(what->culprit == 0 ||
                    strncmp(err.text, "rank 1 on ", 10) == 0);
    }
    comm_group_close(group);
    return 0;
}

static int run_memory(const comm_oob_t *oob, void *argument)
{
    const memory_case_t *what = argument;
    const comm_config_t config = {.backend = what->backend, .timeout = 60};
    comm_group_t *parent;
    err_t err = ERR_INIT;
    bool more = true;
    long number = 1;

    RANKS_OK(comm_group_open(&config, oob, &parent, &err), err);
    for (; more; number += what->stride)
        if (open_once(parent, what, number, &more) != 0)
            return 1;
    /* At least the table, the hellos, and three blocks of the backend. */
    RANKS_CHECK(number > 6);
    comm_group_close(parent);
    return 0;
}

Test(comm_split, a_rank_without_memory_is_told)
{
    for (int i = 0; i < 4; i++) {
        memory_case_t what = {.backend = "threads",
                              .culprit = i / 2,
                              .stride = 1,
                              .whole = i % 2 != 0};

        cr_assert_eq(ranks_threads(3, run_memory, &what), 0, "rank %d, %s",
                     what.culprit, what.whole ? "all ranks" : "two ranks");
    }
}

Test(comm_split, a_process_without_memory_is_told)
{
    for (int whole = 0; whole < 2; whole++) {
        memory_case_t what = {
            .backend = "ucx", .culprit = 1, .stride = 8, .whole = whole != 0};
        int results[3];

        cr_assert_eq(ranks_forks(3, 200, run_memory, &what, results), 0, "%s",
                     what.whole ? "all ranks" : "two ranks");
    }
}

/* ---- faults -------------------------------------------------------------- */

/* Rank 3 of the parent, which is rank 2 of [three], fails: messages name it as
 * rank 3. */
static int run_fault(const comm_oob_t *oob, void *argument)
{
    const split_case_t *what = argument;
    int count = oob->rank == 0 || oob->rank == 3 || oob->rank == 5 ? 3 : 0;
    comm_group_t *parent, *group = NULL;
    float data = 1;
    err_t err = ERR_INIT;

    RANKS_OK(parent_open(oob, what, &parent, &err), err);
    RANKS_OK(comm_split_open(parent, three, count, &group, &err), err);
    if (oob->rank == 3 && strcmp(what->backend, "ucx") == 0)
        raise(SIGKILL);
    if (oob->rank != 3 && count > 0) {
        RANKS_CHECK(comm_allreduce(group, &data, 1, COMM_FLOAT32, COMM_SUM,
                                   &err) == ERR_PEER);
        RANKS_CHECK(err.culprit == 3);
        RANKS_CHECK(strstr(err.text, "rank 3") != NULL);
        RANKS_CHECK(strcmp(err.host, comm_group_host(parent, 3)) == 0);
    }
    comm_group_close(group);
    comm_group_close(parent);
    return 0;
}

Test(comm_split, a_dead_rank_is_named_as_the_parent_does)
{
    split_case_t what = {.backend = "ucx", .timeout = 5};
    int results[SIZE];

    cr_assert_eq(ranks_forks(SIZE, 60, run_fault, &what, results), 1);
    cr_assert_eq(results[3], 128 + SIGKILL);
}

Test(comm_split, a_rank_that_left_is_named_as_the_parent_does)
{
    split_case_t what = {.backend = "threads", .timeout = 20};

    cr_assert_eq(ranks_threads(SIZE, run_fault, &what), 0);
}

/* Rank 2 knows from elsewhere that rank 1 is lost, and leaves. Rank 0 waits. If
 * nobody told it about rank 1, it would name rank 2 as the culprit. */
static int run_tell(const comm_oob_t *oob, void *argument)
{
    const split_case_t *what = argument;
    comm_config_t config = {.timeout = what->timeout};
    comm_group_t *parent, *whole;
    err_code_t rc;
    float data = 1;
    err_t err = ERR_INIT;

    RANKS_OK(parent_open(oob, what, &parent, &err), err);
    config.backend = comm_group_backend(parent);
    RANKS_OK(comm_split_whole(parent, &config, &whole, &err), err);
    /* When rank 2 has this sum, all ranks have opened both groups. */
    rc = comm_allreduce(whole, &data, 1, COMM_FLOAT32, COMM_SUM, &err);
    if (oob->rank == 2) {
        RANKS_OK(rc, err);
        err_set_peer(&err, 1, comm_group_host(parent, 1), "rank 1 is lost");
        comm_group_tell(whole, &err);
        comm_group_tell(parent, &err);
        /* The first fault that is known stays. */
        err_set_peer(&err, 0, comm_group_host(parent, 0), "rank 0 is lost");
        comm_group_tell(parent, &err);
    } else {
        if (rc == ERR_OK)
            rc = comm_allreduce(whole, &data, 1, COMM_FLOAT32, COMM_SUM, &err);
        RANKS_CHECK(rc == ERR_PEER);
        RANKS_CHECK(err.culprit == 1);
        err = (err_t)ERR_INIT;
        RANKS_CHECK(comm_allreduce(parent, &data, 1, COMM_FLOAT32, COMM_SUM,
                                   &err) == ERR_PEER);
        RANKS_CHECK(err.culprit == 1);
        RANKS_CHECK(strcmp(err.host, comm_group_host(parent, 1)) == 0);
        RANKS_CHECK(strcmp(err.text, "rank 1 is lost") == 0);
    }
    comm_group_close(whole);
    comm_group_close(parent);
    return 0;
}

Test(comm_split, a_fault_that_one_rank_knows_is_told)
{
    split_case_t ucx = {.backend = "ucx", .timeout = waits_timeout(5)};
    split_case_t threads = {.backend = "threads", .timeout = ucx.timeout};
    int results[3];

    cr_assert_eq(
        ranks_forks(3, waits_deadline(ucx.timeout), run_tell, &ucx, results),
        0);
    cr_assert_eq(ranks_threads(3, run_tell, &threads), 0);
}
