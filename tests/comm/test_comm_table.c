/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The table of algorithms: reading, writing, errors, and that it does choose
 * the algorithm. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/collectives.h"
#include "comm/comm_table.h"
#include "lib/ranks.h"

TestSuite(comm_table, .init = ranks_transports, .timeout = 120);

static comm_algorithm_t found(const comm_table_t *table, comm_where_t where,
                              bool half, int ranks, size_t bytes)
{
    comm_query_t query = {.choice = COMM_CHOICE_ALLREDUCE,
                          .where = where,
                          .half = half,
                          .ranks = ranks,
                          .bytes = bytes};

    return comm_table_find(table, &query);
}

/* The last rank has no table, or another one: all ranks fail, with a message
 * that says which rank and why. */
typedef struct table_case {
    const char *good, *bad; /* paths of the tables; the last rank reads [bad] */
    err_code_t code;
    const char *text;
} table_case_t;

static int run_refused(const comm_oob_t *oob, void *argument)
{
    const table_case_t *which = argument;
    bool last = oob->rank == oob->size - 1;
    comm_config_t config = {.backend = "ucx",
                            .timeout = 20,
                            .table_path = last ? which->bad : which->good};
    comm_oob_t apart = *oob;
    comm_group_t *group = NULL;
    double begin = clock_now();
    err_t err = ERR_INIT;

    apart.host = last ? "right" : "left";
    RANKS_CHECK(comm_group_open(&config, &apart, &group, &err) == which->code);
    RANKS_CHECK(clock_now() - begin < config.timeout);
    RANKS_CHECK(strstr(err.text, "rank 2 on right") != NULL);
    RANKS_CHECK(strstr(err.text, which->text) != NULL);
    return 0;
}

Test(comm_table, unreadable_on_one_rank_ends_all)
{
    char path[] = "/tmp/cddp-table-XXXXXX";
    table_case_t cases[] = {
        {"", "/does/not/exist", ERR_IO, "/does/not/exist"},
        {"", path, ERR_CONFIG, "is no table of algorithms"},
        {"", path, ERR_CONFIG, "rank 0 on left"},
    };
    comm_table_t table;
    str_buf_t text = {0};
    int results[3], fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    cr_assert_not_null(file);
    fputs("nothing\n", file);
    fflush(file);
    cr_assert_eq(ranks_forks(3, 30, run_refused, &cases[0], results), 0);
    cr_assert_eq(ranks_forks(3, 30, run_refused, &cases[1], results), 0);

    comm_table_default(&table);
    comm_table_force(&table, COMM_BY_RING);
    comm_table_print(&table, &text);
    rewind(file);
    fputs(text.text, file);
    fclose(file);
    cr_assert_eq(ranks_forks(3, 30, run_refused, &cases[2], results), 0);
    str_buf_free(&text);
    unlink(path);
}

Test(comm_table, builtin_decides)
{
    comm_table_t table;

    comm_table_default(&table);
    cr_assert_gt(table.count, 10);
    cr_assert_eq(found(&table, COMM_WHERE_ARENA, false, 2, 4), COMM_BY_NODE);
    cr_assert_eq(
        comm_table_find(&table,
                        &(comm_query_t){.choice = COMM_CHOICE_REDUCE_SCATTER,
                                        .where = COMM_WHERE_ARENA,
                                        .ranks = 3,
                                        .bytes = 4}),
        COMM_BY_NODE);
    cr_assert_eq(found(&table, COMM_WHERE_LOCAL, false, 3, 4097),
                 COMM_BY_STAGE);
    cr_assert_eq(found(&table, COMM_WHERE_NET, false, 3, 32768),
                 COMM_BY_DOUBLING);
    cr_assert_eq(found(&table, COMM_WHERE_NET, false, 3, 32769), COMM_BY_RING);
    cr_assert_eq(found(&table, COMM_WHERE_LOCAL, true, 3, 4), COMM_BY_SHOT);
    cr_assert_eq(found(&table, COMM_WHERE_LOCAL, true, 3, 4097), COMM_BY_STAGE);
    cr_assert_eq(found(&table, COMM_WHERE_NET, true, 3, 4097), COMM_BY_DIRECT);
    cr_assert_eq(found(&table, COMM_WHERE_SLICE, false, 8, 1 << 30),
                 COMM_BY_HALVING);
    cr_assert_eq(found(&table, COMM_WHERE_SLICE, false, 9, 1 << 30),
                 COMM_BY_RING);
}

