/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* All-reduces over several nodes: which ranks share a node, how a buffer is
 * cut, and sums of random shapes on random layouts compared with a serial
 * reference. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/collectives.h"
#include "comm/comm.h"
#include "comm/node/node_place.h"
#include "comm/ucx/ucx_group.h"
#include "comm/waits.h"
#include "lib/ranks.h"

TestSuite(comm_span, .init = ranks_transports, .timeout = 120);

/* ---- places -------------------------------------------------------------- */

/* Fill the matrix [sees]: sees[a * size + b] tells whether rank a can access
 * the memory of rank b. Ranks of one letter can. */
static void sees_fill(const char *nodes, char *sees)
{
    size_t size = strlen(nodes);

    for (size_t a = 0; a < size; a++)
        for (size_t b = 0; b < size; b++)
            sees[a * size + b] = nodes[a] == nodes[b];
}

Test(comm_span, nodes_are_numbered_by_their_lowest_ranks)
{
    static const char nodes[] = "bacab";
    static const int order[] = {0, 4, 1, 3, 2}, here[] = {0, 1, 2, 1, 0};
    char sees[25];
    node_place_t place;
    err_t err = ERR_INIT;

    sees_fill(nodes, sees);
    for (int rank = 0; rank < 5; rank++) {
        cr_assert_eq(node_place_open(sees, 5, rank, &place, &err), ERR_OK);
        cr_assert_eq(place.nodes, 3);
        cr_assert_eq(place.least, 1);
        cr_assert_eq(place.here, here[rank]);
        cr_assert_eq(place.count, rank == 2 ? 1 : 2);
        cr_assert_eq(node_place_rank(&place, place.here, place.local), rank);
        cr_assert(place.whole);
        for (int i = 0; i < 5; i++)
            cr_assert_eq(place.order[i], order[i]);
        node_place_close(&place);
    }
}

/* Rank 0 sees 1 and 1 sees 2, but 0 and 2 do not see each other. */
Test(comm_span, half_blind_nodes_are_noticed)
{
    char sees[] = {1, 1, 0, 1, 1, 1, 1, 1, 1};
    node_place_t place;
    err_t err = ERR_INIT;

    cr_assert_eq(node_place_open(sees, 3, 0, &place, &err), ERR_OK);
    cr_assert(!place.whole);
    node_place_close(&place);
}

/* Two ranks on one core; their host names pretend that they are on two hosts.
 */
static int run_shared_core(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    char host[2] = {(char)('a' + oob->rank)};
    comm_oob_t apart = *oob;
    comm_group_t *group;
    cpu_set_t all, one;
    err_t err = ERR_INIT;
    int first = 0;

    (void)argument;
    RANKS_CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    RANKS_CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    apart.host = host;
    RANKS_OK(comm_group_open(&config, &apart, &group, &err), err);
    RANKS_CHECK(!((const ucx_group_t *)group)->local.core);
    RANKS_CHECK(!((const ucx_group_t *)group)->local.spin);
    comm_group_close(group);
    return 0;
}

Test(comm_span, hosts_of_one_machine_share_its_cores)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_forks(2, 60, run_shared_core, NULL, results), 0);
}

/* ---- sums ---------------------------------------------------------------- */

#define ROUNDS 40
#define MOST ((size_t)1 << 20) /* bytes */

typedef struct span_case {
    const char *nodes;
    unsigned seed;
} span_case_t;

typedef struct span_round {
    comm_type_t type;
    comm_op_t op;
    size_t count, skip; /* elements; where the buffer begins */
    bool plain;         /* in no arena: it is staged */
    unsigned salt;
} span_round_t;

/* Draw a round; all ranks draw the same one. Sizes are at most MOST bytes,
 * spread evenly over powers of two. */
static span_round_t round_draw(unsigned *seed)
{
    static const comm_type_t types[] = {COMM_FLOAT32, COMM_FLOAT64, COMM_INT32,
                                        COMM_INT64};
    size_t most = (size_t)1 << rand_r(seed) % 18;
    span_round_t round = {.type = types[rand_r(seed) % 4],
                          .op = rand_r(seed) % 3 ? COMM_SUM : COMM_MAX,
                          .plain = rand_r(seed) % 2,
                          .skip = (size_t)rand_r(seed) % 33};

    round.count = 1 + (size_t)rand_r(seed) % most;
    round.salt = (unsigned)rand_r(seed);
    return round;
}

