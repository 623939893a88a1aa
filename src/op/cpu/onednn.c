/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The wrapper of oneDNN 2.x: op descriptors, memory descriptors by value. */
#include "op/cpu/onednn.h"

#if DNNL_VERSION_MAJOR != 2
#error "this file wraps oneDNN 2.x"
#endif

static err_code_t cpu_status(dnnl_status_t status, const char *what, err_t *err)
{
    const dnnl_version_t *version = dnnl_version();

    if (status == dnnl_success)
        return ERR_OK;
    if (status == dnnl_out_of_memory)
        return err_set(err, ERR_MEMORY, "oneDNN ran out of memory in %s", what);
    return err_set(err, ERR_UNAVAILABLE,
                   "oneDNN %d.%d.%d cannot do this %s on this CPU (status %d); "
                   "use the op backend \"ref\" or a newer oneDNN",
                   version->major, version->minor, version->patch, what,
                   (int)status);
}

err_code_t cpu_engine_open(cpu_engine_t *engine, err_t *err)
{
    dnnl_status_t status;

    *engine = (cpu_engine_t){0};
    status = dnnl_engine_create(&engine->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&engine->stream, engine->engine,
                                    dnnl_stream_default_flags);
    return cpu_status(status, "engine", err);
}

void cpu_engine_close(cpu_engine_t *engine)
{
    if (engine->stream != NULL)
        dnnl_stream_destroy(engine->stream);
    if (engine->engine != NULL)
        dnnl_engine_destroy(engine->engine);
    *engine = (cpu_engine_t){0};
}

/* ---- layouts ------------------------------------------------------------ */

err_code_t cpu_md_plain(cpu_md_t *md, int ndim, const int64_t *dims, err_t *err)
{
    static const dnnl_format_tag_t tags[] = {dnnl_format_tag_undef,
                                             dnnl_a,
                                             dnnl_ab,
                                             dnnl_abc,
                                             dnnl_abcd,
                                             dnnl_abcde,
                                             dnnl_abcdef};

    return cpu_status(dnnl_memory_desc_init_by_tag(&md->desc, ndim, dims,
                                                   dnnl_f32, tags[ndim]),
                      "plain layout", err);
}

err_code_t cpu_md_any(cpu_md_t *md, int ndim, const int64_t *dims, err_t *err)
{
    return cpu_status(dnnl_memory_desc_init_by_tag(
                          &md->desc, ndim, dims, dnnl_f32, dnnl_format_tag_any),
                      "free layout", err);
}

err_code_t cpu_md_pixels(cpu_md_t *md, int64_t rows, int64_t channels,
                         err_t *err)
{
    const dnnl_dims_t dims = {rows, channels, 1, 1};

    return cpu_status(
        dnnl_memory_desc_init_by_tag(&md->desc, 4, dims, dnnl_f32, dnnl_acdb),
        "channels-last layout", err);
}

err_code_t cpu_md_permute(const cpu_md_t *md, const int *order, cpu_md_t *out,
                          err_t *err)
{
    int place[OP_DIMS_MAX] = {0}; /* the library wants the inverse */

    for (int i = 0; i < md->desc.ndims; i++)
        place[order[i]] = i;
    return cpu_status(
        dnnl_memory_desc_permute_axes(&out->desc, &md->desc, place),
        "permuted layout", err);
}

bool cpu_md_equal(const cpu_md_t *a, const cpu_md_t *b)
{
    return dnnl_memory_desc_equal(&a->desc, &b->desc) != 0;
}

size_t cpu_md_bytes(const cpu_md_t *md)
{
    return dnnl_memory_desc_get_size(&md->desc);
}

err_code_t cpu_md_of(cpu_md_t *md, const op_desc_t *desc, err_t *err)
{
    if (desc->layout == NULL)
        return cpu_md_plain(md, desc->ndim, desc->dims, err);
    *md = *(const cpu_md_t *)desc->layout;
    return ERR_OK;
}

err_code_t cpu_md_publish(const cpu_md_t *md, op_desc_t *desc, err_t *err)
{
    cpu_md_t plain;
    err_code_t code = cpu_md_plain(&plain, desc->ndim, desc->dims, err);

    if (code != ERR_OK)
        return code;
    desc->layout = cpu_md_equal(md, &plain) ? NULL : md;
    desc->bytes = cpu_md_bytes(md);
    return ERR_OK;
}

/* ---- making a primitive ------------------------------------------------- */

