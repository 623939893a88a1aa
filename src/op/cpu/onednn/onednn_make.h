/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Functions that onednn.c and the files for the versions of oneDNN share, to
 * make layouts and primitives. No other file includes this header. */
#ifndef CDDP_OP_CPU_ONEDNN_ONEDNN_MAKE_H
#define CDDP_OP_CPU_ONEDNN_ONEDNN_MAKE_H

#include "op/cpu/onednn/onednn.h"

#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *cpu_raw_md_t;
#else
typedef const_dnnl_memory_desc_t cpu_raw_md_t;
#endif

/* A sliding window for oneDNN, whose functions need arrays of full length and
 * count dilation from 0. */
typedef struct cpu_window {
    dnnl_dims_t kernel, stride, pad, dilation;
    dnnl_dims_t behind; /* conv: padding after x */
} cpu_window_t;

/* A transposed convolution has the window of the convolution from y to x.
 * out_pad makes y longer at its end and does not change the padding. */
cpu_window_t cpu_window_of_conv(const op_config_t *config);
cpu_window_t cpu_window_of_pool(const op_pool_t *pool);

dnnl_prop_kind_t cpu_forward_kind(const op_config_t *config);
dnnl_alg_kind_t cpu_pool_kind(const op_config_t *config);
dnnl_alg_kind_t cpu_conv_kind(const op_config_t *config);

static inline bool cpu_conv_is_transposed(const cpu_conv_spec_t *spec)
{
    return spec->config->kind == OP_CONV_TRANSPOSE;
}

/* Convert to and from the type that oneDNN uses for a layout in its functions.
 */
cpu_raw_md_t cpu_md_raw(const cpu_md_t *md);
cpu_md_t cpu_md_from_raw(cpu_raw_md_t raw);
dnnl_status_t cpu_md_make(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                          dnnl_format_tag_t tag);
/* Dimension i of [md] becomes dimension place[i] of [out]. */
dnnl_status_t cpu_md_place(const cpu_md_t *md, cpu_engine_t *engine,
                           const int *place, cpu_md_t *out);
void cpu_md_free_made(cpu_engine_t *engine);

/* The layouts of the matrices of a product; bias is used only if there is one.
 */
typedef struct cpu_matmul_mds {
    cpu_md_t a, b, c, bias;
} cpu_matmul_mds_t;

dnnl_status_t cpu_matmul_mds(const cpu_matmul_spec_t *spec,
                             cpu_engine_t *engine, cpu_matmul_mds_t *mds);

/* A primitive's name in messages, and its arguments, a list that ends with 0.
 * Equal in all versions of oneDNN. */
typedef struct cpu_signature {
    const char *what;
    const int *args;
} cpu_signature_t;

extern const cpu_signature_t cpu_signature_pool_forward,
    cpu_signature_pool_backward;
cpu_signature_t cpu_signature_matmul(const cpu_matmul_spec_t *spec);
cpu_signature_t cpu_signature_conv_forward(const cpu_conv_spec_t *spec);
cpu_signature_t cpu_signature_conv_data(const cpu_conv_spec_t *spec);
cpu_signature_t cpu_signature_conv_weights(const cpu_conv_spec_t *spec);

/* Make the primitive from prim->desc, whose creation returned [status], and
 * its arguments. */
err_code_t cpu_prim_finish(cpu_prim_t *prim, cpu_engine_t *engine,
                           cpu_signature_t signature, dnnl_status_t status,
                           err_t *err);

#endif
