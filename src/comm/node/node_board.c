/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The board and the lock, which all other files of the node stage use. */
#include "comm/node/node_board.h"

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

/* Over several nodes there are no one-shot slots. */
static size_t shots_bytes(const node_t *node)
{
    return node->place.nodes > 1
               ? 0
               : (size_t)node->place.count * sizeof(shot_rank_t);
}

node_seat_t *node_board_seats(const node_t *node)
{
    return (node_seat_t *)(void *)((char *)node->board + sizeof(node_board_t) +
                                   COMM_WORKS_MAX * node->stride);
}

err_code_t node_board_open(node_t *node, err_t *err)
{
    size_t count = (size_t)node->place.count;
    void *board = NULL;
    err_code_t code;

    node->stride = node_slot_bytes(node->place.count);
    node->board_bytes = sizeof(node_board_t) + COMM_WORKS_MAX * node->stride +
                        count * sizeof(node_seat_t) + shots_bytes(node);
    code = node_shm_share(node, node->board_bytes, false, &board, err);
    node->board = board;
    if (code == ERR_OK) /* they are its end */
        node->shots.ranks =
            (shot_rank_t *)(void *)((char *)board + node->board_bytes -
                                    shots_bytes(node));
    return code;
}

void node_board_close(node_t *node)
{
    void *board = node->board;

    node_shm_unmap(&board, 1, node->board_bytes);
    node->board = NULL;
}

/* ---- news for all -------------------------------------------------------- */

void node_ring(node_t *node)
{
    node_board_t *board = node->board;

    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&board->sleepers) == 0)
        return;
    atomic_fetch_add(&board->bell, 1);
    syscall(SYS_futex, &board->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void node_board_disagree(node_t *node, uint64_t number)
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
