/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/cpu.h"

#include "base/half.h"
#include "op/cpu/vector/chunk.h"
#include "simd/isa.h"
#include "simd/team.h"
#include "simd/vector.h"

SIMD_CLONES
static void add_float64(double *restrict sum, const double *restrict term,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

SIMD_CLONES
static void add_float32(float *restrict sum, const float *restrict term,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += term[i];
}

static void add_bf16(uint16_t *sum, const uint16_t *term, size_t count)
{
    float a[CPU_CHUNK], b[CPU_CHUNK];

    for (size_t i = 0; i < count; i += CPU_CHUNK) {
        const size_t left = count - i, n = left < CPU_CHUNK ? left : CPU_CHUNK;

        half_widen_bf16(a, sum + i, n);
        half_widen_bf16(b, term + i, n);
        add_float32(a, b, n);
        half_round_bf16(sum + i, a, n);
    }
}

/* Add to [to]. Tensors are float32 or stored as bfloat16; the moments of
 * batchnorm are float64 in every backend. */
static err_code_t cpu_add(void *to, const void *from, size_t count,
                          op_type_t type, dev_stream_t *stream, err_t *err)
{
    (void)stream;
    (void)err;
    if (type == OP_FLOAT64)
        add_float64(to, from, count);
    else if (type == OP_BFLOAT16)
        add_bf16(to, from, count);
    else
        add_float32(to, from, count);
    return ERR_OK;
}

static const char *cpu_lacks(const dev_device_t *dev, op_type_t compute_type)
{
    (void)dev;
    return compute_type == OP_BFLOAT16 && !simd_has_bf16()
               ? "this CPU cannot multiply bfloat16 (it lacks AVX512_BF16 and "
                 "AMX)"
               : NULL;
}

const op_backend_ops_t op_cpu_backend = {
    .name = "cpu",
    .float64 = false,
    .lacks = cpu_lacks,
    .private_in = true,
    .fuses = OP_FUSES_RELU | OP_FUSES_ACTIVATION | OP_FUSES_NARROW,
    .kernels =
        {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, ...) \
    [OP_##kind] = &cpu_##cpu##_kernel,
#include "op/op_table.inc"
#undef OP
        },
    .bf16_use =
        {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, ...) \
    [OP_##kind] = OP_BF16_##bf16,
#include "op/op_table.inc"
#undef OP
        },
    .team = simd_team_set,
    .add = cpu_add,
};
