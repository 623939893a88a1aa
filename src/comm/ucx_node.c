/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The node stage: posts, pieces, waits. See ucx_node.h for the whole. */
#include "comm/ucx_node.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/ucx_group.h"
#include "comm/ucx_span.h"

/* A piece is large enough that claiming it costs nothing, small enough that all
 * ranks end at about the same time. */
#define PIECE_LEAST 4096
#define PIECE_MOST 65536
#define CLAIM_BITS 24
#define CLAIM_MASK ((UINT64_C(1) << CLAIM_BITS) - 1)

/* Looks before blocking: about the time of a wake-up. */
#define SPINS 600
#define YIELDS 20
#define NAP_NANOSECONDS 20000000 /* how late a fault may be seen */

static node_slot_t *node_slot(const ucx_group_t *group, uint64_t number)
{
    const ucx_node_t *node = &group->node;

    return (node_slot_t *)(void *)(node->board->slots +
                                   number % COMM_WORKS_MAX * node->stride);
}

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
    node->stride = sizeof(node_slot_t) + count * sizeof(node_post_t);
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
        code = ucx_shm_agree(group, well && ucx_bell_reach(group), votes, err);
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
    if (group->place.nodes == 1)
        code = ucx_stage_open(group, &reason);
    if (code != ERR_OK)
        code = do_without(group, code, &reason,
                          "what lies in no arena goes through UCX even within "
                          "the node",
                          err);
    atomic_store(&group->node.open, code == ERR_OK);
    ucx_thread_wake(group); /* if it sleeps, so that it says so on the board */
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

/* ---- posts --------------------------------------------------------------- */

static const ucx_arena_t *arena_find(const ucx_group_t *group, const void *data,
                                     size_t bytes)
{
    const ucx_node_t *node = &group->node;
    uintptr_t at = (uintptr_t)data;

    if (!atomic_load(&node->open))
        return NULL;
    for (uint32_t i = 0; i < node->opened; i++) {
        const ucx_arena_t *arena = node->arenas[i];
        uintptr_t begin = arena == NULL ? 0 : (uintptr_t)arena->base.data;

        if (arena != NULL && at >= begin && at + bytes <= begin + arena->bytes)
            return arena;
    }
    return NULL;
}

static bool table_takes(const ucx_group_t *group, comm_choice_t choice,
                        size_t bytes, bool half)
{
    comm_query_t query = {.choice = choice,
                          .where = COMM_WHERE_ARENA,
                          .half = half,
                          .ranks = group->base.size,
                          .bytes = bytes};

    return comm_table_find(group->base.table, &query) == COMM_BY_NODE;
}

/* A sum that is rounded once cannot be made in two stages. */
static bool slot_takes(const ucx_group_t *group, const comm_request_t *request)
{
    size_t bytes = request->count * comm_type_bytes(request->type);
    bool half = comm_type_rounds(request->type);

    comm_choice_t choice = COMM_CHOICE_ALLREDUCE;

    if (request->kind == COMM_REDUCE_SCATTER)
        choice = COMM_CHOICE_REDUCE_SCATTER;
    else if (request->kind == COMM_GATHER_RANGES)
        choice = COMM_CHOICE_GATHER_RANGES;
    else if (request->kind != COMM_ALLREDUCE)
        return false;
    if (group->place.nodes > 1 && (half || choice != COMM_CHOICE_ALLREDUCE))
        return false;
    return arena_find(group, request->data, bytes) != NULL &&
           table_takes(group, choice, bytes, half);
}

