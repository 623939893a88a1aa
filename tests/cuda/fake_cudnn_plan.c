/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Engines, plans and runs of the stand-in for cuDNN. */
#include <string.h>

#include "fake_attention.h"

static const struct engine {
    int64_t number, workspace;
    int notes[2], note_count;
} engines[] = {
    {7, 0, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 1},
    {11, 8192, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 1},
    {13, 4096, {0}, 0},
    {17, 0, {0}, 0},
};

enum { NOT_DETERMINISTIC, TENSOR_CORES, EXACT, FALLBACK };

/* Of each kind of convolution. */
static const struct names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, window, tensors[FAKE_TENSORS];
} names[] = {
    [FAKE_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                      CONV(FORWARD_ALPHA),
                      CONV(FORWARD_BETA),
                      CONV(FORWARD_CONV_DESC),
                      {CONV(FORWARD_X), CONV(FORWARD_W), CONV(FORWARD_Y)}},
    [FAKE_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   CONV(BWD_DATA_ALPHA),
                   CONV(BWD_DATA_BETA),
                   CONV(BWD_DATA_CONV_DESC),
                   {CONV(BWD_DATA_DX), CONV(BWD_DATA_W), CONV(BWD_DATA_DY)}},
    [FAKE_FILTER] =
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CONV(BWD_FILTER_ALPHA),
         CONV(BWD_FILTER_BETA),
         CONV(BWD_FILTER_CONV_DESC),
         {CONV(BWD_FILTER_X), CONV(BWD_FILTER_DW), CONV(BWD_FILTER_DY)}},
};

/* ---- from descriptors to a convolution ----------------------------------- */

static void sizes_read(const descriptor_t *of, cudnnBackendAttributeName_t name,
                       int64_t *to)
{
    const attribute_t *attribute = fake_dnn_find(of, name);

    memcpy(to, attribute->data, (size_t)attribute->count * sizeof *to);
}

