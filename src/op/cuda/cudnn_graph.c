/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/cudnn_graph_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

/* ---- calls of cuDNN ------------------------------------------------------ */

err_code_t cuda_dnn_check(cudnnStatus_t status, const char *call,
                          const char *what, err_t *err)
{
    char text[256] = "";

    if (status == CUDNN_STATUS_SUCCESS)
        return ERR_OK;
    cudnnGetLastErrorString(text, sizeof text);
    return err_set(
        err, status == CUDNN_STATUS_ALLOC_FAILED ? ERR_MEMORY : ERR_UNAVAILABLE,
        "%s: %s failed: %s%s%s", what, call, cudnnGetErrorString(status),
        text[0] != '\0' ? ": " : "", text);
}

void cuda_graph_check(cuda_graph_t *graph, cudnnStatus_t status,
                      const char *call)
{
    if (graph->failed.code != ERR_OK)
        return;
    cuda_dnn_check(status, call, graph->what, &graph->failed);
    graph->unsupported = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
}

/* Make a descriptor that is destroyed with the graph. */
cudnnBackendDescriptor_t cuda_graph_make(cuda_graph_t *graph,
                                         cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;

    if (graph->failed.code != ERR_OK)
        return NULL;
    check(graph->made_count < CUDA_GRAPH_MADE, "%s: %d descriptors",
          graph->what, graph->made_count);
    cuda_graph_check(graph, cudnnBackendCreateDescriptor(type, &made),
                     "cudnnBackendCreateDescriptor");
    if (graph->failed.code == ERR_OK)
        graph->made[graph->made_count++] = made;
    return made;
}

void cuda_graph_set(cuda_graph_t *graph, cudnnBackendDescriptor_t made,
                    cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count,
                    const void *values)
{
    char call[64];

    if (graph->failed.code != ERR_OK)
        return;
    snprintf(call, sizeof call, "cudnnBackendSetAttribute (%d)", (int)name);
    cuda_graph_check(
        graph, cudnnBackendSetAttribute(made, name, type, count, values), call);
}

void cuda_graph_set_one(cuda_graph_t *graph, cudnnBackendDescriptor_t made,
                        cudnnBackendAttributeName_t name,
                        cudnnBackendDescriptor_t value)
{
    cuda_graph_set(graph, made, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void cuda_graph_finish(cuda_graph_t *graph, cudnnBackendDescriptor_t made)
{
    if (graph->failed.code == ERR_OK)
        cuda_graph_check(graph, cudnnBackendFinalize(made),
                         "cudnnBackendFinalize");
}

/* ---- planner ------------------------------------------------------------- */

err_code_t cuda_planner_open(const char *json, cuda_planner_t *out, err_t *err)
{
    static const char what[] = "the properties of a device";
    cudnnBackendDescriptor_t made;
    err_code_t rc =
        cuda_dnn_check(cudnnBackendCreateDescriptor(
                           CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &made),
                       "cudnnBackendCreateDescriptor", what, err);

    if (rc != ERR_OK)
        return rc;
    rc = cuda_dnn_check(cudnnBackendSetAttribute(
                            made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                            CUDNN_TYPE_CHAR, (int64_t)strlen(json), json),
                        "cudnnBackendSetAttribute", what, err);
    if (rc == ERR_OK)
        rc = cuda_dnn_check(cudnnBackendFinalize(made), "cudnnBackendFinalize",
                            what, err);
    if (rc == ERR_OK)
        *out = (cuda_planner_t){.properties = made};
    else
        cudnnBackendDestroyDescriptor(made);
    return rc;
}

void cuda_planner_close(cuda_planner_t *planner)
{
    if (planner->properties != NULL)
        cudnnBackendDestroyDescriptor(planner->properties);
    *planner = (cuda_planner_t){0};
}

/* ---- graph --------------------------------------------------------------- */

err_code_t cuda_graph_open(const cuda_planner_t *planner, const char *what,
                           cuda_graph_t **out, err_t *err)
{
    cuda_graph_t *graph;
    err_code_t rc = mem_new(cuda_graph_t, 1, "a graph of cuDNN", &graph, err);

    if (rc != ERR_OK)
        return rc;
    graph->planner = *planner;
    graph->failed = (err_t)ERR_INIT;
    snprintf(graph->what, sizeof graph->what, "%s", what);
    *out = graph;
    return ERR_OK;
}

void cuda_graph_close(cuda_graph_t *graph)
{
    if (graph == NULL)
        return;
    while (graph->made_count > 0)
        cudnnBackendDestroyDescriptor(graph->made[--graph->made_count]);
    mem_free(graph);
}

int cuda_graph_tensor(cuda_graph_t *graph, const cuda_tensor_t *tensor)
{
    const int number = graph->tensor_count++;
    const int64_t uid = number + 1, alignment = 16;
    cudnnBackendDescriptor_t made;

    check(number < CUDA_GRAPH_TENSORS, "%s: %d tensors", graph->what, number);
    made = cuda_graph_make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cuda_graph_set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64,
                   1, &uid);
    cuda_graph_set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE,
                   CUDNN_TYPE_DATA_TYPE, 1, &tensor->type);
    cuda_graph_set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
                   tensor->ndim, tensor->dims);
    cuda_graph_set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
                   tensor->ndim, tensor->strides);
    cuda_graph_set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
                   CUDNN_TYPE_INT64, 1, &alignment);
    if (tensor->inner)
        cuda_graph_set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL,
                       CUDNN_TYPE_BOOLEAN, 1, &tensor->inner);
    if (tensor->by_value)
        cuda_graph_set(graph, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE,
                       CUDNN_TYPE_BOOLEAN, 1, &tensor->by_value);
    cuda_graph_finish(graph, made);
    graph->tensors[number] = made;
    graph->inner[number] = tensor->inner;
    return number;
}

