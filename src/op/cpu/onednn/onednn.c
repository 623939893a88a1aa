/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The code for all versions of oneDNN: engines, layouts, arguments of
 * primitives, and running primitives. */
#include "op/cpu/onednn/onednn.h"

#include "base/check.h"
#include "op/cpu/onednn/onednn_make.h"
#include "simd/isa.h"

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
    (void)simd_isa(); /* decides which instructions primitives may use */
    status = dnnl_engine_create(&engine->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&engine->stream, engine->engine,
                                    dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&engine->attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(
            engine->attr, dnnl_scratchpad_mode_user);
    return cpu_status(status, "engine", err);
}

void cpu_engine_close(cpu_engine_t *engine)
{
    cpu_md_free_made(engine);
    if (engine->attr != NULL)
        dnnl_primitive_attr_destroy(engine->attr);
    if (engine->stream != NULL)
        dnnl_stream_destroy(engine->stream);
    if (engine->engine != NULL)
        dnnl_engine_destroy(engine->engine);
    *engine = (cpu_engine_t){0};
}

/* ---- layouts ------------------------------------------------------------ */

static const dnnl_format_tag_t cpu_plain_tags[] = {dnnl_format_tag_undef,
                                                   dnnl_a,
                                                   dnnl_ab,
                                                   dnnl_abc,
                                                   dnnl_abcd,
                                                   dnnl_abcde,
                                                   dnnl_abcdef};

err_code_t cpu_md_plain(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                        err_t *err)
{
    check(shape.ndim >= 1 && shape.ndim <= OP_DIMS_MAX, "%d dimensions",
          shape.ndim);
    return cpu_status(
        cpu_md_make(md, engine, shape, cpu_plain_tags[shape.ndim]),
        "plain layout", err);
}

err_code_t cpu_md_any(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                      err_t *err)
{
    return cpu_status(cpu_md_make(md, engine, shape, dnnl_format_tag_any),
                      "free layout", err);
}

err_code_t cpu_md_permute(const cpu_md_t *md, cpu_engine_t *engine,
                          const cpu_order_t *order, cpu_md_t *out, err_t *err)
{
    const int ndim = order->ndim, *from = order->from;
    int place[OP_DIMS_MAX] = {0}; /* oneDNN expects the inverse of [order] */
    unsigned named = 0;

    for (int i = 0; i < ndim; i++) {
        check(from[i] >= 0 && from[i] < ndim && !(named >> from[i] & 1),
              "dimension %d is %d of %d, or named twice", i, from[i], ndim);
        named |= 1u << from[i];
        place[from[i]] = i;
    }
    return cpu_status(cpu_md_place(md, engine, place, out), "permuted layout",
                      err);
}

bool cpu_md_equal(const cpu_md_t *a, const cpu_md_t *b)
{
    return dnnl_memory_desc_equal(cpu_md_raw(a), cpu_md_raw(b)) != 0;
}

size_t cpu_md_bytes(const cpu_md_t *md)
{
    return dnnl_memory_desc_get_size(cpu_md_raw(md));
}

/* Tags for channels last, by the number of dimensions, one to three of which
 * are space. */
static const dnnl_format_tag_t cpu_last_tags[] = {
    [3] = dnnl_acb, [4] = dnnl_acdb, [5] = dnnl_acdeb};

err_code_t cpu_md_last(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                       err_t *err)
{
    check(shape.ndim > 2 && shape.ndim <= 2 + OP_SPACE_MAX, "%d dimensions",
          shape.ndim);
    return cpu_status(cpu_md_make(md, engine, shape, cpu_last_tags[shape.ndim]),
                      "layout", err);
}

/* Tags for the values of lanes that cpu_md_lanes returns. */
static const struct {
    int lanes;
    dnnl_format_tag_t tags[OP_SPACE_MAX]; /* for 1, 2, 3 dimensions of space */
} cpu_lanes_tags[] = {{1, {dnnl_abc, dnnl_abcd, dnnl_abcde}},
                      {16, {dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b}},
                      {8, {dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b}},
                      {0, {dnnl_acb, dnnl_acdb, dnnl_acdeb}}};

