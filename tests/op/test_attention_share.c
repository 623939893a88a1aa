/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The thread that makes the plans of attention, without cuDNN: this test stands
 * in for the functions that it calls. A plan stays in the making for as long as
 * a test wants, so nothing here depends on time.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "base/thread.h"
#include "dev/dev_cuda.h"
#include "op/cuda/attention_share.h"
#include "op/cuda/libs.h"

/* Shapes differ in N. These two have no plans. */
enum { FAILS = -1, UNSUPPORTED = -2 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int begun, allowed; /* plans: being made or made; may be finished */
    int open;           /* plans not closed */
    int handles;
    int64_t order[8]; /* N of the plans, as they were begun */
    bool no_handle, no_thread;
    bool free_at_libs; /* allow all when cuda_libs_attention is called */
    cuda_attention_planning_t *planning;
} stage = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .moved = PTHREAD_COND_INITIALIZER};

static char device[1];
static dev_device_t *const dev = (dev_device_t *)device;

/* ---- what the thread calls ----------------------------------------------- */

static void allow(int count)
{
    pthread_mutex_lock(&stage.lock);
    stage.allowed = count;
    pthread_cond_broadcast(&stage.moved);
    pthread_mutex_unlock(&stage.lock);
}

static void await_begun(int count)
{
    pthread_mutex_lock(&stage.lock);
    while (stage.begun < count)
        pthread_cond_wait(&stage.moved, &stage.lock);
    pthread_mutex_unlock(&stage.lock);
}

err_code_t cuda_attention_plans_open(const cuda_attention_shape_t *shape,
                                     const cuda_planner_t *planner,
                                     cuda_attention_plans_t *out,
                                     bool *unsupported, err_t *err)
{
    cr_assert_not_null(planner->handle);
    pthread_mutex_lock(&stage.lock);
    if (stage.begun < 8)
        stage.order[stage.begun] = shape->N;
    stage.begun++;
    pthread_cond_broadcast(&stage.moved);
    while (stage.begun > stage.allowed)
        pthread_cond_wait(&stage.moved, &stage.lock);
    pthread_mutex_unlock(&stage.lock);
    *unsupported = shape->N == UNSUPPORTED;
    if (shape->N == FAILS)
        return err_set(err, ERR_UNAVAILABLE, "cudnnBackendFinalize failed");
    if (*unsupported)
        return ERR_OK;
    out->forward = (cuda_plan_t *)device;
    __atomic_fetch_add(&stage.open, 1, __ATOMIC_RELAXED);
    return ERR_OK;
}

void cuda_attention_plans_close(cuda_attention_plans_t *plans)
{
    if (plans->forward != NULL)
        __atomic_fetch_sub(&stage.open, 1, __ATOMIC_RELAXED);
    *plans = (cuda_attention_plans_t){0};
}

bool cuda_attention_shapes_equal(const cuda_attention_shape_t *a,
                                 const cuda_attention_shape_t *b)
{
    return a->N == b->N;
}

err_code_t cuda_libs_attention(dev_device_t *of,
                               cuda_attention_planning_t ***out, err_t *err)
{
    (void)err;
    cr_assert_eq(of, dev);
    *out = &stage.planning;
    if (stage.free_at_libs)
        allow(1 << 20);
    return ERR_OK;
}

dev_cuda_guest_t *dev_cuda_guest(dev_device_t *of)
{
    cr_assert_eq(of, dev);
    return NULL;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    if (stage.no_handle)
        return CUDNN_STATUS_ALLOC_FAILED;
    *out = (cudnnHandle_t)device;
    __atomic_fetch_add(&stage.handles, 1, __ATOMIC_RELAXED);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    cr_assert_eq(handle, (cudnnHandle_t)device);
    __atomic_fetch_sub(&stage.handles, 1, __ATOMIC_RELAXED);
    return CUDNN_STATUS_SUCCESS;
}

err_code_t cuda_dnn_check(cudnnStatus_t status, const char *call,
                          const char *what, err_t *err)
{
    return status == CUDNN_STATUS_SUCCESS
               ? ERR_OK
               : err_set(err, ERR_MEMORY, "%s: %s failed", what, call);
}

err_code_t __real_thread_start(const char *name, thread_main_t main,
                               void *argument, pthread_t *out, err_t *err);
err_code_t __wrap_thread_start(const char *name, thread_main_t main,
                               void *argument, pthread_t *out, err_t *err);
err_code_t __wrap_thread_start(const char *name, thread_main_t main,
                               void *argument, pthread_t *out, err_t *err)
{
    return stage.no_thread
               ? err_set(err, ERR_MEMORY, "no thread for %s", name)
               : __real_thread_start(name, main, argument, out, err);
}

/* ---- one call ------------------------------------------------------------ */

static cuda_attention_shared_t *share(int64_t N)
{
    const cuda_attention_shape_t shape = {.N = N};
    cuda_attention_shared_t *shared = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(cuda_attention_share(dev, &shape, &shared, &err), ERR_OK, "%s",
                 err.text);
    return shared;
}

static void check_made(cuda_attention_shared_t *shared)
{
    const cuda_attention_plans_t *plans = NULL;
    cudnnHandle_t handle = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(cuda_attention_await(shared, &plans, &handle, &err), ERR_OK,
                 "%s", err.text);
    cr_assert_not_null(plans);
    cr_assert_not_null(plans->forward);
    cr_assert_not_null(handle);
}

