/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * oneDNN 3.x: layouts are objects behind pointers. Those that we make belong to
 * the engine and are freed with it; those that a primitive tells belong to it.
 */
#include "op/cpu/onednn/onednn_make.h"

#if DNNL_VERSION_MAJOR == 3

cpu_raw_md_t cpu_md_raw(const cpu_md_t *md)
{
    return md->desc;
}

cpu_md_t cpu_md_from_raw(cpu_raw_md_t raw)
{
    return (cpu_md_t){.desc = (dnnl_memory_desc_t)(uintptr_t)raw};
}

/* [md] was made with [status]: the engine keeps it, to free it. */
static dnnl_status_t cpu_md_keep(const cpu_md_t *md, cpu_engine_t *engine,
                                 dnnl_status_t status)
{
    if (status != dnnl_success)
        return status;
    if (engine->made == CPU_MADE_MAX) {
        dnnl_memory_desc_destroy(md->desc);
        return dnnl_out_of_memory;
    }
    engine->mds[engine->made++] = *md;
    return dnnl_success;
}

bool cpu_md_is_bf16(const cpu_md_t *md)
{
    dnnl_data_type_t type = dnnl_data_type_undef;

    dnnl_memory_desc_query(md->desc, dnnl_query_data_type, &type);
    return type == dnnl_bf16;
}

dnnl_status_t cpu_md_make(cpu_md_t *md, cpu_engine_t *engine, int ndim,
                          const int64_t *dims, dnnl_data_type_t type,
                          dnnl_format_tag_t tag)
{
    return cpu_md_keep(
        md, engine,
        dnnl_memory_desc_create_with_tag(&md->desc, ndim, dims, type, tag));
}

dnnl_status_t cpu_md_place(const cpu_md_t *md, cpu_engine_t *engine,
                           const int *place, cpu_md_t *out)
{
    return cpu_md_keep(
        out, engine,
        dnnl_memory_desc_permute_axes(&out->desc, md->desc, place));
}

void cpu_md_free_made(cpu_engine_t *engine)
{
    while (engine->made > 0)
        dnnl_memory_desc_destroy(engine->mds[--engine->made].desc);
}

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

/* The window of a conv from y to x: what out_pad adds to y lies behind it. */
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