#define LANES_COUNT (sizeof cpu_lanes_tags / sizeof cpu_lanes_tags[0])

err_code_t cpu_md_in_lanes(cpu_md_t *md, cpu_engine_t *engine,
                           cpu_shape_t shape, int lanes, err_t *err)
{
    size_t i = 0;

    while (i + 1 < LANES_COUNT && cpu_lanes_tags[i].lanes != lanes)
        i++;
    check(cpu_lanes_tags[i].lanes == lanes, "no layout has %d lanes", lanes);
    check(shape.ndim > 2 && shape.ndim <= 2 + OP_SPACE_MAX, "%d dimensions",
          shape.ndim);
    return cpu_status(
        cpu_md_make(md, engine, shape, cpu_lanes_tags[i].tags[shape.ndim - 3]),
        "layout", err);
}

err_code_t cpu_md_lanes(const cpu_md_t *md, cpu_engine_t *engine,
                        const op_desc_t *desc, int *lanes, err_t *err)
{
    const cpu_shape_t shape = cpu_shape_of(desc, cpu_md_is_bf16(md));
    cpu_md_t one;

    *lanes = -1;
    if (shape.ndim < 3 || shape.ndim > 2 + OP_SPACE_MAX)
        return ERR_OK;
    for (size_t i = 0; i < LANES_COUNT && *lanes < 0; i++) {
        err_code_t rc =
            cpu_md_in_lanes(&one, engine, shape, cpu_lanes_tags[i].lanes, err);

        if (rc != ERR_OK)
            return rc;
        if (cpu_md_equal(md, &one))
            *lanes = cpu_lanes_tags[i].lanes;
    }
    return ERR_OK;
}

err_code_t cpu_md_of(cpu_md_t *md, cpu_engine_t *engine, const op_desc_t *desc,
                     err_t *err)
{
    if (desc->layout == NULL)
        return cpu_md_plain(md, engine, cpu_shape_of(desc, false), err);
    *md = *(const cpu_md_t *)desc->layout;
    return ERR_OK;
}

err_code_t cpu_md_publish(const cpu_md_t *md, cpu_engine_t *engine,
                          op_desc_t *desc, err_t *err)
{
    cpu_md_t plain;
    err_code_t rc =
        cpu_md_plain(&plain, engine, cpu_shape_of(desc, false), err);

    if (rc != ERR_OK)
        return rc;
    desc->layout = cpu_md_equal(md, &plain) ? NULL : md;
    desc->stored_as = cpu_md_is_bf16(md) ? OP_BFLOAT16 : desc->type;
    desc->bytes = cpu_md_bytes(md);
    return ERR_OK;
}

/* ---- making a primitive ------------------------------------------------- */

static const int cpu_args_forward[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
                                       DNNL_ARG_DST, 0};
static const int cpu_args_forward_bias[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
                                            DNNL_ARG_BIAS, DNNL_ARG_DST, 0};
static const int cpu_args_data[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS,
                                    DNNL_ARG_DIFF_SRC, 0};
static const int cpu_args_weights[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST,
                                       DNNL_ARG_DIFF_WEIGHTS, 0};
static const int cpu_args_weights_bias[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST,
                                            DNNL_ARG_DIFF_WEIGHTS,
                                            DNNL_ARG_DIFF_BIAS, 0};
static const int cpu_args_pool[] = {DNNL_ARG_SRC, DNNL_ARG_DST, 0};
static const int cpu_args_pool_backward[] = {DNNL_ARG_DIFF_DST,
                                             DNNL_ARG_DIFF_SRC, 0};

const cpu_signature_t cpu_signature_pool_forward = {"pool forward",
                                                    cpu_args_pool};
const cpu_signature_t cpu_signature_pool_backward = {"pool backward",
                                                     cpu_args_pool_backward};