static void check_fails(cuda_attention_shared_t *shared, err_code_t code,
                        const char *sentence)
{
    const cuda_attention_plans_t *plans = NULL;
    cudnnHandle_t handle = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(cuda_attention_await(shared, &plans, &handle, &err), code);
    cr_assert_not_null(strstr(err.text, sentence), "%s", err.text);
}

/* The last drop has waited for the thread. */
static void check_nothing_left(void)
{
    cr_assert_null(stage.planning);
    cr_assert_eq(stage.open, 0);
    cr_assert_eq(stage.handles, 0);
}

TestSuite(attention_share, .timeout = 300);

/* ---- tests --------------------------------------------------------------- */

Test(attention_share, plans_are_made_beside_the_caller_and_in_order)
{
    cuda_attention_shared_t *shared[3];

    for (int i = 0; i < 3; i++)
        shared[i] = share(i);
    await_begun(1); /* and none is finished */
    cr_assert_eq(stage.open, 0);
    allow(3);
    for (int i = 2; i >= 0; i--)
        check_made(shared[i]);
    cr_assert_eq(stage.begun, 3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(stage.order[i], i);
    for (int i = 0; i < 3; i++)
        cuda_attention_drop(dev, shared[i]);
    check_nothing_left();
}

Test(attention_share, there_is_one_plan_for_a_shape)
{
    cuda_attention_shared_t *one = share(1), *two;

    await_begun(1);
    two = share(1);
    cr_assert_eq(one, two);
    allow(1 << 20);
    check_made(two);
    cr_assert_eq(share(1), one);
    cuda_attention_drop(dev, one);
    cuda_attention_drop(dev, one);
    check_made(one);
    cr_assert_eq(stage.begun, 1);
    cr_assert_eq(stage.open, 1);
    cuda_attention_drop(dev, one);
    check_nothing_left();
}

Test(attention_share, an_error_is_returned_where_the_plan_is_awaited)
{
    cuda_attention_shared_t *bad, *good;

    allow(1 << 20);
    bad = share(FAILS);
    good = share(1);
    check_fails(bad, ERR_UNAVAILABLE, "cudnnBackendFinalize");
    check_made(good);
    cuda_attention_drop(dev, bad);
    bad = share(FAILS); /* nothing keeps an error */
    check_fails(bad, ERR_UNAVAILABLE, "cudnnBackendFinalize");
    cr_assert_eq(stage.begun, 3);
    cuda_attention_drop(dev, bad);
    cuda_attention_drop(dev, good);
    check_nothing_left();
}

Test(attention_share, no_handle_or_no_thread)
{
    const cuda_attention_shape_t shape = {.N = 1};
    cuda_attention_shared_t *shared;
    err_t err = ERR_INIT;

    stage.no_handle = true;
    shared = share(1);
    check_fails(shared, ERR_MEMORY, "cudnnCreate");
    cuda_attention_drop(dev, shared);
    check_nothing_left();
    stage.no_thread = true;
    cr_assert_eq(cuda_attention_share(dev, &shape, &shared, &err), ERR_MEMORY);
    check_nothing_left();
}

Test(attention_share, that_there_is_no_plan_is_remembered)
{
    const cuda_attention_plans_t *plans;
    cuda_attention_shared_t *one, *two;
    cudnnHandle_t handle;
    err_t err = ERR_INIT;

    allow(1 << 20);
    one = share(UNSUPPORTED);
    cr_assert_eq(cuda_attention_await(one, &plans, &handle, &err), ERR_OK);
    cr_assert_null(plans);
    two = share(UNSUPPORTED);
    cr_assert_eq(cuda_attention_await(two, &plans, &handle, &err), ERR_OK);
    cr_assert_null(plans);
    cr_assert_eq(stage.begun, 1);
    cuda_attention_drop(dev, one);
    cuda_attention_drop(dev, two);
    check_nothing_left();
}

/* All three are dropped while the first is being made. The last drop waits for
 * that one, and the others are never made. */
Test(attention_share, shapes_are_dropped_while_one_is_being_made)
{
    cuda_attention_shared_t *one = share(1), *two = share(2), *three = share(3);

    await_begun(1);
    cuda_attention_drop(dev, three);
    cuda_attention_drop(dev, one);
    stage.free_at_libs = true;
    cuda_attention_drop(dev, two);
    cr_assert_eq(stage.begun, 1);
    check_nothing_left();
}

/* Nobody uses the shape that is being made, and then somebody does again. */
Test(attention_share, a_dropped_shape_is_taken_up_again)
{
    cuda_attention_shared_t *one = share(1), *two = share(2);

    await_begun(1);
    cuda_attention_drop(dev, one);
    cr_assert_eq(share(1), one);
    allow(1 << 20);
    check_made(one);
    check_made(two);
    cr_assert_eq(stage.begun, 2);
    cuda_attention_drop(dev, one);
    cuda_attention_drop(dev, two);
    check_nothing_left();
}

/* The thread ends when nothing is left, and a new one is started. */
Test(attention_share, threads_come_and_go)
{
    cuda_attention_shared_t *kept;

    allow(1 << 20);
    kept = share(0);
    for (int i = 1; i <= 200; i++) {
        cuda_attention_shared_t *shared = share(i);

        if (i % 3 != 0)
            check_made(shared);
        cuda_attention_drop(dev, shared);
    }
    check_made(kept);
    cuda_attention_drop(dev, kept);
    check_nothing_left();
}
