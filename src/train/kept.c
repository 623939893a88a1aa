/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/writers.h"

/* ---- the replica's tensors ----------------------------------------------- */

/* Append a tensor with the shape of [param]; [data] is its first element in the
 * host's memory. */
static hdf5io_tensor_t *tensor_add(train_kept_t *kept, char *name,
                                   const nn_param_t *param, float *data)
{
    hdf5io_tensor_t *tensor = &kept->tensors[kept->count];

    kept->names[kept->count++] = name;
    tensor->name = name;
    tensor->ndim = param->ndim;
    memcpy(tensor->dims, param->dims, sizeof tensor->dims);
    tensor->data = data;
    return tensor;
}

/* Append the optimizer's state of one parameter: whole, or in the parts that
 * ranks have of it. */
static void slots_add(train_kept_t *kept, const train_kept_plan_t *plan,
                      const nn_param_t *param)
{
    optim_t *optim = plan->optim;

    for (int s = 0; s < optim_slots(optim); s++) {
        char *name = str_printf("optimizer/%s/%s", optim_slot_name(optim, s),
                                param->name);
        hdf5io_tensor_t *tensor;
        float *data = NULL;

        if (plan->shard == NULL)
            data = train_mirror_host(plan->mirror, optim_slot_data(optim, s)) +
                   param->offset;
        tensor = tensor_add(kept, name, param, data);
        if (plan->shard != NULL)
            train_shard_parts(plan->shard, optim, s, param, tensor);
    }
}

static void replica_list(train_kept_t *kept, const train_kept_plan_t *plan)
{
    const nn_graph_t *graph = plan->graph;
    float *params = train_mirror_host(plan->mirror, plan->params);
    float *buffers = train_mirror_host(plan->mirror, plan->buffers);

    for (int p = 0; p < nn_graph_params(graph); p++) {
        const nn_param_t *param = nn_graph_param(graph, p);

        tensor_add(kept, str_printf("model/%s", param->name), param,
                   params + param->offset);
        slots_add(kept, plan, param);
    }
    for (int b = 0; b < nn_graph_buffers(graph); b++) {
        const nn_param_t *buffer = nn_graph_buffer(graph, b);

        tensor_add(kept, str_printf("model/%s", buffer->name), buffer,
                   buffers + buffer->offset);
    }
}

/* ---- the hook's tensors -------------------------------------------------- */

/* Append a tensor for a part of the hook's state: one row if all ranks share
 * the part, otherwise one row for each rank. */
static void part_add(train_kept_t *kept, const ddp_hook_part_t *part, int rank,
                     int size, hdf5io_part_t *rows)
{
    hdf5io_tensor_t *tensor = &kept->tensors[kept->count];
    int64_t count = (int64_t)part->count;

    kept->names[kept->count] = str_printf("hook/%s", part->name);
    *tensor = (hdf5io_tensor_t){.name = kept->names[kept->count++],
                                .ndim = part->own ? 2 : 1,
                                .dims = {count},
                                .data = part->data};
    kept->hook[kept->hook_count++] = *part;
    if (!part->own)
        return;
    for (int r = 0; r < size; r++)
        rows[r] = (hdf5io_part_t){.rank = r,
                                  .first = r * count,
                                  .count = count,
                                  .data = r == rank ? part->data : NULL};
    tensor->dims[0] = size;
    tensor->dims[1] = count;
    tensor->data = NULL;
    tensor->parts = rows;
    tensor->part_count = size;
}

/* ---- opening ------------------------------------------------------------- */

