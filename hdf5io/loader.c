/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A ring of prefetch + 1 + kept buffers: the consumer holds the newest batch
 * and the kept ones while threads fill the others. Batch n is in buffer n
 * modulo the ring's size. A thread takes the next batch (it finds the epoch,
 * step and samples), reads it, and marks its buffer as filled. The consumer
 * gets the batches in their order, whichever was read first. The result of a
 * read (batch, end or error) is stored in the buffer, so an error is returned
 * in place of its batch. After an end or an error nothing more is taken. If
 * other threads still read later batches, these are never delivered.
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
    int64_t filled; /* number of the batch in it, plus 1; 0: none */
} loader_slot_t;

struct hdf5io_loader {
    hdf5io_loader_config_t config;
    loader_slot_t *slots;
    int count;
    void *block; /* memory of all buffers, [bytes] */
    size_t bytes;
    bool keep; /* close does not free that memory */
    pthread_t *threads;
    int thread_count; /* 0: the consumer reads */
    /* A thread holds this mutex while it takes a batch, and while it waits for
     * a free buffer. It protects the sampler and the next two members, and is
     * locked before [lock]. */
    pthread_mutex_t turn;
    int64_t epoch, step;  /* of the next batch to take */
    pthread_mutex_t lock; /* protects the members below, and slots[].filled */
    pthread_cond_t moved; /* signalled when they change */
    int64_t taken, given;
    bool over; /* an end or an error was found */
    bool stop;
};

/* Check that the ring holds the batches in use and those read ahead. Lock held.
 */
static void loader_check(const hdf5io_loader_t *loader)
{
    check(loader->taken >= loader->given &&
              loader->taken - loader->given <
                  loader->count - loader->config.kept,
          "%lld batches were taken, %lld given, in %d buffers",
          (long long)loader->taken, (long long)loader->given, loader->count);
}

static loader_slot_t *loader_slot(hdf5io_loader_t *loader, int64_t number)
{
    return &loader->slots[number % loader->count];
}

/* Write epoch, step and samples of the next batch to [slot]; false: there is no
 * next batch. The caller has the turn. */
static bool loader_plan(hdf5io_loader_t *loader, loader_slot_t *slot)
{
    const hdf5io_loader_config_t *config = &loader->config;
    hdf5io_batch_t *batch = &slot->batch;
    hdf5io_share_t share;

    slot->rc = ERR_OK;
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
                         (int64_t *)batch->sample_ids);
    batch->epoch = loader->epoch;
    batch->step = loader->step;
    batch->count = share.count;
    batch->global = share.global;
    if (++loader->step >= hdf5io_sampler_steps(config->sampler)) {
        loader->step = 0;
        loader->epoch++;
    }
    return true;
}

/* Read the batch that was planned in [slot]. */
static void loader_read(hdf5io_loader_t *loader, loader_slot_t *slot)
{
    const hdf5io_loader_config_t *config = &loader->config;
    const hdf5io_batch_t *batch = &slot->batch;
    const hdf5io_draw_t draw = {config->seed, batch->epoch};

    slot->rc = hdf5io_dataset_read_drawn(
        config->dataset, config->augment ? &draw : NULL,
        (const int64_t *)batch->sample_ids, batch->count, slot->fields,
        &slot->err);
}

/* Wait until a buffer is free; false: nothing more is to be read. */
static bool loader_room_wait(hdf5io_loader_t *loader)
{
    const int used = 1 + loader->config.kept;
    bool more;

    pthread_mutex_lock(&loader->lock);
    /* The consumer still uses the batches delivered last. */
    while (!loader->stop && !loader->over &&
           loader->taken - loader->given >= loader->count - used)
        pthread_cond_wait(&loader->moved, &loader->lock);
    more = !loader->stop && !loader->over;
    check(!more || loader->taken - loader->count < loader->given - used,
          "batch %lld would overwrite one that is in use: %lld were given",
          (long long)loader->taken, (long long)loader->given);
    pthread_mutex_unlock(&loader->lock);
    return more;
}

/* Take the next batch: *number is its number. NULL: there is none to take. An
 * end is taken like a batch. */