/* Whole numbers, whose sum does not depend on the order of summation. */
static double value(const span_round_t *round, int rank, size_t i)
{
    uint64_t mix = (i + round->salt) * UINT64_C(0x9e3779b97f4a7c15) +
                   (uint64_t)rank * UINT64_C(0xbf58476d1ce4e5b9);

    return (double)((mix >> 40) % 4001) - 2000;
}

static void round_fill(const span_round_t *round, int rank, void *data)
{
    for (size_t i = 0; i < round->count; i++) {
        double one = value(round, rank, i);

        if (round->type == COMM_FLOAT32)
            ((float *)data)[i] = (float)one;
        else if (round->type == COMM_FLOAT64)
            ((double *)data)[i] = one;
        else if (round->type == COMM_INT32)
            ((int32_t *)data)[i] = (int32_t)one;
        else
            ((int64_t *)data)[i] = (int64_t)one;
    }
}

static double round_element(const span_round_t *round, const void *data,
                            size_t i)
{
    if (round->type == COMM_FLOAT32)
        return (double)((const float *)data)[i];
    if (round->type == COMM_FLOAT64)
        return ((const double *)data)[i];
    return round->type == COMM_INT32 ? (double)((const int32_t *)data)[i]
                                     : (double)((const int64_t *)data)[i];
}

static int round_check(const span_round_t *round, int size, const void *data)
{
    for (size_t i = 0; i < round->count; i++) {
        double expected = value(round, 0, i);
        double found = round_element(round, data, i);

        for (int rank = 1; rank < size; rank++) {
            double one = value(round, rank, i);

            if (round->op == COMM_SUM)
                expected += one;
            else
                expected = one > expected ? one : expected;
        }
        RANKS_CHECK(found == expected);
    }
    return 0;
}

/* Two buffers in flight; ranks start at different times. */
static int rounds_run(comm_group_t *group, unsigned seed, char *arena,
                      char *plain)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    unsigned mine = seed + (unsigned)rank;
    err_t err = ERR_INIT;

    for (int i = 0; i < ROUNDS; i++) {
        span_round_t rounds[2];
        comm_work_t *works[2];
        void *data[2];

        for (int j = 0; j < 2; j++) {
            rounds[j] = round_draw(&seed);
            data[j] = (rounds[j].plain ? plain : arena) + (size_t)j * 2 * MOST +
                      rounds[j].skip * 8;
            round_fill(&rounds[j], rank, data[j]);
            RANKS_CHECK(
                strncmp(comm_allreduce_name(group, data[j], rounds[j].count,
                                            rounds[j].type),
                        rounds[j].plain ? "stage+" : "node+", 5) == 0);
            if (rand_r(&mine) % 8 == 0) /* late on purpose */
                usleep((useconds_t)(rand_r(&mine) % 2000));
            RANKS_CHECK(comm_allreduce_start(group, data[j], rounds[j].count,
                                             rounds[j].type, rounds[j].op,
                                             &works[j], &err) != COMM_FAILED);
        }
        if (i % 5 == 0)
            (void)waits_poll(works[1]);
        for (int j = 0; j < 2; j++)
            RANKS_OK(comm_work_wait(works[j], &err), err);
        if (round_check(&rounds[0], size, data[0]) ||
            round_check(&rounds[1], size, data[1]))
            return 1;
    }
    return 0;
}

static int run_span(const comm_oob_t *oob, void *argument)
{
    const span_case_t *what = argument;
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    char host[2] = {what->nodes[oob->rank]};
    comm_oob_t apart = *oob;
    comm_arena_t *arena;
    comm_group_t *group;
    char *plain = malloc(4 * MOST);
    err_t err = ERR_INIT;
    int failed;

    apart.host = host;
    RANKS_OK(comm_group_open(&config, &apart, &group, &err), err);
    RANKS_OK(comm_arena_open(group, 4 * MOST, &arena, &err), err);
    failed = rounds_run(group, what->seed, comm_arena_data(arena), plain);
    free(plain);
    comm_arena_close(arena);
    comm_group_close(group);
    return failed;
}

/* Draw a layout with at least two nodes, one of which has at least two ranks.
 */
static void layout_draw(int size, unsigned *seed, char *nodes)
{
    int count = 2 + rand_r(seed) % (size < 6 ? size - 1 : 5);

    for (int rank = 0; rank < size; rank++)
        nodes[rank] = (char)('a' + rand_r(seed) % count);
    nodes[0] = nodes[1] = 'a';
    nodes[size - 1] = 'b';
    nodes[size] = '\0';
}

