/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Every case of the table on the test device, in both of its orders: the bits
 * are those of cpu, in float32 and with tensors stored as bfloat16, and the
 * gradients are differences of its values. The host accesses no memory of the
 * device.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "dev/dev_far.h"
#include "op/op_desc.h"
#include "op_differences.h"

/* Compare the bits of a block. NULL: the op has no such block. */
static void check_bits(const op_rig_t *rig, const char *what, const void *got,
                       const void *want, size_t bytes)
{
    cr_assert_eq(got == NULL, want == NULL, "%s: %s", rig->name, what);
    if (got != NULL)
        cr_assert_arr_eq(got, want, bytes, "%s: %s has other bits on far",
                         rig->name, what);
}

static void check_forward(const op_rig_t *far, const op_rig_t *cpu)
{
    const size_t moments =
        2 * (size_t)cpu->config.in.dims[1] * sizeof *cpu->args.moments;

    if (op_rig_is_loss(cpu)) {
        check_bits(far, "the loss", &far->loss_sum, &cpu->loss_sum,
                   sizeof cpu->loss_sum);
        cr_assert_eq(far->correct, cpu->correct, "%s: correct", far->name);
    } else {
        check_bits(far, "y", far->y, cpu->y, op_out(cpu->op)->bytes);
    }
    check_bits(far, "the moments", far->args.moments, cpu->args.moments,
               moments);
}

static void check_backward(const op_rig_t *far, const op_rig_t *cpu)
{
    check_bits(far, "dx", far->dx, cpu->dx, op_grad_in(cpu->op)->bytes);
    for (int i = 0; i < cpu->param_count; i++)
        check_bits(far, "a parameter's gradient", far->args.dparams[i],
                   cpu->args.dparams[i], cpu->params[i].bytes);
    for (int k = 0; k < cpu->config.others; k++)
        check_bits(far, "the gradient of an input", far->dother[k],
                   cpu->dother[k], cpu->config.other[k].bytes);
}

static void run(op_rig_t *rig)
{
    op_rig_spoil_forward(rig);
    op_rig_forward(rig);
    if (!rig->config.training)
        return;
    op_rig_spoil_backward(rig);
    op_rig_backward(rig);
}

static void check_case(const op_case_t *test, int order)
{
    const op_rig_on_t on = {"far", order, OP_FLOAT32, 1};
    op_rig_t far, cpu;

    op_rig_open_on(&far, test, &on);
    op_rig_open(&cpu, test, "cpu", OP_FLOAT32, 1);
    run(&cpu);
    run(&far);
    check_forward(&far, &cpu);
    if (cpu.config.training)
        check_backward(&far, &cpu);
    cr_assert_gt(dev_far_counts(far.mem.dev).waits, 0, "%s", test->name);
    op_rig_close(&far);
    op_rig_close(&cpu);
}

ParameterizedTestParameters(op_far, bits)
{
    static int orders[] = {DEV_FAR_LAST_FIRST, DEV_FAR_NEEDED_ONLY};

    return cr_make_param_array(int, orders, DEV_FAR_ORDERS);
}

ParameterizedTest(const int *order, op_far, bits, .timeout = 300)
{
    for (int i = 0; i < op_case_count; i++)
        check_case(&op_cases[i], *order);
}

Test(op_far, bits_of_bf16, .timeout = 300)
{
    const op_backend_ops_t *far = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("far", &far, &err), ERR_OK, "%s", err.text);
    if (op_backend_lacks(far, NULL, OP_BFLOAT16) != NULL)
        cr_skip_test("this CPU cannot multiply bfloat16");
    for (int i = 0; i < op_case_count; i++) {
        op_case_t test = op_cases[i];

        test.bf16 = op_rig_lies(far, &test);
        if (op_rig_rounds(test.config.kind))
            test.config.compute_type = OP_BFLOAT16;
        check_case(&test, DEV_FAR_LAST_FIRST);
    }
}

Test(op_far, gradients_are_differences, .timeout = 300)
{
    for (int i = 0; i < op_case_count; i++) {
        const op_rig_on_t on = {"far", i % DEV_FAR_ORDERS, OP_FLOAT32, 1};

        if (!op_cases[i].large)
            op_differences_check(&op_cases[i], &on, &op_differences_float32);
    }
}

/* op_add is enqueued, too: two sums in order, and then the wait. */
Test(op_far, add)
{
    enum { COUNT = 100 };
    const op_backend_ops_t *far = NULL;
    dev_device_t *dev;
    dev_stream_t *stream;
    float host[COUNT], back[COUNT];
    void *to;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("far", &far, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(dev_open("far", 0, &dev, &err), ERR_OK);
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, &err),
                 ERR_OK);
    cr_assert_eq(dev_alloc(dev, sizeof host, "a test", &to, &err), ERR_OK);
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)i;
    cr_assert_eq(dev_copy(stream, to, host, sizeof host, DEV_HOST_TO_DEV, &err),
                 ERR_OK);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(op_add(far, to, to, COUNT, OP_FLOAT32, stream, &err),
                     ERR_OK);
    cr_assert_eq(dev_copy(stream, back, to, sizeof back, DEV_DEV_TO_HOST, &err),
                 ERR_OK);
    cr_assert_eq(dev_stream_wait(stream, &err), ERR_OK);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(back[i], 4 * host[i]);
    dev_stream_close(stream);
    dev_free(dev, to);
    dev_close(dev);
}
