/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The node stage: open, ways, waits. See ucx_node.h for the whole. */
#include "comm/ucx_node.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/ucx_group.h"

/* Looks between two readings of the clock; the first ones of all without a
 * pause. */
#define LOOKS 64
#define EAGER 32
#define NAP_NANOSECONDS 20000000 /* how late a fault may be seen */

/* ---- open and close ------------------------------------------------------ */

/* Over several nodes there are no shots. */
static size_t shots_bytes(const ucx_group_t *group)
{
    return group->place.nodes > 1
               ? 0
               : (size_t)group->place.count * sizeof(shot_rank_t);
}

static err_code_t tables_open(ucx_group_t *group, err_t *err)
{
    ucx_node_t *node = &group->node;
    size_t count = (size_t)group->place.count;
    void *parts = NULL, *bells = NULL, *stages = NULL;
    err_code_t code =
        mem_alloc(2 * count * sizeof *node->parts, "comm parts", &parts, err);

    if (code == ERR_OK)
        code =
            mem_alloc(count * sizeof *node->bells, "comm bells", &bells, err);
    if (code == ERR_OK)
        code = mem_alloc(count * sizeof *node->stages.table, "comm stages",
                         &stages, err);
    node->stages.table = stages;
    node->parts = parts;
    node->span_parts = node->parts == NULL ? NULL : node->parts + count;
    node->bells = bells;
    for (size_t i = 0; bells != NULL && i < count; i++)
        node->bells[i] = -1;
    node->stride = ucx_slot_bytes(group->place.count);
    node->bytes = sizeof(node_board_t) + COMM_WORKS_MAX * node->stride +
                  count * sizeof(node_seat_t) + shots_bytes(group);
    return code;
}

/* Comm threads of a node must be able to wake each other. */
static err_code_t bells_open(ucx_group_t *group, err_t *err)
{
    void *votes = NULL;
    bool well = ucx_bell_hang(group);
    err_code_t code =
        mem_alloc((size_t)group->base.size, "comm votes", &votes, err);

    if (code == ERR_OK)
        code = comm_barrier(&group->base, err);
    if (code == ERR_OK)
        code =
            ucx_shm_agree(group, well && ucx_bell_reach(group),
                          "open the pipes that wake comm threads", votes, err);
    if (code == ERR_OK)
        code = ucx_thread_watch_bell(group, err);
    mem_free(votes);
    return code;
}

static err_code_t board_open(ucx_group_t *group, err_t *err)
{
    void *board = NULL;
    err_code_t code;

    if (!group->place.whole)
        return err_set(err, ERR_UNAVAILABLE,
                       "some ranks see the memory of others of their node and "
                       "some do not");
    code = ucx_shm_share(group, group->node.bytes, false, &board, err);
    group->node.board = board;
    if (code == ERR_OK) /* they are its end */
        group->node.shots.ranks =
            (shot_rank_t *)(void *)((char *)board + group->node.bytes -
                                    shots_bytes(group));
    if (code == ERR_OK)
        code = bells_open(group, err);
    return code;
}

/* [code], because of which the group goes [how]: it can do without, unless it
 * has failed. */
static err_code_t do_without(ucx_group_t *group, err_code_t code,
                             const err_t *reason, const char *how, err_t *err)
{
    if (atomic_load(&group->failed)) {
        if (err != NULL)
            *err = *reason;
        return code;
    }
    if (group->base.rank == 0)
        log_warn("comm", "%s, which is slower: %s", how, reason->text);
    return ERR_OK;
}

err_code_t ucx_node_open(ucx_group_t *group, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t code;

    if (group->place.nodes == group->base.size)
        return ERR_OK; /* everybody is alone */
    code = tables_open(group, err);
    if (code != ERR_OK)
        return code;
    code = board_open(group, &reason);
    if (code != ERR_OK)
        return do_without(group, code, &reason,
                          "gradients go through UCX even within the node", err);
    code = ucx_stage_open(group, &reason);
    if (code != ERR_OK)
        code = do_without(group, code, &reason,
                          "what lies in no arena goes through UCX even within "
                          "the node",
                          err);
    atomic_store(&group->node.open, code == ERR_OK);
    ucx_group_wake(group); /* if it sleeps, so that it says so on the board */
    return code;
}

