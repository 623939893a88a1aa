/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The ranks are threads of this process and share a team (threads_team.h).
 * start only stores the request; the ranks that wait or poll do the arithmetic
 * (threads_piece.c). If a rank does not join a collective, the waiting ranks
 * find it: at once if it has left the group, otherwise when it has shown no
 * progress for the timeout.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "base/thread.h"
#include "comm/threads_team.h"

/* How often to check the team before blocking, if there is a core for every
 * rank: about the time of a wake-up. */
#define SPINS 2000

typedef struct threads_work {
    comm_work_t base;
    uint64_t number;
    /* Returned by start and not yet waited for; for the owner's thread only. */
    bool busy;
} threads_work_t;

typedef struct threads_group {
    comm_group_t base;
    threads_team_t *team;
    uint64_t started; /* number of the next collective */
    threads_work_t works[COMM_WORKS_MAX];
} threads_group_t;

static threads_member_t *group_member(threads_group_t *group)
{
    return &group->team->members[group->base.rank];
}

static bool work_completed(threads_team_t *team, uint64_t number)
{
    threads_slot_t *slot = &team->slots[number % COMM_WORKS_MAX];

    return atomic_load(&slot->completed) > number;
}

/* ---- faults -------------------------------------------------------------- */

/* Wait until no thread touches a buffer any more. It is called after `failed`
 * is set: a thread that enters a piece later sees it and leaves at once, so the
 * wait is short. */
static void team_quiet(threads_team_t *team)
{
    while (atomic_load(&team->working) > 0)
        sched_yield();
}

/* Store the fault, unless there is one already. Under lock. */
static void team_fail(threads_team_t *team, const err_t *fault)
{
    if (!atomic_load(&team->failed)) {
        team->fault = *fault;
        atomic_store(&team->failed, true);
    }
    pthread_cond_broadcast(&team->changed);
}

static err_code_t team_fault(threads_team_t *team, err_t *err)
{
    err_code_t rc;

    pthread_mutex_lock(&team->lock);
    rc = err_copy(err, &team->fault);
    pthread_mutex_unlock(&team->lock);
    return rc;
}

static void fault_describe(threads_group_t *group, int culprit, uint64_t number,
                           const char *what, err_t *fault)
{
    threads_member_t *member = &group->team->members[culprit];
    const char *phase = atomic_load(&member->phase);
    int name = comm_rank_name(&group->base, culprit);

    err_set_peer(fault, name, group->base.hellos[culprit].host,
                 "rank %d on %s %s, collective %" PRIu64
                 " waits for it (it last reported step %" PRId64 ", %s)",
                 name, group->base.hellos[culprit].host, what, number,
                 (int64_t)atomic_load(&member->step),
                 phase != NULL ? phase : "no phase yet");
}

/* Look for a rank that does not join collective [number]. Under lock. */
static void team_suspect(threads_group_t *group, uint64_t number, double since)
{
    threads_team_t *team = group->team;
    double now = clock_now();
    char what[96];
    err_t fault = ERR_INIT;

    numeric_print(what, sizeof what, "showed no progress for %g s",
                  team->timeout);
    for (int rank = 0; rank < team->size; rank++) {
        threads_member_t *member = &team->members[rank];
        double quiet = atomic_load(&member->progress);

        if (atomic_load(&member->started) > number)
            continue;
        if (quiet < since)
            quiet = since;
        if (atomic_load(&member->left))
            fault_describe(group, rank, number, "left the group", &fault);
        else if (!atomic_load(&member->waiting) && now - quiet >= team->timeout)
            fault_describe(group, rank, number, what, &fault);
        else
            continue;
        team_fail(team, &fault);
        return;
    }
}

/* ---- start --------------------------------------------------------------- */

/* Check that all ranks request the same collective. If not, *odd is a rank
 * whose request differs. */
static bool requests_agree(const comm_request_t *requests, int size, int *odd)
{
    int64_t next = 0;

    for (int rank = 0; rank < size; rank++) {
        const comm_request_t *one = &requests[rank];

        *odd = rank;
        if (one->kind != requests->kind || one->count != requests->count ||
            one->type != requests->type || one->op != requests->op ||
            one->root != requests->root || one->leaves != requests->leaves)
            return false;
        if ((one->cuts == NULL) != (requests->cuts == NULL))
            return false;
        if (one->cuts != NULL && requests->cuts != NULL &&
            memcmp(one->cuts, requests->cuts,
                   ((size_t)size + 1) * sizeof *one->cuts) != 0)
            return false;
        if (one->held > 0 && one->first != next)
            return false;
        next += one->held;
    }
    return requests->kind != COMM_TREE || next == requests->leaves;
}

