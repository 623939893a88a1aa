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

typedef struct tree_arena {
    float *grads;
    double *tail;
} tree_arena_t;

struct ddp_tree {
    comm_group_t *group;
    size_t grad_elems, tail_doubles;
    void *memory; /* memory of all arenas except arena 0 */
    ddp_fold_t *fold;
    comm_leaves_t mine;
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

static void arenas_place(ddp_tree_t *tree, ddp_t *ddp)
{
    char *at = tree->memory;

    tree->arenas[0] = (tree_arena_t){ddp_grads(ddp), ddp_tail(ddp)};
    for (int i = 1; i < tree->partials; i++) {
        tree->arenas[i].grads = (float *)at;
        tree->arenas[i].tail =
            (double *)(at + mem_round(tree->grad_elems * sizeof(float)));
        at += arena_bytes(tree->grad_elems, tree->tail_doubles);
    }
}

static void arenas_add(void *context, int to, int from)
{
    const ddp_tree_t *tree = context;
    const tree_arena_t *a = &tree->arenas[to], *b = &tree->arenas[from];

    ddp_fold_sum(a->grads, b->grads, tree->grad_elems, COMM_FLOAT32);
    ddp_fold_sum(a->tail, b->tail, tree->tail_doubles, COMM_FLOAT64);
}

err_code_t ddp_tree_open(ddp_t *ddp, comm_group_t *group, int partials,
                         ddp_tree_t **out, err_t *err)
{
    const size_t grad_elems = ddp_grad_elems(ddp);
    const size_t tail_doubles = ddp_tail_doubles(ddp);
    ddp_tree_t *tree = NULL;
    err_code_t rc;

    rc = mem_new_tail(ddp_tree_t, arenas, (size_t)partials, "tree reducer",
                      &tree, err);
    if (rc != ERR_OK)
        return rc;
    tree->group = group;
    tree->grad_elems = grad_elems;
    tree->tail_doubles = tail_doubles;
    tree->partials = partials;
    rc = mem_alloc(ddp_tree_bytes(grad_elems, tail_doubles, partials),
                   "partial gradients", &tree->memory, err);
    if (rc == ERR_OK)
        rc = ddp_fold_open(partials, arenas_add, tree, &tree->fold, err);
    if (rc != ERR_OK) {
        ddp_tree_close(tree);
        return rc;
    }
    arenas_place(tree, ddp);
    *out = tree;
    return ERR_OK;
}

void ddp_tree_close(ddp_tree_t *tree)
{
    if (tree == NULL)
        return;
    ddp_fold_close(tree->fold);
    mem_free(tree->memory);
    mem_free(tree);
}

void ddp_tree_begin(ddp_tree_t *tree, int64_t first, int64_t held,
                    int64_t leaves)
{
    tree->mine = (comm_leaves_t){first, held, leaves};
    ddp_fold_begin(tree->fold, first, held, leaves);
}

bool ddp_tree_claim(ddp_tree_t *tree, ddp_leaf_t *leaf, float **grads,
                    double **tail)
{
    const tree_arena_t *arena;

    if (!ddp_fold_claim(tree->fold, leaf))
        return false;
    check(leaf->slot < tree->partials, "slot %d of %d", leaf->slot,
          tree->partials);
    arena = &tree->arenas[leaf->slot];
    memset(arena->tail, 0, tree->tail_doubles * sizeof(double));
    *grads = arena->grads;
    *tail = arena->tail;
    return true;
}

void ddp_tree_fold(ddp_tree_t *tree, const ddp_leaf_t *leaf)
{
    ddp_fold_done(tree->fold, leaf);
}

void ddp_tree_stop(ddp_tree_t *tree)
{
    ddp_fold_stop(tree->fold);
}

err_code_t ddp_tree_reduce(ddp_tree_t *tree, err_t *err)
{
    void *grads[COMM_VIEWS_MAX];
    void *tails[COMM_VIEWS_MAX];
    int slots[COMM_VIEWS_MAX];
    int views = ddp_fold_views(tree->fold, slots);
    err_code_t rc;

    check(tree->mine.held == 0 || views > 0, "%lld leaves gave no sum",
          (long long)tree->mine.held);
    for (int i = 0; i < views; i++) {
        grads[i] = tree->arenas[slots[i]].grads;
        tails[i] = tree->arenas[slots[i]].tail;
    }
    rc = comm_allreduce_tree(tree->group, grads, &tree->mine,
                             tree->arenas[0].grads, tree->grad_elems,
                             COMM_FLOAT32, err);
    if (rc == ERR_OK)
        rc = comm_allreduce_tree(tree->group, tails, &tree->mine,
                                 tree->arenas[0].tail, tree->tail_doubles,
                                 COMM_FLOAT64, err);
    return rc;
}
