/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/queue.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;  /* an item came, or closed */
    pthread_cond_t emptied; /* an item went, or closed */
    bool closed;
    size_t room, count, head;
    void *items[]; /* a ring: count items from head on */
};

err_code_t queue_open(size_t room, queue_t **out, err_t *err)
{
    void *block;
    queue_t *queue;
    err_code_t code;

    if (room == 0)
        room = 1;
    if (room > (SIZE_MAX - sizeof *queue) / sizeof(void *))
        return err_set(err, ERR_MEMORY, "a queue of %zu items is too large",
                       room);
    code = mem_alloc(sizeof *queue + room * sizeof(void *), "a queue", &block,
                     err);
    if (code != ERR_OK)
        return code;
    queue = block;
    queue->room = room;
    pthread_mutex_init(&queue->lock, NULL);
    thread_cond_init(&queue->filled);
    thread_cond_init(&queue->emptied);
    *out = queue;
    return ERR_OK;
}

/* Wait on [cond] unless [instant] says not to. False: time is up. */
static bool queue_wait(queue_t *queue, pthread_cond_t *cond, double instant)
{
    return instant != 0 && thread_cond_wait(cond, &queue->lock, instant);
}

queue_result_t queue_put(queue_t *queue, void *item, double instant)
{
    queue_result_t result = QUEUE_DONE;
    bool time_left = true;

    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == queue->room && time_left)
        time_left = queue_wait(queue, &queue->emptied, instant);
    if (queue->closed) {
        result = QUEUE_CLOSED;
    } else if (queue->count == queue->room) {
        result = QUEUE_TIMEOUT;
    } else {
        queue->items[(queue->head + queue->count) % queue->room] = item;
        queue->count++;
        pthread_cond_signal(&queue->filled);
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

queue_result_t queue_get(queue_t *queue, double instant, void **item)
{
    queue_result_t result = QUEUE_DONE;
    bool time_left = true;

    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == 0 && time_left)
        time_left = queue_wait(queue, &queue->filled, instant);
    if (queue->count > 0) {
        *item = queue->items[queue->head];
        queue->head = (queue->head + 1) % queue->room;
        queue->count--;
        pthread_cond_signal(&queue->emptied);
    } else {
        result = queue->closed ? QUEUE_CLOSED : QUEUE_TIMEOUT;
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

void queue_close(queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_cond_broadcast(&queue->emptied);
    pthread_mutex_unlock(&queue->lock);
}

void queue_free(queue_t *queue)
{
    if (queue == NULL)
        return;
    pthread_cond_destroy(&queue->emptied);
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->lock);
    mem_free(queue);
}
