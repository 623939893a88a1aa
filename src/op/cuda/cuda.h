/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The CUDA backend: what all of its files share. An op is one file in ops/: a
 * .cu file with kernels, or a .c file that calls a library. Kernels for all
 * GPUs are written here; device/ has what several of them use.
 *
 * A call only enqueues, on the stream of its arguments. Kernels use no
 * floating-point atomics, and the order of each sum depends on shapes alone, so
 * equal arguments give equal bits. Targets and tokens were checked on the host;
 * a kernel clamps them, so that a wrong one cannot reach foreign memory.
 */
#ifndef CDDP_OP_CUDA_CUDA_H
#define CDDP_OP_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/mem.h"
#include "dev/dev_cuda.h"
#include "op/op_attention.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_loss.h"
#include "op/op_ops.h"

/* cuda_relu_kernel and so on, as the table of ops names them. */
#define OP(kind, name, shape, params, flops, ref, cpu, bf16, cuda, ...) \
    extern const op_kernel_t cuda_##cuda##_kernel;
#include "op/op_table.inc"
#undef OP

/* The stream of a call, for launches and libraries. */
static inline cudaStream_t cuda_stream(const op_args_t *args)
{
    return dev_cuda_stream(args->stream);
}

/* Did the kernels since the last call start? ERR_UNAVAILABLE with CUDA's text.
 * Does not wait for them. */
err_code_t cuda_started(const op_t *op, err_t *err);

/* For a kernel that belongs to no op: return ERR_UNAVAILABLE with the text of
 * [code], unless [code] is cudaSuccess. [does] says what the kernel does ("adds
 * tensors"). */
err_code_t cuda_kernel_started(cudaError_t code, const char *does, err_t *err);

/* Copy [bytes] of the host to new memory of the op's device, such as a table or
 * weights of classes. NULL [from]: *out is NULL. Waits for the copy. Free by
 * dev_free(op->dev, ...). */
err_code_t cuda_constant(const op_t *op, const void *from, size_t bytes,
                         const char *what, void **out, err_t *err);

/* Like cuda_constant, but on [dev]. [from] is not NULL. */
err_code_t cuda_table(dev_device_t *dev, const void *from, size_t bytes,
                      const char *what, void **out, err_t *err);

/* to[i] += from[i], see op_add (ops/sum.cu). */
err_code_t cuda_sum(void *to, const void *from, size_t count, op_type_t type,
                    dev_stream_t *stream, err_t *err);

/* See op_fold (ops/fold.cu). */
err_code_t cuda_fold(const op_fold_t *fold, dev_stream_t *stream, err_t *err);

/* See op_half_round and op_half_widen (ops/half.cu). */
err_code_t cuda_half(const struct op_half *half, bool widen,
                     dev_stream_t *stream, err_t *err);

/* See op_lowrank.h (lowrank.c). */
extern const op_lowrank_ops_t cuda_lowrank_ops;

/* See op_hash (ops/hash.cu). */
err_code_t cuda_hash(uint64_t *to, const void *from, size_t words,
                     dev_stream_t *stream, err_t *err);

#ifdef __cplusplus
}
#endif

#endif
