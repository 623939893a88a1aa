/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A ring of prefetch + 1 + kept buffers: the consumer holds the newest batch
 * and the kept ones while the thread fills the others. Two counters describe
 * the state: `filled` batches were read, `given` batches were delivered. Batch
 * n is in buffer n modulo the ring's size. The result of a read (batch, end or
 * error) is stored in the buffer, so an error is returned in place of its
 * batch. After an end or an error nothing more is read.
 *
 * Without a thread the consumer reads by itself, into 1 + kept buffers.
 */
#include "hdf5io/loader.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

typedef struct loader_slot {
    hdf5io_batch_t batch;
    void *fields[2 * HDF5IO_FIELDS_MAX]; /* inputs, then targets */
    bool end;
    err_code_t rc;
    err_t err;
} loader_slot_t;

struct hdf5io_loader {
    hdf5io_loader_config_t config;
    int64_t epoch, step; /* of the next read; used by the reader only */
    int64_t *index;      /* used by the reader only */
    loader_slot_t *slots;
    int count;
    void *block; /* memory of all buffers, [bytes] */
    size_t bytes;
    bool keep; /* close does not free that memory */
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t moved; /* signalled when filled, given or stop changes */
    int64_t filled, given;
    bool stop;
};

/* Check that the ring holds the batches in use and those read ahead. Lock held.
 */
static void loader_check(const hdf5io_loader_t *loader)
{
    check(loader->filled >= loader->given &&
              loader->filled - loader->given <
                  loader->count - loader->config.kept,
          "%lld batches were read, %lld given, in %d buffers",
          (long long)loader->filled, (long long)loader->given, loader->count);
}

static loader_slot_t *loader_slot(hdf5io_loader_t *loader, int64_t number)
{
    return &loader->slots[number % loader->count];
}

/* Read the next batch into [slot]; false: it is the last one to deliver (an end
 * or an error). */
static bool loader_read(hdf5io_loader_t *loader, loader_slot_t *slot)
{
    const hdf5io_loader_config_t *config = &loader->config;
    hdf5io_batch_t *batch = &slot->batch;
    const hdf5io_draw_t draw = {config->seed, loader->epoch};
    hdf5io_share_t share;

    slot->end = loader->epoch >= config->epochs;
    if (slot->end)
        return false;
    hdf5io_sampler_epoch_set(config->sampler, loader->epoch);
    share = hdf5io_sampler_share(config->sampler, loader->step);
    check(share.count <= hdf5io_sampler_share_max(config->sampler),
          "step %lld has %lld samples, the buffers hold %lld",
          (long long)loader->step, (long long)share.count,
          (long long)hdf5io_sampler_share_max(config->sampler));
    hdf5io_sampler_index(config->sampler, share.first, share.count,
                         loader->index);
    batch->epoch = loader->epoch;
    batch->step = loader->step;
    batch->count = share.count;
    batch->global = share.global;
    for (int64_t i = 0; i < share.count; i++)
        batch->sample_ids[i] = (uint64_t)loader->index[i];
    slot->rc = hdf5io_dataset_read_drawn(
        config->dataset, config->augment ? &draw : NULL, loader->index,
        share.count, slot->fields, &slot->err);
    if (++loader->step >= hdf5io_sampler_steps(config->sampler)) {
        loader->step = 0;
        loader->epoch++;
    }
    return slot->rc == ERR_OK;
}

/* Wait until a buffer is free; false: stop. */
static bool loader_room_wait(hdf5io_loader_t *loader)
{
    const int used = 1 + loader->config.kept;
    bool stop;

    pthread_mutex_lock(&loader->lock);
    /* The consumer still uses the batches delivered last. */
    while (!loader->stop &&
           loader->filled - loader->given >= loader->count - used)
        pthread_cond_wait(&loader->moved, &loader->lock);
    stop = loader->stop;
    check(stop || loader->filled - loader->count < loader->given - used,
          "batch %lld would overwrite one that is in use: %lld were given",
          (long long)loader->filled, (long long)loader->given);
    pthread_mutex_unlock(&loader->lock);
    return !stop;
}

static void *loader_main(void *argument)
{
    hdf5io_loader_t *loader = argument;
    bool more = true;

    log_rank_set(loader->config.rank);
    thread_stand_back(); /* it is some batches ahead anyway */
    while (more && loader_room_wait(loader)) {
        more = loader_read(loader, loader_slot(loader, loader->filled));
        pthread_mutex_lock(&loader->lock);
        loader->filled++;
        loader_check(loader);
        pthread_cond_broadcast(&loader->moved);
        pthread_mutex_unlock(&loader->lock);
    }
    return NULL;
}

/* Take [bytes] from the block at *at; if [block] is NULL, only count. */
static void *loader_cut(char *block, size_t *at, size_t bytes)
{
    void *piece = block == NULL ? NULL : block + *at;

    *at += mem_round(bytes);
    return piece;
}

