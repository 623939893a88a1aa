/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "boot/boot_wire.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

/* Maximum number of seconds of one poll. A longer wait polls several times. */
#define WAIT_MOST 60.0

err_code_t boot_wire_new(boot_wire_t **out, err_t *err)
{
    boot_wire_t *wire = NULL;
    err_code_t rc = mem_new(boot_wire_t, 1, "start-up", &wire, err);

    if (rc != ERR_OK)
        return rc;
    wire->opened = eventfd(0, EFD_CLOEXEC);
    if (wire->opened < 0) {
        rc = err_set(err, ERR_UNAVAILABLE, "start-up: eventfd: %s",
                     strerror(errno));
        mem_free(wire);
        return rc;
    }
    pthread_mutex_init(&wire->lock, NULL);
    thread_cond_init(&wire->changed);
    *out = wire;
    return ERR_OK;
}

void boot_wire_free(boot_wire_t *wire)
{
    if (wire == NULL || wire->open_late)
        return;
    while (wire->kept != NULL) {
        boot_gather_t *next = wire->kept->next;

        mem_free(wire->kept);
        wire->kept = next;
    }
    pthread_cond_destroy(&wire->changed);
    pthread_mutex_destroy(&wire->lock);
    close(wire->opened);
    mem_free(wire);
}

static void *open_main(void *argument)
{
    boot_wire_t *wire = argument;
    pmix_status_t status = PMIx_Init(&wire->self, NULL, 0);

    pthread_mutex_lock(&wire->lock);
    wire->open_done = true;
    wire->open_status = status;
    pthread_mutex_unlock(&wire->lock);
    check(eventfd_write(wire->opened, 1) == 0, "eventfd: %s", strerror(errno));
    return NULL;
}

/* Wait up to [timeout] seconds until PMIx_Init has returned. Return whether it
 * has. The thread does not wait for a condition: PMIx_Init changes the
 * environment, and a library that moves the clocks of a program (libfaketime)
 * reads the environment in each wait for a condition. */
static bool open_await(boot_wire_t *wire, double timeout)
{
    const double deadline = clock_now() + timeout;
    struct pollfd opened = {.fd = wire->opened, .events = POLLIN};

    for (double left = timeout; opened.revents == 0 && left > 0;
         left = deadline - clock_now())
        (void)poll(&opened, 1, (int)ceil(1e3 * fmin(left, WAIT_MOST)));
    pthread_mutex_lock(&wire->lock);
    wire->open_late = !wire->open_done;
    pthread_mutex_unlock(&wire->lock);
    return !wire->open_late;
}

err_code_t boot_wire_open(boot_wire_t *wire, double timeout, err_t *err)
{
    pthread_t thread;
    err_code_t rc = thread_start("cddp-pmix", open_main, wire, &thread, err);

    if (rc != ERR_OK)
        return rc;
    if (!open_await(wire, timeout)) {
        pthread_detach(thread);
        return err_set(err, ERR_UNAVAILABLE,
                       "PMIx_Init did not return within %g s, as Slurm's PMIx "
                       "plugin does not answer. If this happens at every start "
                       "and the plugin uses PMIx 5.0.8 or 5.0.9 (srun "
                       "--mpi=list), it needs Slurm 25.11.2 or later, or "
                       "another PMIx: ADMIN.md, \"Messages and their causes\"",
                       timeout);
    }
    pthread_join(thread, NULL);
    if (wire->open_status != PMIX_SUCCESS)
        return err_set(err, ERR_UNAVAILABLE, "PMIx: PMIx_Init failed: %s (%d)",
                       PMIx_Error_string(wire->open_status), wire->open_status);
    return ERR_OK;
}

/* Round [seconds] up to whole seconds for PMIx; at least one. */
static int whole_seconds(double seconds)
{
    return seconds < 1 ? 1 : (int)ceil(seconds);
}

pmix_status_t boot_wire_put(const char *key, const void *mine, size_t bytes)
{
    pmix_value_t value;
    pmix_status_t status;

    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    /* the cast removes const; PMIx_Put copies the bytes */
    value.data.bo.bytes = (char *)(uintptr_t)mine;
    value.data.bo.size = bytes;
    status = PMIx_Put(PMIX_GLOBAL, key, &value);
    return status == PMIX_SUCCESS ? PMIx_Commit() : status;
}

