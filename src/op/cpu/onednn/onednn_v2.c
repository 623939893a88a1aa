/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* oneDNN 2.x: a primitive is made from an op descriptor. */
#include "op/cpu/onednn/onednn_make.h"

#if DNNL_VERSION_MAJOR == 2

/*
 * Make prim->desc from the op descriptor [op], whose initialisation returned
 * [status]. [forward] is the hint for a backward primitive; NULL in forward.
 */
static dnnl_status_t cpu_prim_describe(cpu_prim_t *prim, cpu_engine_t *engine,
                                       dnnl_status_t status,
                                       const_dnnl_op_desc_t op,
                                       const cpu_prim_t *forward)
{
    return status != dnnl_success
               ? status
               : dnnl_primitive_desc_create(
                     &prim->desc, op, engine->attr, engine->engine,
                     forward == NULL ? NULL : forward->desc);
}

err_code_t cpu_prim_conv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec, err_t *err)
{
    const cpu_window_t window = cpu_window_of_conv(spec->config);
    dnnl_convolution_desc_t op;
    dnnl_status_t status = (cpu_conv_is_transposed(spec)
                                ? dnnl_dilated_deconvolution_forward_desc_init
                                : dnnl_dilated_convolution_forward_desc_init)(
        &op, cpu_forward_kind(spec->config), cpu_conv_kind(spec->config),
        &spec->x.desc, &spec->w.desc, spec->config->bias ? &spec->b.desc : NULL,
        &spec->y.desc, window.stride, window.dilation, window.pad,
        window.behind);

    status = cpu_prim_describe(prim, engine, status, &op, NULL);
    return cpu_prim_finish(prim, engine, cpu_signature_conv_forward(spec),
                           status, err);
}

err_code_t cpu_prim_conv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                              const cpu_conv_spec_t *spec,
                              const cpu_prim_t *forward, err_t *err)
{
    const cpu_window_t window = cpu_window_of_conv(spec->config);
    dnnl_convolution_desc_t op;
    dnnl_status_t status =
        (cpu_conv_is_transposed(spec)
             ? dnnl_dilated_deconvolution_backward_data_desc_init
             : dnnl_dilated_convolution_backward_data_desc_init)(
            &op, cpu_conv_kind(spec->config), &spec->x.desc, &spec->w.desc,
            &spec->y.desc, window.stride, window.dilation, window.pad,
            window.behind);

    status = cpu_prim_describe(prim, engine, status, &op, forward);
    return cpu_prim_finish(prim, engine, cpu_signature_conv_data(spec), status,
                           err);
}

err_code_t cpu_prim_conv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec,
                                 const cpu_prim_t *forward, err_t *err)
{
    const cpu_window_t window = cpu_window_of_conv(spec->config);
    dnnl_convolution_desc_t op;
    dnnl_status_t status =
        (cpu_conv_is_transposed(spec)
             ? dnnl_dilated_deconvolution_backward_weights_desc_init
             : dnnl_dilated_convolution_backward_weights_desc_init)(
            &op, cpu_conv_kind(spec->config), &spec->x.desc, &spec->w.desc,
            spec->config->bias ? &spec->b.desc : NULL, &spec->y.desc,
            window.stride, window.dilation, window.pad, window.behind);

    status = cpu_prim_describe(prim, engine, status, &op, forward);
    return cpu_prim_finish(prim, engine, cpu_signature_conv_weights(spec),
                           status, err);
}

err_code_t cpu_prim_matmul(cpu_prim_t *prim, cpu_engine_t *engine,
                           const cpu_matmul_spec_t *spec, err_t *err)
{
    cpu_matmul_mds_t mds;
    dnnl_matmul_desc_t op;
    dnnl_status_t status = cpu_matmul_mds(spec, engine, &mds);

    if (status == dnnl_success)
        status = dnnl_matmul_desc_init(&op, &mds.a.desc, &mds.b.desc,
                                       spec->bias ? &mds.bias.desc : NULL,
                                       &mds.c.desc);
    status = cpu_prim_describe(prim, engine, status, &op, NULL);
    return cpu_prim_finish(prim, engine, cpu_signature_matmul(spec), status,
                           err);
}

err_code_t cpu_prim_pool_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_pool_spec_t *spec, err_t *err)
{
    const cpu_window_t window = cpu_window_of_pool(&spec->config->pool);
    dnnl_pooling_desc_t op;
    dnnl_status_t status = dnnl_pooling_forward_desc_init(
        &op, cpu_forward_kind(spec->config), cpu_pool_kind(spec->config),
        &spec->x.desc, &spec->y.desc, window.stride, window.kernel, window.pad,
        window.pad);

    status = cpu_prim_describe(prim, engine, status, &op, NULL);
    return cpu_prim_finish(prim, engine, cpu_signature_pool_forward, status,
                           err);
}

err_code_t cpu_prim_pool_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const cpu_pool_spec_t *spec,
                                  const cpu_prim_t *forward, err_t *err)
{
    const cpu_window_t window = cpu_window_of_pool(&spec->config->pool);
    dnnl_pooling_desc_t op;
    dnnl_status_t status = dnnl_pooling_backward_desc_init(
        &op, cpu_pool_kind(spec->config), &spec->x.desc, &spec->y.desc,
        window.stride, window.kernel, window.pad, window.pad);

    status = cpu_prim_describe(prim, engine, status, &op, forward);
    return cpu_prim_finish(prim, engine, cpu_signature_pool_backward, status,
                           err);
}

#endif
