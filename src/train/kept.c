/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

/* Append a tensor for a part of the hook's state: one row if all ranks share
 * the part, otherwise one row for each rank. */
static void tensor_add(train_kept_t *kept, const ddp_hook_part_t *part,
                       int rank, int size, hdf5io_part_t *rows)
{
    hdf5io_tensor_t *tensor = &kept->hook[kept->hook_count];
    int64_t count = (int64_t)part->count;

    kept->names[kept->hook_count++] = str_printf("hook/%s", part->name);
    *tensor = (hdf5io_tensor_t){.name = kept->names[kept->hook_count - 1],
                                .ndim = part->own ? 2 : 1,
                                .dims = {count},
                                .data = part->data};
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

err_code_t train_kept_open(ddp_t *ddp, const comm_group_t *group,
                           const hdf5io_tensor_t *tensors, int count,
                           train_kept_t *kept, err_t *err)
{
    const int rank = comm_group_rank(group), size = comm_group_size(group);
    ddp_hook_part_t parts[DDP_HOOK_PARTS];
    int part_count = ddp_hook_parts(ddp, parts);
    err_code_t rc;

    rc = mem_new(hdf5io_tensor_t, (size_t)(count + part_count),
                 "checkpoint table", &kept->tensors, err);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_part_t, (size_t)part_count * (size_t)size,
                     "checkpoint table", &kept->rows, err);
    if (rc != ERR_OK)
        return rc;
    if (count > 0)
        memcpy(kept->tensors, tensors, (size_t)count * sizeof *tensors);
    kept->hook = kept->tensors + count;
    for (int p = 0; p < part_count; p++)
        tensor_add(kept, &parts[p], rank, size,
                   kept->rows + (size_t)p * (size_t)size);
    kept->count = count + part_count;
    return ERR_OK;
}

void train_kept_close(train_kept_t *kept)
{
    for (int i = 0; i < kept->hook_count; i++)
        free(kept->names[i]);
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
    ddp_hook_part_t parts[DDP_HOOK_PARTS];

    if (kept->hook_count == 0)
        return;
    parts_zero(parts, ddp_hook_parts(source->ddp, parts));
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

err_code_t train_kept_read(const train_kept_t *kept,
                           const train_kept_source_t *source, bool *found,
                           hdf5io_checkpoint_info_t *info, err_t *err)
{
    const hdf5io_checkpoint_config_t *config = source->config;
    err_t why = ERR_INIT;
    err_code_t rc = ERR_CONFIG;

    /* ERR_CONFIG has three possible reasons: the checkpoint has no state of
     * this hook, has a state of another shape, or is of another model. In the
     * last case the second read, without the hook's tensors, fails, too. */
    if (kept->hook_count > 0)
        rc = hdf5io_checkpoint_read(config, source->path, kept->tensors,
                                    kept->count, found, info, &why);
    if (rc == ERR_OK) {
        if (*found && info->world_size != config->votes->size)
            begin_anew(kept, source, info);
        return ERR_OK;
    }
    if (rc != ERR_CONFIG)
        return err_copy(err, &why);
    rc = hdf5io_checkpoint_read(config, source->path, kept->tensors,
                                kept->count - kept->hook_count, found, info,
                                err);
    if (rc == ERR_OK && *found)
        begin_anew(kept, source, info);
    return rc;
}