/* Make the memory object of one argument, with no memory behind it yet. */
static dnnl_status_t cpu_prim_add_slot(cpu_prim_t *prim, cpu_engine_t *engine,
                                       int arg)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(prim->desc, dnnl_query_exec_arg_md, arg);
    dnnl_exec_arg_t *slot = &prim->args[prim->slots];
    dnnl_status_t status;

    if (md == NULL || md->ndims == 0)
        return dnnl_invalid_arguments;
    status =
        dnnl_memory_create(&slot->memory, md, engine->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success) {
        slot->arg = arg;
        prim->slots++;
    }
    return status;
}

/* The scratchpad, if the primitive wants one. */
static dnnl_status_t cpu_prim_add_pad(cpu_prim_t *prim, cpu_engine_t *engine)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(prim->desc, dnnl_query_scratchpad_md, 0);
    size_t bytes = md == NULL ? 0 : dnnl_memory_desc_get_size(md);

    if (bytes == 0)
        return dnnl_success;
    if (bytes > engine->pad_bytes)
        engine->pad_bytes = bytes;
    return cpu_prim_add_slot(prim, engine, DNNL_ARG_SCRATCHPAD);
}

/* After prim->desc: the primitive and its arguments [args], ended by 0. */
static dnnl_status_t cpu_prim_finish(cpu_prim_t *prim, cpu_engine_t *engine,
                                     const int *args)
{
    dnnl_status_t status = dnnl_primitive_create(&prim->primitive, prim->desc);

    for (; status == dnnl_success && *args != 0; args++)
        status = cpu_prim_add_slot(prim, engine, *args);
    if (status == dnnl_success)
        status = cpu_prim_add_pad(prim, engine);
    return status;
}

static dnnl_status_t cpu_attr_make(dnnl_primitive_attr_t *attr)
{
    dnnl_status_t status = dnnl_primitive_attr_create(attr);

    if (status != dnnl_success)
        return status;
    status = dnnl_primitive_attr_set_scratchpad_mode(*attr,
                                                     dnnl_scratchpad_mode_user);
    if (status != dnnl_success)
        dnnl_primitive_attr_destroy(*attr);
    return status;
}

/*
 * Make [prim] from the op descriptor [op], whose initialisation answered
 * [status]; [forward] is the hint of a backward primitive, or NULL.
 */
static err_code_t cpu_prim_make(cpu_prim_t *prim, cpu_engine_t *engine,
                                const char *what, dnnl_status_t status,
                                const_dnnl_op_desc_t op,
                                const cpu_prim_t *forward, const int *args,
                                err_t *err)
{
    dnnl_primitive_attr_t attr;

    prim->what = what;
    if (status == dnnl_success)
        status = cpu_attr_make(&attr);
    if (status != dnnl_success)
        return cpu_status(status, what, err);
    status = dnnl_primitive_desc_create(&prim->desc, op, attr, engine->engine,
                                        forward == NULL ? NULL : forward->desc);
    if (status == dnnl_success)
        status = cpu_prim_finish(prim, engine, args);
    dnnl_primitive_attr_destroy(attr);
    return cpu_status(status, what, err);
}

static dnnl_prop_kind_t cpu_forward_kind(const op_config_t *config)
{
    return config->training ? dnnl_forward_training : dnnl_forward_inference;
}

/* A sliding window; the library's header wants arrays of full length. */
typedef struct cpu_window {
    dnnl_dims_t kernel, stride, pad, dilation;
} cpu_window_t;

static cpu_window_t cpu_window_of_conv(const op_conv_t *conv)
{
    cpu_window_t window = {.kernel = {0}};

    for (int i = 0; i < 2; i++) {
        window.stride[i] = conv->stride[i];
        window.pad[i] = conv->pad[i];
        window.dilation[i] = conv->dilation[i] - 1; /* it counts from 0 */
    }
    return window;
}

static cpu_window_t cpu_window_of_pool(const op_pool_t *pool)
{
    cpu_window_t window = {.kernel = {0}};

    for (int i = 0; i < 2; i++) {
        window.kernel[i] = pool->kernel[i];
        window.stride[i] = pool->stride[i];
        window.pad[i] = pool->pad[i];
    }
    return window;
}

/* ---- conv --------------------------------------------------------------- */

err_code_t cpu_prim_conv_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec, err_t *err)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, 0};
    static const int args_bias[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
                                    DNNL_ARG_BIAS, DNNL_ARG_DST, 0};
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_convolution_desc_t op;
    dnnl_status_t status;

    status = dnnl_dilated_convolution_forward_desc_init(
        &op, cpu_forward_kind(spec->config), dnnl_convolution_direct,
        &spec->x.desc, &spec->w.desc, bias ? &spec->b.desc : NULL,
        &spec->y.desc, window.stride, window.dilation, window.pad, window.pad);
    return cpu_prim_make(prim, engine, "conv forward", status, &op, NULL,
                         bias ? args_bias : args, err);
}

