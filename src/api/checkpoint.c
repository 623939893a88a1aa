/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/checkpoint.h"

#include <string.h>

#include "api/api.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/retry.h"
#include "comm/comm_vote.h"
#include "hdf5io/checkpoint.h"
#include "train/patience.h"
#include "train/relay.h"

#define KEEP 3
#define IO_TIMEOUT 600.0 /* seconds */

/* What a rank passes: the number of its tensors, and a hash of their names and
 * shapes. */
typedef struct passed {
    uint64_t count, hash;
} passed_t;

/* State of one call that reads or writes a checkpoint. A system call may take
 * longer than the group's timeout, so meanwhile a thread (patience) reports to
 * the group that this rank is alive. */
typedef struct storage {
    comm_group_t *group;
    train_patience_t *patience;
    int64_t step;
    hdf5io_votes_t votes;
    hdf5io_checkpoint_config_t config;
    hdf5io_tensor_t *tensors;
    passed_t *passed; /* of all ranks */
    bool ordered;     /* the order of the tensors must be the same */
} storage_t;

static err_code_t storage_exchange(void *context, const void *mine,
                                   size_t bytes, void *all, err_t *err)
{
    const storage_t *storage = context;

    return comm_allgather(storage->group, mine, bytes, all, err);
}

static err_code_t storage_spread(void *context, void *data, const size_t *cuts,
                                 err_t *err)
{
    return train_relay(((storage_t *)context)->group, data, cuts, err);
}

static err_code_t storage_broadcast(void *context, void *data, size_t bytes,
                                    err_t *err)
{
    comm_group_t *group = ((storage_t *)context)->group;

    return comm_broadcast(group, data, bytes, 0, err);
}

/* Called when reading or writing has progressed: restarts the time limit of the
 * patience thread. */
static void storage_alive(void *context)
{
    const storage_t *storage = context;

    train_patience_begin(storage->patience, storage->step, "checkpoint");
}

static double io_timeout_of(const cddp_checkpoint_config_t *config)
{
    return config->io_timeout > 0 ? config->io_timeout : IO_TIMEOUT;
}

/* Convert [tensors] to hdf5io's type; freed with mem_free. */
static err_code_t tensors_make(const cddp_tensor_t *tensors, int count,
                               hdf5io_tensor_t **out, err_t *err)
{
    hdf5io_tensor_t *made = NULL;
    err_code_t rc;

    if (count < 1)
        return err_set(err, ERR_CONFIG, "a checkpoint needs a tensor");
    rc = mem_new(hdf5io_tensor_t, (size_t)count, "a checkpoint", &made, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < count; i++) {
        made[i] = (hdf5io_tensor_t){.name = tensors[i].name,
                                    .ndim = tensors[i].ndim,
                                    .data = tensors[i].data};
        memcpy(made[i].dims, tensors[i].dims, sizeof made[i].dims);
    }
    *out = made;
    return ERR_OK;
}

static void storage_close(storage_t *storage)
{
    train_patience_end(storage->patience);
    train_patience_close(storage->patience);
    mem_free(storage->passed);
    mem_free(storage->tensors);
}

/* Fill [storage]; local. */
static err_code_t storage_make(cddp_group_t *group,
                               const cddp_checkpoint_config_t *config,
                               const cddp_tensor_t *tensors, int count,
                               storage_t *storage, err_t *err)
{
    comm_group_t *inner = api_group(group);
    err_code_t rc;

    storage->group = inner;
    storage->votes = (hdf5io_votes_t){.context = storage,
                                      .rank = comm_group_rank(inner),
                                      .size = comm_group_size(inner),
                                      .exchange = storage_exchange,
                                      .alive = storage_alive,
                                      .spread = storage_spread,
                                      .together = train_relay_together(inner),
                                      .broadcast = storage_broadcast};
    storage->config = (hdf5io_checkpoint_config_t){
        .directory = config->directory,
        .votes = &storage->votes,
        .keep = config->keep > 0 ? config->keep : KEEP,
        .model_hash = config->model,
        .model_strict = true,
        .config_text = "",
        .retry_seconds = RETRY_SHARE * io_timeout_of(config)};
    rc = tensors_make(tensors, count, &storage->tensors, err);
    if (rc == ERR_OK)
        rc = mem_new(passed_t, (size_t)storage->votes.size, "a checkpoint",
                     &storage->passed, err);
    if (rc == ERR_OK)
        rc =
            train_patience_open(inner, comm_group_timeout(inner),
                                io_timeout_of(config), &storage->patience, err);
    return rc;
}

