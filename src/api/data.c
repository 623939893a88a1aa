/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/data.h"

#include <string.h>

#include "api/api.h"
#include "api/field.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/h5.h"
#include "hdf5io/loader.h"
#include "train/look.h"
#include "train/same.h"
#include "train/vote.h"

struct cddp_data {
    hdf5io_dataset_t *dataset;
    hdf5io_sampler_t *sampler;
    hdf5io_loader_t *loader;
    cddp_batch_t batch; /* the batch that cddp_data_next returned last */
};

_Static_assert(sizeof((cddp_batch_t *)0)->inputs ==
                   sizeof((hdf5io_batch_t *)0)->inputs,
               "fields of cddp_batch_t");

/* ---- opening ------------------------------------------------------------- */

static err_code_t fields_check(const cddp_data_config_t *config, err_t *err)
{
    bool whole = true;

    if (config->inputs == NULL && config->targets == NULL) {
        if (config->input == NULL ||
            (config->target == NULL && config->sequence == 0))
            return err_set(err, ERR_CONFIG,
                           "a data set needs files, input and target");
        return config->input_elems >= 1
                   ? ERR_OK
                   : err_set(err, ERR_CONFIG, "a data set needs input_elems");
    }
    if (config->inputs == NULL || config->targets == NULL ||
        config->input_count < 1 || config->input_count > HDF5IO_FIELDS_MAX ||
        config->target_count < 1 || config->target_count > HDF5IO_FIELDS_MAX)
        return err_set(err, ERR_CONFIG,
                       "a data set with several fields needs 1 to %d inputs "
                       "and 1 to %d targets",
                       HDF5IO_FIELDS_MAX, HDF5IO_FIELDS_MAX);
    if (config->sequence > 0)
        return err_set(err, ERR_CONFIG,
                       "sequence cuts samples from one stream; it takes input "
                       "and target, not inputs and targets");
    for (int k = 0; k < config->input_count; k++)
        whole = whole && config->inputs[k].path != NULL;
    for (int k = 0; k < config->target_count; k++)
        whole = whole && config->targets[k].path != NULL;
    return whole ? ERR_OK
                 : err_set(err, ERR_CONFIG,
                           "every input and target of a data set needs a path");
}

static err_code_t config_check(const cddp_data_config_t *config, int size,
                               err_t *err)
{
    if (config->files == NULL || config->files[0] == NULL)
        return err_set(err, ERR_CONFIG,
                       "a data set needs files, input and target");
    if (config->batch < size)
        return err_set(err, ERR_CONFIG,
                       "batch is %lld, smaller than the %d ranks: some would "
                       "never have a sample",
                       (long long)config->batch, size);
    if (config->epoch < 0 || config->step < 0 || config->epochs < 0 ||
        config->prefetch < 0 || config->threads < 0)
        return err_set(err, ERR_CONFIG,
                       "epoch, step, epochs, prefetch and threads are not "
                       "negative");
    if (config->sequence > 0 &&
        (config->samples != NULL || config->input_options != NULL ||
         config->target_options != NULL))
        return err_set(err, ERR_CONFIG,
                       "sequence cuts samples from a stream of tokens: leave "
                       "out samples and options, or leave out sequence");
    return fields_check(config, err);
}

/* Seconds for which reads that fail are repeated. */
#define RETRY_SECONDS 15.0

/* Called while this rank waits for storage: report to the group that it has not
 * failed. */
static void storage_alive(void *group)
{
    comm_group_report(group, 0, "reading data");
}

/* Index of [name] in [names], which ends with NULL; 0 if [name] is NULL, -1 if
 * it is not there. */
static int name_find(const char *name, const char *const *names)
{
    if (name == NULL)
        return 0;
    for (int k = 0; names[k] != NULL; k++)
        if (strcmp(names[k], name) == 0)
            return k;
    return -1;
}

static err_code_t samples_find(const char *name, bool *whole, err_t *err)
{
    static const char *const names[] = {"rows", "files", NULL};
    const int k = name_find(name, names);

    if (k < 0)
        return err_set(err, ERR_CONFIG,
                       "samples is '%s', but must be rows or files", name);
    *whole = k == 1;
    return ERR_OK;
}

/* Open the files. [rc] is this rank's result so far. Collective, unless [how]
 * is TRAIN_VALIDATE_NONE: then ranks may read different files. */
static err_code_t dataset_open(comm_group_t *group,
                               const cddp_data_config_t *config,
                               train_validate_t how, err_code_t rc,
                               hdf5io_dataset_t **out, err_t *err)
{
    opt_texts_t shards = {.items = (char **)config->files};
    hdf5io_dataset_config_t inner = {.shards = &shards,
                                     .sequence = config->sequence,
                                     .retry = {.seconds = RETRY_SECONDS,
                                               .alive = storage_alive,
                                               .context = group},
                                     .digest = how != TRAIN_VALIDATE_NONE &&
                                               comm_group_size(group) > 1};
    const train_look_t look = {.group =
                                   how != TRAIN_VALIDATE_NONE ? group : NULL,
                               .alive = storage_alive,
                               .context = group};
    api_fields_t fields = {.input_count = 0};

    if (rc == ERR_OK)
        rc = samples_find(config->samples, &inner.whole, err);
    if (rc == ERR_OK)
        rc = api_fields_open(config, &fields, &inner, err);
    while (rc == ERR_OK && config->files[shards.count] != NULL)
        shards.count++;
    rc = train_look_open(&look, &inner, rc, out, err);
    api_fields_close(&fields);
    return rc;
}