Test(comm_span, any_layout_gives_the_serial_result)
{
    static const int sizes[] = {3, 4, 5, 6, 7, 9, 12, 17};
    int results[RANKS_MAX];
    unsigned seed = 7;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char nodes[18];
        span_case_t what = {.nodes = nodes};

        layout_draw(sizes[i], &seed, nodes);
        what.seed = seed;
        cr_assert_eq(ranks_forks(sizes[i], 60, run_span, &what, results), 0,
                     "nodes %s", nodes);
    }
}

Test(comm_span, threads)
{
    span_case_t even = {.nodes = "aabb", .seed = 3};
    span_case_t odd = {.nodes = "abcaa", .seed = 4};

    cr_assert_eq(ranks_threads(4, run_span, &even), 0);
    cr_assert_eq(ranks_threads(5, run_span, &odd), 0);
}

/* Every collective and type, with odd and large sizes, in memory outside any
 * arena. */
Test(comm_span, plain_memory_of_any_type)
{
    static const char *const layouts[] = {"aab", "aabb", "abcaa", "ababab"};
    int results[RANKS_MAX];

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        collectives_t what = {.backend = "ucx",
                              .plain = true,
                              .large = i == 1,
                              .nodes = layouts[i]};

        cr_assert_eq(ranks_forks((int)strlen(layouts[i]), 100, collectives_run,
                                 &what, results),
                     0, "nodes %s", layouts[i]);
    }
}

typedef struct away {
    int computes; /* the rank that computes */
    int ends[2];  /* a pipe: the others tell it that they have their results */
} away_t;

/* A rank computes until the others are through: its comm thread copies for it.
 * If the others waited for the rank itself, the test would not end. */
static int run_away(const comm_oob_t *oob, void *argument)
{
    static const char nodes[] = "aabb";
    const away_t *away = argument;
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    size_t count = 300001; /* more elements than can be staged at a time */
    char host[2] = {nodes[oob->rank]};
    comm_oob_t apart = *oob;
    float *data = malloc(count * sizeof *data);
    comm_group_t *group;
    comm_work_t *work;
    char byte = 0;
    err_t err = ERR_INIT;

    apart.host = host;
    RANKS_OK(comm_group_open(&config, &apart, &group, &err), err);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(i % 1000);
    RANKS_CHECK(comm_allreduce_start(group, data, count, COMM_FLOAT32, COMM_SUM,
                                     &work, &err) != COMM_FAILED);
    for (int i = 1; oob->rank == away->computes && i < oob->size; i++)
        RANKS_CHECK(read(away->ends[0], &byte, 1) == 1);
    RANKS_OK(comm_work_wait(work, &err), err);
    RANKS_CHECK(oob->rank == away->computes ||
                write(away->ends[1], &byte, 1) == 1);
    for (size_t i = 0; i < count; i++)
        RANKS_CHECK(data[i] == (float)(i % 1000 * 4));
    free(data);
    comm_group_close(group);
    return 0;
}

Test(comm_span, who_computes_holds_up_nobody)
{
    int results[RANKS_MAX];
    away_t away;

    cr_assert_eq(pipe(away.ends), 0);
    for (away.computes = 0; away.computes < 2; away.computes++)
        cr_assert_eq(ranks_forks(4, 60, run_away, &away, results), 0,
                     "rank %d computes", away.computes);
}

/* ---- different requests -------------------------------------------------- */

/*
 * The call that each rank ends with, as a letter:
 *
 * a: all-reduce of 10 floats, b: of 11 floats, c: of 10 doubles; m: maximum of
 * 10 floats; n: all-reduce of 10 floats outside an arena; A: all-reduce of
 * 1100 floats, N: of 1100 floats outside an arena; g: all-gather of 40 bytes;
 * r: broadcast from rank 0, l: from the last rank; w: barrier.
 */
typedef struct odd_case {
    const char *hosts, *calls;
    const char *texts[3]; /* parts of every rank's message */
} odd_case_t;

#define ODD_BYTES 4400