err_code_t train_kept_open(const train_kept_plan_t *plan, train_kept_t *kept,
                           err_t *err)
{
    const size_t params = (size_t)nn_graph_params(plan->graph);
    const size_t slots = (size_t)optim_slots(plan->optim);
    const int rank = comm_group_rank(plan->group);
    const int size = comm_group_size(plan->group);
    ddp_hook_part_t parts[DDP_HOOK_PARTS];
    const int part_count = ddp_hook_parts(plan->ddp, parts);
    const size_t count = params * (1 + slots) +
                         (size_t)nn_graph_buffers(plan->graph) +
                         (size_t)part_count;
    err_code_t rc;

    rc = mem_new(hdf5io_tensor_t, count, "checkpoint table", &kept->tensors,
                 err);
    if (rc == ERR_OK)
        rc = mem_new(char *, count, "checkpoint table", &kept->names, err);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_part_t, (size_t)part_count * (size_t)size,
                     "checkpoint table", &kept->rows, err);
    if (rc == ERR_OK)
        rc = train_writers_open(plan->config, plan->group, &kept->heads, err);
    if (rc == ERR_OK && plan->shard != NULL)
        rc = train_shard_parts_open(plan->shard, plan->mirror, params, slots,
                                    err);
    if (rc != ERR_OK)
        return rc;
    replica_list(kept, plan);
    for (int p = 0; p < part_count; p++)
        if (parts[p].device)
            parts[p].data = train_mirror_host(plan->mirror, parts[p].data);
    for (int p = 0; p < part_count; p++)
        part_add(kept, &parts[p], rank, size,
                 kept->rows + (size_t)p * (size_t)size);
    return hdf5io_share_open(kept->tensors, kept->count, rank, size,
                             &kept->share, err);
}

double train_kept_bytes(const train_kept_t *kept)
{
    double bytes = 0;

    for (int i = 0; i < kept->count; i++) {
        double elems = 1;

        for (int d = 0; d < kept->tensors[i].ndim; d++)
            elems *= (double)kept->tensors[i].dims[d];
        bytes += elems * sizeof(float);
    }
    return bytes;
}

void train_kept_close(train_kept_t *kept)
{
    hdf5io_share_close(kept->share);
    for (int i = 0; i < kept->count; i++)
        free(kept->names[i]);
    mem_free(kept->names);
    mem_free(kept->heads);
    mem_free(kept->rows);
    mem_free(kept->tensors);
    *kept = (train_kept_t){0};
}

/* ---- reading ------------------------------------------------------------- */

static void parts_zero(const ddp_hook_part_t *parts, int count)
{
    for (int p = 0; p < count; p++)
        memset(parts[p].data, 0, parts[p].count * sizeof *parts[p].data);
}

/* Zero the hook's state, as the checkpoint has no state that fits this hook. */
static void begin_anew(const train_kept_t *kept,
                       const train_kept_source_t *source,
                       const hdf5io_checkpoint_info_t *info)
{
    const hdf5io_votes_t *votes = source->config->votes;

    if (kept->hook_count == 0)
        return;
    parts_zero(kept->hook, kept->hook_count);
    if (votes->rank != 0)
        return;
    if (info->world_size == votes->size)
        log_warn("train",
                 "%s was written without this comm hook: ddp.hook starts with "
                 "zero residuals",
                 info->path);
    else
        log_warn("train",
                 "%s was written by %d ranks and this run has %d: the "
                 "residuals that ddp.hook kept on each rank are dropped",
                 info->path, info->world_size, votes->size);
}

/* Read the first [count] tensors. */
static err_code_t tensors_read(const train_kept_source_t *source,
                               const train_kept_t *kept, int count, bool *found,
                               hdf5io_checkpoint_info_t *info, err_t *err)
{
    err_code_t rc;

    if (source->set == NULL)
        return hdf5io_checkpoint_read(source->config, source->path,
                                      kept->tensors, count, found, info, err);
    rc = hdf5io_nodeset_read(source->set, source->least, kept->tensors, count,
                             source->found, info, err);
    if (rc == ERR_OK)
        *found = source->found->found;
    return rc;
}

err_code_t train_kept_read(const train_kept_t *kept,
                           const train_kept_source_t *source, bool *found,
                           hdf5io_checkpoint_info_t *info, err_t *err)
{
    const hdf5io_checkpoint_config_t *config = source->config;
    err_t why = ERR_INIT;
    err_code_t rc = ERR_CONFIG;

    /* ERR_CONFIG has four possible reasons: the checkpoint has no state of
     * this hook, has a state of another shape, is of another model, or of a
     * later version of cddp. In the last two cases the second read, without the
     * hook's tensors, fails, too. */
    if (kept->hook_count > 0)
        rc = tensors_read(source, kept, kept->count, found, info, &why);
    if (rc == ERR_OK) {
        if (*found && info->world_size != config->votes->size)
            begin_anew(kept, source, info);
        return ERR_OK;
    }
    if (rc != ERR_CONFIG)
        return err_copy(err, &why);
    rc = tensors_read(source, kept, kept->count - kept->hook_count, found, info,
                      err);
    if (rc == ERR_OK && *found)
        begin_anew(kept, source, info);
    return rc;
}
