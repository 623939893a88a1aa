/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A ring of prefetch + 1 + kept buffers: the consumer holds the newest batch
 * and the kept ones while threads fill the others. Batch n is in buffer n
 * modulo the ring's size. A thread takes the next batch of the plan, reads it,
 * and marks its buffer as filled. The consumer gets the batches in their order,
 * whichever was read first. The result of a read (batch, end or error) is
 * stored in the buffer, so an error is returned in place of its batch. After an
 * end or an error nothing more is taken. If other threads still read later
 * batches, these are never delivered.
 *
 * If reading ahead helps (dataset_ahead.h), a batch is read ahead in pieces of
 * a few samples before a thread takes it. Each thread takes pieces, so all
 * threads read and decode at the same time what the next batch needs. While no
 * buffer is free, they read later batches ahead, until memory is full.
 *
 * Without a thread the consumer reads by itself, into 1 + kept buffers.
 */
#include "hdf5io/loader.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "hdf5io/dataset_ahead.h"
#include "hdf5io/plan.h"
#include "hdf5io/pool.h"

/* Samples that a thread reads ahead before it looks for something more
 * urgent. */
#define LOADER_PIECE 8

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
    /* A thread holds this mutex while it takes a batch or a piece, and while it
     * waits for one. It protects the plan and the next two members, and is
     * locked before [lock]. */
    pthread_mutex_t turn;
    hdf5io_plan_t *plan;
    int64_t ahead, piece; /* the next piece to read ahead: batch, and its first
                             sample */
    pthread_mutex_t lock; /* protects the members below, and slots[].filled */
    pthread_cond_t moved; /* signalled when they change */
    int64_t taken, given;
    int64_t done; /* batches before this one have been read */
    bool full;    /* memory is full, until the next batch is done */
    bool over;    /* an end or an error was found */
    bool stop;
};

/* What a thread does next. */
typedef struct loader_task {
    int64_t number;      /* of the batch */
    loader_slot_t *slot; /* to read the batch into; NULL: to read ahead */
    int64_t first, count;
    int64_t index[LOADER_PIECE]; /* [count]: its samples from [first] on */
} loader_task_t;

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
    const plan_batch_t *next = hdf5io_plan_get(loader->plan, loader->taken);
    hdf5io_batch_t *batch = &slot->batch;

    slot->rc = ERR_OK;
    slot->end = next == NULL;
    if (next == NULL)
        return false;
    batch->epoch = next->epoch;
    batch->step = next->step;
    batch->count = next->count;
    batch->global = next->global;
    memcpy(batch->sample_ids, next->index,
           (size_t)next->count * sizeof *next->index);
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

/* Take the next batch for the caller, who has the turn. An end is taken like a
 * batch. */
static void turn_batch(hdf5io_loader_t *loader, loader_task_t *task)
{
    /* Only the thread that has the turn changes loader->taken. */
    task->number = loader->taken;
    task->slot = loader_slot(loader, task->number);
    loader_plan(loader, task->slot);
    pthread_mutex_lock(&loader->lock);
    loader->taken++;
    loader->over = loader->over || task->slot->end;
    loader_check(loader);
    pthread_mutex_unlock(&loader->lock);
}

/* Take the next piece to read ahead for the caller, who has the turn. False:
 * there is none now. */
static bool turn_piece(hdf5io_loader_t *loader, loader_task_t *task)
{
    const plan_batch_t *batch = NULL;

    if (loader->ahead < loader->taken) {
        loader->ahead = loader->taken;
        loader->piece = 0;
    }
    if (loader->ahead - loader->taken < hdf5io_plan_most(loader->plan))
        batch = hdf5io_plan_get(loader->plan, loader->ahead);
    if (batch == NULL)
        return false;
    *task = (loader_task_t){.number = loader->ahead, .first = loader->piece};
    while (task->count < LOADER_PIECE && loader->piece < batch->count)
        task->index[task->count++] = batch->index[loader->piece++];
    if (loader->piece >= batch->count) {
        loader->ahead++;
        loader->piece = 0;
    }
    return true;
}

/* Find something to do for the caller, who has the turn. [room]: a buffer is
 * free. [full]: memory is full. A batch is taken after it was read ahead.
 * False: there is nothing to do now. */
static bool turn_find(hdf5io_loader_t *loader, bool room, bool full,
                      loader_task_t *task)
{
    const bool helps =
        !full && hdf5io_dataset_ahead_helps(loader->config.dataset);

    if (room && (!helps || loader->ahead > loader->taken)) {
        turn_batch(loader, task);
        return true;
    }
    if (helps && turn_piece(loader, task))
        return true;
    if (room)
        turn_batch(loader, task);
    return room;
}

