/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The gradients of ref in float64 compared with central differences, for every
 * case of the table. The values of x are on a grid much wider than the step of
 * the differences, so that no kink (relu, maxpool) is crossed. In float32 the
 * gradients of cpu, on fewer elements.
 */
#include <criterion/criterion.h>

#include "op_differences.h"

Test(op_grad, ref_float64)
{
    const op_rig_on_t on = {"ref", 0, OP_FLOAT64, 1};
    const op_differences_t limits = {60, 1e-5, 1e-7, 0};

    for (int i = 0; i < op_case_count; i++)
        if (!op_cases[i].large)
            op_differences_check(&op_cases[i], &on, &limits);
}

Test(op_grad, cpu_float32)
{
    const op_rig_on_t on = {"cpu", 0, OP_FLOAT32, 1};

    for (int i = 0; i < op_case_count; i++)
        if (!op_cases[i].large)
            op_differences_check(&op_cases[i], &on, &op_differences_float32);
}