/* Place the buffers in [block]; if it is NULL, only compute the total size. */
static size_t loader_layout(hdf5io_loader_t *loader, char *block)
{
    const hdf5io_loader_config_t *config = &loader->config;
    size_t samples = (size_t)hdf5io_sampler_share_max(config->sampler);
    const int inputs = hdf5io_dataset_inputs(config->dataset);
    const int fields = inputs + hdf5io_dataset_targets(config->dataset);
    size_t at = 0;

    loader->index = loader_cut(block, &at, samples * sizeof *loader->index);
    for (int i = 0; i < loader->count; i++) {
        loader_slot_t *slot = &loader->slots[i];
        hdf5io_batch_t *batch = &slot->batch;

        for (int k = 0; k < fields; k++) {
            slot->fields[k] = loader_cut(
                block, &at,
                samples * hdf5io_dataset_field_bytes(config->dataset, k));
            if (k < inputs)
                batch->inputs[k] = slot->fields[k];
            else
                batch->targets[k - inputs] = slot->fields[k];
        }
        batch->sample_ids =
            loader_cut(block, &at, samples * sizeof *batch->sample_ids);
    }
    return at;
}

static err_code_t loader_buffers_open(hdf5io_loader_t *loader, err_t *err)
{
    size_t used;
    err_code_t rc = mem_new(loader_slot_t, (size_t)loader->count, "the loader",
                            &loader->slots, err);

    if (rc != ERR_OK)
        return rc;
    loader->bytes = loader_layout(loader, NULL);
    rc = mem_alloc(loader->bytes, "prefetched batches", &loader->block, err);
    if (rc != ERR_OK)
        return rc;
    used = loader_layout(loader, loader->block);
    check(used == loader->bytes, "%zu of %zu bytes are used by the buffers",
          used, loader->bytes);
    (void)used;
    return ERR_OK;
}

err_code_t hdf5io_loader_open(const hdf5io_loader_config_t *config,
                              hdf5io_loader_t **out, err_t *err)
{
    hdf5io_loader_t *loader = NULL;
    bool threaded =
        config->prefetch > 0 && !hdf5io_dataset_collective(config->dataset);
    err_code_t rc = mem_new(hdf5io_loader_t, 1, "the loader", &loader, err);

    if (rc != ERR_OK)
        return rc;
    loader->config = *config;
    loader->count = (threaded ? config->prefetch + 1 : 1) + config->kept;
    loader->epoch = config->epoch;
    loader->step = config->step;
    if (loader->step >= hdf5io_sampler_steps(config->sampler)) {
        loader->step = 0;
        loader->epoch++;
    }
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->moved, NULL);
    rc = loader_buffers_open(loader, err);
    if (rc == ERR_OK && threaded)
        rc = thread_start("cddp-loader", loader_main, loader, &loader->thread,
                          err);
    if (rc != ERR_OK) {
        hdf5io_loader_close(loader);
        return rc;
    }
    loader->threaded = threaded;
    *out = loader;
    return ERR_OK;
}

/* Is there a batch to read after the one read last? */
static bool loader_more(hdf5io_loader_t *loader)
{
    const loader_slot_t *last;

    if (loader->filled == 0)
        return true;
    last = loader_slot(loader, loader->filled - 1);
    return !last->end && last->rc == ERR_OK;
}

/* Get the slot to deliver. An end or an error stays in its slot, so later calls
 * return it again. */
static loader_slot_t *loader_take(hdf5io_loader_t *loader)
{
    loader_slot_t *slot;

    if (!loader->threaded) {
        slot = loader_slot(loader, loader->filled);
        if (loader_more(loader)) {
            loader_read(loader, slot);
            loader->filled++;
        }
        return loader_slot(loader, loader->filled - 1);
    }
    pthread_mutex_lock(&loader->lock);
    while (loader->filled == loader->given)
        pthread_cond_wait(&loader->moved, &loader->lock);
    slot = loader_slot(loader, loader->given);
    if (!slot->end && slot->rc == ERR_OK)
        loader->given++;
    loader_check(loader);
    pthread_cond_broadcast(&loader->moved);
    pthread_mutex_unlock(&loader->lock);
    return slot;
}

err_code_t hdf5io_loader_next(hdf5io_loader_t *loader, hdf5io_batch_t **out,
                              err_t *err)
{
    loader_slot_t *slot = loader_take(loader);

    if (slot->rc != ERR_OK)
        return err_copy(err, &slot->err);
    *out = slot->end ? NULL : &slot->batch;
    return ERR_OK;
}

void *hdf5io_loader_memory(const hdf5io_loader_t *loader, size_t *bytes)
{
    *bytes = loader->bytes;
    return loader->block;
}

void hdf5io_loader_memory_keep(hdf5io_loader_t *loader)
{
    loader->keep = true;
}

void hdf5io_loader_close(hdf5io_loader_t *loader)
{
    if (loader == NULL)
        return;
    if (loader->threaded) {
        pthread_mutex_lock(&loader->lock);
        loader->stop = true;
        pthread_cond_broadcast(&loader->moved);
        pthread_mutex_unlock(&loader->lock);
        pthread_join(loader->thread, NULL);
    }
    pthread_cond_destroy(&loader->moved);
    pthread_mutex_destroy(&loader->lock);
    if (!loader->keep)
        mem_free(loader->block);
    mem_free(loader->slots);
    mem_free(loader);
}
