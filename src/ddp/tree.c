/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Slot i of the fold is arena i. Arena 0 is the arena of the ddp_t, so a rank
 * with one leaf copies nothing.
 */
#include "ddp/tree.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "comm/comm_fold.h"
#include "ddp/ddp_priv.h"

typedef struct tree_arena {
    float *grads;
    double *tail;
    /* On a device: [last] is the last use of the arena; [used]: that was in
     * this step. */
    dev_event_t *last;
    bool used;
} tree_arena_t;

struct ddp_tree {
    ddp_t *ddp;
    const op_backend_ops_t *backend;
    void *memory; /* memory of all arenas except arena 0 */
    ddp_fold_t *fold;
    comm_leaves_t mine;
    dev_event_t *after; /* on a device: all sums of this rank are there */
    bool failed;        /* this rank has no sums in this step */
    int partials;
    tree_arena_t arenas[];
};

static size_t arena_bytes(size_t grad_elems, size_t tail_doubles)
{
    return mem_round(grad_elems * sizeof(float)) +
           mem_round(tail_doubles * sizeof(double));
}

size_t ddp_tree_bytes(size_t grad_elems, size_t tail_doubles, int partials)
{
    return (size_t)(partials - 1) * arena_bytes(grad_elems, tail_doubles);
}

/* ---- the order of what streams do with an arena -------------------------- */

/* What is enqueued on [stream] from here on begins after the last use of
 * [arena] in this step. Uses by earlier steps are over (ddp_tree_begin), and a
 * step that is captured must not wait for events of earlier steps. */
static err_code_t arena_take(const ddp_tree_t *tree, tree_arena_t *arena,
                             dev_stream_t *stream, err_t *err)
{
    const bool waits = arena->used && tree->ddp->dev != NULL;

    arena->used = true;
    return waits ? dev_event_wait_on(arena->last, stream, err) : ERR_OK;
}

/* What [stream] has now is the last use of [arena]. */
static err_code_t arena_give(const ddp_tree_t *tree, const tree_arena_t *arena,
                             dev_stream_t *stream, err_t *err)
{
    return tree->ddp->dev == NULL ? ERR_OK
                                  : dev_event_record(arena->last, stream, err);
}

/* An arena is used by one thread at a time, as the fold deals them out. */
static err_code_t arenas_add(void *context, void *thread, int to, int from,
                             err_t *err)
{
    ddp_tree_t *tree = context;
    tree_arena_t *a = &tree->arenas[to], *b = &tree->arenas[from];
    dev_stream_t *stream = thread;
    err_code_t rc = arena_take(tree, a, stream, err);

    if (rc == ERR_OK)
        rc = arena_take(tree, b, stream, err);
    if (rc == ERR_OK)
        rc = op_add(tree->backend, a->grads, b->grads, tree->ddp->grad_elems,
                    OP_FLOAT32, stream, err);
    if (rc == ERR_OK)
        rc = op_add(tree->backend, a->tail, b->tail, tree->ddp->tail_doubles,
                    OP_FLOAT64, stream, err);
    if (rc == ERR_OK)
        rc = arena_give(tree, a, stream, err);
    return rc == ERR_OK ? arena_give(tree, b, stream, err) : rc;
}

/* ---- open and close ------------------------------------------------------ */

static err_code_t memory_alloc(ddp_tree_t *tree, err_t *err)
{
    const size_t bytes = ddp_tree_bytes(
        tree->ddp->grad_elems, tree->ddp->tail_doubles, tree->partials);

    return tree->ddp->dev == NULL
               ? mem_alloc(bytes, "partial gradients", &tree->memory, err)
               : dev_alloc(tree->ddp->dev, bytes, "partial gradients",
                           &tree->memory, err);
}

static void arenas_place(ddp_tree_t *tree)
{
    const size_t grad_elems = tree->ddp->grad_elems;
    char *at = tree->memory;

    tree->arenas[0].grads = tree->ddp->grads;
    tree->arenas[0].tail = tree->ddp->tail;
    for (int i = 1; i < tree->partials; i++) {
        tree->arenas[i].grads = (float *)at;
        tree->arenas[i].tail =
            (double *)(at + mem_round(grad_elems * sizeof(float)));
        at += arena_bytes(grad_elems, tree->ddp->tail_doubles);
    }
}

static err_code_t events_open(ddp_tree_t *tree, err_t *err)
{
    dev_device_t *dev = tree->ddp->dev;
    err_code_t rc;

    if (dev == NULL)
        return ERR_OK;
    rc = dev_event_open(dev, &tree->after, err);
    for (int i = 0; rc == ERR_OK && i < tree->partials; i++)
        rc = dev_event_open(dev, &tree->arenas[i].last, err);
    return rc;
}