static loader_slot_t *loader_turn(hdf5io_loader_t *loader, int64_t *number)
{
    loader_slot_t *slot = NULL;

    pthread_mutex_lock(&loader->turn);
    if (loader_room_wait(loader)) {
        /* Only the thread that has the turn changes loader->taken. */
        *number = loader->taken;
        slot = loader_slot(loader, *number);
        loader_plan(loader, slot);
        pthread_mutex_lock(&loader->lock);
        loader->taken++;
        loader->over = loader->over || slot->end;
        loader_check(loader);
        pthread_mutex_unlock(&loader->lock);
    }
    pthread_mutex_unlock(&loader->turn);
    return slot;
}

static void *loader_main(void *argument)
{
    hdf5io_loader_t *loader = argument;
    loader_slot_t *slot;
    int64_t number;

    log_rank_set(loader->config.rank);
    thread_stand_back(); /* it is some batches ahead anyway */
    while ((slot = loader_turn(loader, &number)) != NULL) {
        if (!slot->end)
            loader_read(loader, slot);
        pthread_mutex_lock(&loader->lock);
        slot->filled = number + 1;
        loader->over = loader->over || slot->rc != ERR_OK;
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

/* Number of threads that read ahead: no more than batches to read ahead. */
static int loader_threads(const hdf5io_loader_config_t *config)
{
    const int asked = config->threads > 1 ? config->threads : 1;

    if (hdf5io_dataset_collective(config->dataset))
        return 0;
    return asked < config->prefetch ? asked : config->prefetch;
}

static err_code_t loader_start(hdf5io_loader_t *loader, int threads, err_t *err)
{
    err_code_t rc = mem_new(pthread_t, (size_t)threads, "the loader",
                            &loader->threads, err);

    while (rc == ERR_OK && loader->thread_count < threads) {
        rc = thread_start("cddp-loader", loader_main, loader,
                          &loader->threads[loader->thread_count], err);
        loader->thread_count += rc == ERR_OK;
    }
    return rc;
}

err_code_t hdf5io_loader_open(const hdf5io_loader_config_t *config,
                              hdf5io_loader_t **out, err_t *err)
{
    const int threads = loader_threads(config);
    hdf5io_loader_t *loader = NULL;
    err_code_t rc = mem_new(hdf5io_loader_t, 1, "the loader", &loader, err);

    if (rc != ERR_OK)
        return rc;
    loader->config = *config;
    loader->count = (threads > 0 ? config->prefetch + 1 : 1) + config->kept;
    loader->epoch = config->epoch;
    loader->step = config->step;
    if (loader->step >= hdf5io_sampler_steps(config->sampler)) {
        loader->step = 0;
        loader->epoch++;
    }
    pthread_mutex_init(&loader->turn, NULL);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->moved, NULL);
    rc = loader_buffers_open(loader, err);
    if (rc == ERR_OK && threads > 0)
        rc = loader_start(loader, threads, err);
    if (rc != ERR_OK) {
        hdf5io_loader_close(loader);
        return rc;
    }
    *out = loader;
    return ERR_OK;
}

/* Get the slot to deliver, which the consumer fills by itself. */
static loader_slot_t *loader_fill(hdf5io_loader_t *loader)
{
    loader_slot_t *slot = loader_slot(loader, loader->taken);

    if (!loader->over) {
        if (loader_plan(loader, slot))
            loader_read(loader, slot);
        loader->over = slot->end || slot->rc != ERR_OK;
        loader->taken++;
    }
    return loader_slot(loader, loader->taken - 1);
}

/* Get the slot to deliver. An end or an error stays in its slot, so later calls
 * return it again. */
static loader_slot_t *loader_take(hdf5io_loader_t *loader)
{
    loader_slot_t *slot;

    if (loader->thread_count == 0)
        return loader_fill(loader);
    pthread_mutex_lock(&loader->lock);
    slot = loader_slot(loader, loader->given);
    while (slot->filled != loader->given + 1)
        pthread_cond_wait(&loader->moved, &loader->lock);
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
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->moved);
    pthread_mutex_unlock(&loader->lock);
    for (int t = 0; t < loader->thread_count; t++)
        pthread_join(loader->threads[t], NULL);
    mem_free(loader->threads);
    pthread_cond_destroy(&loader->moved);
    pthread_mutex_destroy(&loader->lock);
    pthread_mutex_destroy(&loader->turn);
    if (!loader->keep)
        mem_free(loader->block);
    mem_free(loader->slots);
    mem_free(loader);
}
