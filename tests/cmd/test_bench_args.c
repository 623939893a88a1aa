/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_args.h"

#include <criterion/criterion.h>
#include <string.h>

#include "cmd/bench_times.h"
#include "cmd/bench_tune.h"
#include "dev/dev.h"

#define PARSE(...) parse((const char *[]){"cddp-bench", __VA_ARGS__, NULL})

static bench_args_t args;
static err_t error;

static err_code_t parse(const char **argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    error = (err_t)ERR_INIT;
    return bench_args_parse(argc, (char **)argv, &args, &error);
}

Test(bench_args, defaults)
{
    cr_assert_eq(PARSE("allreduce"), ERR_OK);
    cr_expect_eq(args.smallest, 4);
    cr_expect_eq(args.largest, 256 << 20);
    cr_expect_eq(args.local, 0);
    cr_expect(!args.csv && !args.plain && args.backend == NULL);
}

Test(bench_args, all)
{
    cr_assert_eq(PARSE("allreduce", "--sizes", "12:3K", "--csv", "--plain",
                       "--local", "3", "--backend", "ucx"),
                 ERR_OK);
    cr_expect_eq(args.smallest, 12);
    cr_expect_eq(args.largest, 3072);
    cr_expect_eq(args.local, 3);
    cr_expect(args.csv && args.plain);
    cr_expect_str_eq(args.backend, "ucx");
}

Test(bench_args, devices)
{
    cr_assert_eq(PARSE("allreduce"), ERR_OK);
    cr_expect(!args.on_device);
    cr_assert_eq(PARSE("allreduce", "--device", "cpu"), ERR_OK);
    cr_expect(!args.on_device);
    cr_assert_eq(PARSE("allreduce", "--device", "cuda", "--backend", "nccl"),
                 ERR_OK);
    cr_expect(args.on_device);
    cr_expect_str_eq(dev_choices[args.device], "cuda");
    cr_assert_eq(PARSE("allreduce", "--device=auto"), ERR_OK);
    cr_expect(args.on_device && args.device == DEV_AUTO);
    cr_expect_eq(PARSE("allreduce", "--device", "gpu"), ERR_USAGE);
    cr_expect(strstr(error.text, "--device: expected cpu, cuda") != NULL);
    cr_expect_eq(PARSE("allreduce", "--device", "cuda", "--tune", "t"),
                 ERR_USAGE);
    cr_expect(strstr(error.text, "leave --device cuda out") != NULL);
}

Test(bench_args, rounds_depend_on_the_size)
{
    cr_assert_eq(PARSE("allreduce"), ERR_OK);
    cr_expect_eq(bench_args_rounds(&args, 4), BENCH_ROUNDS_MAX);
    cr_expect_eq(bench_args_rounds(&args, (size_t)8 << 20), 64);
    cr_expect_eq(bench_args_rounds(&args, (size_t)1 << 30), 15);
    cr_assert_eq(PARSE("allreduce", "--rounds", "3"), ERR_OK);
    cr_expect_eq(bench_args_rounds(&args, 4), 3);
}

Test(bench_args, steps_end_at_the_largest)
{
    static const size_t expected[] = {12, 48, 192, 768, 3072, 4096, 0};
    size_t bytes;

    cr_assert_eq(PARSE("allreduce", "--sizes=12:4K"), ERR_OK);
    bytes = args.smallest;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        cr_expect_eq(bytes, expected[i], "step %zu: %zu", i, bytes);
        bytes = bench_args_next(&args, bytes);
    }
    cr_assert_eq(PARSE("allreduce", "--sizes", "1M"), ERR_OK);
    cr_expect_eq(args.largest, 1 << 20);
    cr_expect_eq(bench_args_next(&args, args.smallest), 0);
}

Test(bench_args, mistakes_are_told)
{
    static const char *const sizes[] = {
        "",   "0",    "5",   "-4",    "8:4",  "4:",   "4:8x", ":8",
        "4Q", "4:8:", "65G", "4:65G", " 4:8", "4: 8", "M"};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cr_expect_eq(PARSE("allreduce", "--sizes", sizes[i]), ERR_USAGE, "%s",
                     sizes[i]);
        cr_expect(strstr(error.text, "--sizes") != NULL);
    }
    cr_expect_eq(PARSE("allreduce", "--local", "0"), ERR_USAGE);
    cr_expect_eq(PARSE("allreduce", "--local"), ERR_USAGE);
    cr_expect_eq(PARSE("allreduce", "--frob"), ERR_USAGE);
    cr_expect(strstr(error.text, "--frob") != NULL);
    cr_expect_eq(PARSE("broadcast"), ERR_USAGE);
    cr_expect_eq(PARSE("--csv"), ERR_USAGE);
    cr_expect_eq(PARSE("--help"), ERR_OK);
}

