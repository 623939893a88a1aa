/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/data.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/loader.h"

struct cddp_data {
    hdf5io_dataset_t *dataset;
    hdf5io_sampler_t *sampler;
    hdf5io_loader_t *loader;
    cddp_batch_t batch; /* what next has handed out */
};

/* ---- opening ------------------------------------------------------------- */

static err_code_t config_check(const cddp_data_config_t *config, int size,
                               err_t *err)
{
    if (config->files == NULL || config->files[0] == NULL ||
        config->input == NULL ||
        (config->target == NULL && config->sequence == 0))
        return err_set(err, ERR_CONFIG,
                       "a data set needs files, input and target");
    if (config->input_elems < 1)
        return err_set(err, ERR_CONFIG, "a data set needs input_elems");
    if (config->batch < size)
        return err_set(err, ERR_CONFIG,
                       "batch is %lld, smaller than the %d ranks: some would "
                       "never have a sample",
                       (long long)config->batch, size);
    if (config->epoch < 0 || config->step < 0 || config->epochs < 0 ||
        config->prefetch < 0)
        return err_set(err, ERR_CONFIG,
                       "epoch, step, epochs and prefetch are not negative");
    return ERR_OK;
}

static int64_t target_elems(const cddp_data_config_t *config)
{
    return config->target_elems > 0 ? config->target_elems : 1;
}

static err_code_t dataset_open(const cddp_data_config_t *config,
                               hdf5io_dataset_t **out, err_t *err)
{
    opt_texts_t shards = {.items = (char **)config->files};
    char shape[32];
    const hdf5io_field_t input = {.path = (char *)config->input,
                                  .scale =
                                      config->scale != 0 ? config->scale : 1,
                                  .shift = config->shift};
    const hdf5io_field_t target = {
        .path = (char *)(config->sequence > 0 ? config->input : config->target),
        .scale = 1};
    const hdf5io_dataset_config_t inner = {
        .shards = &shards,
        .inputs[0] = {.field = &input,
                      .as = config->tokens > 0 ? HDF5IO_AS_TOKENS
                                               : HDF5IO_AS_REALS,
                      .limit = config->tokens,
                      .elems = config->input_elems,
                      .shape = shape},
        .targets[0] = {.field = &target,
                       .as = config->classes > 0 ? HDF5IO_AS_CLASSES
                                                 : HDF5IO_AS_REALS,
                       .limit = config->classes,
                       .elems = target_elems(config)},
        .sequence = config->sequence,
    };

    snprintf(shape, sizeof shape, "[%lld]", (long long)config->input_elems);
    while (config->files[shards.count] != NULL)
        shards.count++;
    return hdf5io_dataset_open(&inner, out, err);
}

static err_code_t sampler_open(const comm_group_t *group,
                               const cddp_data_config_t *config,
                               int64_t samples, hdf5io_sampler_t **out,
                               err_t *err)
{
    static const char *const names[] = {"none", "chunk", "full", NULL};
    static const hdf5io_shuffle_t kinds[] = {
        HDF5IO_SHUFFLE_NONE, HDF5IO_SHUFFLE_CHUNK, HDF5IO_SHUFFLE_FULL};
    const char *shuffle = config->shuffle == NULL ? "none" : config->shuffle;
    int k = 0;

    while (names[k] != NULL && strcmp(names[k], shuffle) != 0)
        k++;
    if (names[k] == NULL)
        return err_set(err, ERR_CONFIG,
                       "shuffle is '%s', but must be none, chunk or full",
                       shuffle);
    return hdf5io_sampler_open(
        &(hdf5io_sampler_config_t){.samples = samples,
                                   .batch = config->batch,
                                   .rank = comm_group_rank(group),
                                   .size = comm_group_size(group),
                                   .shuffle = kinds[k],
                                   .seed = config->seed},
        out, err);
}

static err_code_t data_open(const comm_group_t *group,
                            const cddp_data_config_t *config, cddp_data_t *data,
                            err_t *err)
{
    hdf5io_loader_config_t loader = {.prefetch = config->prefetch,
                                     .epoch = config->epoch,
                                     .step = config->step,
                                     .epochs = config->epochs,
                                     .rank = comm_group_rank(group)};
    err_code_t code = config_check(config, comm_group_size(group), err);

    if (code == ERR_OK)
        code = dataset_open(config, &data->dataset, err);
    if (code == ERR_OK)
        code =
            sampler_open(group, config, hdf5io_dataset_samples(data->dataset),
                         &data->sampler, err);
    if (code != ERR_OK)
        return code;
    /* A position after the last step of an epoch is the begin of the next. */
    if (config->step >= hdf5io_sampler_steps(data->sampler)) {
        loader.epoch++;
        loader.step = 0;
    }
    loader.dataset = data->dataset;
    loader.sampler = data->sampler;
    return hdf5io_loader_open(&loader, &data->loader, err);
}

cddp_code_t cddp_data_open(cddp_group_t *group,
                           const cddp_data_config_t *config, cddp_data_t **out,
                           cddp_error_t *error)
{
    cddp_data_t *data = calloc(1, sizeof *data);
    err_t err = ERR_INIT;
    err_code_t code;

    if (data == NULL)
        return cddp_error_set(error, CDDP_MEMORY, "out of memory");
    code = data_open(api_group(group), config, data, &err);
    if (code == ERR_OK)
        *out = data;
    else
        cddp_data_close(data);
    return api_answer(code, &err, error);
}

void cddp_data_close(cddp_data_t *data)
{
    if (data == NULL)
        return;
    hdf5io_loader_close(data->loader);
    hdf5io_sampler_close(data->sampler);
    hdf5io_dataset_close(data->dataset);
    free(data);
}

/* ---- use ----------------------------------------------------------------- */

int64_t cddp_data_samples(const cddp_data_t *data)
{
    return hdf5io_dataset_samples(data->dataset);
}

int64_t cddp_data_steps(const cddp_data_t *data)
{
    return hdf5io_sampler_steps(data->sampler);
}

cddp_code_t cddp_data_next(cddp_data_t *data, const cddp_batch_t **out,
                           cddp_error_t *error)
{
    hdf5io_batch_t *batch = NULL;
    err_t err = ERR_INIT;
    err_code_t code = hdf5io_loader_next(data->loader, &batch, &err);

    if (code != ERR_OK)
        return api_answer(code, &err, error);
    if (batch != NULL)
        data->batch = (cddp_batch_t){.epoch = batch->epoch,
                                     .step = batch->step,
                                     .count = batch->count,
                                     .global = batch->global,
                                     .input = batch->input,
                                     .target = batch->target,
                                     .ids = batch->sample_ids};
    *out = batch == NULL ? NULL : &data->batch;
    return CDDP_OK;
}
