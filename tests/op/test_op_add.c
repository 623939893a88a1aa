/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <criterion/criterion.h>

#include "op/op_ops.h"

#define COUNT 1037

Test(op_add, float32)
{
    for (int b = 0; op_registry[b] != NULL; b++) {
        float to[COUNT], from[COUNT];

        for (int i = 0; i < COUNT; i++) {
            to[i] = (float)i;
            from[i] = 0.5f * (float)i;
        }
        cr_assert_eq(
            op_add(op_registry[b], to, from, COUNT - 1, OP_FLOAT32, NULL, NULL),
            ERR_OK);
        for (int i = 0; i < COUNT - 1; i++)
            cr_assert_eq(to[i], 1.5f * (float)i);
        cr_assert_eq(to[COUNT - 1], (float)(COUNT - 1));
    }
}

/* The moments of batch norm are float64 in any backend. */
Test(op_add, other_types)
{
    for (int b = 0; op_registry[b] != NULL; b++) {
        double to[2] = {1, 2}, from[2] = {10, 20};
        err_t err = ERR_INIT;

        cr_assert_eq(
            op_add(op_registry[b], to, from, 2, OP_FLOAT64, NULL, NULL),
            ERR_OK);
        cr_assert_eq(to[1], 22);
        cr_assert_eq(op_add(op_registry[b], to, from, 2, OP_INT64, NULL, &err),
                     ERR_UNAVAILABLE);
        cr_assert_eq(to[1], 22);
    }
}