err_code_t cpu_prim_conv_data(cpu_prim_t *prim, cpu_engine_t *engine,
                              const cpu_conv_spec_t *spec,
                              const cpu_prim_t *forward, err_t *err)
{
    static const int args[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS,
                               DNNL_ARG_DIFF_SRC, 0};
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    dnnl_convolution_desc_t op;
    dnnl_status_t status;

    status = dnnl_dilated_convolution_backward_data_desc_init(
        &op, dnnl_convolution_direct, &spec->x.desc, &spec->w.desc,
        &spec->y.desc, window.stride, window.dilation, window.pad, window.pad);
    return cpu_prim_make(prim, engine, "conv backward (data)", status, &op,
                         forward, args, err);
}

err_code_t cpu_prim_conv_weights(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const cpu_conv_spec_t *spec,
                                 const cpu_prim_t *forward, err_t *err)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST,
                               DNNL_ARG_DIFF_WEIGHTS, 0};
    static const int args_bias[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST,
                                    DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS,
                                    0};
    cpu_window_t window = cpu_window_of_conv(&spec->config->conv);
    bool bias = spec->config->bias;
    dnnl_convolution_desc_t op;
    dnnl_status_t status;

    status = dnnl_dilated_convolution_backward_weights_desc_init(
        &op, dnnl_convolution_direct, &spec->x.desc, &spec->w.desc,
        bias ? &spec->b.desc : NULL, &spec->y.desc, window.stride,
        window.dilation, window.pad, window.pad);
    return cpu_prim_make(prim, engine, "conv backward (weights)", status, &op,
                         forward, bias ? args_bias : args, err);
}

/* ---- matmul ------------------------------------------------------------- */

/* A matrix of [rows] x [columns]; stored by columns if [turned]. */
static dnnl_status_t cpu_md_matrix(cpu_md_t *md, int64_t rows, int64_t columns,
                                   bool turned)
{
    const dnnl_dims_t dims = {rows, columns};

    return dnnl_memory_desc_init_by_tag(&md->desc, 2, dims, dnnl_f32,
                                        turned ? dnnl_ba : dnnl_ab);
}

err_code_t cpu_prim_matmul(cpu_prim_t *prim, cpu_engine_t *engine,
                           const cpu_matmul_spec_t *spec, err_t *err)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, 0};
    static const int args_bias[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
                                    DNNL_ARG_BIAS, DNNL_ARG_DST, 0};
    cpu_md_t a, b, c, bias;
    dnnl_matmul_desc_t op;
    dnnl_status_t status = cpu_md_matrix(&a, spec->M, spec->K, spec->a_turned);

    if (status == dnnl_success)
        status = cpu_md_matrix(&b, spec->K, spec->N, spec->b_turned);
    if (status == dnnl_success)
        status = cpu_md_matrix(&c, spec->M, spec->N, false);
    if (status == dnnl_success)
        status = cpu_md_matrix(&bias, 1, spec->N, false);
    if (status == dnnl_success)
        status = dnnl_matmul_desc_init(&op, &a.desc, &b.desc,
                                       spec->bias ? &bias.desc : NULL, &c.desc);
    return cpu_prim_make(prim, engine, "linear", status, &op, NULL,
                         spec->bias ? args_bias : args, err);
}

/* ---- pool, norm, reorder ------------------------------------------------ */

err_code_t cpu_prim_pool_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const op_config_t *config, const cpu_md_t *x,
                                 const cpu_md_t *y, err_t *err)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_DST, 0};
    static const int args_keep[] = {DNNL_ARG_SRC, DNNL_ARG_DST,
                                    DNNL_ARG_WORKSPACE, 0};
    cpu_window_t window = cpu_window_of_pool(&config->pool);
    dnnl_pooling_desc_t op;
    dnnl_status_t status = dnnl_pooling_forward_desc_init(
        &op, cpu_forward_kind(config), dnnl_pooling_max, &x->desc, &y->desc,
        window.stride, window.kernel, window.pad, window.pad);

    return cpu_prim_make(prim, engine, "maxpool forward", status, &op, NULL,
                         config->training ? args_keep : args, err);
}

err_code_t cpu_prim_pool_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const op_config_t *config, const cpu_md_t *x,
                                  const cpu_md_t *y, const cpu_prim_t *forward,
                                  err_t *err)
{
    static const int args[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WORKSPACE,
                               DNNL_ARG_DIFF_SRC, 0};
    cpu_window_t window = cpu_window_of_pool(&config->pool);
    dnnl_pooling_desc_t op;
    dnnl_status_t status = dnnl_pooling_backward_desc_init(
        &op, dnnl_pooling_max, &x->desc, &y->desc, window.stride, window.kernel,
        window.pad, window.pad);

    return cpu_prim_make(prim, engine, "maxpool backward", status, &op, forward,
                         args, err);
}