cpu_signature_t cpu_signature_matmul(const cpu_matmul_spec_t *spec)
{
    return (cpu_signature_t){"linear", spec->bias ? cpu_args_forward_bias
                                                  : cpu_args_forward};
}

cpu_signature_t cpu_signature_conv_forward(const cpu_conv_spec_t *spec)
{
    return (cpu_signature_t){
        cpu_conv_is_transposed(spec) ? "conv_transpose forward"
                                     : "conv forward",
        spec->config->bias ? cpu_args_forward_bias : cpu_args_forward};
}

cpu_signature_t cpu_signature_conv_data(const cpu_conv_spec_t *spec)
{
    return (cpu_signature_t){cpu_conv_is_transposed(spec)
                                 ? "conv_transpose backward (data)"
                                 : "conv backward (data)",
                             cpu_args_data};
}

cpu_signature_t cpu_signature_conv_weights(const cpu_conv_spec_t *spec)
{
    return (cpu_signature_t){
        cpu_conv_is_transposed(spec) ? "conv_transpose backward (weights)"
                                     : "conv backward (weights)",
        spec->config->bias ? cpu_args_weights_bias : cpu_args_weights};
}

cpu_window_t cpu_window_of_conv(const op_config_t *config)
{
    const op_conv_t *conv = &config->conv;
    const bool transposed = config->kind == OP_CONV_TRANSPOSE;
    cpu_window_t window = {.kernel = {0}};

    for (int i = 0; i < OP_SPACE_MAX; i++) {
        window.stride[i] = conv->stride[i];
        window.pad[i] = conv->pad[i];
        window.behind[i] = conv->pad[i] + (transposed ? 0 : conv->behind[i]);
        window.dilation[i] = conv->dilation[i] - 1;
    }
    return window;
}

cpu_window_t cpu_window_of_pool(const op_pool_t *pool)
{
    cpu_window_t window = {.kernel = {0}};

    for (int i = 0; i < OP_SPACE_MAX; i++) {
        window.kernel[i] = pool->kernel[i];
        window.stride[i] = pool->stride[i];
        window.pad[i] = pool->pad[i];
    }
    return window;
}

dnnl_alg_kind_t cpu_pool_kind(const op_config_t *config)
{
    return config->pool.inside ? dnnl_pooling_avg_exclude_padding
                               : dnnl_pooling_avg_include_padding;
}

dnnl_alg_kind_t cpu_conv_kind(const op_config_t *config)
{
    return config->kind == OP_CONV_TRANSPOSE ? dnnl_deconvolution_direct
                                             : dnnl_convolution_direct;
}

dnnl_prop_kind_t cpu_forward_kind(const op_config_t *config)
{
    return config->training ? dnnl_forward_training : dnnl_forward_inference;
}

dnnl_status_t cpu_matmul_mds(const cpu_matmul_spec_t *spec,
                             cpu_engine_t *engine, cpu_matmul_mds_t *mds)
{
    const struct {
        cpu_md_t *md;
        int64_t dims[2];
        bool bf16, transposed;
    } all[] = {
        {&mds->a, {spec->M, spec->K}, spec->bf16, spec->a_transposed},
        {&mds->b, {spec->K, spec->N}, spec->bf16, spec->b_transposed},
        {&mds->c, {spec->M, spec->N}, false, false},
        {&mds->bias, {1, spec->N}, false, false},
    };
    dnnl_status_t status = dnnl_success;

    for (int i = 0; i < 4 && status == dnnl_success; i++)
        status = cpu_md_make(all[i].md, engine,
                             (cpu_shape_t){2, all[i].dims, all[i].bf16},
                             all[i].transposed ? dnnl_ba : dnnl_ab);
    return status;
}