static void fence_done(pmix_status_t status, void *context)
{
    boot_wire_t *wire = context;

    pthread_mutex_lock(&wire->lock);
    wire->fence_done = true;
    wire->fence_status = status;
    pthread_cond_signal(&wire->changed);
    pthread_mutex_unlock(&wire->lock);
}

pmix_status_t boot_wire_fence(boot_wire_t *wire, double timeout)
{
    double deadline = clock_now() + timeout;
    int seconds = whole_seconds(timeout);
    bool collect = true;
    pmix_info_t *info = wire->fence_info;
    pmix_status_t status;

    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    wire->fence_done = false;
    status = PMIx_Fence_nb(NULL, 0, info, 2, fence_done, wire);
    if (status == PMIX_OPERATION_SUCCEEDED)
        return PMIX_SUCCESS;
    if (status != PMIX_SUCCESS)
        return status;
    pthread_mutex_lock(&wire->lock);
    while (!wire->fence_done)
        if (!thread_cond_wait(&wire->changed, &wire->lock, deadline))
            break;
    status = wire->fence_done ? wire->fence_status : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&wire->lock);
    return status;
}

static void got_answer(pmix_status_t status, pmix_value_t *value, void *context)
{
    boot_answer_t *answer = context;
    boot_wire_t *wire = answer->wire;

    pthread_mutex_lock(&wire->lock);
    check(!answer->done, "a rank answers twice, now with status %d", status);
    answer->done = true;
    answer->status = status;
    if (status == PMIX_SUCCESS && value->type == PMIX_BYTE_OBJECT)
        answer->found = value->data.bo.size;
    if (status == PMIX_SUCCESS && answer->wanted && answer->bytes > 0 &&
        answer->found == answer->bytes)
        memcpy(answer->target, value->data.bo.bytes, answer->bytes);
    pthread_cond_signal(&wire->changed);
    pthread_mutex_unlock(&wire->lock);
}

/* Ask [rank] for [key]; a call that fails at once counts as an answer. */
static void ask(const boot_wire_t *wire, int rank, const char *key,
                const pmix_info_t *limit, boot_answer_t *answer)
{
    pmix_status_t status;
    pmix_proc_t peer;

    PMIX_LOAD_PROCID(&peer, wire->self.nspace, (pmix_rank_t)rank);
    status = PMIx_Get_nb(&peer, key, limit, 1, got_answer, answer);
    if (status != PMIX_SUCCESS)
        got_answer(status, NULL, answer);
}

static bool all_answered(const boot_gather_t *gathering, int size)
{
    for (int rank = 0; rank < size; rank++)
        if (!gathering->answers[rank].done)
            return false;
    return true;
}

boot_gather_t *boot_wire_gather(boot_wire_t *wire, const char *key,
                                size_t bytes, char *all, double timeout)
{
    double deadline = clock_now() + timeout;
    int seconds = whole_seconds(timeout);
    boot_gather_t *gathering = NULL;

    if (mem_new_tail(boot_gather_t, answers, (size_t)wire->size, "start-up",
                     &gathering, NULL) != ERR_OK)
        return NULL;
    gathering->next = wire->kept;
    wire->kept = gathering;
    PMIX_INFO_LOAD(&gathering->limit, PMIX_TIMEOUT, &seconds, PMIX_INT);
    for (int rank = 0; rank < wire->size; rank++) {
        gathering->answers[rank] = (boot_answer_t){
            .wire = wire,
            .wanted = true,
            .done = rank == wire->rank,
            .found = rank == wire->rank ? bytes : 0,
            .bytes = bytes,
            .target = all + (size_t)rank * bytes,
        };
        if (rank != wire->rank)
            ask(wire, rank, key, &gathering->limit, &gathering->answers[rank]);
    }
    pthread_mutex_lock(&wire->lock);
    while (!all_answered(gathering, wire->size))
        if (!thread_cond_wait(&wire->changed, &wire->lock, deadline))
            break;
    for (int rank = 0; rank < wire->size; rank++) {
        boot_answer_t *answer = &gathering->answers[rank];

        answer->wanted = false;
        answer->verdict = answer->done ? answer->status : PMIX_ERR_TIMEOUT;
    }
    pthread_mutex_unlock(&wire->lock);
    return gathering;
}

void boot_wire_drop(boot_wire_t *wire, boot_gather_t *gathering)
{
    check(wire->kept == gathering && all_answered(gathering, wire->size),
          "an older gathering, or one that a callback may still write to, is "
          "freed by rank %d",
          wire->rank);
    wire->kept = gathering->next;
    mem_free(gathering);
}