static err_code_t sampler_open(const comm_group_t *group,
                               const cddp_data_config_t *config,
                               int64_t samples, hdf5io_sampler_t **out,
                               err_t *err)
{
    static const char *const names[] = {"none", "chunk", "full", NULL};
    static const hdf5io_shuffle_t kinds[] = {
        HDF5IO_SHUFFLE_NONE, HDF5IO_SHUFFLE_CHUNK, HDF5IO_SHUFFLE_FULL};
    const int k = name_find(config->shuffle, names);

    if (k < 0)
        return err_set(err, ERR_CONFIG,
                       "shuffle is '%s', but must be none, chunk or full",
                       config->shuffle);
    return hdf5io_sampler_open(
        &(hdf5io_sampler_config_t){.samples = samples,
                                   .batch = config->batch,
                                   .rank = comm_group_rank(group),
                                   .size = comm_group_size(group),
                                   .shuffle = kinds[k],
                                   .seed = config->seed},
        out, err);
}

static void compare_alive(void *group)
{
    comm_group_report(group, 0, "comparing data");
}

static err_code_t validate_find(const char *name, train_validate_t *out,
                                err_t *err)
{
    static const char *const names[] = {"quick", "full", "none", NULL};
    static const train_validate_t kinds[] = {
        TRAIN_VALIDATE_QUICK, TRAIN_VALIDATE_FULL, TRAIN_VALIDATE_NONE};
    const int k = name_find(name, names);

    if (k < 0)
        return err_set(err, ERR_CONFIG,
                       "validate is '%s', but must be quick, full or none",
                       name);
    *out = kinds[k];
    return ERR_OK;
}

/* Check that all ranks see the same data. [own] is the result of opening the
 * files on this rank. Collective. */
static err_code_t data_compare(comm_group_t *group, err_code_t own,
                               train_validate_t how, hdf5io_dataset_t *dataset,
                               err_t *err)
{
    const train_votes_t votes = train_votes_of_group(group);
    const train_same_t same = {.group = group,
                               .what = "the data set",
                               .how = how,
                               .alive = compare_alive,
                               .context = group};
    train_marks_t marks = {0};
    bool speaker;
    err_code_t rc = train_vote(&votes, own, &speaker, err);

    if (rc != ERR_OK)
        return rc;
    rc = train_same(&same, dataset, &marks, err);
    train_marks_free(&marks);
    return train_vote(&votes, rc, &speaker, err);
}

/* Open the files, and the sampler, which gives the order of samples. [rc] is
 * this rank's result so far. */
static err_code_t files_open(comm_group_t *group,
                             const cddp_data_config_t *config,
                             train_validate_t how, err_code_t rc,
                             cddp_data_t *data, err_t *err)
{
    if (rc == ERR_OK)
        rc = config_check(config, comm_group_size(group), err);
    rc = dataset_open(group, config, how, rc, &data->dataset, err);
    if (rc == ERR_OK)
        rc = sampler_open(group, config, hdf5io_dataset_samples(data->dataset),
                          &data->sampler, err);
    return rc;
}

static err_code_t data_open(comm_group_t *group,
                            const cddp_data_config_t *config, cddp_data_t *data,
                            err_t *err)
{
    hdf5io_loader_config_t loader = {.prefetch = config->prefetch,
                                     .threads = config->threads,
                                     .augment = config->augment != 0,
                                     .seed = config->seed,
                                     .epoch = config->epoch,
                                     .step = config->step,
                                     .epochs = config->epochs,
                                     .rank = comm_group_rank(group)};
    train_validate_t how = TRAIN_VALIDATE_QUICK;
    err_code_t rc = validate_find(config->validate, &how, err);

    rc = files_open(group, config, how, rc, data, err);
    if (how != TRAIN_VALIDATE_NONE && comm_group_size(group) > 1)
        rc = data_compare(group, rc, how, data->dataset, err);
    if (rc != ERR_OK)
        return rc;
    /* A position after the last step of an epoch is the start of the next
     * epoch. */
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
    cddp_data_t *data = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = mem_new(cddp_data_t, 1, "data", &data, &err);

    if (rc == ERR_OK)
        rc = data_open(api_group(group), config, data, &err);
    if (rc == ERR_OK)
        *out = data;
    else
        cddp_data_close(data);
    return api_answer(rc, &err, error);
}

void cddp_data_close(cddp_data_t *data)
{
    if (data == NULL)
        return;
    hdf5io_loader_close(data->loader);
    hdf5io_sampler_close(data->sampler);
    hdf5io_dataset_close(data->dataset);
    mem_free(data);
}

void cddp_hdf5_lock(void)
{
    h5_lock_host();
}

void cddp_hdf5_unlock(void)
{
    h5_unlock_host();
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
    err_code_t rc = hdf5io_loader_next(data->loader, &batch, &err);

    if (rc != ERR_OK)
        return api_answer(rc, &err, error);
    if (batch != NULL) {
        data->batch = (cddp_batch_t){.epoch = batch->epoch,
                                     .step = batch->step,
                                     .count = batch->count,
                                     .global = batch->global,
                                     .input = batch->input,
                                     .target = batch->target,
                                     .ids = batch->sample_ids};
        memcpy(data->batch.inputs, batch->inputs, sizeof batch->inputs);
        memcpy(data->batch.targets, batch->targets, sizeof batch->targets);
    }
    *out = batch == NULL ? NULL : &data->batch;
    return CDDP_OK;
}