bool ucx_node_way(const ucx_group_t *group, const comm_request_t *request,
                  ucx_way_t *way)
{
    if (!atomic_load(&group->node.open))
        return false;
    *way = ucx_shot_takes(group, request) ? WAY_SHOT
           : slot_takes(group, request)   ? WAY_SLOT
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

static size_t piece_bytes(size_t bytes, int size)
{
    size_t piece = mem_round(bytes / (size_t)size);

    if (piece < PIECE_LEAST)
        return PIECE_LEAST;
    if (piece > PIECE_MOST)
        piece = PIECE_MOST;
    while (bytes / piece >> (CLAIM_BITS - 2)) /* must fit the claim */
        piece *= 2;
    return piece;
}

/* Do all posts of the node ask for the same? */
static bool slot_agrees(const ucx_group_t *group, const node_slot_t *slot)
{
    const node_post_t *first = &slot->posts[0];

    for (int i = 1; i < group->place.count; i++) {
        const node_post_t *post = &slot->posts[i];

        if (post->count != first->count || post->cuts != first->cuts ||
            post->kind != first->kind || post->type != first->type ||
            post->op != first->op)
            return false;
    }
    return true;
}

/* The slices are the comm threads' business: nothing to claim. */
static void slot_open_span(ucx_group_t *group, node_slot_t *slot,
                           uint64_t number)
{
    const node_post_t *first = &slot->posts[0];
    ucx_span_plan_t plan =
        ucx_span_plan(&group->place, first->count, (comm_type_t)first->type);

    slot->pieces = (uint32_t)(plan.slices * plan.lanes);
    atomic_store(&slot->done, 0);
    atomic_store(&slot->claim, (number + 1) << CLAIM_BITS);
    for (int i = 0; i < plan.slices; i++)
        if (i != group->place.local)
            ucx_bell_ring(group, i);
}

/* All of the node have come. */
static void slot_open(ucx_group_t *group, node_slot_t *slot, uint64_t number)
{
    const node_post_t *first = &slot->posts[0];
    size_t bytes = first->count * comm_type_bytes((comm_type_t)first->type);
    size_t piece = piece_bytes(bytes, group->place.count);

    atomic_store(&slot->arrived, 0);
    if (!slot_agrees(group, slot)) {
        atomic_store(&slot->odd, number + 1);
        ucx_node_ring(group);
        return;
    }
    if (group->place.nodes > 1) {
        slot_open_span(group, slot, number);
        return;
    }
    slot->pieces = (uint32_t)((bytes + piece - 1) / piece);
    atomic_store(&slot->done, 0);
    atomic_store(&slot->claim, (number + 1) << CLAIM_BITS | slot->pieces);
    ucx_node_ring(group);
}

/* Does this rank own a slice of [request]? */
static bool owns_slice(const ucx_group_t *group, const comm_request_t *request)
{
    return group->place.nodes > 1 &&
           group->place.local <
               ucx_span_plan(&group->place, request->count, request->type)
                   .slices;
}

bool ucx_node_start(ucx_group_t *group, ucx_work_t *work, ucx_way_t way)
{
    const comm_request_t *request = &work->request;
    uint64_t number = work->number;
    node_slot_t *slot = node_slot(group, number);
    node_post_t *post = &slot->posts[group->place.local];
    const ucx_arena_t *arena;

    atomic_store(&work->way, way);
    atomic_store(&work->node_since, 0);
    atomic_store(&work->node, number + 1);
    if (way != WAY_SLOT) {
        if (way == WAY_SHOT)
            ucx_shot_start(group, work);
        else
            ucx_stage_start(group, work);
        return false;
    }
    arena = arena_find(group, request->data,
                       request->count * comm_type_bytes(request->type));
    post->count = request->count;
    post->cuts =
        request->cuts == NULL
            ? 0
            : hash_bytes(request->cuts, ((size_t)group->base.size + 1) *
                                            sizeof *request->cuts);
    post->kind = (uint16_t)request->kind;
    post->type = (uint16_t)request->type;
    post->op = (uint16_t)request->op;
    post->arena = arena->number;
    post->offset = (uint64_t)((char *)request->data - (char *)arena->base.data);
    if (atomic_fetch_add(&slot->arrived, 1) + 1 == (unsigned)group->place.count)
        slot_open(group, slot, number);
    return owns_slice(group, request);
}

/* ---- pieces -------------------------------------------------------------- */

static bool piece_claim(node_slot_t *slot, uint64_t number, uint32_t *piece)
{
    uint64_t claim = atomic_load(&slot->claim);

    do {
        if (claim >> CLAIM_BITS != number + 1 || (claim & CLAIM_MASK) == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&slot->claim, &claim, claim - 1));
    *piece = (uint32_t)(claim & CLAIM_MASK) - 1;
    return true;
}

void ucx_node_parts(ucx_group_t *group, uint64_t number, char **parts)
{
    const node_slot_t *slot = node_slot(group, number);

    for (int i = 0; i < group->place.count; i++) {
        const node_post_t *post = &slot->posts[i];

        parts[i] =
            (char *)group->node.arenas[post->arena]->maps[i] + post->offset;
    }
}

/* [count] elements from [begin] on lie at [parts]: of each range what lies
 * among them, summed to its owner, or from its owner to all others. On one node
 * ranks are numbered as in the group. */
static void ranges_run(const comm_request_t *what, char *const *parts, int size,
                       size_t begin, size_t count)
{
    size_t width = comm_type_bytes(what->type);
    const size_t *cuts = what->cuts;

    for (int owner = 0; owner < size; owner++) {
        size_t first = cuts[owner] > begin ? cuts[owner] : begin;
        size_t last =
            cuts[owner + 1] < begin + count ? cuts[owner + 1] : begin + count;
        size_t at = (first - begin) * width;

        if (first >= last)
            continue;
        if (what->kind == COMM_REDUCE_SCATTER)
            node_sum_part(parts, size, at, last - first, what->type, what->op,
                          parts[owner]);
        for (int i = 0; what->kind == COMM_GATHER_RANGES && i < size; i++)
            if (i != owner)
                memcpy(parts[i] + at, parts[owner] + at,
                       (last - first) * width);
    }
}

/* Under node.lock. */
static void piece_run(ucx_group_t *group, const ucx_work_t *work,
                      uint32_t piece)
{
    const comm_request_t *what = &work->request;
    size_t width = comm_type_bytes(what->type), bytes = what->count * width;
    size_t step = piece_bytes(bytes, group->place.count);
    size_t begin = piece * step;
    size_t end = bytes - begin < step ? bytes : begin + step;
    char **parts = group->node.parts;

    ucx_node_parts(group, work->number, parts);
    for (int i = 0; i < group->place.count; i++)
        parts[i] += begin;
    if (what->kind == COMM_ALLREDUCE)
        node_sum(parts, group->place.count, (end - begin) / width, what->type,
                 what->op);
    else
        ranges_run(what, parts, group->place.count, begin / width,
                   (end - begin) / width);
}

void ucx_node_add(ucx_group_t *group, uint64_t number)
{
    node_slot_t *slot = node_slot(group, number);
    uint32_t pieces = slot->pieces; /* may be another's after the last one */

    if (atomic_fetch_add(&slot->done, 1) + 1 == pieces) {
        atomic_store(&slot->completed, number + 1);
        ucx_node_ring(group);
    }
}

static bool piece_do(ucx_group_t *group, const ucx_work_t *work)
{
    node_slot_t *slot = node_slot(group, work->number);
    uint32_t piece;

    if (!piece_claim(slot, work->number, &piece))
        return false;
    piece_run(group, work, piece);
    ucx_node_add(group, work->number);
    return true;
}

bool ucx_node_done(const ucx_group_t *group, uint64_t number)
{
    return atomic_load(&node_slot(group, number)->completed) > number;
}

/* ---- poll and wait ------------------------------------------------------- */

void ucx_node_disagree(ucx_group_t *group, uint64_t number)
{
    err_t fault = ERR_INIT;

    if (atomic_load(&group->failed))
        return;
    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": the ranks reduce buffers of different "
            "sizes, ranges or types: all must start the same collectives in "
            "the same "
            "order",
            number);
    ucx_group_fail(group, &fault);
}

