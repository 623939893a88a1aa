/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Mode support: prints a table of which backend supports which case in which
 * type. ref must support all of them; cpu all in float32 and none in float64.
 * Under bf16, "yes" means products with bfloat16 factors, and "f32" an op
 * without products, which computes in float32.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "cddp/plugin.h"
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

    cr_expect_eq(taken, op_backend_lacks(backend, NULL, OP_BFLOAT16) == NULL,
                 "%s: %s: %s", backend->name, test->name, err.text);
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
    cr_assert_str_eq(err.text, "there is no op backend \"gpu\" (there are: "
                               "ref, cpu, cuda)");
}

/* A backend whose device is not the host has no ops of plugins. */
static cddp_code_t plugin_shape(cddp_shapes_t *shapes, cddp_error_t *error)
{
    (void)error;
    shapes->out = shapes->in[0];
    return CDDP_OK;
}

Test(op_support, layers_of_plugins_compute_on_the_host)
{
    static const cddp_layer_t blur = {.name = "blur", .shape = plugin_shape};
    op_backend_ops_t backend = op_cpu_backend;
    const op_config_t config = {
        .kind = OP_CUSTOM,
        .threads = 1,
        .custom = &blur,
        .in = {.type = OP_FLOAT32, .ndim = 2, .dims = {2, 3}}};
    err_t err = ERR_INIT;
    op_t *op;

    backend.kernels[OP_CUSTOM] = NULL;
    cr_assert_eq(op_open(&backend, NULL, &config, &op, &err), ERR_CONFIG);
    cr_expect_str_eq(err.text,
                     "blur is a plugin's, whose layers compute on the host; "
                     "use train.device: cpu");
}

/* ref rounds to tf32, as the specification for backends of GPUs. */
Test(op_support, cpu_does_not_compute_in_tf32)
{
    const op_config_t config = {
        .kind = OP_RELU,
        .threads = 1,
        .compute_type = OP_TF32,
        .in = {.type = OP_FLOAT32, .ndim = 2, .dims = {2, 3}}};
    err_t err = ERR_INIT;
    op_t *op;

    cr_assert_eq(op_open(&op_cpu_backend, NULL, &config, &op, &err),
                 ERR_CONFIG);
    cr_expect_str_eq(err.text,
                     "relu: the op backend \"cpu\" cannot compute in tf32: "
                     "only GPUs compute in tf32");
    cr_assert_eq(op_open(&op_ref_backend, NULL, &config, &op, &err), ERR_OK);
    op_close(op);
}

static float product_of(op_type_t compute_type, float x, float w)
{
    const op_config_t config = {
        .kind = OP_LINEAR,
        .threads = 1,
        .out = 1,
        .compute_type = compute_type,
        .in = {.type = OP_FLOAT32, .ndim = 2, .dims = {1, 1}}};
    float y = NAN;
    const op_args_t args = {.x = &x, .y = &y, .params = {&w}};
    err_t err = ERR_INIT;
    op_t *op;

    cr_assert_eq(op_open(&op_ref_backend, NULL, &config, &op, &err), ERR_OK);
    cr_assert_eq(op_forward(op, &args, &err), ERR_OK);
    op_close(op);
    return y;
}

/* tf32 keeps 10 bits after the point: to nearest, ties to even. */
Test(op_support, ref_rounds_factors_to_tf32)
{
    const float unit = 0x1p-10F;

    cr_expect_eq(product_of(OP_FLOAT32, 1 + unit / 4, 1), 1 + unit / 4);
    cr_expect_eq(product_of(OP_TF32, 1 + unit / 4, 1), 1);
    cr_expect_eq(product_of(OP_TF32, 1 + unit / 2, 1), 1);
    cr_expect_eq(product_of(OP_TF32, 1 + unit * 3 / 2, 1), 1 + 2 * unit);
    cr_expect_eq(product_of(OP_TF32, 1, -1 - unit * 3 / 4), -1 - unit);
    cr_expect(isnan(product_of(OP_TF32, NAN, 1)));
    cr_expect(isinf(product_of(OP_TF32, INFINITY, 1)));
}