err_code_t ddp_tree_open(ddp_t *ddp, const op_backend_ops_t *backend,
                         int partials, ddp_tree_t **out, err_t *err)
{
    ddp_tree_t *tree = NULL;
    err_code_t rc = mem_new_tail(ddp_tree_t, arenas, (size_t)partials,
                                 "tree reducer", &tree, err);

    if (rc != ERR_OK)
        return rc;
    tree->ddp = ddp;
    tree->backend = backend;
    tree->partials = partials;
    rc = memory_alloc(tree, err);
    if (rc == ERR_OK)
        rc = events_open(tree, err);
    if (rc == ERR_OK)
        rc = ddp_fold_open(partials, arenas_add, tree, &tree->fold, err);
    if (rc != ERR_OK) {
        ddp_tree_close(tree);
        return rc;
    }
    arenas_place(tree);
    *out = tree;
    return ERR_OK;
}

void ddp_tree_close(ddp_tree_t *tree)
{
    if (tree == NULL)
        return;
    ddp_fold_close(tree->fold);
    for (int i = 0; i < tree->partials; i++)
        dev_event_close(tree->arenas[i].last);
    dev_event_close(tree->after);
    if (tree->ddp->dev == NULL)
        mem_free(tree->memory);
    else
        dev_free(tree->ddp->dev, tree->memory);
    mem_free(tree);
}

/* ---- leaves -------------------------------------------------------------- */

void ddp_tree_begin(ddp_tree_t *tree, const comm_leaves_t *mine)
{
    tree->mine = *mine;
    tree->failed = false;
    for (int i = 0; i < tree->partials; i++)
        tree->arenas[i].used = false;
    ddp_fold_begin(tree->fold, mine->first, mine->held, mine->leaves);
}

err_code_t ddp_tree_claim(ddp_tree_t *tree, dev_stream_t *stream,
                          ddp_tree_leaf_t *out, err_t *err)
{
    const size_t bytes = tree->ddp->tail_doubles * sizeof(double);
    tree_arena_t *arena;
    err_code_t rc;

    *out = (ddp_tree_leaf_t){.stream = stream};
    if (!ddp_fold_claim(tree->fold, &out->leaf))
        return ERR_OK;
    check(out->leaf.slot < tree->partials, "slot %d of %d", out->leaf.slot,
          tree->partials);
    arena = &tree->arenas[out->leaf.slot];
    rc = arena_take(tree, arena, stream, err);
    if (rc == ERR_OK && tree->ddp->dev != NULL)
        rc = dev_fill(stream, arena->tail, 0, bytes, err);
    else if (rc == ERR_OK)
        memset(arena->tail, 0, bytes);
    if (rc == ERR_OK) {
        out->grads = arena->grads;
        out->tail = arena->tail;
    }
    return rc;
}

err_code_t ddp_tree_fold(ddp_tree_t *tree, const ddp_tree_leaf_t *leaf,
                         err_t *err)
{
    err_code_t rc =
        arena_give(tree, &tree->arenas[leaf->leaf.slot], leaf->stream, err);

    return rc == ERR_OK
               ? ddp_fold_done(tree->fold, &leaf->leaf, leaf->stream, err)
               : rc;
}

void ddp_tree_stop(ddp_tree_t *tree)
{
    ddp_fold_stop(tree->fold);
}

void ddp_tree_fail(ddp_tree_t *tree)
{
    ddp_fold_stop(tree->fold);
    tree->failed = true;
}

/* ---- the sum over ranks -------------------------------------------------- */

/* This rank's subtrees. */
typedef struct tree_views {
    void *grads[COMM_VIEWS_MAX], *tails[COMM_VIEWS_MAX];
} tree_views_t;

static err_code_t host_reduce(ddp_tree_t *tree, const tree_views_t *views,
                              err_t *err)
{
    ddp_t *ddp = tree->ddp;
    err_code_t rc;

    rc = comm_allreduce_tree(ddp->group, views->grads, &tree->mine, ddp->grads,
                             ddp->grad_elems, COMM_FLOAT32, err);
    if (rc == ERR_OK)
        rc = comm_allreduce_tree(ddp->group, views->tails, &tree->mine,
                                 ddp->tail, ddp->tail_doubles, COMM_FLOAT64,
                                 err);
    return rc;
}

/* Let [stream] take or give all arenas: any of them may be a view, and the
 * first one gets the sums. */
static err_code_t arenas_turn(ddp_tree_t *tree, bool take, dev_stream_t *stream,
                              err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < tree->partials; i++)
        rc = take ? arena_take(tree, &tree->arenas[i], stream, &reason)
                  : arena_give(tree, &tree->arenas[i], stream, &reason);
    if (rc == ERR_OK && take)
        rc = dev_event_record(tree->after, stream, &reason);
    return ddp_place_result(tree->ddp, rc, &reason, err);
}

