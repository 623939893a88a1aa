/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* oneDNN 2.x: a primitive is made from an op descriptor. */
#include "op/cpu/onednn/onednn_make.h"

#if DNNL_VERSION_MAJOR == 2

/*
 * Make [prim] from the op descriptor [op], whose initialisation returned
 * [status]. [forward] is the hint for a backward primitive; NULL in forward.
 */
static err_code_t cpu_prim_make(cpu_prim_t *prim, cpu_engine_t *engine,
                                const char *what, dnnl_status_t status,
                                const_dnnl_op_desc_t op,
                                const cpu_prim_t *forward, const int *args,
                                err_t *err)
{
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(
            &prim->desc, op, engine->attr, engine->engine,
            forward == NULL ? NULL : forward->desc);
    return cpu_prim_finish(prim, engine, what, status, args, err);
}

err_code_t cpu_prim_conv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_convolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &op, cpu_forward_kind(spec->config), dnnl_convolution_direct,
        &spec->x.desc, &spec->w.desc, bias ? &spec->b.desc : NULL,
        &spec->y.desc, window.stride, window.dilation, window.pad,
        window.behind);

    return cpu_prim_make(prim, engine, "conv forward", status, &op, NULL,
                         bias ? cpu_args_forward_bias : cpu_args_forward, err);
}

err_code_t cpu_prim_conv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                              const cpu_conv_spec_t *spec,
                              const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    dnnl_convolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_convolution_backward_data_desc_init(
        &op, dnnl_convolution_direct, &spec->x.desc, &spec->w.desc,
        &spec->y.desc, window.stride, window.dilation, window.pad,
        window.behind);

    return cpu_prim_make(prim, engine, "conv backward (data)", status, &op,
                         forward, cpu_args_data, err);
}

err_code_t cpu_prim_conv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec,
                                 const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_convolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
        &op, dnnl_convolution_direct, &spec->x.desc, &spec->w.desc,
        bias ? &spec->b.desc : NULL, &spec->y.desc, window.stride,
        window.dilation, window.pad, window.behind);

    return cpu_prim_make(prim, engine, "conv backward (weights)", status, &op,
                         forward,
                         bias ? cpu_args_weights_bias : cpu_args_weights, err);
}

err_code_t cpu_prim_matmul(cpu_prim_t *prim, cpu_engine_t *engine,
                           const cpu_matmul_spec_t *spec, err_t *err)
{
    cpu_md_t a, b, c, bias;
    dnnl_matmul_desc_t op;
    dnnl_status_t status = cpu_matmul_mds(spec, engine, &a, &b, &c, &bias);

    if (status == dnnl_success)
        status = dnnl_matmul_desc_init(&op, &a.desc, &b.desc,
                                       spec->bias ? &bias.desc : NULL, &c.desc);
    return cpu_prim_make(prim, engine, "linear", status, &op, NULL,
                         spec->bias ? cpu_args_forward_bias : cpu_args_forward,
                         err);
}

err_code_t cpu_prim_pool_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const op_config_t *config, const cpu_md_t *x,
                                 const cpu_md_t *y, err_t *err)
{
    cpu_window_t window = cpu_window_of_pool(&config->pool);
    dnnl_pooling_desc_t op;
    dnnl_status_t status = dnnl_pooling_forward_desc_init(
        &op, cpu_forward_kind(config), cpu_pool_kind(config), &x->desc,
        &y->desc, window.stride, window.kernel, window.pad, window.pad);

    return cpu_prim_make(prim, engine, "pool forward", status, &op, NULL,
                         cpu_args_pool, err);
}

err_code_t cpu_prim_pool_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const op_config_t *config, const cpu_md_t *x,
                                  const cpu_md_t *y, const cpu_prim_t *forward,
                                  err_t *err)
{
    cpu_window_t window = cpu_window_of_pool(&config->pool);
    dnnl_pooling_desc_t op;
    dnnl_status_t status = dnnl_pooling_backward_desc_init(
        &op, cpu_pool_kind(config), &x->desc, &y->desc, window.stride,
        window.kernel, window.pad, window.pad);

    return cpu_prim_make(prim, engine, "pool backward", status, &op, forward,
                         cpu_args_pool_backward, err);
}

/* A transposed convolution has the window of the convolution from y to x.
 * out_pad makes y longer at its end and does not change the padding. */
err_code_t cpu_prim_deconv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                   const cpu_conv_spec_t *spec, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_deconvolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_deconvolution_forward_desc_init(
        &op, cpu_forward_kind(spec->config), dnnl_deconvolution_direct,
        &spec->x.desc, &spec->w.desc, bias ? &spec->b.desc : NULL,
        &spec->y.desc, window.stride, window.dilation, window.pad, window.pad);

    return cpu_prim_make(prim, engine, "conv_transpose forward", status, &op,
                         NULL, bias ? cpu_args_forward_bias : cpu_args_forward,
                         err);
}

err_code_t cpu_prim_deconv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                                const cpu_conv_spec_t *spec,
                                const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    dnnl_deconvolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_deconvolution_backward_data_desc_init(
        &op, dnnl_deconvolution_direct, &spec->x.desc, &spec->w.desc,
        &spec->y.desc, window.stride, window.dilation, window.pad, window.pad);

    return cpu_prim_make(prim, engine, "conv_transpose backward (data)", status,
                         &op, forward, cpu_args_data, err);
}

err_code_t cpu_prim_deconv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                   const cpu_conv_spec_t *spec,
                                   const cpu_prim_t *forward, err_t *err)
{
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_deconvolution_desc_t op;
    dnnl_status_t status =
        dnnl_dilated_deconvolution_backward_weights_desc_init(
            &op, dnnl_deconvolution_direct, &spec->x.desc, &spec->w.desc,
            bias ? &spec->b.desc : NULL, &spec->y.desc, window.stride,
            window.dilation, window.pad, window.pad);

    return cpu_prim_make(prim, engine, "conv_transpose backward (weights)",
                         status, &op, forward,
                         bias ? cpu_args_weights_bias : cpu_args_weights, err);
}

#endif