static uint64_t tensor_hash(const cddp_tensor_t *tensor)
{
    const int ndim = tensor->ndim < 0 || tensor->ndim > 6 ? 0 : tensor->ndim;
    hash_state_t *state = hash_state_open();
    uint64_t hash;

    hash_state_add(state, &tensor->ndim, sizeof tensor->ndim);
    hash_state_add(state, tensor->dims, (size_t)ndim * sizeof *tensor->dims);
    if (tensor->name != NULL)
        hash_state_add(state, tensor->name, strlen(tensor->name));
    hash = hash_state_value(state);
    hash_state_free(state);
    return hash;
}

/* Do all ranks pass the same tensors? All ranks get one answer. Collective. */
static err_code_t tensors_agree(storage_t *storage,
                                const cddp_tensor_t *tensors, int count,
                                err_t *err)
{
    const passed_t *all = storage->passed;
    passed_t mine = {.count = (uint64_t)count};
    int rank = 1;
    err_code_t rc;

    check(all != NULL, "there is no memory for what %d ranks pass",
          storage->votes.size);
    for (int i = 0; i < count; i++)
        mine.hash += tensor_hash(&tensors[i]) *
                     (storage->ordered ? 2 * (uint64_t)i + 1 : 1);
    rc = comm_allgather(storage->group, &mine, sizeof mine, storage->passed,
                        err);
    if (rc != ERR_OK)
        return rc;
    while (rank < storage->votes.size && all[rank].count == all[0].count &&
           all[rank].hash == all[0].hash)
        rank++;
    if (rank >= storage->votes.size)
        return ERR_OK;
    if (all[rank].count != all[0].count)
        return err_set(err, ERR_CONFIG,
                       "rank %d passes %llu tensors of a checkpoint, and rank "
                       "0 passes %llu: all ranks must pass the same ones",
                       rank, (unsigned long long)all[rank].count,
                       (unsigned long long)all[0].count);
    return err_set(err, ERR_CONFIG,
                   "rank %d passes other tensors of a checkpoint than rank 0 "
                   "(names or shapes%s differ): all ranks must pass the same "
                   "ones",
                   rank, storage->ordered ? ", or their order," : "");
}

/* Fill [storage], which must not be moved before storage_close: its votes point
 * to it. Close it after a failure, too. If one rank fails, all ranks return an
 * error, as they would wait for this rank otherwise. Collective. */
static err_code_t storage_open(cddp_group_t *group,
                               const cddp_checkpoint_config_t *config,
                               const cddp_tensor_t *tensors, int count,
                               storage_t *storage, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc;

    (void)storage_make(group, config, tensors, count, storage, &mine);
    rc = comm_vote(api_group(group), &mine, err);
    if (rc == ERR_OK)
        rc = tensors_agree(storage, tensors, count, err);
    if (rc == ERR_OK)
        storage_alive(storage);
    return rc;
}

cddp_code_t cddp_checkpoint_write(cddp_group_t *group,
                                  const cddp_checkpoint_config_t *config,
                                  const cddp_progress_t *progress,
                                  const cddp_tensor_t *tensors, int count,
                                  cddp_error_t *error)
{
    const hdf5io_progress_t place = {.step = progress->step,
                                     .updates = progress->step,
                                     .epoch = progress->epoch,
                                     .epoch_step = progress->epoch_step,
                                     .samples = progress->samples,
                                     .seed = progress->seed,
                                     .best = -1};
    hdf5io_checkpoint_info_t info;
    storage_t storage = {.step = progress->step, .ordered = true};
    err_t err = ERR_INIT;
    err_code_t rc = storage_open(group, config, tensors, count, &storage, &err);

    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_write(&storage.config, &place, storage.tensors,
                                     count, &info, &err);
    storage_close(&storage);
    return api_answer(rc, &err, error);
}

cddp_code_t cddp_checkpoint_read(cddp_group_t *group,
                                 const cddp_checkpoint_config_t *config,
                                 const cddp_tensor_t *tensors, int count,
                                 int *found, cddp_progress_t *progress,
                                 cddp_error_t *error)
{
    hdf5io_checkpoint_info_t info;
    storage_t storage = {0};
    bool there = false;
    err_t err = ERR_INIT;
    err_code_t rc = storage_open(group, config, tensors, count, &storage, &err);

    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_read(&storage.config, NULL, storage.tensors,
                                    count, &there, &info, &err);
    storage_close(&storage);
    if (rc != ERR_OK)
        return api_answer(rc, &err, error);
    *found = there;
    if (there)
        *progress = (cddp_progress_t){.step = info.progress.step,
                                      .epoch = info.progress.epoch,
                                      .epoch_step = info.progress.epoch_step,
                                      .samples = info.progress.samples,
                                      .seed = info.progress.seed};
    return CDDP_OK;
}
