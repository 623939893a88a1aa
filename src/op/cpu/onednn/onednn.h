/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The interface of this backend to oneDNN: layouts (cpu_md_t), and primitives,
 * which are made once and then run on pointers. The code for all versions of
 * oneDNN is in onednn.c. The code for version 2 or 3 only is in layout_v2.c
 * and layout_v3.c (layouts), onednn_v2.c and onednn_v3.c (primitives).
 *
 * A primitive is made when an op is opened, together with a oneDNN memory
 * object for each of its arguments. A run binds pointers, and cddp allocates
 * no memory in it. The temporary memory of a primitive is part of the op's
 * scratch ("user scratchpad").
 */
#ifndef CDDP_OP_CPU_ONEDNN_ONEDNN_H
#define CDDP_OP_CPU_ONEDNN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "op/op_ops.h"

/*
 * A layout of float32 elements, unless a comment says bf16. It may be copied.
 * In oneDNN 2.x it is a value. In 3.x it is a pointer to an object of the
 * engine or primitive that made it, and is valid until that is closed.
 */
typedef struct cpu_md {
    dnnl_memory_desc_t desc;
} cpu_md_t;

#define CPU_MADE_MAX 32

typedef struct cpu_engine {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr; /* sets scratchpad mode "user" */
    size_t pad_bytes; /* size of the largest scratchpad of all primitives */
    int made; /* oneDNN 3.x: number of layouts to free with the engine */
    cpu_md_t mds[CPU_MADE_MAX];
} cpu_engine_t;

#define CPU_SLOTS_MAX 10

/* A primitive with its arguments. Must be zeroed before it is made. */
typedef struct cpu_prim {
    const char *what; /* name for messages, as "conv forward" */
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    int slots;
    dnnl_exec_arg_t args[CPU_SLOTS_MAX];
} cpu_prim_t;

err_code_t cpu_engine_open(cpu_engine_t *engine, err_t *err);
void cpu_engine_close(cpu_engine_t *engine); /* [engine] may be zeroed */

/* ---- layouts ------------------------------------------------------------ */

/* The elements of a tensor: how many along each dimension, and of which type.
 */
typedef struct cpu_shape {
    int ndim;
    const int64_t *dims;
    bool bf16; /* bfloat16, else float32 */
} cpu_shape_t;

/* The shape of [desc], with elements of the given type. */
static inline cpu_shape_t cpu_shape_of(const op_desc_t *desc, bool bf16)
{
    return (cpu_shape_t){desc->ndim, desc->dims, bf16};
}

err_code_t cpu_md_plain(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                        err_t *err);
/* The primitive chooses the layout. */
err_code_t cpu_md_any(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                      err_t *err);
/* An order of the dimensions of a tensor: dimension i is the former dimension
 * from[i]. */
typedef struct cpu_order {
    int ndim;
    int from[OP_DIMS_MAX];
} cpu_order_t;

/* Describe the memory of [md] with its dimensions in another order. */
err_code_t cpu_md_permute(const cpu_md_t *md, cpu_engine_t *engine,
                          const cpu_order_t *order, cpu_md_t *out, err_t *err);
/* Layout with channels last (weights: input channels last). */
err_code_t cpu_md_last(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                       err_t *err);
bool cpu_md_equal(const cpu_md_t *a, const cpu_md_t *b);
bool cpu_md_is_bf16(const cpu_md_t *md);
size_t cpu_md_bytes(const cpu_md_t *md);
/* Find how the channels of a tensor with the dimensions of [desc] are stored
 * in [md]. *lanes becomes 1: plain; 8 or 16: in blocks of 8 or 16 channels; 0:
 * channels last; -1: anything else. */
err_code_t cpu_md_lanes(const cpu_md_t *md, cpu_engine_t *engine,
                        const op_desc_t *desc, int *lanes, err_t *err);

/* The layout of [shape] with [lanes], a value that cpu_md_lanes returns,
 * except -1. */
err_code_t cpu_md_in_lanes(cpu_md_t *md, cpu_engine_t *engine,
                           cpu_shape_t shape, int lanes, err_t *err);

/* The layout of an op's input: its private one, or plain. */
err_code_t cpu_md_of(cpu_md_t *md, cpu_engine_t *engine, const op_desc_t *desc,
                     err_t *err);

/* Set the layout of an op's output to [md], which must live as long as the op.
 * A plain layout is stored as NULL. */
err_code_t cpu_md_publish(const cpu_md_t *md, cpu_engine_t *engine,
                          op_desc_t *desc, err_t *err);

/* ---- primitives --------------------------------------------------------- */

typedef struct cpu_conv_spec {
    const op_config_t *config;
    cpu_md_t x, w, b, y; /* b: unused without config->bias */
} cpu_conv_spec_t;

/* Convolution or, if config->kind is OP_CONV_TRANSPOSE, transposed
 * convolution; w is [out, in, ...] in both. Forward; gradient of x; gradient
 * of w and b. [forward] is a hint for the choices of the gradients'
 * primitives. */
err_code_t cpu_prim_conv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec, err_t *err);
err_code_t cpu_prim_conv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                              const cpu_conv_spec_t *spec,
                              const cpu_prim_t *forward, err_t *err);
err_code_t cpu_prim_conv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec,
                                 const cpu_prim_t *forward, err_t *err);

/* C [M,N] = A [M,K] B [K,N] + bias [N]. A transposed matrix is stored by
 * columns. */
typedef struct cpu_matmul_spec {
    int64_t M, N, K;
    bool a_transposed, b_transposed, bias;
    bool bf16; /* A and B are bfloat16; C and bias are float32 */
} cpu_matmul_spec_t;

err_code_t cpu_prim_matmul(cpu_prim_t *prim, cpu_engine_t *engine,
                           const cpu_matmul_spec_t *spec, err_t *err);

typedef struct cpu_pool_spec {
    const op_config_t *config;
    cpu_md_t x, y;
} cpu_pool_spec_t;

err_code_t cpu_prim_pool_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_pool_spec_t *spec, err_t *err);
err_code_t cpu_prim_pool_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const cpu_pool_spec_t *spec,
                                  const cpu_prim_t *forward, err_t *err);

/* Copy from one layout to another; the arguments are DNNL_ARG_FROM and
 * DNNL_ARG_TO. */
err_code_t cpu_prim_reorder(cpu_prim_t *prim, cpu_engine_t *engine,
                            const cpu_md_t *from, const cpu_md_t *to,
                            err_t *err);

/* The layout that [prim] has chosen for argument [arg]. */
cpu_md_t cpu_prim_md(const cpu_prim_t *prim, int arg);

/* Bind [data] to argument [arg]. Does nothing if the primitive has no such
 * argument. */
void cpu_prim_bind(cpu_prim_t *prim, int arg, const void *data);

/* Run with all arguments bound. [pad] is the scratchpad of engine->pad_bytes.
 */
err_code_t cpu_prim_run(cpu_prim_t *prim, const cpu_engine_t *engine, void *pad,
                        err_t *err);
void cpu_prim_close(cpu_prim_t *prim); /* [prim] may be zeroed */

#endif