/* ---- text ---------------------------------------------------------------- */

#define REST                                  \
    "allreduce arena any any any node\n"      \
    "allreduce slice any any any ring\n"      \
    "reduce-scatter local any any any ring\n" \
    "reduce-scatter net any any any ring\n"   \
    "gather-ranges local any any any ring\n"  \
    "gather-ranges net any any any direct\n"  \
    "allgather local any any any bruck\n"     \
    "allgather net any any any ring\n"

Test(comm_table, what_is_written_reads_the_same)
{
    static const char text[] = "cddp comm table 1\n"
                               "# a comment, then an empty line\n\n"
                               "allreduce local wide 4 12345 doubling # so\n"
                               "allreduce local wide any 3M direct\n"
                               "allreduce net any 2^n 2G ring\n"
                               "allreduce local any any any ring\n"
                               "allreduce net any any any direct\n" REST;
    comm_table_t table, again;
    str_buf_t printed = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(comm_table_parse(text, "text", &table, &err), ERR_OK, "%s",
                 err.text);
    comm_table_print(&table, &printed);
    cr_assert_eq(comm_table_parse(printed.text, "printed", &again, &err),
                 ERR_OK, "%s\n%s", err.text, printed.text);
    cr_assert_eq(comm_table_hash(&table), comm_table_hash(&again));
    cr_assert_eq(again.count, 13);
    cr_assert_eq(found(&again, COMM_WHERE_LOCAL, false, 4, 12345),
                 COMM_BY_DOUBLING);
    cr_assert_eq(found(&again, COMM_WHERE_LOCAL, false, 5, 12345),
                 COMM_BY_DIRECT);
    cr_assert_eq(found(&again, COMM_WHERE_LOCAL, false, 5, (3 << 20) + 1),
                 COMM_BY_RING);
    cr_assert_eq(found(&again, COMM_WHERE_LOCAL, true, 4, 1), COMM_BY_RING);
    cr_assert_eq(found(&again, COMM_WHERE_NET, false, 16, 1), COMM_BY_RING);
    cr_assert_eq(found(&again, COMM_WHERE_NET, false, 12, 1), COMM_BY_DIRECT);
    again.rows[0].ranks++;
    cr_assert_neq(comm_table_hash(&table), comm_table_hash(&again));
    str_buf_free(&printed);
}

Test(comm_table, errors_say_where_and_what)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"", "first line"},
        {"allreduce local any any any ring\n", "first line"},
        {"cddp comm table 1\nallreduce local any any ring\n",
         "line 2: expected"},
        {"cddp comm table 1\nallreduce local any any any ring x\n", "more"},
        {"cddp comm table 1\n\nreduce local any any any ring\n",
         "line 3: collective \"reduce\" is unknown: choose allreduce, reduce"},
        {"cddp comm table 1\nallreduce here any any any ring\n", "\"here\""},
        {"cddp comm table 1\nallreduce net fp8 any any ring\n", "\"fp8\""},
        {"cddp comm table 1\nallreduce net any many any ring\n", "\"many\""},
        {"cddp comm table 1\nallreduce net any any 3T ring\n", "\"3T\""},
        {"cddp comm table 1\nallreduce net any any 0 ring\n", "\"0\""},
        {"cddp comm table 1\nallreduce net any any any rind\n", "\"rind\""},
        {"cddp comm table 1\nallreduce net any any any node\n",
         "not carried out by"},
        {"cddp comm table 1\nallgather slice any any any ring\n",
         "not carried out by"},
        {"cddp comm table 1\nallreduce net any any any ring\n"
         "allreduce local wide any any ring\n" REST,
         "no row \"allreduce local half any any ALGORITHM\""},
        {"cddp comm table 1\nallreduce net any any 1G ring\n"
         "allreduce local any any any ring\n" REST,
         "no row \"allreduce net wide any any ALGORITHM\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        comm_table_t table;
        err_t err = ERR_INIT;

        cr_assert_eq(comm_table_parse(cases[i].text, "t", &table, &err),
                     ERR_CONFIG, "case %zu", i);
        cr_assert_not_null(strstr(err.text, cases[i].told), "case %zu: %s", i,
                           err.text);
    }
}