/* All find out. */
static void odd_check(ucx_group_t *group, uint64_t number)
{
    const node_slot_t *slot = node_slot(group, number);

    if (atomic_load(&slot->odd) == number + 1)
        ucx_node_disagree(group, number);
}

bool ucx_node_opened(ucx_group_t *group, uint64_t number)
{
    const node_slot_t *slot = node_slot(group, number);

    odd_check(group, number);
    return atomic_load(&slot->claim) >> CLAIM_BITS == number + 1;
}

/* Is [work], which is or was collective [number], done? Any thread. */
static bool number_done(const ucx_group_t *group, const ucx_work_t *work,
                        uint64_t number)
{
    if (atomic_load(&work->way) != WAY_SLOT)
        return atomic_load_explicit(&work->state, memory_order_acquire) ==
               COMM_DONE;
    return ucx_node_done(group, number);
}

static bool work_done(const ucx_group_t *group, const ucx_work_t *work)
{
    return number_done(group, work, work->number);
}

/* What others may wait for: this rank does it whatever it waits for itself. */
static bool others_go(ucx_group_t *group)
{
    bool did = ucx_shot_busy(group) && ucx_shot_go(group);

    return ucx_stage_go(group) || did;
}

/* Do something, for [work] first. */
static bool work_go(ucx_group_t *group, const ucx_work_t *work)
{
    int way = atomic_load(&work->way);
    bool did;

    if (way == WAY_SHOT && ucx_shot_go(group))
        return true;
    if (way != WAY_SLOT)
        return others_go(group);
    pthread_mutex_lock(&group->node.lock);
    did = piece_do(group, work);
    pthread_mutex_unlock(&group->node.lock);
    if (!did)
        odd_check(group, work->number);
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
    const node_slot_t *slot = node_slot(group, work->number);
    uint64_t claim;

    if (work_done(group, work) || atomic_load(&group->failed) ||
        others_wait(group))
        return true;
    if (atomic_load(&work->way) != WAY_SLOT)
        return false;
    claim = atomic_load(&slot->claim);
    return (claim >> CLAIM_BITS == work->number + 1 &&
            (claim & CLAIM_MASK) != 0) ||
           atomic_load(&slot->odd) == work->number + 1;
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* For a nap, unless there is something to do. */
static void wait_nap(ucx_group_t *group, const ucx_work_t *work,
                     bool (*over)(ucx_group_t *, const ucx_work_t *))
{
    static const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    node_board_t *board = group->node.board;
    unsigned bell;

    ucx_stage_summon(group);
    atomic_fetch_add(&board->sleepers, 1);
    bell = atomic_load(&board->bell);
    if (!over(group, work))
        syscall(SYS_futex, &board->bell, FUTEX_WAIT, bell, &nap, NULL, 0);
    atomic_fetch_sub(&board->sleepers, 1);
}

/* Until there is something to do, or for a nap. */
static void wait_block(ucx_group_t *group, const ucx_work_t *work)
{
    for (int i = 0; group->node.spin && i < SPINS; i++) {
        if (wait_over(group, work))
            return;
        cpu_relax();
    }
    for (int i = 0; i < YIELDS; i++) {
        if (wait_over(group, work))
            return;
        sched_yield();
    }
    wait_nap(group, work, wait_over);
}

bool ucx_node_wait(ucx_group_t *group, ucx_work_t *work)
{
    bool done = work_done(group, work);

    while (!done && !atomic_load(&group->failed)) {
        if (!work_go(group, work))
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
            number_done(group, work, number - 1))
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