/* Fail because rank [odd] requests another collective than rank 0. */
static void requests_differ(threads_group_t *group, uint64_t number,
                            const comm_request_t *requests, int odd)
{
    char one[96], other[96];
    err_t fault = ERR_INIT;

    comm_request_print(&requests[odd], one, sizeof one);
    comm_request_print(requests, other, sizeof other);
    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": rank %d called %s, rank %d %s%s: all "
            "ranks must start the same collectives in the same order",
            number, comm_rank_name(&group->base, odd), one,
            comm_rank_name(&group->base, 0), other,
            strcmp(one, other) == 0 ? ", cut differently" : "");
    team_fail(group->team, &fault);
}

/* Open the slot, as all ranks have entered it. Under lock. */
static void slot_open(threads_group_t *group, threads_slot_t *slot)
{
    const comm_request_t *requests = slot->requests;
    threads_team_t *team = group->team;
    uint64_t number = slot->number;
    int odd = 0;

    check(slot->arrived == team->size, "%d of %d ranks are in collective %llu",
          slot->arrived, team->size, (unsigned long long)number);
    slot->arrived = 0;
    if (!requests_agree(requests, team->size, &odd)) {
        requests_differ(group, number, requests, odd);
        return;
    }
    slot->pieces = threads_piece_count(requests, team->size);
    atomic_store(&slot->done, 0);
    if (slot->pieces == 0)
        atomic_store(&slot->completed, number + 1);
    else
        atomic_store(&slot->claim,
                     (number + 1) << THREADS_CLAIM_BITS | slot->pieces);
    pthread_cond_broadcast(&team->changed);
}

/* Enter the slot of the next collective. Under lock. */
static void slot_enter(threads_group_t *group, const comm_request_t *request)
{
    uint64_t number = group->started;
    threads_slot_t *slot = &group->team->slots[number % COMM_WORKS_MAX];
    threads_member_t *member = group_member(group);
    int rank = group->base.rank;
    void **views = slot->views + (size_t)rank * COMM_VIEWS_MAX;

    check(slot->arrived == 0 || slot->number == number,
          "collective %llu enters a slot where %d ranks wait in %llu",
          (unsigned long long)number, slot->arrived,
          (unsigned long long)slot->number);
    check(atomic_load(&slot->completed) <= number,
          "collective %llu enters a slot where %llu is done",
          (unsigned long long)number,
          (unsigned long long)atomic_load(&slot->completed) - 1);
    slot->number = number;
    comm_request_copy(request, views, &slot->requests[rank]);
    group->started++;
    atomic_store(&member->started, number + 1);
    atomic_store(&member->progress, clock_now());
    if (++slot->arrived == group->team->size)
        slot_open(group, slot);
}

static comm_state_t threads_start(comm_group_t *base,
                                  const comm_request_t *request,
                                  comm_work_t **out, err_t *err)
{
    threads_group_t *group = (threads_group_t *)base;
    threads_team_t *team = group->team;
    uint64_t number = group->started;
    threads_work_t *work = &group->works[number % COMM_WORKS_MAX];

    if (work->busy) {
        err_set(err, ERR_CONFIG,
                "rank %d has %d collectives in flight: wait for some first",
                base->rank, COMM_WORKS_MAX);
        return COMM_FAILED;
    }
    pthread_mutex_lock(&team->lock);
    if (!atomic_load(&team->failed))
        slot_enter(group, request);
    pthread_mutex_unlock(&team->lock);
    if (group->started == number) {
        team_fault(team, err);
        return COMM_FAILED;
    }
    check(group->started == number + 1, "collective %llu follows %llu",
          (unsigned long long)group->started, (unsigned long long)number);
    *out = NULL;
    if (work_completed(team, number))
        return COMM_DONE;
    work->base.group = base;
    work->number = number;
    work->busy = true;
    *out = &work->base;
    return COMM_PENDING;
}

/* ---- poll and wait ------------------------------------------------------- */

static comm_state_t threads_poll(comm_work_t *base)
{
    threads_work_t *work = (threads_work_t *)base;
    threads_team_t *team = ((threads_group_t *)base->group)->team;

    if (!work_completed(team, work->number))
        threads_piece_do(team, work->number);
    if (work_completed(team, work->number))
        return COMM_DONE;
    return atomic_load(&team->failed) ? COMM_FAILED : COMM_PENDING;
}

static bool slot_claimable(threads_team_t *team, uint64_t number)
{
    uint64_t claim = atomic_load(&team->slots[number % COMM_WORKS_MAX].claim);

    return claim >> THREADS_CLAIM_BITS == number + 1 &&
           (claim & ((UINT64_C(1) << THREADS_CLAIM_BITS) - 1)) != 0;
}

static bool wait_over(threads_team_t *team, uint64_t number)
{
    return work_completed(team, number) || slot_claimable(team, number) ||
           atomic_load(&team->failed);
}

/* Block until there is something to do. [*since] is the instant when the wait
 * began, or when this process continued after a stop. A stop is noticed by a
 * tick that took far too long: all clocks stood still, so no rank may be blamed
 * for that time. */