Test(bench_times, of_even_and_odd_numbers)
{
    double few[] = {3, 1, 2}, many[200];
    bench_times_t found = bench_times(few, 3);

    cr_expect(found.min == 1 && found.median == 2 && found.p99 == 3);
    for (int i = 0; i < 200; i++)
        many[i] = (i * 77) % 200;
    found = bench_times(many, 200);
    cr_expect(found.min == 0 && found.median == 99.5 && found.p99 == 197);
}

/* ---- tables -------------------------------------------------------------- */

static comm_algorithm_t asked(const comm_table_t *table, bool half,
                              size_t bytes)
{
    comm_query_t query = {.choice = COMM_CHOICE_ALLREDUCE,
                          .where = COMM_WHERE_NET,
                          .half = half,
                          .ranks = 4,
                          .bytes = bytes};

    return comm_table_find(table, &query);
}

Test(bench_tune, what_is_fastest_is_in_the_table)
{
    tune_times_t times = {
        .choice = COMM_CHOICE_ALLREDUCE,
        .where = COMM_WHERE_NET,
        .count = 4,
        .bytes = {64, 256, 1024, 4096},
        .seconds = {{[COMM_BY_DOUBLING] = 1, [COMM_BY_RING] = 2},
                    {[COMM_BY_DOUBLING] = 1, [COMM_BY_RING] = 0.97},
                    {[COMM_BY_DOUBLING] = 4, [COMM_BY_RING] = 3},
                    {[COMM_BY_RING] = 6, [COMM_BY_DIRECT] = 5}}};
    comm_table_t table, again;
    str_buf_t text = {0};

    comm_table_default(&table);
    cr_assert_eq(tune_rows(&table, &times, &error), ERR_OK);
    cr_expect_eq(asked(&table, false, 1), COMM_BY_DOUBLING);
    cr_expect_eq(asked(&table, false, 512), COMM_BY_DOUBLING);
    cr_expect_eq(asked(&table, false, 513), COMM_BY_RING);
    cr_expect_eq(asked(&table, false, 2048), COMM_BY_RING);
    cr_expect_eq(asked(&table, false, 2049), COMM_BY_DIRECT);
    cr_expect_eq(asked(&table, true, 1), COMM_BY_DIRECT, "16-bit floats");
    comm_table_print(&table, &text);
    cr_expect_eq(comm_table_parse(text.text, "t", &again, &error), ERR_OK, "%s",
                 error.text);
    str_buf_free(&text);
    table.count = COMM_TABLE_ROWS;
    for (int i = 0; i < COMM_TABLE_ROWS; i++)
        table.rows[i] = (comm_row_t){.where = COMM_WHERE_LOCAL, .types = 3};
    cr_expect_eq(tune_rows(&table, &times, &error), ERR_CONFIG);
}

/* Small arrays in arenas use one-shot slots, whatever the rows of the table
 * say, so sizes that were not measured get no rows. */
Test(bench_tune, what_was_not_measured_has_no_rows)
{
    tune_times_t times = {
        .choice = COMM_CHOICE_ALLREDUCE,
        .where = COMM_WHERE_ARENA,
        .count = 3,
        .bytes = {4096, 16384, 65536},
        .seconds = {[1] = {[COMM_BY_NODE] = 2, [COMM_BY_FLAT] = 1},
                    [2] = {[COMM_BY_NODE] = 1, [COMM_BY_FLAT] = 2}}};
    comm_query_t query = {.where = COMM_WHERE_ARENA, .ranks = 2};
    comm_table_t table, built_in;

    comm_table_default(&table);
    cr_assert_eq(tune_rows(&table, &times, &error), ERR_OK);
    query.bytes = 32768;
    cr_expect_eq(comm_table_find(&table, &query), COMM_BY_FLAT);
    query.bytes++;
    cr_expect_eq(comm_table_find(&table, &query), COMM_BY_NODE);
    comm_table_default(&table);
    comm_table_default(&built_in);
    memset(times.seconds, 0, sizeof times.seconds);
    cr_assert_eq(tune_rows(&table, &times, &error), ERR_OK);
    cr_expect_eq(comm_table_hash(&table), comm_table_hash(&built_in));
}

Test(bench_args, tables)
{
    cr_assert_eq(PARSE("allreduce", "--tune", "t", "--table", "u"), ERR_OK);
    cr_expect_str_eq(args.tune, "t");
    cr_expect_str_eq(args.table, "u");
    cr_expect_eq(args.smallest, 64);
    cr_expect_eq(args.largest, 16 << 20);
    cr_assert_eq(PARSE("allreduce", "--tune", "t", "--sizes", "4:8"), ERR_OK);
    cr_expect_eq(args.smallest, 4);
}
