/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/attention_share.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/thread.h"
#include "dev/dev_cuda.h"
#include "op/cuda/libs.h"

typedef enum progress { QUEUED, BEING_MADE, MADE } progress_t;

/* Fields but users and progress are the thread's until the plans are made. */
struct cuda_attention_shared {
    cuda_attention_shared_t *next;
    cuda_attention_planning_t *planning;
    cuda_attention_shape_t shape;
    progress_t progress;
    int users;
    cuda_attention_plans_t plans;
    bool unsupported;
    err_t failed; /* ERR_OK: the plans are made, or unsupported */
};

/* Of a device, from the first share to the last drop. */
struct cuda_attention_planning {
    dev_device_t *dev;
    pthread_mutex_t lock; /* of the rest, and of each shape's progress, users */
    pthread_cond_t made;  /* some plans are */
    pthread_t thread;
    bool started;                  /* there is a thread to be joined */
    bool working;                  /* it will look for queued shapes again */
    int users;                     /* of all shapes */
    cuda_attention_shared_t *list; /* in the order in which they are made */
    cuda_planner_t planner;        /* the thread makes its handle */
};

/* ---- the thread ---------------------------------------------------------- */

static void shared_unlink(cuda_attention_shared_t *shared)
{
    cuda_attention_shared_t **link = &shared->planning->list;

    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    cuda_attention_plans_close(&shared->plans);
    mem_free(shared);
}

static void shared_make(cuda_attention_shared_t *shared)
{
    cuda_planner_t *planner = &shared->planning->planner;
    err_t words = ERR_INIT; /* cuDNN's message; dropped if unsupported */
    err_code_t rc = ERR_OK;

    if (planner->handle == NULL)
        rc = cuda_dnn_check(cudnnCreate(&planner->handle), "cudnnCreate",
                            "cuDNN", &words);
    if (rc == ERR_OK)
        rc = cuda_attention_plans_open(&shared->shape, planner, &shared->plans,
                                       &shared->unsupported, &words);
    if (rc != ERR_OK) {
        cuda_attention_plans_close(&shared->plans);
        err_copy(&shared->failed, &words);
    }
}

static cuda_attention_shared_t *queued(const cuda_attention_planning_t *p)
{
    cuda_attention_shared_t *shared = p->list;

    while (shared != NULL && shared->progress != QUEUED)
        shared = shared->next;
    return shared;
}

static void *planning_main(void *argument)
{
    cuda_attention_planning_t *p = argument;
    cuda_attention_shared_t *shared;

    (void)dev_cuda_guest(p->dev); /* makes the device this thread's */
    pthread_mutex_lock(&p->lock);
    while ((shared = queued(p)) != NULL) {
        shared->progress = BEING_MADE;
        pthread_mutex_unlock(&p->lock);
        shared_make(shared);
        pthread_mutex_lock(&p->lock);
        shared->progress = MADE;
        if (shared->users == 0)
            shared_unlink(shared);
        pthread_cond_broadcast(&p->made);
    }
    p->working = false;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- planning ------------------------------------------------------------ */

static err_code_t planning_open(dev_device_t *dev,
                                cuda_attention_planning_t **out, err_t *err)
{
    cuda_attention_planning_t *p;
    err_code_t rc = mem_new(cuda_attention_planning_t, 1,
                            "the plans of attention", &p, err);

    if (rc != ERR_OK)
        return rc;
    p->dev = dev;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->made, NULL);
    *out = p;
    return ERR_OK;
}

static void planning_close(cuda_attention_planning_t *p)
{
    if (p->started)
        pthread_join(p->thread, NULL);
    check(p->list == NULL, "plans of attention without users");
    if (p->planner.handle != NULL)
        cudnnDestroy(p->planner.handle);
    pthread_cond_destroy(&p->made);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

/* Make sure that a thread looks at the list again. With the lock held: a thread
 * that works no more does not need it to end. */
static err_code_t planning_work(cuda_attention_planning_t *p, err_t *err)
{
    err_code_t rc;

    if (p->working)
        return ERR_OK;
    if (p->started)
        pthread_join(p->thread, NULL);
    rc = thread_start("cddp-plans", planning_main, p, &p->thread, err);
    p->started = p->working = rc == ERR_OK;
    return rc;
}

/* Append [shape] to the list; with the lock held. */
static err_code_t planning_add(cuda_attention_planning_t *p,
                               const cuda_attention_shape_t *shape,
                               cuda_attention_shared_t **out, err_t *err)
{
    cuda_attention_shared_t **end = &p->list, *shared = NULL;
    err_code_t rc =
        mem_new(cuda_attention_shared_t, 1, "plans of attention", &shared, err);

    if (rc == ERR_OK)
        rc = planning_work(p, err);
    if (rc != ERR_OK) {
        mem_free(shared);
        return rc;
    }
    shared->planning = p;
    shared->shape = *shape;
    shared->failed = (err_t)ERR_INIT;
    while (*end != NULL)
        end = &(*end)->next;
    *end = shared;
    *out = shared;
    return ERR_OK;
}

/* ---- sharing ------------------------------------------------------------- */

err_code_t cuda_attention_share(dev_device_t *dev,
                                const cuda_attention_shape_t *shape,
                                cuda_attention_shared_t **out, err_t *err)
{
    cuda_attention_planning_t **slot, *p;
    cuda_attention_shared_t *shared;
    err_code_t rc = cuda_libs_attention(dev, &slot, err);

    if (rc == ERR_OK && *slot == NULL)
        rc = planning_open(dev, slot, err);
    if (rc != ERR_OK)
        return rc;
    p = *slot;
    pthread_mutex_lock(&p->lock);
    shared = p->list;
    while (shared != NULL &&
           !cuda_attention_shapes_equal(&shared->shape, shape))
        shared = shared->next;
    if (shared == NULL)
        rc = planning_add(p, shape, &shared, err);
    if (rc == ERR_OK) {
        shared->users++;
        p->users++;
        *out = shared;
    }
    pthread_mutex_unlock(&p->lock);
    if (p->users == 0) {
        planning_close(p);
        *slot = NULL;
    }
    return rc;
}

err_code_t cuda_attention_await(cuda_attention_shared_t *shared,
                                const cuda_attention_plans_t **plans,
                                cudnnHandle_t *handle, err_t *err)
{
    cuda_attention_planning_t *p = shared->planning;

    pthread_mutex_lock(&p->lock);
    while (shared->progress != MADE)
        pthread_cond_wait(&p->made, &p->lock);
    pthread_mutex_unlock(&p->lock);
    if (shared->failed.code != ERR_OK)
        return err_copy(err, &shared->failed);
    *plans = shared->unsupported ? NULL : &shared->plans;
    *handle = p->planner.handle;
    return ERR_OK;
}

void cuda_attention_drop(dev_device_t *dev, cuda_attention_shared_t *shared)
{
    cuda_attention_planning_t **slot, *p;
    bool last;

    if (shared == NULL)
        return;
    p = shared->planning;
    pthread_mutex_lock(&p->lock);
    last = --p->users == 0;
    /* Plans that are being made are freed by the thread. */
    if (--shared->users == 0 && shared->progress != BEING_MADE)
        shared_unlink(shared);
    pthread_mutex_unlock(&p->lock);
    /* This cannot fail: the slot exists, as p is in it. */
    if (last && cuda_libs_attention(dev, &slot, NULL) == ERR_OK) {
        planning_close(p);
        *slot = NULL;
    }
}