/* Wait for something to do; false: nothing more is to be done. */
static bool loader_turn(hdf5io_loader_t *loader, loader_task_t *task)
{
    /* The consumer still uses the batches delivered last. */
    const int most = loader->count - 1 - loader->config.kept;
    bool found = false;

    pthread_mutex_lock(&loader->turn);
    pthread_mutex_lock(&loader->lock);
    while (!found && !loader->stop && !loader->over) {
        const bool room = loader->taken - loader->given < most;
        const bool full = loader->full;
        const int64_t done = loader->done, given = loader->given;

        pthread_mutex_unlock(&loader->lock);
        found = turn_find(loader, room, full, task);
        pthread_mutex_lock(&loader->lock);
        while (!found && !loader->stop && !loader->over &&
               loader->done == done && loader->given == given)
            pthread_cond_wait(&loader->moved, &loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    pthread_mutex_unlock(&loader->turn);
    return found;
}

/* Read the samples of a task ahead. If memory is full, the samples that are
 * left are taken again as a piece, after the next batch is done. */
static void loader_ahead(hdf5io_loader_t *loader, const loader_task_t *task)
{
    const int64_t read = hdf5io_dataset_ahead(
        loader->config.dataset, task->number + 1, task->index, task->count);

    if (read == task->count)
        return;
    pthread_mutex_lock(&loader->turn);
    if (task->number < loader->ahead ||
        (task->number == loader->ahead && task->first + read < loader->piece)) {
        loader->ahead = task->number;
        loader->piece = task->first + read;
    }
    pthread_mutex_lock(&loader->lock);
    loader->full = true;
    pthread_mutex_unlock(&loader->lock);
    pthread_mutex_unlock(&loader->turn);
}

/* The batch of a task was read. */
static void loader_filled(hdf5io_loader_t *loader, const loader_task_t *task)
{
    int64_t done;

    pthread_mutex_lock(&loader->lock);
    done = loader->done;
    task->slot->filled = task->number + 1;
    loader->over = loader->over || task->slot->rc != ERR_OK;
    while (loader->done < loader->taken &&
           loader_slot(loader, loader->done)->filled == loader->done + 1)
        loader->done++;
    if (loader->done > done) {
        hdf5io_dataset_plan_done(loader->config.dataset, loader->done + 1);
        loader->full = false;
    }
    pthread_cond_broadcast(&loader->moved);
    pthread_mutex_unlock(&loader->lock);
}

static void *loader_main(void *argument)
{
    hdf5io_loader_t *loader = argument;
    loader_task_t task;

    log_rank_set(loader->config.rank);
    thread_stand_back(); /* it is some batches ahead anyway */
    while (loader_turn(loader, &task)) {
        if (task.slot == NULL) {
            loader_ahead(loader, &task);
            continue;
        }
        if (!task.slot->end)
            loader_read(loader, task.slot);
        loader_filled(loader, &task);
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

/* Number of threads that read ahead; at most the number of batches that are
 * read ahead. */
static int loader_threads(const hdf5io_loader_config_t *config)
{
    const int asked = config->threads > 1 ? config->threads : 1;

    if (hdf5io_dataset_collective(config->dataset))
        return 0;
    return asked < config->prefetch ? asked : config->prefetch;
}

/* Open the plan of all batches. Batches are read ahead only by threads. */
static err_code_t loader_plan_open(hdf5io_loader_t *loader, int threads,
                                   err_t *err)
{
    const hdf5io_loader_config_t *config = &loader->config;
    const hdf5io_plan_config_t plan = {.sampler = config->sampler,
                                       .epoch = config->epoch,
                                       .step = config->step,
                                       .epochs = config->epochs,
                                       .most = threads > 0 ? POOL_AHEAD : 1};

    if (threads > 0)
        hdf5io_dataset_plan(config->dataset,
                            hdf5io_sampler_share_max(config->sampler),
                            hdf5io_sampler_units_used(config->sampler));
    return hdf5io_plan_open(&plan, &loader->plan, err);
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
    pthread_mutex_init(&loader->turn, NULL);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->moved, NULL);
    rc = loader_buffers_open(loader, err);
    if (rc == ERR_OK)
        rc = loader_plan_open(loader, threads, err);
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
    hdf5io_plan_close(loader->plan);
    mem_free(loader->slots);
    mem_free(loader);
}
