/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Mode check: every case of the table on cpu compared with ref in float32,
 * with one thread and with two. All outputs are filled with NaN before each
 * call. Also the promises of op.h: equal bits on every call; in place where
 * op_in_place is true; backward without what op_reads_x and op_reads_y exclude
 * (the rig passes NULL for it).
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/op_ops.h"
#include "op_compare.h"

/* The cpu backend on [least] to [most] threads, compared with one run of ref,
 * whose plain loops take most of this test's time. */
static void check_case(const op_case_t *test, int least, int most)
{
    op_rig_t rig, ref;

    op_rig_open(&ref, test, "ref", OP_FLOAT32, 1);
    op_compare_run(&ref);
    for (int threads = least; threads <= most; threads++) {
        op_rig_open(&rig, test, "cpu", OP_FLOAT32, threads);
        op_compare_run(&rig);
        op_compare_ref(test, &rig, &ref);
        op_compare_repeat(test, &rig, 3);
        if (op_in_place(rig.op))
            op_compare_in_place(test, &rig);
        op_rig_close(&rig);
    }
    op_compare_repeat(test, &ref, 1);
    if (op_in_place(ref.op))
        op_compare_in_place(test, &ref);
    op_rig_close(&ref);
}

Test(op_check, one_and_two_threads, .timeout = 300)
{
    for (int i = 0; i < op_case_count; i++)
        check_case(&op_cases[i], 1, 2);
}

static void check_team(const op_case_t *test, int threads)
{
    op_rig_t one, team;

    op_rig_open(&one, test, "cpu", OP_FLOAT32, 1);
    op_rig_open(&team, test, "cpu", OP_FLOAT32, threads);
    op_compare_run(&one);
    op_compare_run(&team);
    op_compare_bits(&one, &team, "depends on the number of threads");
    op_rig_close(&one);
    op_rig_close(&team);
}

/* The larger team has more threads than norms have blocks of rows. */
static void check_teams(const op_case_t *test)
{
    check_team(test, 3);
    check_team(test, 7);
}

/* Norms, and all kinds of op newer than OP_CUSTOM. */
Test(op_check, the_same_bits_in_any_team, .timeout = 300)
{
    for (int i = 0; i < op_case_count; i++) {
        const op_kind_t kind = op_cases[i].config.kind;

        if (kind == OP_BATCHNORM || op_is_sample_norm(kind) || kind > OP_CUSTOM)
            check_teams(&op_cases[i]);
    }
}

/* Tensors stored as bfloat16: y, dx and the like are rounded once more than in
 * ref, by up to half a unit in the last place (2^-9 of a number), which also
 * changes what is computed from y. There is no other loss of precision. */
Test(op_check, tensors_lie_as_bf16, .timeout = 300)
{
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;
    int lay = 0;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        if (!op_rig_lies(cpu, &test))
            continue;
        test.bf16 = true;
        if (op_rig_rounds(test.config.kind))
            test.config.compute_type = OP_BFLOAT16;
        test.tolerance = 1e-2;
        check_case(&test, 1 + i % 2, 1 + i % 2);
        if (test.config.kind == OP_BATCHNORM)
            check_teams(&test);
        op_compare_nan(&test, "cpu");
        lay++;
    }
    cr_assert_gt(lay, 60);
}

/* An op of a kind that cannot store bfloat16 is refused with a message. */
Test(op_check, others_refuse_bf16)
{
    op_config_t config = {.kind = OP_MUL,
                          .others = 1,
                          .threads = 1,
                          .in = {.stored_as = OP_BFLOAT16}};
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;
    op_t *op;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    config.in.ndim = config.other[0].ndim = 2;
    for (int d = 0; d < 2; d++)
        config.in.dims[d] = config.other[0].dims[d] = 3;
    cr_assert_eq(op_open(cpu, NULL, &config, &op, &err), ERR_UNAVAILABLE);
    cr_assert(strstr(err.text, "stored as bfloat16") != NULL, "%s", err.text);
}

/* A NaN in x must reach y, so that a diverging run is noticed. */
Test(op_check, nan_passes)
{
    for (int i = 0; i < op_case_count; i++)
        op_compare_nan(&op_cases[i], "cpu");
}

/* Products of factors rounded to bfloat16, as in ref. On a CPU without bfloat16
 * products the backend must refuse them. */
Test(op_check, bf16)
{
    const op_backend_ops_t *cpu = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cpu", &cpu, &err), ERR_OK, "%s", err.text);
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];
        op_config_t config;
        op_t *op = NULL;

        if (!op_rig_rounds(test.config.kind))
            continue;
        test.config.compute_type = OP_BFLOAT16;
        /* Both backends round alike, with exceptions: attention may round p
         * before it is divided by the sum of its row; and the values that a
         * step passes to the next, or an activation's slope before a product,
         * may round to the other side of a tie. */
        test.tolerance = test.config.kind == OP_ATTENTION ||
                                 test.config.kind == OP_LSTM ||
                                 test.config.kind == OP_GRU
                             ? 1e-2
                         : test.config.activation != OP_NONE ? 1e-3
                                                             : 1e-5;
        config = op_rig_config(&test, OP_FLOAT32);
        if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) == NULL) {
            check_case(&test, 1 + i % 2, 1 + i % 2);
            continue;
        }
        cr_assert_eq(op_open(cpu, NULL, &config, &op, &err), ERR_UNAVAILABLE);
        cr_assert(strstr(err.text, "bfloat16") != NULL, "%s", err.text);
    }
    if (op_backend_lacks(cpu, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
}