void ucx_node_close(ucx_group_t *group)
{
    void *board = group->node.board;

    ucx_bell_close(group);
    ucx_stage_close(group);
    ucx_shm_unmap(&board, 1, group->node.bytes);
    group->node.board = NULL;
    mem_free(group->node.stages.table);
    mem_free(group->node.bells);
    mem_free(group->node.parts);
}

/* ---- ways and starts ----------------------------------------------------- */

bool ucx_node_way(const ucx_group_t *group, const comm_request_t *request,
                  ucx_way_t *way)
{
    if (!atomic_load(&group->node.open))
        return false;
    *way = ucx_shot_takes(group, request)   ? WAY_SHOT
           : ucx_slot_takes(group, request) ? WAY_SLOT
                                            : WAY_STAGE;
    return *way != WAY_STAGE || ucx_stage_takes(group, request);
}

void ucx_node_ring(ucx_group_t *group)
{
    node_board_t *board = group->node.board;

    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&board->sleepers) == 0)
        return;
    atomic_fetch_add(&board->bell, 1);
    syscall(SYS_futex, &board->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool ucx_node_start(ucx_group_t *group, ucx_work_t *work, ucx_way_t way)
{
    bool shared = false;

    atomic_store(&work->way, way);
    atomic_store(&work->node_since, 0);
    atomic_store(&work->node, work->number + 1);
    if (way == WAY_SLOT)
        shared = ucx_slot_start(group, work);
    else if (way == WAY_SHOT)
        ucx_shot_start(group, work);
    else
        shared = ucx_stage_start(group, work);
    ucx_slot_foresee(group, work->number + 1);
    return shared;
}

/* ---- poll and wait ------------------------------------------------------- */

void ucx_node_disagree(ucx_group_t *group, uint64_t number)
{
    const ucx_work_t *work = &group->works[number % COMM_WORKS_MAX];
    int rank = group->base.rank;
    err_t fault = ERR_INIT;
    char mine[96];

    if (atomic_load(&group->failed))
        return;
    comm_request_print(&work->request, mine, sizeof mine);
    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": rank %d on %s called %s, and a rank of "
            "its node something else, or the same of other ranges: all must "
            "start the same collectives in the same order",
            number, comm_rank_name(&group->base, rank),
            group->base.hellos[rank].host, mine);
    ucx_group_fail(group, &fault);
}

/* Has the owner seen that it is done? */
static bool work_done(const ucx_group_t *group, const ucx_work_t *work)
{
    if (group->place.nodes > 1)
        return atomic_load(&work->way) == WAY_SLOT
                   ? ucx_slot_lanes_done(group, work->number)
                   : atomic_load(&work->taken);
    return atomic_load_explicit(&work->state, memory_order_acquire) ==
           COMM_DONE;
}

/* Is [work], which is or was collective [number], done, by whomever? Any
 * thread. */
static bool number_done(const ucx_group_t *group, const ucx_work_t *work,
                        uint64_t number)
{
    if (atomic_load(&work->way) != WAY_SLOT)
        return group->place.nodes > 1 ? atomic_load(&work->taken)
                                      : atomic_load(&work->state) == COMM_DONE;
    return group->place.nodes > 1 ? ucx_slot_lanes_done(group, number)
                                  : ucx_slot_done(group, work, number);
}

/* What others may wait for: this rank does it whatever it waits for itself. */
static bool others_go(ucx_group_t *group)
{
    bool did = ucx_shot_busy(group) && ucx_shot_go(group);

    return ucx_stage_go(group) || did;
}

/* Do something, for [work] first. */
static bool work_go(ucx_group_t *group, ucx_work_t *work)
{
    int way = atomic_load(&work->way);
    bool did;

    if (way == WAY_SHOT && ucx_shot_go(group))
        return true;
    if (way != WAY_SLOT)
        return others_go(group);
    did = group->place.nodes == 1 && ucx_slot_go(group, work);
    if (!did)
        ucx_slot_check(group, work->number);
    return did || others_go(group);
}

comm_state_t ucx_node_poll(ucx_group_t *group, ucx_work_t *work)
{
    if (!work_done(group, work))
        work_go(group, work);
    if (work_done(group, work))
        return COMM_DONE;
    ucx_stage_summon(group); /* who computes has a comm thread */
    return atomic_load(&group->failed) ? COMM_FAILED : COMM_PENDING;
}

