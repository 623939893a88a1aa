/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_step_args.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/facts.h"

#define PARSE(...) parse((const char *[]){"step", __VA_ARGS__, NULL})

static bench_step_args_t args;
static err_t error;

static err_code_t parse(const char **argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    error = (err_t)ERR_INIT;
    return bench_step_args_parse(argc, (char **)argv, &args, &error);
}

Test(bench_step_args, defaults)
{
    cr_assert_eq(PARSE("a.yaml"), ERR_OK);
    cr_expect(args.steps == 30 && args.warm_up == 5 && args.local == 0);
    cr_expect(!args.csv && !args.paced && args.record == NULL);
    cr_expect_eq(args.scaling, BENCH_SCALING_NONE);
    cr_expect_str_eq(args.run_file, "a.yaml");
}

Test(bench_step_args, all)
{
    cr_assert_eq(PARSE("--steps=7", "--warm-up", "0", "--set", "a=1", "--set",
                       "b=2", "--device", "cuda", "--local", "6", "--scaling",
                       "strong", "--csv", "a.yaml"),
                 ERR_OK);
    cr_expect(args.steps == 7 && args.warm_up == 0 && args.csv);
    cr_assert_eq(args.sets.count, 3);
    cr_expect_str_eq(args.sets.items[1], "b=2");
    cr_expect_str_eq(args.sets.items[2], "train.device=cuda");
    cr_expect_eq(args.scaling, BENCH_SCALING_STRONG);
    cr_expect_eq(bench_step_args_next(&args, 1), 2);
    cr_expect_eq(bench_step_args_next(&args, 2), 4);
    cr_expect_eq(bench_step_args_next(&args, 4), 6);
    cr_expect_eq(bench_step_args_next(&args, 6), 0);
    cr_assert_eq(PARSE("--paced", "--record", "f", "--local", "1", "a.yaml"),
                 ERR_OK);
    cr_expect(args.paced && strcmp(args.record, "f") == 0);
    cr_expect_eq(bench_step_args_next(&args, 1), 0);
}

Test(bench_step_args, mistakes_are_told)
{
    cr_expect_eq(PARSE("--steps", "0", "a"), ERR_USAGE);
    cr_expect(strstr(error.text, "--steps") != NULL);
    cr_expect_eq(PARSE("--local", "x", "a"), ERR_USAGE);
    cr_expect_eq(PARSE("--scaling", "both", "--local", "2", "a"), ERR_USAGE);
    cr_expect(strstr(error.text, "weak or strong") != NULL);
    cr_expect_eq(PARSE("--device", "gpu", "a"), ERR_USAGE);
    cr_expect(strstr(error.text, "--device") != NULL);
    cr_expect_eq(PARSE("--scaling", "weak", "a"), ERR_USAGE);
    cr_expect_eq(PARSE("--paced", "--local", "2", "a"), ERR_USAGE);
    cr_expect_eq(PARSE("--frob", "a"), ERR_USAGE);
    FACTS(error.text, "--frob", "cddp-bench step --help");
    cr_expect_eq(PARSE("-xh", "a"), ERR_USAGE);
    FACTS(error.text, "-x", "cddp-bench step --help");
    cr_expect_eq(PARSE("--csv=1", "a"), ERR_USAGE);
    FACTS(error.text, "--csv=1", "cddp-bench step --help");
    cr_expect_eq(PARSE("--help=1", "a"), ERR_USAGE);
    FACTS(error.text, "--help=1", "cddp-bench step --help");
    cr_expect_eq(PARSE("a", "--steps"), ERR_USAGE);
    FACTS(error.text, "--steps", "cddp-bench step --help");
    cr_expect_eq(PARSE("a", "b"), ERR_USAGE);
    cr_expect_eq(PARSE("--csv"), ERR_USAGE);
    cr_expect_eq(PARSE("--help"), ERR_OK);
}
