/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The ucx backend: collectives with ranks as threads and as processes. Faults
 * are in ../test_comm_faults.c. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/collectives.h"
#include "comm/waits.h"
#include "lib/ranks.h"

TestSuite(comm_ucx, .init = ranks_transports, .timeout = 600);

static bool plain;

static void collectives_on(int count, bool large, bool threads)
{
    collectives_t what = {
        .backend = "ucx", .large = large, .plain = plain, .rank_order = true};
    int results[RANKS_MAX];

    if (threads)
        cr_assert_eq(ranks_threads(count, collectives_run, &what), 0,
                     "%d ranks", count);
    else
        cr_assert_eq(ranks_forks(count, 500, collectives_run, &what, results),
                     0, "%d ranks", count);
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

/* Without an arena sums are staged. test_comm_table.c has tables with which
 * such sums go through UCX. */
Test(comm_ucx, ordinary_memory)
{
    plain = true;
    collectives_on(2, true, true);
    collectives_on(3, true, false);
    collectives_on(8, false, false);
}

Test(comm_ucx, many_processes)
{
    collectives_on(17, false, false);
}

Test(comm_ucx, processes_over_tcp)
{
    setenv("UCX_TLS", "tcp,self", 1);
    plain = true;
    collectives_on(4, true, false);
}

/* ---- several nodes ------------------------------------------------------- */

static void collectives_over(const char *nodes, bool large, bool threads)
{
    collectives_t what = {
        .backend = "ucx", .large = large, .plain = plain, .nodes = nodes};
    int results[RANKS_MAX], count = (int)strlen(nodes);

    if (threads)
        cr_assert_eq(ranks_threads(count, collectives_run, &what), 0, "%s",
                     nodes);
    else
        cr_assert_eq(ranks_forks(count, 500, collectives_run, &what, results),
                     0, "%s", nodes);
}

Test(comm_ucx, two_nodes)
{
    collectives_over("aabb", true, false);
    collectives_over("abab", false, true);
}

Test(comm_ucx, two_nodes_and_ordinary_memory)
{
    plain = true;
    collectives_over("aaabb", true, false);
    collectives_over("aaabbbccc", false, false);
}

Test(comm_ucx, one_rank_on_each_node)
{
    collectives_over("ab", true, true);
    collectives_over("abc", false, false);
}

Test(comm_ucx, nodes_of_different_sizes)
{
    collectives_over("aaab", true, false);
    collectives_over("abbcaab", false, false);
}

Test(comm_ucx, three_nodes)
{
    collectives_over("aabbcc", true, false);
    collectives_over("abcabc", false, true);
}

Test(comm_ucx, many_nodes)
{
    collectives_over("aabbccddee", false, false);
    collectives_over("aaabbbcccdddeeeff", false, false);
}

/* A control group and a data group side by side, as in every run. */
static int run_two_groups(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "auto", .timeout = 20};
    comm_group_t *control, *data;
    comm_work_t *work;
    static const size_t count = 300000;
    float *values = malloc(count * sizeof *values);
    int64_t vote = 1;
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &control, &err), err);
    RANKS_OK(comm_group_open(&config, oob, &data, &err), err);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++)
            values[i] = (float)(oob->rank + round);
        vote = 1;
        RANKS_CHECK(comm_allreduce_start(data, values, count, COMM_FLOAT32,
                                         COMM_SUM, &work, &err) != COMM_FAILED);
        RANKS_OK(comm_allreduce(control, &vote, 1, COMM_INT64, COMM_SUM, &err),
                 err);
        RANKS_CHECK(vote == oob->size);
        RANKS_OK(comm_work_wait(work, &err), err);
        for (size_t i = 0; i < count; i++)
            RANKS_CHECK(values[i] == (float)(oob->size * (oob->size - 1) / 2 +
                                             oob->size * round));
    }
    comm_group_close(data);
    RANKS_OK(comm_group_check(control, &err), err);
    comm_group_close(control);
    free(values);
    return 0;
}

Test(comm_ucx, two_groups)
{
    int results[3];

    cr_assert_eq(ranks_forks(3, 60, run_two_groups, NULL, results), 0);
}

/* One rank sends bytes to ranks that send it nothing, and that are not its
 * neighbours in beats, as there are more than 32 ranks. They must know of the
 * connection: the sender says good-bye to them, and waits for their answers. */
static int run_one_sender(const comm_oob_t *oob, void *argument)
{
    enum { SENDER = 3 };
    const comm_config_t config = {.backend = "ucx", .timeout = 600};
    float data = oob->rank == SENDER ? 7 : 0;
    size_t cuts[RANKS_MAX + 1];
    comm_group_t *group;
    err_t err = ERR_INIT;

    (void)argument;
    for (int rank = 0; rank <= oob->size; rank++)
        cuts[rank] = rank > SENDER;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_allgather_ranges(group, &data, cuts, COMM_FLOAT32, &err),
             err);
    RANKS_CHECK(data == 7);
    comm_group_close(group);
    return 0;
}