static void graph_add(cuda_graph_t *graph, cudnnBackendDescriptor_t op)
{
    cuda_graph_finish(graph, op);
    check(graph->op_count < CUDA_GRAPH_OPS, "%s: %d operations", graph->what,
          graph->op_count);
    graph->ops[graph->op_count++] = op;
}

static cudnnBackendDescriptor_t graph_window(cuda_graph_t *graph,
                                             const cuda_conv_window_t *window)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t space = window->space;
    const struct {
        cudnnBackendAttributeName_t name;
        const int64_t *sizes;
    } sizes[] = {
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window->before},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window->after},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, window->dilation},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window->stride},
    };
    cudnnBackendDescriptor_t made =
        cuda_graph_make(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

    cuda_graph_set(graph, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                   CUDNN_TYPE_INT64, 1, &space);
    cuda_graph_set(graph, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                   CUDNN_TYPE_DATA_TYPE, 1, &type);
    cuda_graph_set(graph, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                   CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        cuda_graph_set(graph, made, sizes[i].name, CUDNN_TYPE_INT64, space,
                       sizes[i].sizes);
    cuda_graph_finish(graph, made);
    return made;
}

/* Of each kind of convolution: the descriptor's type, and the names of its
 * attributes. */
typedef struct conv_names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, window, tensors[3]; /* x, w, y */
} conv_names_t;

static const conv_names_t conv_names[] = {
    [CUDA_CONV_FORWARD] =
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}},
    [CUDA_CONV_DATA] =
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY}},
    [CUDA_CONV_FILTER] =
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}},
};