static void wait_block(threads_group_t *group, uint64_t number, double *since)
{
    threads_team_t *team = group->team;
    double tick = team->timeout / 8 < 1 ? team->timeout / 8 : 1;

    for (int i = 0; team->spin && i < SPINS; i++)
        if (wait_over(team, number))
            return;
    pthread_mutex_lock(&team->lock);
    while (!wait_over(team, number)) {
        double before = clock_now();

        team_suspect(group, number, *since);
        if (atomic_load(&team->failed))
            break;
        thread_cond_wait(&team->changed, &team->lock, before + tick);
        if (clock_now() - before > tick + team->timeout / 2)
            *since = clock_now();
    }
    pthread_mutex_unlock(&team->lock);
}

static err_code_t threads_wait(comm_work_t *base, err_t *err)
{
    threads_work_t *work = (threads_work_t *)base;
    threads_group_t *group = (threads_group_t *)base->group;
    threads_team_t *team = group->team;
    double since = clock_now();
    err_code_t rc = ERR_OK;

    atomic_store(&group_member(group)->waiting, true);
    while (!work_completed(team, work->number) && !atomic_load(&team->failed))
        if (!threads_piece_do(team, work->number))
            wait_block(group, work->number, &since);
    if (!work_completed(team, work->number)) {
        team_quiet(team);
        rc = team_fault(team, err);
    }
    work->busy = false;
    atomic_store(&group_member(group)->progress, clock_now());
    atomic_store(&group_member(group)->waiting, false);
    return rc;
}

static void threads_report(comm_group_t *base, int64_t step, const char *phase)
{
    threads_member_t *member = group_member((threads_group_t *)base);

    atomic_store(&member->step, step);
    atomic_store(&member->phase, phase);
    atomic_store(&member->progress, clock_now());
}

static err_code_t threads_check(comm_group_t *base, err_t *err)
{
    threads_team_t *team = ((threads_group_t *)base)->team;

    return atomic_load(&team->failed) ? team_fault(team, err) : ERR_OK;
}

static void threads_fail(comm_group_t *base, const err_t *fault)
{
    threads_team_t *team = ((threads_group_t *)base)->team;

    pthread_mutex_lock(&team->lock);
    team_fail(team, fault);
    pthread_mutex_unlock(&team->lock);
}

/* ---- open and close ------------------------------------------------------ */

static void threads_close(comm_group_t *base)
{
    threads_group_t *group = (threads_group_t *)base;
    threads_team_t *team = group->team;
    bool pending = false, last;
    err_t fault = ERR_INIT;

    for (int i = 0; i < COMM_WORKS_MAX; i++)
        pending |= group->works[i].busy &&
                   !work_completed(team, group->works[i].number);
    pthread_mutex_lock(&team->lock);
    atomic_store(&group_member(group)->left, true);
    if (pending && !atomic_load(&team->failed)) {
        comm_fault_left(base, &fault);
        team_fail(team, &fault);
    }
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    if (pending)
        team_quiet(team);
    pthread_mutex_lock(&team->lock);
    last = --team->users == 0;
    pthread_mutex_unlock(&team->lock);
    if (last)
        threads_team_free(team);
    mem_free(group);
}

static err_code_t threads_open(const comm_config_t *config,
                               const comm_oob_t *oob, comm_hello_t *hellos,
                               comm_group_t **out, err_t *err)
{
    threads_group_t *group;
    err_code_t rc;

    for (int rank = 1; rank < oob->size; rank++)
        if (hellos[rank].pid != hellos[0].pid ||
            strcmp(hellos[rank].host, hellos[0].host) != 0)
            return err_set(err, ERR_CONFIG,
                           "comm backend \"threads\" needs all ranks in one "
                           "process, but rank %d is process %lld on %s: choose "
                           "auto or ucx",
                           rank, (long long)hellos[rank].pid,
                           hellos[rank].host);
    rc = mem_new(threads_group_t, 1, "comm group", &group, err);
    if (rc != ERR_OK)
        return rc;
    rc = threads_team_join(oob, config->timeout, &group->team, err);
    if (rc != ERR_OK) {
        mem_free(group);
        return rc;
    }
    group->base = (comm_group_t){.ops = &comm_threads_ops,
                                 .rank = oob->rank,
                                 .size = oob->size,
                                 .timeout = config->timeout,
                                 .table = config->table,
                                 .hellos = hellos};
    *out = &group->base;
    return ERR_OK;
}

const comm_ops_t comm_threads_ops = {
    .name = "threads",
    .open = threads_open,
    .close = threads_close,
    .report = threads_report,
    .check = threads_check,
    .start = threads_start,
    .poll = threads_poll,
    .wait = threads_wait,
    .fail = threads_fail,
};
