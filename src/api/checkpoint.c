/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/checkpoint.h"

#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "hdf5io/checkpoint.h"

#define KEEP 3

static err_code_t group_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    return comm_allgather(context, mine, bytes, all, err);
}

static hdf5io_votes_t votes_of(comm_group_t *group)
{
    return (hdf5io_votes_t){.context = group,
                            .rank = comm_group_rank(group),
                            .size = comm_group_size(group),
                            .exchange = group_exchange};
}

static hdf5io_checkpoint_config_t
config_of(const cddp_checkpoint_config_t *config, const hdf5io_votes_t *votes)
{
    return (hdf5io_checkpoint_config_t){
        .directory = config->directory,
        .votes = votes,
        .keep = config->keep > 0 ? config->keep : KEEP,
        .model_hash = config->model,
        .config_text = "",
    };
}

/* The tensors as hdf5io knows them; freed with mem_free. */
static err_code_t tensors_make(const cddp_tensor_t *tensors, int count,
                               hdf5io_tensor_t **out, err_t *err)
{
    hdf5io_tensor_t *made = NULL;
    err_code_t code;

    if (count < 1)
        return err_set(err, ERR_CONFIG, "a checkpoint needs a tensor");
    code = mem_alloc((size_t)count * sizeof *made, "a checkpoint",
                     (void **)&made, err);
    if (code != ERR_OK)
        return code;
    for (int i = 0; i < count; i++) {
        made[i] = (hdf5io_tensor_t){.name = tensors[i].name,
                                    .ndim = tensors[i].ndim,
                                    .data = tensors[i].data};
        memcpy(made[i].dims, tensors[i].dims, sizeof made[i].dims);
    }
    *out = made;
    return ERR_OK;
}

cddp_code_t cddp_checkpoint_write(cddp_group_t *group,
                                  const cddp_checkpoint_config_t *config,
                                  const cddp_progress_t *progress,
                                  const cddp_tensor_t *tensors, int count,
                                  cddp_error_t *error)
{
    const hdf5io_votes_t votes = votes_of(api_group(group));
    const hdf5io_checkpoint_config_t inner = config_of(config, &votes);
    const hdf5io_progress_t place = {.step = progress->step,
                                     .epoch = progress->epoch,
                                     .epoch_step = progress->epoch_step,
                                     .samples = progress->samples,
                                     .seed = progress->seed,
                                     .best = -1};
    hdf5io_checkpoint_info_t info;
    hdf5io_tensor_t *made = NULL;
    err_t err = ERR_INIT;
    err_code_t code = tensors_make(tensors, count, &made, &err);

    if (code == ERR_OK)
        code =
            hdf5io_checkpoint_write(&inner, &place, made, count, &info, &err);
    mem_free(made);
    return api_answer(code, &err, error);
}

cddp_code_t cddp_checkpoint_read(cddp_group_t *group,
                                 const cddp_checkpoint_config_t *config,
                                 const cddp_tensor_t *tensors, int count,
                                 int *found, cddp_progress_t *progress,
                                 cddp_error_t *error)
{
    const hdf5io_votes_t votes = votes_of(api_group(group));
    const hdf5io_checkpoint_config_t inner = config_of(config, &votes);
    hdf5io_checkpoint_info_t info;
    hdf5io_tensor_t *made = NULL;
    bool there = false;
    err_t err = ERR_INIT;
    err_code_t code = tensors_make(tensors, count, &made, &err);

    if (code == ERR_OK)
        code = hdf5io_checkpoint_read(&inner, NULL, made, count, &there, &info,
                                      &err);
    mem_free(made);
    if (code != ERR_OK)
        return api_answer(code, &err, error);
    *found = there;
    if (there)
        *progress = (cddp_progress_t){.step = info.progress.step,
                                      .epoch = info.progress.epoch,
                                      .epoch_step = info.progress.epoch_step,
                                      .samples = info.progress.samples,
                                      .seed = info.progress.seed};
    return CDDP_OK;
}
