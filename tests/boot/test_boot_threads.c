/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "boot/boot.h"

#define RANKS_MAX 8

/* Input and result of one thread of a test. */
typedef struct rank {
    boot_t *boot;
    uint64_t hash;
    bool absent; /* close the handle at once */
    size_t bytes;
    pthread_barrier_t *gate;
    err_code_t code;
    err_t err;
} rank_t;

static void run(int size, double timeout, rank_t *ranks, thread_main_t main)
{
    const boot_config_t config = {.timeout = timeout};
    pthread_t threads[RANKS_MAX];
    boot_t *boots[RANKS_MAX];
    err_t err = ERR_INIT;

    cr_assert_eq(boot_threads_open(size, &config, boots, &err), ERR_OK, "%s",
                 err.text);
    for (int i = 0; i < size; i++) {
        ranks[i].boot = boots[i];
        ranks[i].err = (err_t)ERR_INIT;
        cr_assert_eq(thread_start("rank", main, &ranks[i], &threads[i], &err),
                     ERR_OK, "%s", err.text);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
}

/* Exchange in many rounds of different lengths and check each one. Returns 0 if
 * all are correct. */
static int rounds_check(boot_t *boot)
{
    unsigned char mine[64], all[64 * RANKS_MAX];
    int rank = boot_rank(boot), wrong = 0;

    for (int round = 0; round < 200; round++) {
        size_t bytes = (size_t)(round * 7 % 64);

        memset(mine, rank * 16 + round % 16, sizeof mine);
        if (boot_exchange(boot, mine, bytes, all, NULL) != ERR_OK)
            return -1;
        for (int i = 0; i < boot_size(boot); i++)
            for (size_t k = 0; k < bytes; k++)
                wrong += all[(size_t)i * bytes + k] != i * 16 + round % 16;
    }
    return wrong;
}

static void *rounds_main(void *argument)
{
    rank_t *rank = argument;

    rank->code = rounds_check(rank->boot) == 0 ? ERR_OK : ERR_DATA;
    boot_close(rank->boot);
    return NULL;
}

Test(boot_threads, exchange, .timeout = 60)
{
    for (int size = 1; size <= RANKS_MAX; size++) {
        rank_t ranks[RANKS_MAX] = {{0}};

        run(size, 30, ranks, rounds_main);
        for (int i = 0; i < size; i++)
            cr_assert_eq(ranks[i].code, ERR_OK, "rank %d of %d", i, size);
    }
}

Test(boot_threads, names)
{
    const boot_config_t config = {.timeout = 1};
    boot_t *boots[3];
    err_t err = ERR_INIT;

    cr_assert_eq(boot_threads_open(0, &config, boots, &err), ERR_CONFIG);
    cr_assert_eq(boot_threads_open(3, &config, boots, &err), ERR_OK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(boot_rank(boots[i]), i);
        cr_assert_eq(boot_size(boots[i]), 3);
        cr_assert_str_eq(boot_name(boots[i]), "threads");
        boot_close(boots[i]);
    }
}

static void *agree_main(void *argument)
{
    rank_t *rank = argument;

    rank->code =
        boot_agree(rank->boot, "configuration", rank->hash, &rank->err);
    boot_close(rank->boot);
    return NULL;
}

Test(boot_agree, same)
{
    rank_t ranks[4] = {{.hash = 5}, {.hash = 5}, {.hash = 5}, {.hash = 5}};

    run(4, 30, ranks, agree_main);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(ranks[i].code, ERR_OK, "%s", ranks[i].err.text);
}

Test(boot_agree, names_the_odd_ranks_on_every_rank)
{
    rank_t ranks[5] = {
        {.hash = 9}, {.hash = 5}, {.hash = 5}, {.hash = 5}, {.hash = 8}};

    run(5, 30, ranks, agree_main);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(ranks[i].code, ERR_CONFIG);
        cr_assert_not_null(
            strstr(ranks[i].err.text, "the configuration of ranks 0, 4"), "%s",
            ranks[i].err.text);
    }
}