/* A rank that waited in vain would wait longer than its timeout. Ranks are
 * processes: the thread sanitizer does not see how threads that share UCX's
 * memory wait for each other. */
Test(comm_ucx, a_rank_that_sends_to_silent_ranks_leaves_at_once)
{
    int results[34];

    cr_assert_eq(ranks_forks(34, 500, run_one_sender, NULL, results), 0);
}

/* A rank that waits drives UCX itself. Works that it starts and only polls make
 * progress without it, also right after a wait. */
static int run_poll_after_wait(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    const size_t *count = argument;
    comm_group_t *group;
    comm_work_t *work;
    float *data = calloc(*count, sizeof *data);
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < round % 4; i++)
            RANKS_OK(comm_barrier(group, &err), err);
        data[*count - 1] = (float)(oob->rank + round);
        RANKS_CHECK(comm_allreduce_start(group, data, *count, COMM_FLOAT32,
                                         COMM_SUM, &work, &err) != COMM_FAILED);
        while (comm_work_poll(work) == COMM_PENDING)
            sched_yield();
        RANKS_CHECK(comm_work_poll(work) == COMM_DONE);
        RANKS_OK(comm_work_wait(work, &err), err);
        RANKS_CHECK(data[*count - 1] == (float)(3 + 3 * round));
    }
    comm_group_close(group);
    free(data);
    return 0;
}

Test(comm_ucx, polling_goes_on_after_a_wait)
{
    /* too large for one-shot slots */
    static size_t small = 30000, large = 300000;
    int results[3];

    cr_assert_eq(ranks_forks(3, 60, run_poll_after_wait, &small, results), 0);
    cr_assert_eq(ranks_forks(3, 60, run_poll_after_wait, &large, results), 0);
}

/* Ranks that start different collectives get an error, not wrong numbers. */
static int run_mismatch(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    const size_t *counts = argument;
    comm_group_t *group;
    float *data = calloc(100000, sizeof *data);
    err_t err = ERR_INIT;
    err_code_t code;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    /* After this no rank is still opening the group. */
    RANKS_OK(comm_allreduce(group, data, 1, COMM_FLOAT32, COMM_SUM, &err), err);
    code = comm_allreduce(group, data, counts[oob->rank], COMM_FLOAT32,
                          COMM_SUM, &err);
    if (code == ERR_OK) /* sometimes only the other ranks have noticed */
        code = comm_barrier(group, &err);
    RANKS_CHECK(code == ERR_CONFIG);
    RANKS_CHECK(strstr(err.text, "start the same collectives") != NULL);
    comm_group_close(group);
    free(data);
    return 0;
}

Test(comm_ucx, different_arguments_are_told)
{
    static size_t more[3] = {10, 10, 11}, fewer[3] = {99000, 100000, 100000};
    int results[3];

    cr_assert_eq(ranks_forks(3, 60, run_mismatch, more, results), 0);
    cr_assert_eq(ranks_forks(3, 60, run_mismatch, fewer, results), 0);
}

/* ---- node stage ---------------------------------------------------------- */

#define ARENA_COUNT 70001

/* Two arenas, in which each rank's buffer begins elsewhere; more collectives
 * than the control block has slots; barriers in between. The sums of floats
 * depend on the order of summation. */
static int run_node(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    size_t skip = 16 * (size_t)oob->rank, count = ARENA_COUNT - skip;
    comm_arena_t *arenas[2];
    comm_group_t *group;
    comm_work_t *work = NULL;
    float *data, expected;
    err_t err = ERR_INIT;

    (void)argument;
    count = ARENA_COUNT - 16 * (size_t)oob->size;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (int i = 0; i < 2; i++)
        RANKS_OK(comm_arena_open(group, ARENA_COUNT * sizeof(float), &arenas[i],
                                 &err),
                 err);
    for (int round = 0; round < 700; round++) {
        data = (float *)comm_arena_data(arenas[(round + oob->rank) % 2]) + skip;
        RANKS_CHECK(round > 1 || data[count - 1] == 0);
        RANKS_CHECK(
            strcmp(comm_allreduce_name(group, data, count, COMM_FLOAT32),
                   "node") == 0);
        for (size_t i = 0; i < count; i += round % 50 ? count - 1 : 1)
            data[i] = 0.1f * (float)(oob->rank + 1) + (float)(i % 77);
        RANKS_CHECK(comm_allreduce_start(group, data, round % 50 ? 1 : count,
                                         COMM_FLOAT32, COMM_SUM, &work,
                                         &err) != COMM_FAILED);
        if (round % 3 == 0)
            RANKS_OK(comm_barrier(group, &err), err);
        RANKS_OK(comm_work_wait(work, &err), err);
        for (size_t i = 0; i < (round % 50 ? 1 : count); i++) {
            expected = 0.1f + (float)(i % 77);
            for (int rank = 1; rank < oob->size; rank++)
                expected += 0.1f * (float)(rank + 1) + (float)(i % 77);
            RANKS_CHECK(data[i] == expected);
        }
        data[count - 1] = 0;
    }
    comm_arena_close(arenas[1]);
    comm_arena_close(arenas[0]);
    comm_group_close(group);
    return 0;
}