static err_code_t odd_call(comm_group_t *group, char which, void *arena,
                           err_t *err)
{
    static _Thread_local char plain[ODD_BYTES];
    int last = comm_group_size(group) - 1;

    switch (which) {
    case 'c':
        return comm_allreduce(group, arena, 10, COMM_FLOAT64, COMM_SUM, err);
    case 'm':
        return comm_allreduce(group, arena, 10, COMM_FLOAT32, COMM_MAX, err);
    case 'n':
        return comm_allreduce(group, plain, 10, COMM_FLOAT32, COMM_SUM, err);
    case 'A':
    case 'N':
        return comm_allreduce(group, which == 'A' ? arena : plain, 1100,
                              COMM_FLOAT32, COMM_SUM, err);
    case 'g':
        return comm_allgather(group, arena, 40, plain, err);
    case 'r':
    case 'l':
        return comm_broadcast(group, plain, 40, which == 'r' ? 0 : last, err);
    case 'w':
        return comm_barrier(group, err);
    default:
        return comm_allreduce(group, arena, which == 'b' ? 11 : 10,
                              COMM_FLOAT32, COMM_SUM, err);
    }
}

static int run_odd(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    const odd_case_t *odd = argument;
    char host[] = {odd->hosts[oob->rank], '\0'};
    comm_oob_t apart = *oob;
    comm_arena_t *arena = NULL;
    comm_group_t *group;
    err_t err = ERR_INIT;
    err_code_t code;

    apart.host = host;
    RANKS_OK(comm_group_open(&config, &apart, &group, &err), err);
    code = comm_arena_open(group, ODD_BYTES, &arena, &err);
    if (code == ERR_OK) /* else other ranks have already failed */
        code = odd_call(group, odd->calls[oob->rank], comm_arena_data(arena),
                        &err);
    /* a rank that only sends may learn of the error later */
    if (code == ERR_OK)
        code = comm_barrier(group, &err);
    /* A timeout would end it with ERR_PEER. */
    RANKS_CHECK(code == ERR_CONFIG);
    for (int i = 0; i < 3 && odd->texts[i] != NULL; i++)
        if (strstr(err.text, odd->texts[i]) == NULL) {
            fprintf(stderr, "%s: no \"%s\" in: %s\n", odd->calls, odd->texts[i],
                    err.text);
            return 1;
        }
    comm_arena_close(arena);
    comm_group_close(group);
    return 0;
}

static void odd_check(odd_case_t *odd)
{
    int size = (int)strlen(odd->hosts);
    int results[RANKS_MAX];

    cr_assert_eq(ranks_forks(size, 60, run_odd, odd, results), 0, "%s",
                 odd->calls);
}

#define SAME_ORDER "must start the same collectives in the same order"

Test(comm_span, different_calls_between_nodes_are_told)
{
    odd_case_t cases[] = {
        {"xy",
         "ab",
         {"rank 0 on x called an all-reduce of 10 float32, sum",
          "rank 1 on y an all-reduce of 11 float32, sum", SAME_ORDER}},
        {"xy", "ac", {"10 float32, sum", "10 float64, sum", SAME_ORDER}},
        {"xy", "am", {"10 float32, sum", "10 float32, maximum"}},
        {"xy",
         "ag",
         {"an all-reduce of 10 float32", "an all-gather of 40 bytes a rank"}},
        {"xy",
         "wr",
         {"called a barrier", "a broadcast of 40 bytes from rank 0",
          SAME_ORDER}},
        {"xyz", "llr", {"from rank 0", "rank 2 on z", "from rank 2"}},
        {"xy",
         "rl",
         {"rank 0 on x called a broadcast of 40 bytes from rank 0",
          "rank 1 on y a broadcast of 40 bytes from rank 1", SAME_ORDER}},
        {"xx", "rl", {"from rank 0", "from rank 1", SAME_ORDER}},
        {"yyy", "rll", {"from rank 0", "from rank 2", SAME_ORDER}},
        {"xxyy", "aabb", {"10 float32, sum", "11 float32, sum", SAME_ORDER}},
        {"xxyy",
         "aaam",
         {" on y called an all-reduce of 10 float32, ", "a rank of its node",
          SAME_ORDER}},
        {"xxx",
         "aab",
         {" on x called an all-reduce of 1", "a rank of its node", SAME_ORDER}},
        {"xxyy",
         "aann",
         {"10 float32, sum, in an arena", "10 float32, sum, in no arena",
          SAME_ORDER}},
        /* Ranks of one node, some of which exchange no data with the other
         * node. */
        {"xx", "AN", {"float32, sum, in an arena", ", in no arena"}},
        {"yyy", "AAN", {"float32, sum, in an arena", ", in no arena"}},
        {"xxyy", "anaa", {"float32, sum, in an arena", ", in no arena"}},
        {"xxyy", "anan", {"float32, sum, in an arena", ", in no arena"}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        odd_check(&cases[i]);
}