static bool others_wait(ucx_group_t *group)
{
    return (ucx_shot_busy(group) && ucx_shot_ready(group)) ||
           ucx_stage_ready(group);
}

/* Is there anything to do, or is [work] over? */
static bool wait_over(ucx_group_t *group, const ucx_work_t *work)
{
    if (work_done(group, work) || atomic_load(&group->failed) ||
        others_wait(group))
        return true;
    return atomic_load(&work->way) == WAY_SLOT &&
           (ucx_slot_odd(group, work->number) ||
            (group->place.nodes == 1 && ucx_slot_ready(group, work)));
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* For a nap, unless there is something to do; false: nobody ended it. */
static bool wait_nap(ucx_group_t *group, const ucx_work_t *work,
                     bool (*over)(ucx_group_t *, const ucx_work_t *))
{
    static const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    node_board_t *board = group->node.board;
    bool rung = true;
    unsigned bell;

    ucx_stage_summon(group);
    atomic_fetch_add(&board->sleepers, 1);
    bell = atomic_load(&board->bell);
    if (!over(group, work))
        rung = syscall(SYS_futex, &board->bell, FUTEX_WAIT, bell, &nap, NULL,
                       0) == 0 ||
               errno != ETIMEDOUT;
    atomic_fetch_sub(&board->sleepers, 1);
    return rung;
}

/* Is there something to do, at one of a few looks? */
static bool wait_look(ucx_group_t *group, const ucx_work_t *work, int eager)
{
    int looks = group->node.pace.core ? LOOKS : 1;

    for (int i = 0; i < looks; i++) {
        if (wait_over(group, work))
            return true;
        if (i >= eager)
            cpu_relax();
    }
    return false;
}

/* Until there is something to do, or for a nap. */
static void wait_block(ucx_group_t *group, const ucx_work_t *work)
{
    ucx_pace_t *pace = &group->node.pace;
    bool found = wait_look(group, work, EAGER);

    while (!found) {
        ucx_step_t step = ucx_pace_next(pace, clock_now());

        if (step == STEP_SLEEP)
            break;
        if (step == STEP_YIELD) {
            sched_yield();
            ucx_pace_yielded(pace, clock_now());
        }
        found = wait_look(group, work, 0);
    }
    if (found) {
        ucx_pace_found(pace);
        return;
    }
    ucx_group_sleeps(group, work);
    ucx_pace_slept(pace, wait_nap(group, work, wait_over));
}

bool ucx_node_wait(ucx_group_t *group, ucx_work_t *work)
{
    bool done = work_done(group, work);

    while (!done && !atomic_load(&group->failed)) {
        if (work_go(group, work))
            ucx_pace_found(&group->node.pace);
        else
            wait_block(group, work);
        done = work_done(group, work);
    }
    atomic_fetch_add(&group->node.moves, done);
    if (!done) { /* whoever copies for it has ended when we have been here */
        pthread_mutex_lock(&group->node.lock);
        pthread_mutex_unlock(&group->node.lock);
    }
    return done;
}

bool ucx_node_busy(const ucx_group_t *group)
{
    return atomic_load(&group->node.open) &&
           (ucx_shot_busy(group) || ucx_stage_busy(group));
}

/* The comm thread rings when [work] is done. */
static bool attend_over(ucx_group_t *group, const ucx_work_t *work)
{
    return atomic_load(&work->state) != COMM_PENDING ||
           atomic_load(&group->failed) || others_wait(group);
}

void ucx_node_attend(ucx_group_t *group, const ucx_work_t *work)
{
    if (!others_go(group))
        wait_nap(group, work, attend_over);
}

uint64_t ucx_node_oldest(ucx_group_t *group, double *since)
{
    uint64_t oldest = UINT64_MAX;

    if (!atomic_load(&group->node.open))
        return oldest;
    for (int i = 0; i < COMM_WORKS_MAX; i++) {
        ucx_work_t *work = &group->works[i];
        uint64_t number = atomic_load(&work->node);

        if (number == 0 || number - 1 >= oldest ||
            number_done(group, work, number - 1) ||
            atomic_load(&work->node) != number) /* waited for meanwhile */
            continue;
        oldest = number - 1;
        *since = atomic_load(&work->node_since);
        if (*since <= 0) { /* a clock would cost start more than the rest */
            *since = clock_now();
            atomic_store(&work->node_since, *since);
        }
    }
    return oldest;
}
