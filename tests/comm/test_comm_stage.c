/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* All-reduces of ordinary memory on one node, copied through shared memory
 * (src/comm/node/node_stage.h). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm_ops.h"
#include "comm/waits.h"
#include "lib/ranks.h"

TestSuite(comm_stage, .init = ranks_transports, .timeout = 120);

#define STAGED 12
/* elements; several times what a rank can stage at a time */
#define STAGED_MOST 300001

static const size_t staged_counts[STAGED] = {
    1025, 300001, 7, 32768, 32769, 65536, 99991, 1, 5000, 262144, 4096, 163841};

static float staged_value(int rank, int which, size_t i)
{
    return 0.1f * (float)(rank + 1) + (float)((i * 7 + (size_t)which) % 61);
}

static int staged_check(const float *data, int which, int size)
{
    for (size_t i = 0; i < staged_counts[which]; i++) {
        float sum = staged_value(0, which, i);

        for (int rank = 1; rank < size; rank++)
            sum += staged_value(rank, which, i);
        RANKS_CHECK(data[i] == sum);
    }
    return 0;
}

/* Start, in turn, collectives of every kind: in an arena, staged, one-shot, and
 * a broadcast, which the comm thread carries out. */
static int staged_start(comm_group_t *group, float *arena, float **plain,
                        comm_work_t **works, comm_work_t **others, char *note)
{
    int rank = comm_group_rank(group);
    err_t err = ERR_INIT;

    for (int i = 0; i < STAGED; i++) {
        float *data = i % 4 == 3 ? arena + i / 4 * STAGED_MOST : plain[i];
        const char *way = staged_counts[i] <= 1024 ? "shot"
                          : i % 4 == 3             ? "node"
                                                   : "stage";

        plain[i] = data;
        for (size_t j = 0; j < staged_counts[i]; j++)
            data[j] = staged_value(rank, i, j);
        RANKS_CHECK(strcmp(comm_allreduce_name(group, data, staged_counts[i],
                                               COMM_FLOAT32),
                           way) == 0);
        RANKS_CHECK(comm_allreduce_start(group, data, staged_counts[i],
                                         COMM_FLOAT32, COMM_SUM, &works[i],
                                         &err) != COMM_FAILED);
        note[i] = (char)(rank == 0 ? i : -1);
        RANKS_CHECK(comm_broadcast_start(group, &note[i], 1, 0, &others[i],
                                         &err) != COMM_FAILED);
    }
    return 0;
}

/* Each rank waits for the works in another order. While it waits for one work
 * it also helps with the works that others wait for. */
static int run_staged(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_work_t *works[2 * STAGED];
    float *plain[STAGED], *memory[STAGED];
    comm_group_t *group;
    comm_arena_t *arena;
    char note[STAGED];
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_arena_open(group, STAGED / 4 * STAGED_MOST * sizeof(float),
                             &arena, &err),
             err);
    for (int i = 0; i < STAGED; i++)
        memory[i] = calloc(STAGED_MOST, sizeof(float));
    for (int round = 0; round < 6; round++) {
        memcpy(plain, memory, sizeof plain);
        if (staged_start(group, comm_arena_data(arena), plain, works,
                         works + STAGED, note))
            return 1;
        for (int i = 0; i < 2 * STAGED; i++) {
            static const int strides[] = {1, 5, 7, 11, 13, 17, 19, 23};
            int which = (i * strides[(oob->rank + round) % 8] + 3 * oob->rank) %
                        (2 * STAGED);

            if (which % 5 == 4)
                (void)waits_poll(works[which]);
            RANKS_OK(comm_work_wait(works[which], &err), err);
        }
        for (int i = 0; i < STAGED; i++)
            if (note[i] != i || staged_check(plain[i], i, oob->size))
                return 1;
    }
    for (int i = 0; i < STAGED; i++)
        free(memory[i]);
    comm_arena_close(arena);
    comm_group_close(group);
    return 0;
}

Test(comm_stage, staged_and_others_side_by_side)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_threads(3, run_staged, NULL), 0);
    cr_assert_eq(ranks_forks(2, 60, run_staged, NULL, results), 0);
    cr_assert_eq(ranks_forks(7, 60, run_staged, NULL, results), 0);
}

/* A staged sum has the bits of a sum in an arena, for all types: both sum in
 * rank order and round once. The floats have either sign and any magnitude, so
 * that the order matters. */
static int run_staged_bits(const comm_oob_t *oob, void *argument)
{
    static const size_t counts[] = {2049, 5003, 32771, 140003};
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_group_t *group;
    comm_arena_t *arena;
    void *plain = calloc(140003, sizeof(double));
    err_t err = ERR_INIT;

    (void)argument;
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_arena_open(group, 140003 * sizeof(double), &arena, &err),
             err);
    for (int type = 0; type < COMM_TYPES; type++)
        for (int op = 0; op < COMM_OPS; op++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                size_t bytes = counts[c] * comm_type_bytes((comm_type_t)type);
                uint16_t *words = plain;

                if (bytes <= 4096)
                    continue;
                /* Moderate exponents: no sum overflows. */
                for (size_t i = 0; i < bytes / 2; i++)
                    words[i] =
                        (uint16_t)((i * 40503u + (unsigned)oob->rank * 9973u) &
                                   0xbfffu);
                memcpy(comm_arena_data(arena), plain, bytes);
                RANKS_OK(comm_allreduce(group, plain, counts[c],
                                        (comm_type_t)type, (comm_op_t)op, &err),
                         err);
                RANKS_OK(comm_allreduce(group, comm_arena_data(arena),
                                        counts[c], (comm_type_t)type,
                                        (comm_op_t)op, &err),
                         err);
                RANKS_CHECK(memcmp(plain, comm_arena_data(arena), bytes) == 0);
            }
    comm_arena_close(arena);
    comm_group_close(group);
    free(plain);
    return 0;
}

Test(comm_stage, staged_bits_are_those_of_an_arena)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_threads(2, run_staged_bits, NULL), 0);
    cr_assert_eq(ranks_forks(5, 60, run_staged_bits, NULL, results), 0);
}

/* A rank starts a collective and then waits for the others to be through before
 * it looks. Its comm thread copies for it; if the others waited for the rank
 * itself, the test would not end. */
static int run_staged_away(const comm_oob_t *oob, void *argument)
{
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    float *data = calloc(STAGED_MOST, sizeof *data);
    const int *ends = argument;
    comm_group_t *group;
    comm_work_t *work;
    char byte = 0;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < STAGED_MOST; i++)
            data[i] = staged_value(oob->rank, 1, i);
        RANKS_OK(comm_barrier(group, &err), err);
        RANKS_CHECK(comm_allreduce_start(group, data, STAGED_MOST, COMM_FLOAT32,
                                         COMM_SUM, &work, &err) != COMM_FAILED);
        for (int i = 1; oob->rank == round && i < oob->size; i++)
            RANKS_CHECK(read(ends[0], &byte, 1) == 1);
        RANKS_OK(comm_work_wait(work, &err), err);
        RANKS_CHECK(oob->rank == round || write(ends[1], &byte, 1) == 1);
        if (staged_check(data, 1, oob->size))
            return 1;
    }
    comm_group_close(group);
    free(data);
    return 0;
}

Test(comm_stage, staged_while_a_rank_computes)
{
    int results[RANKS_MAX], ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(ranks_forks(2, 60, run_staged_away, ends, results), 0);
    cr_assert_eq(ranks_forks(4, 60, run_staged_away, ends, results), 0);
}