/* Start both sums; [works] are set even on an error. */
static err_code_t sums_start(ddp_tree_t *tree, const tree_views_t *views,
                             comm_work_t *works[2], err_t *err)
{
    ddp_t *ddp = tree->ddp;
    err_t own = ERR_INIT;
    comm_state_t state;

    comm_group_after(ddp->group, tree->after);
    state = comm_allreduce_tree_start(ddp->group, views->grads, &tree->mine,
                                      ddp->grads, ddp->grad_elems, COMM_FLOAT32,
                                      &works[0], &own);
    if (state == COMM_FAILED)
        return err_copy(err, &own);
    comm_group_after(ddp->group, tree->after);
    state = comm_allreduce_tree_start(ddp->group, views->tails, &tree->mine,
                                      ddp->tail, ddp->tail_doubles,
                                      COMM_FLOAT64, &works[1], &own);
    return state == COMM_FAILED ? err_copy(err, &own) : ERR_OK;
}

static err_code_t device_reduce(ddp_tree_t *tree, const tree_views_t *views,
                                dev_stream_t *stream, err_t *err)
{
    comm_work_t *works[2] = {NULL, NULL};
    err_code_t rc = arenas_turn(tree, true, stream, err);

    if (rc == ERR_OK)
        rc = sums_start(tree, views, works, err);
    for (int i = 0; i < 2; i++) {
        err_code_t one =
            comm_work_wait_on(works[i], stream, rc == ERR_OK ? err : NULL);

        rc = rc == ERR_OK ? one : rc;
    }
    return rc == ERR_OK ? arenas_turn(tree, false, stream, err) : rc;
}

err_code_t ddp_tree_sum(ddp_tree_t *tree, size_t count, dev_stream_t *stream,
                        err_t *err)
{
    ddp_t *ddp = tree->ddp;
    comm_work_t *work = NULL;
    err_t own = ERR_INIT;
    err_code_t rc = ddp_place_after(ddp, tree->after, stream, err);

    if (rc != ERR_OK)
        return rc;
    if (comm_allreduce_start(ddp->group, ddp->tail, count, COMM_FLOAT64,
                             COMM_SUM, &work, &own) == COMM_FAILED)
        return err_copy(err, &own);
    return comm_work_wait_on(work, stream, err);
}

/* List arenas of zeros in [slots], one for each subtree of this rank. Returns
 * their number. */
static int zeros_list(ddp_tree_t *tree, int *slots)
{
    const comm_leaves_t *mine = &tree->mine;
    const int count = comm_tree_views(mine->first, mine->held, mine->leaves);

    check(count <= tree->partials, "%d subtrees in %d arenas", count,
          tree->partials);
    for (int i = 0; i < count; i++)
        slots[i] = i;
    return count;
}

/* Zero the arenas of a rank that has failed. */
static err_code_t zeros_write(ddp_tree_t *tree, int count, dev_stream_t *stream,
                              err_t *err)
{
    const ddp_t *ddp = tree->ddp;
    err_t reason = ERR_INIT;
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < count; i++) {
        rc = arena_take(tree, &tree->arenas[i], stream, &reason);
        if (rc == ERR_OK)
            rc = dev_fill(stream, tree->arenas[i].grads, 0,
                          ddp->grad_elems * sizeof *ddp->grads, &reason);
        if (rc == ERR_OK)
            rc = dev_fill(stream, tree->arenas[i].tail, 0,
                          ddp->tail_doubles * sizeof *ddp->tail, &reason);
        if (rc == ERR_OK)
            rc = arena_give(tree, &tree->arenas[i], stream, &reason);
    }
    return ddp_place_result(tree->ddp, rc, &reason, err);
}

err_code_t ddp_tree_reduce(ddp_tree_t *tree, dev_stream_t *stream, err_t *err)
{
    int slots[COMM_VIEWS_MAX];
    int count = tree->failed ? zeros_list(tree, slots)
                             : ddp_fold_views(tree->fold, slots);
    tree_views_t views;
    err_code_t rc = ERR_OK;

    if (tree->failed)
        rc = zeros_write(tree, count, stream, err);
    if (rc != ERR_OK)
        return rc;
    check(tree->mine.held == 0 || count > 0, "%lld leaves gave no sum",
          (long long)tree->mine.held);
    for (int i = 0; i < count; i++) {
        views.grads[i] = tree->arenas[slots[i]].grads;
        views.tails[i] = tree->arenas[slots[i]].tail;
    }
    return tree->ddp->dev == NULL ? host_reduce(tree, &views, err)
                                  : device_reduce(tree, &views, stream, err);
}