void cuda_graph_conv(cuda_graph_t *graph, cuda_conv_kind_t kind,
                     const cuda_conv_window_t *window, const int xwy[3])
{
    const conv_names_t *names = &conv_names[kind];
    const float alpha = 1, beta = 0;
    cudnnBackendDescriptor_t conv = graph_window(graph, window);
    cudnnBackendDescriptor_t op = cuda_graph_make(graph, names->type);

    cuda_graph_set(graph, op, names->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    cuda_graph_set(graph, op, names->beta, CUDNN_TYPE_FLOAT, 1, &beta);
    cuda_graph_set_one(graph, op, names->window, conv);
    for (int i = 0; i < 3; i++)
        cuda_graph_set_one(graph, op, names->tensors[i],
                           graph->tensors[xwy[i]]);
    graph_add(graph, op);
}

/* Make a pointwise function [mode]. [type] is the type in which it computes.
 * [axis]: the dimension whose index GEN_INDEX gives; -1 for other modes. */
static cudnnBackendDescriptor_t graph_curve(cuda_graph_t *graph,
                                            cudnnPointwiseMode_t mode,
                                            cudnnDataType_t type, int64_t axis)
{
    cudnnBackendDescriptor_t made =
        cuda_graph_make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);

    cuda_graph_set(graph, made, CUDNN_ATTR_POINTWISE_MODE,
                   CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    cuda_graph_set(graph, made, CUDNN_ATTR_POINTWISE_MATH_PREC,
                   CUDNN_TYPE_DATA_TYPE, 1, &type);
    if (axis >= 0)
        cuda_graph_set(graph, made, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64,
                       1, &axis);
    cuda_graph_finish(graph, made);
    return made;
}

static void graph_add_curve(cuda_graph_t *graph, cudnnBackendDescriptor_t curve,
                            const int xbt[3], int y)
{
    static const cudnnBackendAttributeName_t names[] = {
        CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    cudnnBackendDescriptor_t op =
        cuda_graph_make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);

    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                       curve);
    for (int i = 0; i < 3; i++)
        if (xbt[i] >= 0)
            cuda_graph_set_one(graph, op, names[i], graph->tensors[xbt[i]]);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                       graph->tensors[y]);
    graph_add(graph, op);
}

void cuda_graph_pointwise(cuda_graph_t *graph, cudnnPointwiseMode_t mode, int x,
                          int b, int y)
{
    graph_add_curve(graph, graph_curve(graph, mode, CUDNN_DATA_FLOAT, -1),
                    (const int[]){x, b, -1}, y);
}

void cuda_graph_select(cuda_graph_t *graph, const int xbt[3], int y)
{
    graph_add_curve(
        graph,
        graph_curve(graph, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1),
        xbt, y);
}

void cuda_graph_index(cuda_graph_t *graph, int axis, int x, int y)
{
    graph_add_curve(
        graph,
        graph_curve(graph, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis),
        (const int[]){x, -1, -1}, y);
}

void cuda_graph_at_least(cuda_graph_t *graph, int a, int b, int y)
{
    graph_add_curve(
        graph,
        graph_curve(graph, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1),
        (const int[]){a, b, -1}, y);
}

void cuda_graph_reshape(cuda_graph_t *graph, int x, int y)
{
    cudnnBackendDescriptor_t op =
        cuda_graph_make(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                       graph->tensors[x]);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
                       graph->tensors[y]);
    graph_add(graph, op);
}

void cuda_graph_matmul(cuda_graph_t *graph, int a, int b, int c)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t matmul =
        cuda_graph_make(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnBackendDescriptor_t op;

    cuda_graph_set(graph, matmul, CUDNN_ATTR_MATMUL_COMP_TYPE,
                   CUDNN_TYPE_DATA_TYPE, 1, &type);
    cuda_graph_finish(graph, matmul);
    op = cuda_graph_make(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
                       graph->tensors[a]);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
                       graph->tensors[b]);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                       graph->tensors[c]);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul);
    graph_add(graph, op);
}

void cuda_graph_reduce(cuda_graph_t *graph, cudnnReduceTensorOp_t mode, int x,
                       int y)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t reduce =
        cuda_graph_make(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnBackendDescriptor_t op;

    cuda_graph_set(graph, reduce, CUDNN_ATTR_REDUCTION_OPERATOR,
                   CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    cuda_graph_set(graph, reduce, CUDNN_ATTR_REDUCTION_COMP_TYPE,
                   CUDNN_TYPE_DATA_TYPE, 1, &type);
    cuda_graph_finish(graph, reduce);
    op = cuda_graph_make(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
                       graph->tensors[x]);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                       graph->tensors[y]);
    cuda_graph_set_one(graph, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduce);
    graph_add(graph, op);
}