Test(boot_agree, tie_goes_to_the_lowest_rank)
{
    rank_t ranks[2] = {{.hash = 9}, {.hash = 5}};

    run(2, 30, ranks, agree_main);
    cr_assert_not_null(strstr(ranks[0].err.text, "of rank 1 "), "%s",
                       ranks[0].err.text);
}

static void *absent_main(void *argument)
{
    rank_t *rank = argument;
    int mine = 1, all[RANKS_MAX];

    if (!rank->absent)
        rank->code =
            boot_exchange(rank->boot, &mine, sizeof mine, all, &rank->err);
    if (rank->gate != NULL)
        pthread_barrier_wait(rank->gate);
    boot_close(rank->boot);
    return NULL;
}

Test(boot_threads, late_ranks_are_named, .timeout = 30)
{
    rank_t ranks[4] = {{0}};
    pthread_barrier_t gate;
    double start = clock_now();

    pthread_barrier_init(&gate, NULL, 4);
    for (int i = 0; i < 4; i++) {
        ranks[i].absent = i == 1 || i == 3;
        ranks[i].gate = &gate;
    }
    run(4, 0.2, ranks, absent_main);
    pthread_barrier_destroy(&gate);
    cr_assert_gt(clock_now() - start, 0.19);
    for (int i = 0; i < 4; i += 2) {
        cr_assert_eq(ranks[i].code, ERR_PEER);
        cr_assert_eq(ranks[i].err.culprit, 1);
        cr_assert_not_null(strstr(ranks[i].err.text, "ranks 1, 3 did not come"),
                           "%s", ranks[i].err.text);
    }
}

Test(boot_threads, a_rank_that_leaves_is_named_at_once, .timeout = 30)
{
    const double timeout = 20;
    rank_t ranks[3] = {{0}};
    double start = clock_now();

    ranks[2].absent = true;
    run(3, timeout, ranks, absent_main);
    cr_assert_lt(clock_now() - start, timeout);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ranks[i].code, ERR_PEER);
        cr_assert_eq(ranks[i].err.culprit, 2);
        cr_assert_not_null(strstr(ranks[i].err.text, "rank 2 left"), "%s",
                           ranks[i].err.text);
    }
}

static void *bytes_main(void *argument)
{
    rank_t *rank = argument;
    char mine[16] = "", all[16 * RANKS_MAX];

    rank->code = boot_exchange(rank->boot, mine, rank->bytes, all, &rank->err);
    boot_close(rank->boot);
    return NULL;
}

Test(boot_threads, lengths_must_agree, .timeout = 30)
{
    rank_t ranks[2] = {{.bytes = 8}, {.bytes = 9}};

    run(2, 20, ranks, bytes_main);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(ranks[i].code, ERR_CONFIG, "%s", ranks[i].err.text);
}

typedef struct runners {
    int ranks[4]; /* how often each rank ran */
    int met[4];   /* the sum that each rank received */
    bool mine[4]; /* did the rank run in the caller's thread? */
    pthread_t caller;
} runners_t;

static void run_main(boot_t *boot, int rank, void *context)
{
    runners_t *runners = context;
    int all[4] = {0}, one = rank + 1;

    runners->ranks[boot_rank(boot)]++;
    runners->mine[rank] = pthread_equal(pthread_self(), runners->caller) != 0;
    if (boot_exchange(boot, &one, sizeof one, all, NULL) == ERR_OK)
        runners->met[rank] = all[0] + all[1] + all[2] + all[3];
    boot_close(boot);
}

Test(boot_threads, run_gives_each_rank_a_thread_and_waits, .timeout = 30)
{
    const boot_config_t config = {.timeout = 20};
    runners_t runners = {.caller = pthread_self()};
    err_t err = ERR_INIT;

    cr_assert_eq(boot_threads_run(4, &config, run_main, &runners, &err), ERR_OK,
                 "%s", err.text);
    for (int r = 0; r < 4; r++) {
        cr_assert_eq(runners.ranks[r], 1);
        cr_assert_eq(runners.met[r], 10);
        cr_assert_eq(runners.mine[r], r == 0);
    }
}
