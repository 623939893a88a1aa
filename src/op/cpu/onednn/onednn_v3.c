/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* oneDNN 3.x: a primitive is made directly. */
#include "op/cpu/onednn/onednn_make.h"

#if DNNL_VERSION_MAJOR == 3

err_code_t cpu_prim_conv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec, err_t *err)
{
    const cpu_window_t window = cpu_window_of_conv(spec->config);
    const dnnl_status_t status =
        (cpu_conv_is_transposed(spec)
             ? dnnl_deconvolution_forward_primitive_desc_create
             : dnnl_convolution_forward_primitive_desc_create)(
            &prim->desc, engine->engine, cpu_forward_kind(spec->config),
            cpu_conv_kind(spec->config), spec->x.desc, spec->w.desc,
            spec->config->bias ? spec->b.desc : NULL, spec->y.desc,
            window.stride, window.dilation, window.pad, window.behind,
            engine->attr);

    return cpu_prim_finish(prim, engine, cpu_signature_conv_forward(spec),
                           status, err);
}

err_code_t cpu_prim_conv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                              const cpu_conv_spec_t *spec,
                              const cpu_prim_t *forward, err_t *err)
{
    const cpu_window_t window = cpu_window_of_conv(spec->config);
    const dnnl_status_t status =
        (cpu_conv_is_transposed(spec)
             ? dnnl_deconvolution_backward_data_primitive_desc_create
             : dnnl_convolution_backward_data_primitive_desc_create)(
            &prim->desc, engine->engine, cpu_conv_kind(spec->config),
            spec->x.desc, spec->w.desc, spec->y.desc, window.stride,
            window.dilation, window.pad, window.behind, forward->desc,
            engine->attr);

    return cpu_prim_finish(prim, engine, cpu_signature_conv_data(spec), status,
                           err);
}

err_code_t cpu_prim_conv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec,
                                 const cpu_prim_t *forward, err_t *err)
{
    const cpu_window_t window = cpu_window_of_conv(spec->config);
    const dnnl_status_t status =
        (cpu_conv_is_transposed(spec)
             ? dnnl_deconvolution_backward_weights_primitive_desc_create
             : dnnl_convolution_backward_weights_primitive_desc_create)(
            &prim->desc, engine->engine, cpu_conv_kind(spec->config),
            spec->x.desc, spec->w.desc,
            spec->config->bias ? spec->b.desc : NULL, spec->y.desc,
            window.stride, window.dilation, window.pad, window.behind,
            forward->desc, engine->attr);

    return cpu_prim_finish(prim, engine, cpu_signature_conv_weights(spec),
                           status, err);
}

err_code_t cpu_prim_matmul(cpu_prim_t *prim, cpu_engine_t *engine,
                           const cpu_matmul_spec_t *spec, err_t *err)
{
    cpu_matmul_mds_t mds;
    dnnl_status_t status = cpu_matmul_mds(spec, engine, &mds);

    if (status == dnnl_success)
        status = dnnl_matmul_primitive_desc_create(
            &prim->desc, engine->engine, mds.a.desc, mds.b.desc,
            spec->bias ? mds.bias.desc : NULL, mds.c.desc, engine->attr);
    return cpu_prim_finish(prim, engine, cpu_signature_matmul(spec), status,
                           err);
}

err_code_t cpu_prim_pool_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_pool_spec_t *spec, err_t *err)
{
    const cpu_window_t window = cpu_window_of_pool(&spec->config->pool);
    const dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(
        &prim->desc, engine->engine, cpu_forward_kind(spec->config),
        cpu_pool_kind(spec->config), spec->x.desc, spec->y.desc, window.stride,
        window.kernel, window.dilation, window.pad, window.pad, engine->attr);

    return cpu_prim_finish(prim, engine, cpu_signature_pool_forward, status,
                           err);
}

err_code_t cpu_prim_pool_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const cpu_pool_spec_t *spec,
                                  const cpu_prim_t *forward, err_t *err)
{
    const cpu_window_t window = cpu_window_of_pool(&spec->config->pool);
    const dnnl_status_t status = dnnl_pooling_backward_primitive_desc_create(
        &prim->desc, engine->engine, cpu_pool_kind(spec->config), spec->x.desc,
        spec->y.desc, window.stride, window.kernel, window.dilation, window.pad,
        window.pad, forward->desc, engine->attr);

    return cpu_prim_finish(prim, engine, cpu_signature_pool_backward, status,
                           err);
}

#endif
