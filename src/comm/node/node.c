/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Opens and closes the node stage, and starts works. See node.h for an
 * overview. */
#include "comm/node/node.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "comm/node/node_control.h"
#include "comm/node/node_oneshot.h"
#include "comm/node/node_priv.h"
#include "comm/node/node_shm.h"
#include "comm/node/node_stage.h"
#include "comm/node/node_wakeup.h"
#include "comm/node/node_zcopy.h"

/* ---- open and close ------------------------------------------------------ */

err_code_t node_new(const node_config_t *config, node_t **out, err_t *err)
{
    size_t count = (size_t)config->place.count;
    node_t *node;
    err_code_t rc = mem_new(node_t, 1, "node stage", &node, err);

    if (rc != ERR_OK)
        return rc;
    node->config = *config;
    node->place = config->place;
    node->backoff.own_core = config->own_core;
    node->stride = node_zcopy_bytes(config->place.count);
    node->wake_fd = -1;
    pthread_mutex_init(&node->lock, NULL);
    rc = mem_new(char *, count, "comm buffers", &node->buffers, err);
    if (rc == ERR_OK)
        rc = mem_new(int, count, "comm wakeups", &node->wake_fds, err);
    if (rc == ERR_OK)
        rc = mem_new(void *, count, "comm stages", &node->stage.table, err);
    if (rc == ERR_OK)
        rc = mem_new(node_region_t, (size_t)config->size, "comm regions",
                     &node->regions, err);
    for (size_t i = 0; node->wake_fds != NULL && i < count; i++)
        node->wake_fds[i] = -1;
    if (rc == ERR_OK)
        *out = node;
    else
        node_close(node);
    return rc;
}

/* Open the pipes with which the comm threads of a node wake each other. */
static err_code_t wakeups_open(node_t *node, err_t *err)
{
    static const char what[] = "open the pipes that wake comm threads";
    err_code_t rc = node_shm_agree(node, node_wakeup_open(node), what, err);

    /* A pipe is opened after all ranks have made theirs. */
    return rc == ERR_OK
               ? node_shm_agree(node, node_wakeup_connect(node), what, err)
               : rc;
}

/* Memory cannot be shared, for [reason]. The group works without, and a warning
 * says [how]. Only if the group has failed, [reason] is returned. */
static err_code_t do_without(node_t *node, const err_t *reason, const char *how,
                             err_t *err)
{
    if (node_failed(node))
        return err_copy(err, reason);
    if (node->config.rank == 0)
        log_warn("comm", "%s, which is slower: %s", how, reason->text);
    return ERR_OK;
}

err_code_t node_open(node_t *node, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc = ERR_OK;

    if (node->place.nodes == node->config.size)
        return ERR_OK; /* every node has one rank */
    if (!node->place.whole)
        rc = err_set(&reason, ERR_UNAVAILABLE,
                     "some ranks see the memory of others of their node and "
                     "some do not");
    if (rc == ERR_OK)
        rc = node_control_open(node, &reason);
    if (rc == ERR_OK)
        rc = wakeups_open(node, &reason);
    if (rc != ERR_OK)
        return do_without(node, &reason,
                          "gradients go through UCX even within the node", err);
    rc = node_stage_open(node, &reason);
    if (rc != ERR_OK)
        rc = do_without(node, &reason,
                        "what lies in no arena goes through UCX even within "
                        "the node",
                        err);
    atomic_store(&node->open, rc == ERR_OK);
    return rc;
}

void node_close(node_t *node)
{
    if (node == NULL)
        return;
    node_wakeup_close(node);
    node_stage_close(node);
    node_control_close(node);
    pthread_mutex_destroy(&node->lock);
    mem_free(node->regions);
    mem_free(node->stage.table);
    mem_free(node->wake_fds);
    mem_free(node->buffers);
    mem_free(node);
}

bool node_is_open(const node_t *node)
{
    return atomic_load(&node->open);
}

/* ---- works --------------------------------------------------------------- */

bool node_work_is_active(const node_work_t *work)
{
    return atomic_load(&work->active) != 0;
}

void node_start(node_t *node, node_work_t *work)
{
    check(node_is_open(node), "collective %llu starts on a closed node",
          (unsigned long long)work->number);
    check(atomic_load(&work->active) == 0,
          "collective %llu starts over collective %llu",
          (unsigned long long)work->number,
          (unsigned long long)atomic_load(&work->active) - 1);
    check(node->place.nodes == 1 || (work->split.owners >= 1 &&
                                     work->split.owners <= node->place.least),
          "collective %llu has %d owners, of %d ranks on a node",
          (unsigned long long)work->number, work->split.owners,
          node->place.least);
    atomic_store(&work->seen, 0);
    atomic_store(&work->done, false);
    atomic_store(&node->works[work->number % COMM_WORKS_MAX], work);
    atomic_store(&work->active, work->number + 1);
    if (work->way == NODE_ZCOPY)
        node_zcopy_start(node, work);
    else if (work->way == NODE_ONESHOT)
        node_oneshot_start(node, work);
    else
        node_stage_start(node, work);
    node_zcopy_prefetch(node, work->number + 1);
}

/* Return whether collective [number], whose work is or was [work], is done. Any
 * thread. */
static bool number_done(const node_t *node, const node_work_t *work,
                        uint64_t number)
{
    if (work->way != NODE_ZCOPY)
        return atomic_load(&work->done);
    return node->place.nodes > 1 ? node_zcopy_lanes_done(node, number)
                                 : node_zcopy_done(node, work, number);
}

uint64_t node_oldest(node_t *node, double *since)
{
    uint64_t oldest = UINT64_MAX;

    if (!node_is_open(node))
        return oldest;
    for (int i = 0; i < COMM_WORKS_MAX; i++) {
        node_work_t *work = atomic_load(&node->works[i]);
        uint64_t number = work == NULL ? 0 : atomic_load(&work->active);

        if (number == 0 || number - 1 >= oldest ||
            number_done(node, work, number - 1) ||
            atomic_load(&work->active) != number) /* waited for meanwhile */
            continue;
        oldest = number - 1;
        *since = atomic_load(&work->seen);
        if (*since <= 0) { /* set here, as reading the clock would cost start
                              more than all else */
            *since = clock_now();
            atomic_store(&work->seen, *since);
        }
    }
    return oldest;
}

void node_clocks_reset(node_t *node, double now)
{
    for (int i = 0; i < COMM_WORKS_MAX; i++) {
        node_work_t *work = atomic_load(&node->works[i]);

        if (work != NULL && node_work_is_active(work))
            atomic_store(&work->seen, now);
    }
}

uint64_t node_progress_count(const node_t *node)
{
    return atomic_load(&node->progress);
}
