/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* oneDNN 3.x: a primitive is made directly. */
#include "op/cpu/onednn/onednn_make.h"

#if DNNL_VERSION_MAJOR == 3

err_code_t cpu_prim_conv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
        &prim->desc, engine->engine, cpu_forward_kind(spec->config),
        dnnl_convolution_direct, spec->x.desc, spec->w.desc,
        bias ? spec->b.desc : NULL, spec->y.desc, window.stride,
        window.dilation, window.pad, window.behind, engine->attr);

    return cpu_prim_finish(prim, engine, "conv forward", status,
                           bias ? cpu_args_forward_bias : cpu_args_forward,
                           err);
}

err_code_t cpu_prim_conv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                              const cpu_conv_spec_t *spec,
                              const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    dnnl_status_t status = dnnl_convolution_backward_data_primitive_desc_create(
        &prim->desc, engine->engine, dnnl_convolution_direct, spec->x.desc,
        spec->w.desc, spec->y.desc, window.stride, window.dilation, window.pad,
        window.behind, forward->desc, engine->attr);

    return cpu_prim_finish(prim, engine, "conv backward (data)", status,
                           cpu_args_data, err);
}

err_code_t cpu_prim_conv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec,
                                 const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_status_t status =
        dnnl_convolution_backward_weights_primitive_desc_create(
            &prim->desc, engine->engine, dnnl_convolution_direct, spec->x.desc,
            spec->w.desc, bias ? spec->b.desc : NULL, spec->y.desc,
            window.stride, window.dilation, window.pad, window.behind,
            forward->desc, engine->attr);

    return cpu_prim_finish(prim, engine, "conv backward (weights)", status,
                           bias ? cpu_args_weights_bias : cpu_args_weights,
                           err);
}

err_code_t cpu_prim_matmul(cpu_prim_t *prim, cpu_engine_t *engine,
                           const cpu_matmul_spec_t *spec, err_t *err)
{
    cpu_md_t a, b, c, bias;
    dnnl_status_t status = cpu_matmul_mds(spec, engine, &a, &b, &c, &bias);

    if (status == dnnl_success)
        status = dnnl_matmul_primitive_desc_create(
            &prim->desc, engine->engine, a.desc, b.desc,
            spec->bias ? bias.desc : NULL, c.desc, engine->attr);
    return cpu_prim_finish(
        prim, engine, "linear", status,
        spec->bias ? cpu_args_forward_bias : cpu_args_forward, err);
}

err_code_t cpu_prim_pool_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const op_config_t *config, const cpu_md_t *x,
                                 const cpu_md_t *y, err_t *err)
{
    cpu_window_t window = cpu_window_of_pool(&config->pool);
    dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(
        &prim->desc, engine->engine, cpu_forward_kind(config),
        cpu_pool_kind(config), x->desc, y->desc, window.stride, window.kernel,
        window.dilation, window.pad, window.pad, engine->attr);

    return cpu_prim_finish(prim, engine, "pool forward", status, cpu_args_pool,
                           err);
}

err_code_t cpu_prim_pool_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const op_config_t *config, const cpu_md_t *x,
                                  const cpu_md_t *y, const cpu_prim_t *forward,
                                  err_t *err)
{
    cpu_window_t window = cpu_window_of_pool(&config->pool);
    dnnl_status_t status = dnnl_pooling_backward_primitive_desc_create(
        &prim->desc, engine->engine, cpu_pool_kind(config), x->desc, y->desc,
        window.stride, window.kernel, window.dilation, window.pad, window.pad,
        forward->desc, engine->attr);

    return cpu_prim_finish(prim, engine, "pool backward", status,
                           cpu_args_pool_backward, err);
}

/* A transposed convolution has the window of the convolution from y to x.
 * out_pad makes y longer at its end and does not change the padding. */
err_code_t cpu_prim_deconv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                   const cpu_conv_spec_t *spec, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_status_t status = dnnl_deconvolution_forward_primitive_desc_create(
        &prim->desc, engine->engine, cpu_forward_kind(spec->config),
        dnnl_deconvolution_direct, spec->x.desc, spec->w.desc,
        bias ? spec->b.desc : NULL, spec->y.desc, window.stride,
        window.dilation, window.pad, window.pad, engine->attr);

    return cpu_prim_finish(prim, engine, "conv_transpose forward", status,
                           bias ? cpu_args_forward_bias : cpu_args_forward,
                           err);
}

err_code_t cpu_prim_deconv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                                const cpu_conv_spec_t *spec,
                                const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    dnnl_status_t status =
        dnnl_deconvolution_backward_data_primitive_desc_create(
            &prim->desc, engine->engine, dnnl_deconvolution_direct,
            spec->x.desc, spec->w.desc, spec->y.desc, window.stride,
            window.dilation, window.pad, window.pad, forward->desc,
            engine->attr);

    return cpu_prim_finish(prim, engine, "conv_transpose backward (data)",
                           status, cpu_args_data, err);
}

err_code_t cpu_prim_deconv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                   const cpu_conv_spec_t *spec,
                                   const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_status_t status =
        dnnl_deconvolution_backward_weights_primitive_desc_create(
            &prim->desc, engine->engine, dnnl_deconvolution_direct,
            spec->x.desc, spec->w.desc, bias ? spec->b.desc : NULL,
            spec->y.desc, window.stride, window.dilation, window.pad,
            window.pad, forward->desc, engine->attr);

    return cpu_prim_finish(
        prim, engine, "conv_transpose backward (weights)", status,
        bias ? cpu_args_weights_bias : cpu_args_weights, err);
}

#endif
