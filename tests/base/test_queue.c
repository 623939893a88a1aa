/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/queue.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/thread.h"

static queue_t *open_queue(size_t room)
{
    queue_t *queue = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(queue_open(room, &queue, &err), ERR_OK);
    return queue;
}

Test(queue, first_in_first_out_over_the_ring_s_end)
{
    queue_t *queue = open_queue(3);
    uintptr_t in = 1, out;
    void *item;
    int round;

    for (round = 0; round < 10; round++) {
        cr_assert_eq(queue_put(queue, (void *)in++, 0), QUEUE_DONE);
        cr_assert_eq(queue_put(queue, (void *)in++, 0), QUEUE_DONE);
        for (out = in - 2; out < in; out++) {
            cr_assert_eq(queue_get(queue, 0, &item), QUEUE_DONE);
            cr_assert_eq((uintptr_t)item, out);
        }
    }
    queue_free(queue);
    queue_free(NULL);
}

Test(queue, full_and_empty_time_out)
{
    queue_t *queue = open_queue(1);
    int a = 0;
    void *item = &a;
    double begin;

    cr_assert_eq(queue_get(queue, 0, &item), QUEUE_TIMEOUT);
    cr_assert_eq(item, &a);
    begin = clock_now();
    cr_assert_eq(queue_get(queue, begin + 0.03, &item), QUEUE_TIMEOUT);
    cr_assert_geq(clock_now() - begin, 0.03);
    cr_assert_eq(queue_put(queue, &a, 0), QUEUE_DONE);
    cr_assert_eq(queue_put(queue, &a, 0), QUEUE_TIMEOUT);
    begin = clock_now();
    cr_assert_eq(queue_put(queue, &a, begin + 0.03), QUEUE_TIMEOUT);
    cr_assert_geq(clock_now() - begin, 0.03);
    queue_free(queue);
}

Test(queue, closed_refuses_puts_and_empties)
{
    queue_t *queue = open_queue(2);
    void *item = NULL;
    int a = 0;

    queue_put(queue, &a, 0);
    queue_close(queue);
    cr_assert_eq(queue_put(queue, &a, -1), QUEUE_CLOSED);
    cr_assert_eq(queue_get(queue, -1, &item), QUEUE_DONE);
    cr_assert_eq(item, &a);
    cr_assert_eq(queue_get(queue, -1, &item), QUEUE_CLOSED);
    queue_free(queue);
}

static void *get_one(void *argument)
{
    void *item;

    return queue_get(argument, -1, &item) == QUEUE_CLOSED ? argument : NULL;
}

Test(queue, closing_wakes_those_who_wait, .timeout = 20)
{
    queue_t *queue = open_queue(2);
    pthread_t threads[3];
    err_t err = ERR_INIT;
    void *result;
    int i;

    for (i = 0; i < 3; i++)
        cr_assert_eq(thread_start("get", get_one, queue, &threads[i], &err),
                     ERR_OK);
    queue_close(queue);
    for (i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        cr_assert_eq(result, queue);
    }
    queue_free(queue);
}

enum { ITEMS = 5000 };

static void *put_many(void *argument)
{
    uintptr_t i;

    for (i = 1; i <= ITEMS; i++)
        if (queue_put(argument, (void *)i, -1) != QUEUE_DONE)
            return NULL;
    return argument;
}

static void *sum_all(void *argument)
{
    uintptr_t sum = 0;
    void *item;

    while (queue_get(argument, -1, &item) == QUEUE_DONE)
        sum += (uintptr_t)item;
    return (void *)sum;
}

Test(queue, many_threads_lose_and_double_nothing, .timeout = 60)
{
    queue_t *queue = open_queue(4);
    pthread_t putters[3], getters[3];
    uintptr_t sum = 0;
    err_t err = ERR_INIT;
    void *result;
    int i;

    for (i = 0; i < 3; i++) {
        cr_assert_eq(thread_start("get", sum_all, queue, &getters[i], &err),
                     ERR_OK);
        cr_assert_eq(thread_start("put", put_many, queue, &putters[i], &err),
                     ERR_OK);
    }
    for (i = 0; i < 3; i++) {
        pthread_join(putters[i], &result);
        cr_assert_eq(result, queue);
    }
    queue_close(queue);
    for (i = 0; i < 3; i++) {
        pthread_join(getters[i], &result);
        sum += (uintptr_t)result;
    }
    cr_assert_eq(sum, (uintptr_t)3 * ITEMS * (ITEMS + 1) / 2);
    queue_free(queue);
}

Test(queue, a_huge_one_is_refused)
{
    queue_t *queue = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(queue_open(SIZE_MAX / 4, &queue, &err), ERR_MEMORY);
    cr_assert_null(queue);
    cr_assert_eq(queue_open(0, &queue, &err), ERR_OK);
    queue_free(queue);
}