Test(comm_ucx, node_stage)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_threads(3, run_node, NULL), 0);
    cr_assert_eq(ranks_forks(2, 60, run_node, NULL, results), 0);
    cr_assert_eq(ranks_forks(6, 60, run_node, NULL, results), 0);
}

/* More small collectives in flight than there are slots, waited for in any
 * order and by polling; ranks run at different speeds. */
#define SHOTS_IN_FLIGHT 150

static int run_shots(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_group_t *group;
    comm_work_t *works[SHOTS_IN_FLIGHT];
    static _Thread_local double data[SHOTS_IN_FLIGHT][512];
    double all = oob->size * (oob->size + 1) / 2.0;
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < SHOTS_IN_FLIGHT; i++) {
            size_t count = i % 7 == 0 ? 512 : (size_t)i % 9 + 1;

            RANKS_CHECK(
                strcmp(comm_allreduce_name(group, data[i], count, COMM_FLOAT64),
                       "shot") == 0);
            data[i][0] = (i + 1.0) * (oob->rank + 1);
            data[i][count - 1] = (i + 1.0) * (oob->rank + 1);
            RANKS_CHECK(comm_allreduce_start(group, data[i], count,
                                             COMM_FLOAT64, COMM_SUM, &works[i],
                                             &err) != COMM_FAILED);
            if (i % 40 == 0)
                RANKS_OK(comm_barrier(group, &err), err);
            if (i % 50 == oob->rank) /* late on purpose */
                usleep(1000);
        }
        if (round % 4 == 3)
            (void)waits_poll(works[149]);
        for (int i = 0; i < SHOTS_IN_FLIGHT; i++) {
            int which = round % 2 ? SHOTS_IN_FLIGHT - 1 - i : i;

            RANKS_OK(comm_work_wait(works[which], &err), err);
            RANKS_CHECK(data[which][0] == (which + 1) * all);
            RANKS_CHECK(data[which][which % 7 == 0 ? 511 : which % 9] ==
                        (which + 1) * all);
        }
    }
    comm_group_close(group);
    return 0;
}

Test(comm_ucx, one_shot_slots)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_threads(3, run_shots, NULL), 0);
    cr_assert_eq(ranks_forks(2, 60, run_shots, NULL, results), 0);
    cr_assert_eq(ranks_forks(7, 60, run_shots, NULL, results), 0);
}

static int run_node_mismatch(const comm_oob_t *oob, void *argument)
{
    static const size_t cuts[2][4] = {{0, 3, 6, 10}, {0, 4, 6, 10}};
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_arena_t *arena;
    comm_group_t *group;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_arena_open(group, 65536, &arena, &err), err);
    if (argument == NULL)
        RANKS_CHECK(comm_allreduce(group, comm_arena_data(arena),
                                   oob->rank == 1 ? 11000 : 10000, COMM_FLOAT32,
                                   COMM_SUM, &err) == ERR_CONFIG);
    else
        RANKS_CHECK(comm_reduce_scatter(group, comm_arena_data(arena),
                                        cuts[oob->rank == 1], COMM_FLOAT32,
                                        COMM_SUM, &err) == ERR_CONFIG);
    RANKS_CHECK(strstr(err.text, "of other ranges: all must") != NULL);
    comm_arena_close(arena);
    comm_group_close(group);
    return 0;
}

Test(comm_ucx, node_stage_tells_different_arguments)
{
    int results[3];

    cr_assert_eq(ranks_forks(3, 60, run_node_mismatch, NULL, results), 0);
    cr_assert_eq(ranks_forks(3, 60, run_node_mismatch, results, results), 0);
}

/* An arena larger than memory: every rank gets an error, and the group keeps
 * working. */
static int run_arena_too_large(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_arena_t *arena;
    comm_group_t *group;
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_CHECK(comm_arena_open(group, (size_t)1 << 60, &arena, &err) ==
                ERR_MEMORY);
    RANKS_CHECK(strstr(err.text, "share") != NULL);
    RANKS_OK(comm_barrier(group, &err), err);
    comm_group_close(group);
    return 0;
}

Test(comm_ucx, arena_too_large_is_an_error)
{
    int results[2];

    cr_assert_eq(ranks_forks(2, 60, run_arena_too_large, NULL, results), 0);
}
