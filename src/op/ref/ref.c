/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/ref/ref.h"

static err_code_t ref_add(void *to, const void *from, size_t count,
                          op_type_t type, dev_stream_t *stream, err_t *err)
{
    (void)stream;
    (void)err;
    for (int64_t i = 0; i < (int64_t)count; i++)
        ref_put(type, to, i, ref_get(type, to, i) + ref_get(type, from, i));
    return ERR_OK;
}

const op_backend_ops_t op_ref_backend = {
    .name = "ref",
    .float64 = true,
    .tf32 = true,
    .kernels =
        {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, ...) \
    [OP_##kind] = &ref_##ref##_kernel,
#include "op/op_table.inc"
#undef OP
        },
    .add = ref_add,
};
