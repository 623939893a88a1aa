/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The control block and the lock, which all other files of the node stage
 * use. */
#include "comm/node/node_control.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_shm.h"

/* ---- lock ---------------------------------------------------------------- */

bool node_is_locked(const node_t *node)
{
    return atomic_load(&node->holder) == (unsigned long)pthread_self();
}

void node_lock(node_t *node)
{
    check(!node_is_locked(node), "rank %d locks its node twice",
          node->config.rank);
    pthread_mutex_lock(&node->lock);
    if (CHECK_ON)
        atomic_store(&node->holder, (unsigned long)pthread_self());
}

void node_unlock(node_t *node)
{
    check(node_is_locked(node), "rank %d unlocks what it does not hold",
          node->config.rank);
    if (CHECK_ON)
        atomic_store(&node->holder, 0);
    pthread_mutex_unlock(&node->lock);
}

/* ---- memory -------------------------------------------------------------- */

/* Bytes of the one-shot slots; 0 with several nodes, where they are not
 * used. */
static size_t oneshot_bytes(const node_t *node)
{
    return node->place.nodes > 1
               ? 0
               : (size_t)node->place.count * sizeof(oneshot_rank_t);
}

node_wakeup_t *node_control_wakeups(const node_t *node)
{
    return (node_wakeup_t *)(void *)((char *)node->control +
                                     sizeof(node_control_t) +
                                     COMM_WORKS_MAX * node->stride);
}

err_code_t node_control_open(node_t *node, err_t *err)
{
    size_t count = (size_t)node->place.count;
    void *control = NULL;
    err_code_t rc;

    node->control_bytes = sizeof(node_control_t) +
                          COMM_WORKS_MAX * node->stride +
                          count * sizeof(node_wakeup_t) + oneshot_bytes(node);
    rc = node_shm_share(node, node->control_bytes, false, &control, err);
    node->control = control;
    if (rc == ERR_OK) /* the one-shot slots are at its end */
        node->oneshot.ranks =
            (oneshot_rank_t *)(void *)((char *)control + node->control_bytes -
                                       oneshot_bytes(node));
    return rc;
}

void node_control_close(node_t *node)
{
    void *control = node->control;

    node_shm_unmap(&control, 1, node->control_bytes);
    node->control = NULL;
}

/* ---- to all ranks -------------------------------------------------------- */

void node_notify(node_t *node)
{
    node_control_t *control = node->control;

    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&control->sleepers) == 0)
        return;
    atomic_fetch_add(&control->futex, 1);
    syscall(SYS_futex, &control->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void node_control_differ(node_t *node, uint64_t number)
{
    const node_work_t *work =
        atomic_load(&node->works[number % COMM_WORKS_MAX]);
    const comm_hello_t *hello = &node->config.hellos[node->config.rank];
    err_t fault = ERR_INIT;
    char mine[96];

    if (node_failed(node))
        return;
    check(work != NULL && work->number == number,
          "collective %llu differs, which is not under way here",
          (unsigned long long)number);
    comm_request_print(work->request, mine, sizeof mine);
    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": rank %d on %s called %s, and a rank of "
            "its node something else, or the same of other ranges: all must "
            "start the same collectives in the same order",
            number, (int)hello->name, hello->host, mine);
    node->config.fail(node->config.context, &fault);
}
