/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Entry i of the fold lives in arena i; arena 0 is ddp's own, so a rank with
 * one leaf copies nothing. Gradients and tail are folded in step, by two folds
 * of the same shape.
 */
#include "ddp/tree.h"

#include <string.h>

#include "base/mem.h"
#include "comm/comm_fold.h"

typedef struct tree_arena {
    float *grads;
    double *tail;
} tree_arena_t;

struct ddp_tree {
    comm_group_t *group;
    size_t grad_elems, tail_doubles;
    int partials;
    tree_arena_t arenas[COMM_VIEWS_MAX];
    void *memory; /* of arenas 1 and up */
    comm_fold_t grads, tail;
    int64_t first, held, next, leaves;
};

int ddp_tree_partials(int64_t first, int64_t held, int64_t leaves)
{
    /* The next leaf needs an arena while the ones before it are kept. */
    int most = 1;

    for (int64_t n = 1; n < held; n++) {
        int views = comm_tree_views(first, n, leaves) + 1;

        if (views > most)
            most = views;
    }
    return most;
}

static void arenas_place(ddp_tree_t *tree, ddp_t *ddp)
{
    size_t grad_bytes = mem_round(tree->grad_elems * sizeof(float));
    size_t tail_bytes = mem_round(tree->tail_doubles * sizeof(double));
    char *at = tree->memory;

    tree->arenas[0] = (tree_arena_t){ddp_grads(ddp), ddp_tail(ddp)};
    for (int i = 1; i < tree->partials; i++) {
        tree->arenas[i].grads = (float *)at;
        tree->arenas[i].tail = (double *)(at + grad_bytes);
        at += grad_bytes + tail_bytes;
    }
}

err_code_t ddp_tree_open(ddp_t *ddp, comm_group_t *group, size_t grad_elems,
                         size_t tail_doubles, int partials, ddp_tree_t **out,
                         err_t *err)
{
    size_t bytes = mem_round(grad_elems * sizeof(float)) +
                   mem_round(tail_doubles * sizeof(double));
    ddp_tree_t *tree = NULL;
    err_code_t rc;

    rc = mem_alloc(sizeof *tree, "tree reducer", (void **)&tree, err);
    if (rc != ERR_OK)
        return rc;
    tree->group = group;
    tree->grad_elems = grad_elems;
    tree->tail_doubles = tail_doubles;
    tree->partials = partials;
    rc = mem_alloc((size_t)(partials - 1) * bytes, "partial gradients",
                   &tree->memory, err);
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
    mem_free(tree->memory);
    mem_free(tree);
}

void ddp_tree_begin(ddp_tree_t *tree, int64_t first, int64_t held,
                    int64_t leaves)
{
    tree->first = first;
    tree->held = held;
    tree->leaves = leaves;
    tree->next = first;
    comm_fold_begin(&tree->grads, leaves, tree->grad_elems, COMM_FLOAT32);
    comm_fold_begin(&tree->tail, leaves, tree->tail_doubles, COMM_FLOAT64);
}

void ddp_tree_leaf(ddp_tree_t *tree, float **grads, double **tail)
{
    tree_arena_t *arena = &tree->arenas[tree->grads.depth];

    memset(arena->tail, 0, tree->tail_doubles * sizeof(double));
    *grads = arena->grads;
    *tail = arena->tail;
}

void ddp_tree_fold(ddp_tree_t *tree)
{
    tree_arena_t *arena = &tree->arenas[tree->grads.depth];

    comm_fold_push(&tree->grads, tree->next, tree->next + 1, arena->grads);
    comm_fold_push(&tree->tail, tree->next, tree->next + 1, arena->tail);
    tree->next++;
}

err_code_t ddp_tree_reduce(ddp_tree_t *tree, err_t *err)
{
    void *grads[COMM_VIEWS_MAX];
    void *tails[COMM_VIEWS_MAX];
    err_code_t rc;

    for (int i = 0; i < tree->grads.depth; i++) {
        grads[i] = tree->arenas[i].grads;
        tails[i] = tree->arenas[i].tail;
    }
    rc = comm_allreduce_tree(tree->group, grads, tree->first, tree->held,
                             tree->leaves, tree->arenas[0].grads,
                             tree->grad_elems, COMM_FLOAT32, err);
    if (rc == ERR_OK)
        rc = comm_allreduce_tree(tree->group, tails, tree->first, tree->held,
                                 tree->leaves, tree->arenas[0].tail,
                                 tree->tail_doubles, COMM_FLOAT64, err);
    return rc;
}