err_code_t cpu_prim_norm_forward(cpu_prim_t *prim, cpu_engine_t *engine,
                                 const op_config_t *config, const cpu_md_t *md,
                                 err_t *err)
{
    static const int args[] = {DNNL_ARG_SRC,
                               DNNL_ARG_DST,
                               DNNL_ARG_MEAN,
                               DNNL_ARG_VARIANCE,
                               DNNL_ARG_SCALE,
                               DNNL_ARG_SHIFT,
                               0};
    unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_batch_normalization_desc_t op;
    dnnl_status_t status;

    if (!config->training)
        flags |= dnnl_use_global_stats;
    status = dnnl_batch_normalization_forward_desc_init(
        &op, cpu_forward_kind(config), &md->desc, (float)config->epsilon,
        flags);
    return cpu_prim_make(prim, engine, "batchnorm forward", status, &op, NULL,
                         args, err);
}

err_code_t cpu_prim_norm_backward(cpu_prim_t *prim, cpu_engine_t *engine,
                                  const op_config_t *config, const cpu_md_t *md,
                                  const cpu_prim_t *forward, err_t *err)
{
    static const int args[] = {
        DNNL_ARG_SRC,        DNNL_ARG_MEAN,
        DNNL_ARG_VARIANCE,   DNNL_ARG_DIFF_DST,
        DNNL_ARG_SCALE,      DNNL_ARG_DIFF_SRC,
        DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT,
        DNNL_ARG_SHIFT,      0}; /* SHIFT: wanted, but not read */
    dnnl_batch_normalization_desc_t op;
    dnnl_status_t status = dnnl_batch_normalization_backward_desc_init(
        &op, dnnl_backward, &md->desc, &md->desc, (float)config->epsilon,
        dnnl_use_scale | dnnl_use_shift);

    return cpu_prim_make(prim, engine, "batchnorm backward", status, &op,
                         forward, args, err);
}

err_code_t cpu_prim_reorder(cpu_prim_t *prim, cpu_engine_t *engine,
                            const cpu_md_t *from, const cpu_md_t *to,
                            err_t *err)
{
    static const int args[] = {DNNL_ARG_FROM, DNNL_ARG_TO, 0};
    dnnl_primitive_attr_t attr;
    dnnl_status_t status = cpu_attr_make(&attr);

    prim->what = "reorder";
    if (status != dnnl_success)
        return cpu_status(status, prim->what, err);
    status = dnnl_reorder_primitive_desc_create(&prim->desc, &from->desc,
                                                engine->engine, &to->desc,
                                                engine->engine, attr);
    if (status == dnnl_success)
        status = cpu_prim_finish(prim, engine, args);
    dnnl_primitive_attr_destroy(attr);
    return cpu_status(status, prim->what, err);
}

/* ---- using a primitive -------------------------------------------------- */

cpu_md_t cpu_prim_md(const cpu_prim_t *prim, int arg)
{
    return (cpu_md_t){.desc = *dnnl_primitive_desc_query_md(
                          prim->desc, dnnl_query_exec_arg_md, arg)};
}

void cpu_prim_bind(cpu_prim_t *prim, int arg, const void *data)
{
    void *old = NULL;

    for (int i = 0; i < prim->slots; i++) {
        dnnl_memory_t memory = prim->args[i].memory;

        if (prim->args[i].arg != arg)
            continue;
        /* Setting a handle walks the padding: only when it changes. */
        dnnl_memory_get_data_handle(memory, &old);
        if (old != data)
            dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)data);
    }
}

err_code_t cpu_prim_run(cpu_prim_t *prim, const cpu_engine_t *engine, void *pad,
                        err_t *err)
{
    dnnl_status_t status;

    cpu_prim_bind(prim, DNNL_ARG_SCRATCHPAD, pad);
    status = dnnl_primitive_execute(prim->primitive, engine->stream,
                                    prim->slots, prim->args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(engine->stream);
    return cpu_status(status, prim->what, err);
}

void cpu_prim_close(cpu_prim_t *prim)
{
    for (int i = 0; i < prim->slots; i++)
        dnnl_memory_destroy(prim->args[i].memory);
    if (prim->primitive != NULL)
        dnnl_primitive_destroy(prim->primitive);
    if (prim->desc != NULL)
        dnnl_primitive_desc_destroy(prim->desc);
    *prim = (cpu_prim_t){0};
}
