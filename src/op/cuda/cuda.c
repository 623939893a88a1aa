/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/cuda.h"

#include "op/cuda/plain.h"

/* "none" in the table of ops becomes NULL below. */
#define cuda_none_kernel (*(const op_kernel_t *)NULL)

/* The kernel of a kind that makes this use of bfloat16. */
#define CUDA_REFUSED(name) &cuda_##name##_kernel
#define CUDA_TAKEN(name) &cuda_plain_kernel
#define CUDA_KEPT(name) &cuda_plain_kernel
#define CUDA_GIVEN(name) &cuda_plain_kernel

err_code_t cuda_started(const op_t *op, err_t *err)
{
    const cudaError_t code = cudaGetLastError();

    if (code == cudaSuccess)
        return ERR_OK;
    return err_set(err, ERR_UNAVAILABLE, "%s: its kernel did not start: %s",
                   op_kind_name(op->config.kind), cudaGetErrorString(code));
}

err_code_t cuda_kernel_started(cudaError_t code, const char *does, err_t *err)
{
    return code == cudaSuccess ? ERR_OK
                               : err_set(err, ERR_UNAVAILABLE,
                                         "the kernel that %s did not start: %s",
                                         does, cudaGetErrorString(code));
}

err_code_t cuda_table(dev_device_t *dev, const void *from, size_t bytes,
                      const char *what, void **out, err_t *err)
{
    dev_stream_t *stream = NULL;
    void *block = NULL;
    err_code_t rc = dev_stream_open(dev, DEV_STREAM_COPY, &stream, err);

    if (rc == ERR_OK)
        rc = dev_alloc(dev, bytes, what, &block, err);
    if (rc == ERR_OK)
        rc = dev_copy(stream, block, from, bytes, DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(stream, err);
    dev_stream_close(stream);
    if (rc == ERR_OK)
        *out = block;
    else
        dev_free(dev, block);
    return rc;
}

err_code_t cuda_constant(const op_t *op, const void *from, size_t bytes,
                         const char *what, void **out, err_t *err)
{
    *out = NULL;
    return from == NULL ? ERR_OK
                        : cuda_table(op->dev, from, bytes, what, out, err);
}

/* bfloat16 and tf32 came with sm_80. */
static const char *cuda_lacks(const dev_device_t *dev, op_type_t compute_type)
{
    if (dev == NULL || dev_cuda_arch(dev) >= 80)
        return NULL;
    return compute_type == OP_TF32
               ? "this GPU has no tf32 (it is older than sm_80)"
               : "this GPU cannot multiply bfloat16 (it is older than sm_80)";
}

const op_backend_ops_t op_cuda_backend = {
    .name = "cuda",
    .tf32 = true,
    .lacks = cuda_lacks,
    .private_in = true,
    .fuses = OP_FUSES_RELU | OP_FUSES_ACTIVATION | OP_FUSES_NARROW,
    .kernels =
        {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, cuda, cuda_bf16) \
    [OP_##kind] = CUDA_##cuda_bf16(cuda),
#include "op/op_table.inc"
#undef OP
        },
    .bf16_use =
        {
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, cuda, cuda_bf16) \
    [OP_##kind] = OP_BF16_##cuda_bf16,
#include "op/op_table.inc"
#undef OP
        },
    .add = cuda_sum,
    .fold = cuda_fold,
    .hash = cuda_hash,
    .half = cuda_half,
    .lowrank = &cuda_lowrank_ops,
};
