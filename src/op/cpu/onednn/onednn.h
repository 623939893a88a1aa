/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * oneDNN as the kernels of this backend see it: layouts (cpu_md_t), and
 * primitives that are made once and then run on pointers. What versions of the
 * library have in common is in onednn.c; what differs between them is in
 * layout_v2.c and layout_v3.c (layouts), onednn_v2.c and onednn_v3.c
 * (primitives).
 *
 * A primitive is made at open, together with a library memory object for each
 * of its arguments; a run binds pointers and allocates nothing of ours. Its
 * temporary memory is the op's scratch ("user scratchpad").
 */
#ifndef CDDP_OP_CPU_ONEDNN_ONEDNN_H
#define CDDP_OP_CPU_ONEDNN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "op/op_ops.h"

/*
 * A layout of float32 elements, unless it says bf16. Copied freely: a value
 * in 2.x; in 3.x a pointer to what belongs to the engine or the primitive that
 * it was made by, and so is valid while that is open.
 */
typedef struct cpu_md {
    dnnl_memory_desc_t desc;
} cpu_md_t;

#define CPU_MADE_MAX 32

typedef struct cpu_engine {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr; /* user scratchpad */
    size_t pad_bytes; /* largest scratchpad of the primitives made so far */
    int made;         /* layouts to be freed with the engine (3.x) */
    cpu_md_t mds[CPU_MADE_MAX];
} cpu_engine_t;

#define CPU_SLOTS_MAX 10

/* A primitive with its arguments; zero-initialise before making it. */
typedef struct cpu_prim {
    const char *what; /* "conv forward", for sentences */
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    int slots;
    dnnl_exec_arg_t args[CPU_SLOTS_MAX];
} cpu_prim_t;

err_code_t cpu_engine_open(cpu_engine_t *engine, err_t *err);
void cpu_engine_close(cpu_engine_t *engine); /* zeroed: allowed */

/* ---- layouts ------------------------------------------------------------ */

err_code_t cpu_md_plain(cpu_md_t *md, cpu_engine_t *engine, int ndim,
                        const int64_t *dims, err_t *err);
/* The same of bfloat16 elements. */
err_code_t cpu_md_plain_bf16(cpu_md_t *md, cpu_engine_t *engine, int ndim,
                             const int64_t *dims, err_t *err);
/* Let the primitive choose; elements are bfloat16 if [bf16]. */
err_code_t cpu_md_any(cpu_md_t *md, cpu_engine_t *engine, int ndim,
                      const int64_t *dims, bool bf16, err_t *err);
/* [md] of [ndim] dimensions in another order: dimension i of [out] is dimension
 * order[i] of [md]; the same memory. */
err_code_t cpu_md_permute(const cpu_md_t *md, cpu_engine_t *engine, int ndim,
                          const int *order, cpu_md_t *out, err_t *err);
/* Channels last, of float32 or bfloat16 elements; of weights: input channels.
 */
err_code_t cpu_md_last(cpu_md_t *md, cpu_engine_t *engine, int ndim,
                       const int64_t *dims, bool bf16, err_t *err);
bool cpu_md_equal(const cpu_md_t *a, const cpu_md_t *b);
bool cpu_md_is_bf16(const cpu_md_t *md);
size_t cpu_md_bytes(const cpu_md_t *md);
/* How the channels of [dims] lie in [md]: *lanes is 1: plain; 8 or 16: in
 * blocks of so many; 0: those of a position follow each other; -1: otherwise.
 */
err_code_t cpu_md_lanes(const cpu_md_t *md, cpu_engine_t *engine, int ndim,
                        const int64_t *dims, int *lanes, err_t *err);

/* A layout of [desc]'s dimensions with [lanes] as cpu_md_lanes says, not -1. */
err_code_t cpu_md_in_lanes(cpu_md_t *md, cpu_engine_t *engine,
                           const op_desc_t *desc, int lanes, bool bf16,
                           err_t *err);

/* The layout of an op's input: its own, or plain. */
err_code_t cpu_md_of(cpu_md_t *md, cpu_engine_t *engine, const op_desc_t *desc,
                     err_t *err);

/* Describe an op's output: [md] must live as long as the op. A plain one is
 * described as NULL. */
err_code_t cpu_md_publish(const cpu_md_t *md, cpu_engine_t *engine,
                          op_desc_t *desc, err_t *err);

/* ---- primitives --------------------------------------------------------- */

typedef struct cpu_conv_spec {
    const op_config_t *config;
    cpu_md_t x, w, b, y; /* b unused without config->bias */
} cpu_conv_spec_t;

/* Convolution: forward; gradient of x; gradient of w and b. The latter two
 * follow the choices of [forward]. */
err_code_t cpu_prim_conv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec, err_t *err);
err_code_t cpu_prim_conv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                              const cpu_conv_spec_t *spec,
                              const cpu_prim_t *forward, err_t *err);
err_code_t cpu_prim_conv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec,
                                 const cpu_prim_t *forward, err_t *err);

/* The same for a transposed convolution; w is [out, in, ...] here, too. */
err_code_t cpu_prim_deconv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                   const cpu_conv_spec_t *spec, err_t *err);
err_code_t cpu_prim_deconv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                                const cpu_conv_spec_t *spec,
                                const cpu_prim_t *forward, err_t *err);
err_code_t cpu_prim_deconv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                   const cpu_conv_spec_t *spec,
                                   const cpu_prim_t *forward, err_t *err);

/* C [M,N] = A [M,K] B [K,N] + bias [N]; a turned matrix is stored by columns.
 */
typedef struct cpu_matmul_spec {
    int64_t M, N, K;
    bool a_transposed, b_transposed, bias;
    bool bf16; /* A and B; C and bias are float32 */
} cpu_matmul_spec_t;

err_code_t cpu_prim_matmul(cpu_prim_t *prim, cpu_engine_t *engine,
                           const cpu_matmul_spec_t *spec, err_t *err);

err_code_t cpu_prim_pool_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const op_config_t *config, const cpu_md_t *x,
                                 const cpu_md_t *y, err_t *err);
err_code_t cpu_prim_pool_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const op_config_t *config, const cpu_md_t *x,
                                  const cpu_md_t *y, const cpu_prim_t *forward,
                                  err_t *err);

/* Copy from one layout to another (DNNL_ARG_FROM, DNNL_ARG_TO). */
err_code_t cpu_prim_reorder(cpu_prim_t *prim, cpu_engine_t *engine,
                            const cpu_md_t *from, const cpu_md_t *to,
                            err_t *err);

/* The layout that [prim] has chosen for argument [arg]. */
cpu_md_t cpu_prim_md(const cpu_prim_t *prim, int arg);

/* Bind [data] to argument [arg], which the primitive must have. */
void cpu_prim_bind(cpu_prim_t *prim, int arg, const void *data);

/* Run with everything bound and [pad] (engine->pad_bytes) as scratchpad. */
err_code_t cpu_prim_run(cpu_prim_t *prim, const cpu_engine_t *engine, void *pad,
                        err_t *err);
void cpu_prim_close(cpu_prim_t *prim); /* zeroed: allowed */

#endif
