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

cpu_window_t cpu_window_of_conv(const op_conv_t *conv);
cpu_window_t cpu_window_of_pool(const op_pool_t *pool);

dnnl_prop_kind_t cpu_forward_kind(const op_config_t *config);
dnnl_alg_kind_t cpu_pool_kind(const op_config_t *config);

/* Convert to and from the type that oneDNN uses for a layout in its functions.
 */
cpu_raw_md_t cpu_md_raw(const cpu_md_t *md);
cpu_md_t cpu_md_from_raw(cpu_raw_md_t raw);
dnnl_status_t cpu_md_make(cpu_md_t *md, cpu_engine_t *engine, int ndim,
                          const int64_t *dims, dnnl_data_type_t type,
                          dnnl_format_tag_t tag);
/* Dimension i of [md] becomes dimension place[i] of [out]. */
dnnl_status_t cpu_md_place(const cpu_md_t *md, cpu_engine_t *engine,
                           const int *place, cpu_md_t *out);
void cpu_md_free_made(cpu_engine_t *engine);

/* Make the layouts of the matrices of a product. */
dnnl_status_t cpu_matmul_mds(const cpu_matmul_spec_t *spec,
                             cpu_engine_t *engine, cpu_md_t *a, cpu_md_t *b,
                             cpu_md_t *c, cpu_md_t *bias);

/*
 * Make the primitive from prim->desc, whose creation returned [status], and
 * its arguments [args], a list that ends with 0. [what] is its name in
 * messages.
 */
err_code_t cpu_prim_finish(cpu_prim_t *prim, cpu_engine_t *engine,
                           const char *what, dnnl_status_t status,
                           const int *args, err_t *err);

/* Lists of arguments, equal in all versions of oneDNN. */
extern const int cpu_args_forward[], cpu_args_forward_bias[];
extern const int cpu_args_pool[], cpu_args_pool_backward[];
extern const int cpu_args_data[], cpu_args_weights[], cpu_args_weights_bias[];

#endif