/* Make the memory object of one argument, without memory so far. */
static dnnl_status_t cpu_prim_add_slot(cpu_prim_t *prim, cpu_engine_t *engine,
                                       int arg)
{
    cpu_raw_md_t md =
        dnnl_primitive_desc_query_md(prim->desc, dnnl_query_exec_arg_md, arg);
    dnnl_exec_arg_t *slot = &prim->args[prim->slots];
    dnnl_status_t status;

    check(prim->slots < CPU_SLOTS_MAX, "%d arguments are set already",
          prim->slots);
    if (md == NULL || dnnl_memory_desc_get_size(md) == 0)
        return dnnl_invalid_arguments;
    status =
        dnnl_memory_create(&slot->memory, md, engine->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success) {
        slot->arg = arg;
        prim->slots++;
    }
    return status;
}

/* Add the scratchpad as an argument if the primitive needs one. */
static dnnl_status_t cpu_prim_add_pad(cpu_prim_t *prim, cpu_engine_t *engine)
{
    cpu_raw_md_t md =
        dnnl_primitive_desc_query_md(prim->desc, dnnl_query_scratchpad_md, 0);
    size_t bytes = md == NULL ? 0 : dnnl_memory_desc_get_size(md);

    if (bytes == 0)
        return dnnl_success;
    if (bytes > engine->pad_bytes)
        engine->pad_bytes = bytes;
    return cpu_prim_add_slot(prim, engine, DNNL_ARG_SCRATCHPAD);
}

err_code_t cpu_prim_finish(cpu_prim_t *prim, cpu_engine_t *engine,
                           cpu_signature_t signature, dnnl_status_t status,
                           err_t *err)
{
    const int *args = signature.args;

    check(prim->primitive == NULL, "%s is made twice", prim->what);
    prim->what = signature.what;
    if (status == dnnl_success)
        status = dnnl_primitive_create(&prim->primitive, prim->desc);
    for (; status == dnnl_success && *args != 0; args++)
        status = cpu_prim_add_slot(prim, engine, *args);
    if (status == dnnl_success)
        status = cpu_prim_add_pad(prim, engine);
    return cpu_status(status, prim->what, err);
}

err_code_t cpu_prim_reorder(cpu_prim_t *prim, cpu_engine_t *engine,
                            const cpu_md_t *from, const cpu_md_t *to,
                            err_t *err)
{
    static const int args[] = {DNNL_ARG_FROM, DNNL_ARG_TO, 0};
    const cpu_signature_t signature = {"reorder", args};
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &prim->desc, cpu_md_raw(from), engine->engine, cpu_md_raw(to),
        engine->engine, engine->attr);

    return cpu_prim_finish(prim, engine, signature, status, err);
}

/* ---- using a primitive -------------------------------------------------- */

cpu_md_t cpu_prim_md(const cpu_prim_t *prim, int arg)
{
    return cpu_md_from_raw(
        dnnl_primitive_desc_query_md(prim->desc, dnnl_query_exec_arg_md, arg));
}

void cpu_prim_bind(cpu_prim_t *prim, int arg, const void *data)
{
    void *old = NULL;

    for (int i = 0; i < prim->slots; i++) {
        dnnl_memory_t memory = prim->args[i].memory;

        if (prim->args[i].arg != arg)
            continue;
        /* Setting a handle may clear the padding, so do it only if the handle
         * changes. */
        dnnl_memory_get_data_handle(memory, &old);
        if (old != data)
            dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)data);
    }
}

/* Does every argument have memory? */
static bool cpu_prim_is_bound(const cpu_prim_t *prim)
{
    void *data;

    for (int i = 0; i < prim->slots; i++)
        if (dnnl_memory_get_data_handle(prim->args[i].memory, &data) !=
                dnnl_success ||
            data == NULL)
            return false;
    return true;
}

err_code_t cpu_prim_run(cpu_prim_t *prim, const cpu_engine_t *engine, void *pad,
                        err_t *err)
{
    dnnl_status_t status;

    check(prim->primitive != NULL, "run before it was made");
    cpu_prim_bind(prim, DNNL_ARG_SCRATCHPAD, pad);
    check(cpu_prim_is_bound(prim), "%s runs without one of its %d arguments",
          prim->what, prim->slots);
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
