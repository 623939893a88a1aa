/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Mode support: prints a table of which backend supports which case in which
 * type. ref must support all of them; cpu all in float32 and none in float64.
 * Under bf16, "yes" means products with bfloat16 factors, and "f32" an op
 * without products, which computes in float32.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "op/op_ops.h"
#include "op_rig.h"

static bool supports(const op_backend_ops_t *backend, const op_case_t *test,
                     op_type_t type, bool bf16, err_t *err)
{
    op_config_t config = op_rig_config(test, type);
    op_t *op;

    config.compute_type = bf16 ? OP_BFLOAT16 : OP_FLOAT32;
    if (op_open(backend, NULL, &config, &op, err) != ERR_OK)
        return false;
    op_close(op);
    return true;
}

/* How [backend] computes this case in mixed precision. */
static const char *bf16_text(const op_backend_ops_t *backend,
                             const op_case_t *test)
{
    const op_kind_t kind = test->config.kind;
    err_t err = ERR_INIT;
    bool taken = supports(backend, test, OP_FLOAT32, true, &err);

    cr_expect_eq(taken, op_backend_bf16(backend), "%s: %s: %s", backend->name,
                 test->name, err.text);
    if (!taken)
        return "no";
    return op_rig_rounds(kind) ? "yes" : "f32";
}

Test(op_support, table)
{
    printf("%-40s", "case");
    for (int b = 0; op_registry[b] != NULL; b++)
        printf(" %s:f32 %s:f64 %s:bf16", op_registry[b]->name,
               op_registry[b]->name, op_registry[b]->name);
    printf("\n");
    for (int i = 0; i < op_case_count; i++) {
        printf("%-40s", op_cases[i].name);
        for (int b = 0; op_registry[b] != NULL; b++) {
            const op_backend_ops_t *backend = op_registry[b];
            err_t err = ERR_INIT;
            bool single =
                supports(backend, &op_cases[i], OP_FLOAT32, false, &err);
            bool twice =
                supports(backend, &op_cases[i], OP_FLOAT64, false, &err);

            printf(" %7s %7s %8s", single ? "yes" : "no", twice ? "yes" : "no",
                   bf16_text(backend, &op_cases[i]));
            cr_expect(single, "%s: %s: %s", backend->name, op_cases[i].name,
                      err.text);
            cr_expect_eq(twice, backend->float64);
            cr_expect(twice || err.code == ERR_UNAVAILABLE);
        }
        printf("\n");
    }
    fflush(stdout);
}

Test(op_support, unknown_backend)
{
    const op_backend_ops_t *backend = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("gpu", &backend, &err), ERR_UNAVAILABLE);
    cr_assert_null(backend);
    cr_assert_str_eq(err.text, "no op backend \"gpu\" was built in (there are: "
                               "ref, cpu)");
}
