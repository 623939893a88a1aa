/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Leaves of random numbers on 1 to 9 ranks of 1 to 3 threads: the sums have
 * the bits that one thread alone gets.
 */
#include "ddp/tree.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/rng.h"
#include "lib/ranks.h"

#define ELEMS 1003
#define TAIL 4
#define RANKS 9

typedef struct plan {
    int64_t leaves;
    int threads; /* threads per rank */
    float grads[RANKS][ELEMS];
    double tail[RANKS][TAIL];
} plan_t;

static err_code_t group_make(const comm_oob_t *oob, comm_group_t **group,
                             err_t *err)
{
    comm_config_t config = {.backend = oob->size == 1 ? "self" : "threads",
                            .timeout = 20.0};

    return comm_group_open(&config, oob, group, err);
}

static void leaf_fill(int64_t leaf, float *grads, double *tail)
{
    rng_t rng;

    rng_open(&rng, 5, RNG_INIT, (uint64_t)leaf, 0);
    for (int i = 0; i < ELEMS; i++)
        grads[i] = (float)rng_normal(&rng);
    for (int i = 0; i < TAIL; i++)
        tail[i] += rng_normal(&rng); /* the tail is zero at first */
}

static void leaves_do(void *context, int member)
{
    ddp_tree_t *tree = context;
    ddp_tree_leaf_t leaf;

    (void)member;
    while (ddp_tree_claim(tree, NULL, &leaf, NULL) == ERR_OK &&
           leaf.grads != NULL) {
        leaf_fill(leaf.leaf.number, leaf.grads, leaf.tail);
        ddp_tree_fold(tree, &leaf, NULL);
    }
}

static int tree_main(const comm_oob_t *oob, void *argument)
{
    plan_t *plan = argument;
    ddp_config_t config = {
        .first_bucket_mb = 1, .bucket_cap_mb = 25, .last_bucket_mb = 1};
    ddp_view_t view = {.name = "w", .count = ELEMS};
    ddp_layout_t layout = {.views = &view,
                           .view_count = 1,
                           .grad_elems = ELEMS,
                           .tail_doubles = TAIL};
    int64_t first = plan->leaves * oob->rank / oob->size;
    int64_t held = plan->leaves * (oob->rank + 1) / oob->size - first;
    int partials = ddp_fold_slots(first, held, plan->leaves, plan->threads);
    comm_group_t *group = NULL;
    const op_backend_ops_t *backend = NULL;
    ddp_tree_t *tree = NULL;
    crew_t *crew = NULL;
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;

    RANKS_OK(group_make(oob, &group, &err), err);
    RANKS_OK(ddp_open(&config, group, group, &layout, &ddp, &err), err);
    RANKS_OK(op_backend_get("cpu", &backend, &err), err);
    RANKS_OK(ddp_tree_open(ddp, backend, partials, &tree, &err), err);
    RANKS_OK(crew_open(plan->threads, "leaves", &crew, &err), err);
    for (int step = 0; step < 2; step++) {
        ddp_tree_begin(tree, &(comm_leaves_t){.first = first,
                                              .held = held,
                                              .leaves = plan->leaves});
        crew_run(crew, leaves_do, tree);
        RANKS_OK(ddp_tree_reduce(tree, NULL, &err), err);
    }
    memcpy(plan->grads[oob->rank], ddp_grads(ddp), sizeof plan->grads[0]);
    memcpy(plan->tail[oob->rank], ddp_tail(ddp), sizeof plan->tail[0]);
    crew_close(crew);
    ddp_tree_close(tree);
    ddp_close(ddp);
    comm_group_close(group);
    return 0;
}

/* Check that [many] on [ranks] ranks gives the bits of [one] on one rank. */
static void same(const plan_t *one, plan_t *many, int ranks)
{
    cr_assert_eq(ranks_threads(ranks, tree_main, many), 0);
    for (int r = 0; r < ranks; r++) {
        cr_assert_arr_eq(many->grads[r], one->grads[0], sizeof one->grads[0],
                         "rank %d of %d, %d threads, %lld leaves", r, ranks,
                         many->threads, (long long)many->leaves);
        cr_assert_arr_eq(many->tail[r], one->tail[0], sizeof one->tail[0]);
    }
}

Test(tree, sums_have_the_same_bits_however_leaves_are_dealt)
{
    static const int64_t leaves[] = {1, 2, 5, 8, 13, 16, 31};
    plan_t *one = calloc(1, sizeof *one);
    plan_t *many = calloc(1, sizeof *many);

    one->threads = 1;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        one->leaves = many->leaves = leaves[i];
        cr_assert_eq(ranks_threads(1, tree_main, one), 0);
        for (int n = 1; n <= RANKS; n++)
            for (int t = 1; t <= 3; t++) {
                many->threads = t;
                same(one, many, n);
            }
    }
    free(many);
    free(one);
}
