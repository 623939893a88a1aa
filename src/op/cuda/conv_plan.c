/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/conv_plan.h"

#include <stdio.h>

#include "op/cuda/channels.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"

static bool is_transposed(const op_config_t *config)
{
    return config->kind == OP_CONV_TRANSPOSE;
}

/* Number of spatial dimensions for cuDNN, which takes two or three. */
static int space_of(const op_config_t *config)
{
    return config->in.ndim == 5 ? 3 : 2;
}

/* Copy the last dimensions of a tensor: [ndim - first] numbers, preceded by
 * [fill] if there is only one. */
static void copy_space(const int64_t *from, int space, int64_t fill,
                       int64_t *to)
{
    to[0] = fill;
    for (int i = 0; i < space; i++)
        to[(space == 1) + i] = from[i];
}

bool cuda_conv_is_bf16(const op_config_t *config)
{
    return !is_transposed(config) && op_computes_bf16(config);
}

/* Are channels padded? Groups must keep their size. */
static bool is_padded(const op_config_t *config)
{
    return cuda_conv_is_bf16(config) && config->conv.groups == 1;
}

static int64_t channels_of(const op_config_t *config, int64_t channels)
{
    return is_padded(config) ? cuda_channels_pitch(channels) : channels;
}

static void set_plain(cuda_tensor_t *tensor)
{
    int64_t stride = 1;

    for (int i = tensor->ndim - 1; i >= 0; i--) {
        tensor->strides[i] = stride;
        stride *= tensor->dims[i];
    }
}

/* Channels last, with [pitch] elements from a position to the next one. */
static void set_last(cuda_tensor_t *tensor, int64_t pitch)
{
    int64_t stride = pitch;

    tensor->type = CUDNN_DATA_BFLOAT16;
    tensor->strides[1] = 1;
    for (int i = tensor->ndim - 1; i > 1; i--) {
        tensor->strides[i] = stride;
        stride *= tensor->dims[i];
    }
    tensor->strides[0] = stride;
}

static cuda_tensor_t tensor_of(const op_config_t *config, const op_desc_t *desc)
{
    cuda_tensor_t tensor = {
        .type = CUDNN_DATA_FLOAT,
        .ndim = desc->ndim == 3 ? 4 : desc->ndim,
        .dims = {desc->dims[0], channels_of(config, desc->dims[1])}};

    copy_space(&desc->dims[2], desc->ndim - 2, 1, &tensor.dims[2]);
    if (cuda_conv_is_bf16(config))
        set_last(&tensor, cuda_channels_pitch(desc->dims[1]));
    else
        set_plain(&tensor);
    return tensor;
}

cuda_conv_weights_t cuda_conv_weights_of(const op_config_t *config)
{
    const op_conv_t *conv = &config->conv;

    return (cuda_conv_weights_t){
        channels_of(config, conv->out), op_window_taps(config),
        channels_of(config, config->in.dims[1] / conv->groups)};
}

static cuda_tensor_t filter_of(const op_config_t *config)
{
    const op_conv_t *conv = &config->conv;
    const cuda_conv_weights_t weights = cuda_conv_weights_of(config);
    const int64_t C = config->in.dims[1];
    cuda_tensor_t tensor = {.type = CUDNN_DATA_FLOAT,
                            .ndim = space_of(config) + 2,
                            .dims = {weights.rows, weights.pitch}};

    if (is_transposed(config)) {
        tensor.dims[0] = C;
        tensor.dims[1] = conv->out / conv->groups;
    }
    copy_space(conv->kernel, config->in.ndim - 2, 1, &tensor.dims[2]);
    if (cuda_conv_is_bf16(config))
        set_last(&tensor, weights.pitch);
    else
        set_plain(&tensor);
    return tensor;
}

static cuda_conv_window_t window_of(const op_config_t *config)
{
    const op_conv_t *conv = &config->conv;
    const int space = config->in.ndim - 2;
    cuda_conv_window_t window = {.space = space_of(config)};
    int64_t after[OP_SPACE_MAX];

    for (int i = 0; i < space; i++)
        after[i] = conv->pad[i] + (is_transposed(config) ? 0 : conv->behind[i]);
    copy_space(conv->pad, space, 0, window.before);
    copy_space(after, space, 0, window.after);
    copy_space(conv->dilation, space, 1, window.dilation);
    copy_space(conv->stride, space, 1, window.stride);
    return window;
}

/* conv_transpose does not round (op_config_t.compute_type). */
static cuda_precision_t precision_of(const op_config_t *config)
{
    if (cuda_conv_is_bf16(config))
        return CUDA_BF16;
    return !is_transposed(config) && config->compute_type == OP_TF32
               ? CUDA_TF32
               : CUDA_EXACT;
}

/* The plan of one of the three convolutions. */
static err_code_t plan_open(const op_config_t *config, const op_desc_t *y,
                            const cuda_planner_t *planner,
                            cuda_conv_kind_t kind, cuda_plan_t **out,
                            err_t *err)
{
    static const char *const names[] = {"", ", gradient of its input",
                                        ", gradient of its weights"};
    const bool transposed = is_transposed(config);
    const cuda_tensor_t tensors[] = {tensor_of(config, &config->in),
                                     filter_of(config), tensor_of(config, y)};
    const int xwy[] = {transposed ? CUDA_CONV_Y : CUDA_CONV_X, CUDA_CONV_W,
                       transposed ? CUDA_CONV_X : CUDA_CONV_Y};
    const cuda_conv_window_t window = window_of(config);
    char shape[OP_TEXT_MAX], what[OP_TEXT_MAX + 64];
    cuda_graph_t *graph;
    err_code_t rc;

    snprintf(what, sizeof what, "%s on %s%s", op_kind_name(config->kind),
             op_desc_text(&config->in, shape), names[kind]);
    rc = cuda_graph_open(planner, what, &graph, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < CUDA_CONV_TENSORS; i++)
        cuda_graph_tensor(graph, &tensors[i]);
    if (transposed && kind != CUDA_CONV_FILTER)
        kind = kind == CUDA_CONV_FORWARD ? CUDA_CONV_DATA : CUDA_CONV_FORWARD;
    cuda_graph_conv(graph, kind, &window, xwy);
    rc = cuda_graph_plan(graph, precision_of(config), out, err);
    cuda_graph_close(graph);
    return rc;
}

err_code_t cuda_conv_plans_open(const op_config_t *config, const op_desc_t *y,
                                const cuda_planner_t *planner,
                                cuda_conv_plans_t *out, err_t *err)
{
    err_code_t rc =
        plan_open(config, y, planner, CUDA_CONV_FORWARD, &out->forward, err);

    if (rc == ERR_OK && config->training)
        rc = plan_open(config, y, planner, CUDA_CONV_FILTER, &out->filter, err);
    if (rc == ERR_OK && config->training && config->need_dx)
        rc = plan_open(config, y, planner, CUDA_CONV_DATA, &out->data, err);
    return rc;
}

void cuda_conv_plans_close(cuda_conv_plans_t *plans)
{
    cuda_plan_close(plans->forward);
    cuda_plan_close(plans->data);
    cuda_plan_close(plans->filter);
}

size_t cuda_conv_plans_workspace(const cuda_conv_plans_t *plans)
{
    const cuda_plan_t *const all[] = {plans->forward, plans->data,
                                      plans->filter};
    size_t most = 0;

    for (int i = 0; i < 3; i++)
        if (all[i] != NULL && cuda_plan_workspace(all[i]) > most)
            most = cuda_plan_workspace(all[i]);
    return most;
}
