/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A product of plain float32 matrices within an op. Large products use our own
 * code (gemm.h) if the CPU supports its vector instructions; all others use
 * oneDNN. The choice depends only on the shape and the CPU, so that all ranks
 * on one CPU model agree.
 */
#ifndef CDDP_OP_CPU_OPS_PRODUCT_H
#define CDDP_OP_CPU_OPS_PRODUCT_H

#include "op/cpu/onednn/reorder.h"

typedef struct cpu_product {
    const cpu_scratch_t *scratch; /* of the op */
    cpu_matmul_spec_t spec;
    bool own;
    cpu_prim_t prim; /* unless own */
    size_t at;       /* own: offset of its buffer in scratch */
} cpu_product_t;

/* Takes scratch; after cpu_scratch_restart (reorder.h) products share it. */
err_code_t cpu_product_open(cpu_product_t *product, cpu_scratch_t *scratch,
                            const op_t *op, const cpu_matmul_spec_t *spec,
                            err_t *err);
void cpu_product_close(cpu_product_t *product); /* [product] may be zeroed */

err_code_t cpu_product_run(cpu_product_t *product, const op_t *op,
                           const op_args_t *args, cpu_factors_t with,
                           err_t *err);

#endif
