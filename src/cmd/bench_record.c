/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_record.h"

#include <string.h>

#include "base/mem.h"
#include "hdf5io/safetensors.h"

typedef struct table {
    hdf5io_safe_tensor_t *tensors; /* [count] */
    const void **data;             /* [count] */
    int count;
} table_t;

static void tensor_add(table_t *table, const hdf5io_safe_tensor_t *tensor,
                       const void *data)
{
    table->data[table->count] = data;
    table->tensors[table->count++] = *tensor;
}

static void param_add(table_t *table, const nn_param_t *param,
                      const float *arena)
{
    hdf5io_safe_tensor_t tensor = {
        .name = param->name, .type = HDF5IO_SAFE_F32, .ndim = param->ndim};

    memcpy(tensor.dims, param->dims, sizeof param->dims);
    tensor_add(table, &tensor, arena + param->offset);
}

static void input_add(table_t *table, const train_bench_info_t *info, int index)
{
    nn_input_info_t input = nn_graph_input_info(info->graph, index);
    hdf5io_safe_tensor_t tensor = {.name = input.name,
                                   .type = input.tokens > 0 ? HDF5IO_SAFE_I32
                                                            : HDF5IO_SAFE_F32,
                                   .ndim = 1 + input.ndim,
                                   .dims = {info->count}};

    memcpy(&tensor.dims[1], input.dims,
           (size_t)input.ndim * sizeof *tensor.dims);
    tensor_add(table, &tensor, info->inputs[index]);
}

static void target_add(table_t *table, const train_bench_info_t *info,
                       int index)
{
    nn_target_info_t target = nn_graph_target_info(info->graph, index);
    const hdf5io_safe_tensor_t tensor = {
        .name = target.name,
        .type = target.classes > 0 ? HDF5IO_SAFE_I64 : HDF5IO_SAFE_F32,
        .ndim = 2,
        .dims = {info->count, target.elems}};

    tensor_add(table, &tensor, info->targets[index]);
}

/* List all tensors of the record. */
static void table_fill(table_t *table, const bench_record_t *record)
{
    const train_bench_info_t *info = record->info;
    const nn_graph_t *graph = info->graph;
    const hdf5io_safe_tensor_t losses = {.name = "losses",
                                         .type = HDF5IO_SAFE_F64,
                                         .ndim = 1,
                                         .dims = {record->loss_count}};

    for (int p = 0; p < nn_graph_params(graph); p++)
        param_add(table, nn_graph_param(graph, p), record->params);
    for (int b = 0; b < nn_graph_buffers(graph); b++)
        param_add(table, nn_graph_buffer(graph, b), record->buffers);
    for (int k = 0; k < nn_graph_inputs(graph); k++)
        input_add(table, info, k);
    for (int k = 0; k < nn_graph_targets(graph); k++)
        target_add(table, info, k);
    tensor_add(table, &losses, record->losses);
}

/* The data of a tensor. */
static err_code_t data_fetch(void *context, int index, const void **data,
                             err_t *err)
{
    const table_t *table = context;

    (void)err;
    *data = table->data[index];
    return ERR_OK;
}

err_code_t bench_record_write(const char *path, const bench_record_t *record,
                              err_t *err)
{
    const nn_graph_t *graph = record->info->graph;
    const size_t room =
        (size_t)(nn_graph_params(graph) + nn_graph_buffers(graph) +
                 nn_graph_inputs(graph) + nn_graph_targets(graph) + 1);
    table_t table = {0};
    err_code_t rc =
        mem_new(hdf5io_safe_tensor_t, room, "a record", &table.tensors, err);

    if (rc == ERR_OK)
        rc = mem_new(const void *, room, "a record", &table.data, err);
    if (rc == ERR_OK) {
        table_fill(&table, record);
        rc = hdf5io_safe_write(path, FILE_REPLACE,
                               &(hdf5io_safe_plan_t){.tensors = table.tensors,
                                                     .count = table.count,
                                                     .fetch = data_fetch,
                                                     .context = &table},
                               err);
    }
    mem_free(table.data);
    mem_free(table.tensors);
    if (rc != ERR_OK)
        err_prefix(err, "--record");
    return rc;
}
