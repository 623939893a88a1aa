/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The format is safetensors. The file begins with the length of a JSON map (8
 * bytes, little endian). Then follows the map, which has the name, type, shape
 * and byte range of each tensor, and then the bytes of all tensors.
 */
#include "cmd/bench_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

typedef struct tensor {
    const char *name, *type;
    int ndim;
    /* number of samples, then the dimensions of a sample */
    int64_t dims[1 + OP_DIMS_MAX];
    const void *data;
    size_t bytes;
} tensor_t;

static tensor_t tensor_of(const nn_param_t *param, const float *arena)
{
    tensor_t tensor = {.name = param->name,
                       .type = "F32",
                       .ndim = param->ndim,
                       .data = arena + param->offset,
                       .bytes = param->count * sizeof(float)};

    memcpy(tensor.dims, param->dims, sizeof param->dims);
    return tensor;
}

static tensor_t input_of(const train_bench_info_t *info, int index)
{
    nn_input_info_t input = nn_graph_input_info(info->graph, index);
    tensor_t tensor = {.name = input.name,
                       .type = input.tokens > 0 ? "I32" : "F32",
                       .data = info->inputs[index],
                       .ndim = 1 + input.ndim,
                       .bytes =
                           sizeof(float) * (size_t)(info->count * input.elems)};

    tensor.dims[0] = info->count;
    memcpy(&tensor.dims[1], input.dims,
           (size_t)input.ndim * sizeof *tensor.dims);
    return tensor;
}

static tensor_t target_of(const train_bench_info_t *info, int index)
{
    nn_target_info_t target = nn_graph_target_info(info->graph, index);
    const bool class = target.classes > 0;
    const int64_t elems = target.elems;

    return (tensor_t){.name = target.name,
                      .type = class ? "I64" : "F32",
                      .ndim = 2,
                      .dims = {info->count, elems},
                      .data = info->targets[index],
                      .bytes = (class ? sizeof(int64_t) : sizeof(float)) *
                               (size_t)(info->count * elems)};
}

/* Append the JSON map to [out], padded with spaces so that the tensors begin at
 * a multiple of 8. */
static void header_make(const tensor_t *tensors, int count, str_buf_t *out)
{
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        const tensor_t *tensor = &tensors[i];

        str_buf_add(out, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                    i == 0 ? "{" : ",", tensor->name, tensor->type);
        for (int d = 0; d < tensor->ndim; d++)
            str_buf_add(out, "%s%lld", d == 0 ? "" : ",",
                        (long long)tensor->dims[d]);
        str_buf_add(out, "],\"data_offsets\":[%zu,%zu]}", at,
                    at + tensor->bytes);
        at += tensor->bytes;
    }
    str_buf_add(out, "}");
    while (out->length % 8 != 0)
        str_buf_add(out, " ");
}

static err_code_t file_write(const char *path, const tensor_t *tensors,
                             int count, err_t *err)
{
    str_buf_t header = {0};
    FILE *file = fopen(path, "wb");
    uint64_t length;
    bool good;

    header_make(tensors, count, &header);
    length = header.length;
    good = file != NULL && fwrite(&length, sizeof length, 1, file) == 1 &&
           fwrite(header.text, 1, header.length, file) == header.length;
    for (int i = 0; good && i < count; i++)
        good = fwrite(tensors[i].data, 1, tensors[i].bytes, file) ==
               tensors[i].bytes;
    if (file != NULL && fclose(file) != 0)
        good = false;
    str_buf_free(&header);
    return good ? ERR_OK
                : err_set(err, ERR_IO, "--record: cannot write %s: %s", path,
                          strerror(errno));
}

err_code_t bench_record_write(const char *path, const bench_record_t *record,
                              err_t *err)
{
    const train_bench_info_t *info = record->info;
    const nn_graph_t *graph = info->graph;
    const int inputs = nn_graph_inputs(graph);
    const int targets = nn_graph_targets(graph);
    const int count =
        nn_graph_params(graph) + nn_graph_buffers(graph) + inputs + targets + 1;
    tensor_t *tensors = NULL;
    int at = 0;
    err_code_t rc = mem_new(tensor_t, (size_t)count, "a record", &tensors, err);

    if (rc != ERR_OK)
        return rc;
    for (int p = 0; p < nn_graph_params(graph); p++)
        tensors[at++] = tensor_of(nn_graph_param(graph, p), record->params);
    for (int b = 0; b < nn_graph_buffers(graph); b++)
        tensors[at++] = tensor_of(nn_graph_buffer(graph, b), record->buffers);
    for (int k = 0; k < inputs; k++)
        tensors[at++] = input_of(info, k);
    for (int k = 0; k < targets; k++)
        tensors[at++] = target_of(info, k);
    tensors[at++] =
        (tensor_t){.name = "losses",
                   .type = "F64",
                   .ndim = 1,
                   .dims = {record->loss_count},
                   .data = record->losses,
                   .bytes = sizeof(double) * (size_t)record->loss_count};
    rc = file_write(path, tensors, at, err);
    mem_free(tensors);
    return rc;
}
