/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/ops/product.h"

#include "op/cpu/vector/gemm.h"

err_code_t cpu_product_open(cpu_product_t *product, cpu_scratch_t *scratch,
                            const op_t *op, const cpu_matmul_spec_t *spec,
                            err_t *err)
{
    product->scratch = scratch;
    product->spec = *spec;
    product->own =
        cpu_gemm_supported() && cpu_gemm_is_faster(spec->M, spec->N, spec->K);
    if (!product->own)
        return cpu_prim_matmul(&product->prim, &scratch->engine, spec, err);
    product->at = cpu_scratch_take(scratch, cpu_gemm_bytes(op->config.threads));
    return ERR_OK;
}

void cpu_product_close(cpu_product_t *product)
{
    cpu_prim_close(&product->prim);
}

err_code_t cpu_product_run(cpu_product_t *product, const op_t *op,
                           const op_args_t *args, cpu_factors_t with,
                           err_t *err)
{
    const cpu_matmul_spec_t *s = &product->spec;
    const cpu_gemm_t gemm = {
        .M = s->M,
        .N = s->N,
        .K = s->K,
        .a = {with.a, s->a_transposed ? 1 : s->K, s->a_transposed ? s->M : 1},
        .b = {with.b, s->b_transposed ? 1 : s->N, s->b_transposed ? s->K : 1},
        .bias = s->bias ? with.bias : NULL,
        .c = with.c,
        .c_row = s->N};

    if (product->own) {
        cpu_gemm_run(&gemm, op->config.threads,
                     (char *)args->scratch + product->at);
        return ERR_OK;
    }
    return cpu_scratch_matmul(product->scratch, &product->prim, args, with,
                              err);
}