void fake_tensor_read(const descriptor_t *of, fake_tensor_t *to)
{
    const cudnnDataType_t type = *(const cudnnDataType_t *)fake_dnn_value(
        of, CUDNN_ATTR_TENSOR_DATA_TYPE);

    for (int i = 0; i < 2 + FAKE_SPACE; i++)
        to->dims[i] = 1;
    sizes_read(of, CUDNN_ATTR_TENSOR_DIMENSIONS, to->dims);
    sizes_read(of, CUDNN_ATTR_TENSOR_STRIDES, to->strides);
    to->uid = *(const int64_t *)fake_dnn_value(of, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    to->alignment =
        *(const int64_t *)fake_dnn_value(of, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    to->numbers.bf16 = type == CUDNN_DATA_BFLOAT16;
}

/* Read a tensor of a convolution. Returns false if a convolution cannot have
 * such a tensor. */
static bool tensor_read(const descriptor_t *of, fake_tensor_t *to)
{
    const cudnnDataType_t type = *(const cudnnDataType_t *)fake_dnn_value(
        of, CUDNN_ATTR_TENSOR_DATA_TYPE);

    fake_tensor_read(of, to);
    return (type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16) &&
           fake_dnn_find(of, CUDNN_ATTR_TENSOR_IS_VIRTUAL) == NULL &&
           fake_dnn_find(of, CUDNN_ATTR_TENSOR_IS_BY_VALUE) == NULL;
}

static bool window_read(const descriptor_t *of, fake_conv_t *to)
{
    for (int i = 0; i < FAKE_SPACE; i++)
        to->dilation[i] = to->stride[i] = 1;
    sizes_read(of, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, to->before);
    sizes_read(of, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, to->after);
    sizes_read(of, CUDNN_ATTR_CONVOLUTION_DILATIONS, to->dilation);
    sizes_read(of, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, to->stride);
    return *(const cudnnConvolutionMode_t *)fake_dnn_value(
               of, CUDNN_ATTR_CONVOLUTION_CONV_MODE) ==
               CUDNN_CROSS_CORRELATION &&
           *(const cudnnDataType_t *)fake_dnn_value(
               of, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT;
}

/* The convolution of a graph; false: it has something else, too. */
static bool conv_read(const descriptor_t *graph, fake_conv_t *to)
{
    const attribute_t *ops =
        fake_dnn_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const descriptor_t *op = *(descriptor_t *const *)ops->data;
    int kind = 0;
    bool fits = true;

    while (kind <= FAKE_FILTER && names[kind].type != op->type)
        kind++;
    if (ops->count != 1 || kind > FAKE_FILTER)
        return false;
    *to = (fake_conv_t){.kind = (fake_conv_kind_t)kind};
    for (int i = 0; i < FAKE_TENSORS; i++)
        fits = tensor_read(fake_dnn_child(op, names[kind].tensors[i]),
                           &to->tensors[i]) &&
               fits;
    to->alpha = *(const float *)fake_dnn_value(op, names[kind].alpha);
    to->beta = *(const float *)fake_dnn_value(op, names[kind].beta);
    return window_read(fake_dnn_child(op, names[kind].window), to) && fits &&
           fake_conv_fits(to);
}

static cudnnStatus_t plan_finish(descriptor_t *plan)
{
    descriptor_t *config =
        fake_dnn_child(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);

    if (config->graph == NULL)
        return fake_dnn_complain(CUDNN_STATUS_BAD_PARAM, "no graph; engine",
                                 config->engine);
    if (fake_attention_fits(config->graph) &&
        (plan->attention = fake_attention_make(config->graph)) == NULL)
        return CUDNN_STATUS_ALLOC_FAILED;
    plan->engine = config->engine;
    plan->graph = config->graph;
    plan->graph->owners++;
    if (plan->attention != NULL)
        return CUDNN_STATUS_SUCCESS;
    if (!conv_read(config->graph, &plan->conv))
        return fake_dnn_complain(CUDNN_STATUS_NOT_SUPPORTED,
                                 "no convolution; engine", config->engine);
    plan->conv.workspace_bytes = engines[plan->engine].workspace;
    for (int i = 0; i < FAKE_TENSORS; i++)
        plan->conv.tensors[i].numbers.tf32 = plan->engine == TENSOR_CORES;
    return CUDNN_STATUS_SUCCESS;
}

static bool graph_fits(const descriptor_t *graph)
{
    fake_conv_t conv;

    return conv_read(graph, &conv) || fake_attention_fits(graph);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t object)
{
    cudnnStatus_t status = fake_dnn_begin("cudnnBackendFinalize");
    descriptor_t *of = object;

    if (status == CUDNN_STATUS_SUCCESS && fake_dnn_missing(of) != 0)
        status = fake_dnn_complain(CUDNN_STATUS_BAD_PARAM, "missing attribute",
                                   fake_dnn_missing(of));
    if (status == CUDNN_STATUS_SUCCESS &&
        of->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
        !graph_fits(fake_dnn_child(of, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)))
        status = fake_dnn_complain(
            CUDNN_STATUS_NOT_SUPPORTED,
            "this stand-in knows only graphs of one convolution or attention;"
            " descriptor",
            of->type);
    if (status == CUDNN_STATUS_SUCCESS &&
        of->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        status = plan_finish(of);
    if (status == CUDNN_STATUS_SUCCESS)
        of->final = true;
    return fake_dnn_end(status);
}

/* ---- reading ------------------------------------------------------------- */

/* Make [to] the engine [engine] of [graph], as a configuration or an engine. */
static void engine_write(descriptor_t *to, int engine, descriptor_t *graph)
{
    to->engine = engine;
    to->final = true;
    graph->owners++;
    fake_dnn_drop(to->graph);
    to->graph = graph;
}

static int64_t results_write(const descriptor_t *heuristic, int64_t wanted,
                             descriptor_t *const *to)
{
    descriptor_t *graph =
        fake_dnn_child(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const bool first =
        *(const cudnnBackendHeurMode_t *)fake_dnn_value(
            heuristic, CUDNN_ATTR_ENGINEHEUR_MODE) != CUDNN_HEUR_MODE_FALLBACK;
    int64_t count = 0;

    for (int i = first ? 0 : FALLBACK; i < (first ? FALLBACK : FALLBACK + 1);
         i++)
        if (count < wanted)
            engine_write(to[count++], i, graph);
    return count;
}

static cudnnStatus_t number_write(int64_t number, int64_t *count, void *to)
{
    *(int64_t *)to = number;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t read_it(const descriptor_t *of,
                             cudnnBackendAttributeName_t name, int64_t wanted,
                             int64_t *count, void *to)
{
    const struct engine *engine = &engines[of->engine];

    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        *count = results_write(of, wanted, to);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        engine_write(*(descriptor_t **)to, of->engine, of->graph);
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        return number_write(engine->number, count, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        return number_write(of->attention != NULL
                                ? fake_attention_workspace(of->attention)
                                : engine->workspace,
                            count, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = engine->note_count;
        memcpy(to, engine->notes, (size_t)*count * sizeof(int));
        return CUDNN_STATUS_SUCCESS;
    default:
        return fake_dnn_complain(CUDNN_STATUS_NOT_SUPPORTED,
                                 "unknown attribute", name);
    }
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const object,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t wanted, int64_t *count, void *to)
{
    cudnnStatus_t status = fake_dnn_begin("cudnnBackendGetAttribute");
    const descriptor_t *of = object;

    (void)type;
    if (status == CUDNN_STATUS_SUCCESS && !of->final)
        status = fake_dnn_complain(CUDNN_STATUS_BAD_PARAM,
                                   "not finalised; attribute", name);
    if (status == CUDNN_STATUS_SUCCESS)
        status = read_it(of, name, wanted, count, to);
    return fake_dnn_end(status);
}

/* ---- running ------------------------------------------------------------- */

void *fake_dnn_address(const descriptor_t *pack, const fake_tensor_t *tensor)
{
    const attribute_t *uids =
        fake_dnn_find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void *const *data =
        fake_dnn_value(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);

    for (int64_t i = 0; i < uids->count; i++)
        if (((const int64_t *)uids->data)[i] == tensor->uid)
            return data[i];
    return NULL;
}

cudnnStatus_t fake_dnn_tensor_check(const fake_tensor_t *tensor, const void *at)
{
    if (!fake_memory_has(at, fake_tensor_bytes(tensor)))
        return fake_dnn_complain(CUDNN_STATUS_BAD_PARAM,
                                 "not in the device's memory: tensor",
                                 tensor->uid);
    if ((uintptr_t)at % (uintptr_t)tensor->alignment != 0)
        return fake_dnn_complain(CUDNN_STATUS_BAD_PARAM, "misaligned: tensor",
                                 tensor->uid);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t fake_dnn_workspace(const descriptor_t *pack, int64_t bytes,
                                 void **out)
{
    *out =
        *(void *const *)fake_dnn_value(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (bytes > 0 && !fake_memory_has(*out, (size_t)bytes))
        return fake_dnn_complain(CUDNN_STATUS_BAD_PARAM, "workspace of", bytes);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t conv_run(const fake_conv_t *plan, const descriptor_t *pack,
                              cudaStream_t stream)
{
    fake_conv_t conv = *plan;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    for (int i = 0; i < FAKE_TENSORS; i++) {
        fake_tensor_t *tensor = &conv.tensors[i];

        tensor->numbers.at = fake_dnn_address(pack, tensor);
        if (status == CUDNN_STATUS_SUCCESS)
            status = fake_dnn_tensor_check(tensor, tensor->numbers.at);
    }
    if (status == CUDNN_STATUS_SUCCESS)
        status =
            fake_dnn_workspace(pack, conv.workspace_bytes, &conv.workspace);
    if (status == CUDNN_STATUS_SUCCESS &&
        fake_push(stream, fake_conv_run, &conv, sizeof conv) != cudaSuccess)
        status = fake_dnn_complain(CUDNN_STATUS_EXECUTION_FAILED,
                                   "convolution of kind", conv.kind);
    return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    cudnnStatus_t status = fake_dnn_begin("cudnnBackendExecute");
    const descriptor_t *of = plan;

    if (status == CUDNN_STATUS_SUCCESS &&
        (!of->final || !((descriptor_t *)pack)->final))
        status = fake_dnn_complain(CUDNN_STATUS_BAD_PARAM,
                                   "not finalised; engine", of->engine);
    if (status == CUDNN_STATUS_SUCCESS && of->engine == NOT_DETERMINISTIC)
        status = fake_dnn_complain(
            CUDNN_STATUS_EXECUTION_FAILED,
            "nobody may run the engine that is not deterministic:",
            engines[of->engine].number);
    if (status == CUDNN_STATUS_SUCCESS)
        status = of->attention != NULL
                     ? fake_attention_run(of->attention, pack, handle->stream)
                     : conv_run(&of->conv, pack, handle->stream);
    return fake_dnn_end(status);
}