Test(comm_table, load)
{
    char path[] = "/tmp/cddp-table-XXXXXX";
    comm_table_t table, builtin;
    err_t err = ERR_INIT;
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "nonsense\n", 9), 9);
    close(fd);
    comm_table_default(&builtin);
    cr_assert_eq(comm_table_load("", &table, &err), ERR_OK);
    cr_assert_eq(comm_table_hash(&table), comm_table_hash(&builtin));
    cr_assert_eq(comm_table_load(path, &table, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, path));
    unlink(path);
    cr_assert_eq(comm_table_load(path, &table, &err), ERR_IO);
}

/* ---- groups -------------------------------------------------------------- */

/* Every collective with each algorithm, on one node and on two. */
Test(comm_table, every_algorithm_gives_right_results)
{
    for (int algorithm = 0; algorithm < COMM_ALGORITHMS; algorithm++)
        for (int nodes = 1; nodes <= 2; nodes++) {
            comm_table_t table;
            collectives_t what = {.backend = "ucx",
                                  .plain = algorithm % 2 == 0,
                                  .table = &table,
                                  .nodes = nodes == 2 ? "aabab" : NULL};
            int results[RANKS_MAX];

            comm_table_default(&table);
            comm_table_force(&table, (comm_algorithm_t)algorithm);
            cr_assert_eq(ranks_forks(nodes == 1 ? 3 : 5, 60, collectives_run,
                                     &what, results),
                         0, "%s, %d nodes",
                         comm_algorithm_name((comm_algorithm_t)algorithm),
                         nodes);
        }
}

static int run_names(const comm_oob_t *oob, void *argument)
{
    comm_table_t table;
    comm_config_t config = {.backend = "ucx", .timeout = 20, .table = &table};
    comm_group_t *group;
    comm_arena_t *arena;
    err_t err = ERR_INIT;
    float data;

    (void)argument;
    comm_table_default(&table);
    comm_table_force(&table, COMM_BY_FLAT);
    for (int i = 0; i < table.count; i++)
        if (table.rows[i].algorithm == COMM_BY_SHOT)
            table.rows[i].bytes = 4;
        else if (table.rows[i].algorithm == COMM_BY_STAGE) {
            table.rows[i].algorithm = COMM_BY_DOUBLING;
            table.rows[i].bytes = 64;
            table.rows[table.count] = table.rows[i];
            table.rows[table.count].bytes = SIZE_MAX;
            table.rows[table.count++].algorithm = COMM_BY_STAGE;
            break;
        }
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(comm_arena_open(group, 4096, &arena, &err), err);
    memset(&table, 0, sizeof table); /* the group has copied the table */
    RANKS_CHECK(strcmp(comm_allreduce_name(group, comm_arena_data(arena), 16,
                                           COMM_FLOAT32),
                       "doubling") == 0);
    RANKS_CHECK(strcmp(comm_allreduce_name(group, &data, 1, COMM_FLOAT32),
                       "shot") == 0);
    RANKS_CHECK(strcmp(comm_allreduce_name(group, &data, 17, COMM_FLOAT32),
                       "stage") == 0);
    RANKS_CHECK(strcmp(comm_allreduce_name(group, &data, 33, COMM_FLOAT16),
                       "stage") == 0);
    comm_arena_close(arena);
    comm_group_close(group);
    return 0;
}

Test(comm_table, decides_in_a_group)
{
    int results[2];

    cr_assert_eq(ranks_forks(2, 60, run_names, NULL, results), 0);
}

static int run_different(const comm_oob_t *oob, void *argument)
{
    comm_table_t table;
    comm_config_t config = {
        .backend = "threads", .timeout = 20, .table = &table};
    comm_group_t *group;
    err_t err = ERR_INIT;

    (void)argument;
    comm_table_default(&table);
    table.rows[0].ranks = oob->rank;
    RANKS_CHECK(comm_group_open(&config, oob, &group, &err) == ERR_CONFIG);
    RANKS_CHECK(strstr(err.text, "different tables of algorithms") != NULL);
    return 0;
}

Test(comm_table, different_tables_are_told)
{
    cr_assert_eq(ranks_threads(3, run_different, NULL), 0);
}
