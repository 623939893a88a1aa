/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Partners of local checkpoints: which ranks are partners. A set whose copies
 * were sent over their groups is read after one node is lost, each node in
 * turn. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "hdf5io/nodeset.h"
#include "lib/ranks.h"
#include "train/partners.h"

/* ---- who they are -------------------------------------------------------- */

typedef struct list_case {
    int nodes[12], size, rank;
    int members[12], count;
} list_case_t;

Test(partners, are_the_ranks_of_one_place_on_two_nodes)
{
    static const list_case_t cases[] = {
        {{0, 0, 0}, 3, 1, {0}, 0},
        {{0, 0, 1, 1}, 4, 0, {0, 2}, 2},
        {{0, 0, 1, 1}, 4, 3, {1, 3}, 2},
        {{0, 1, 0, 1}, 4, 2, {2, 3}, 2},
        /* three nodes; a node has one rank only */
        {{0, 1, 2}, 3, 2, {0, 1, 2}, 3},
        {{0, 0, 0, 1}, 4, 2, {0, 1, 2, 3}, 4},
        {{0, 0, 0, 1, 1}, 5, 2, {0, 2, 3}, 3},
        {{0, 0, 0, 1, 1}, 5, 4, {1, 4}, 2},
        /* a pair and three */
        {{0, 1, 2, 3, 4}, 5, 1, {0, 1}, 2},
        {{0, 1, 2, 3, 4}, 5, 2, {2, 3, 4}, 3},
        {{0, 0, 1, 1, 2, 2, 3, 3}, 8, 5, {5, 7}, 2}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const list_case_t *c = &cases[i];
        int members[12] = {0};

        cr_assert_eq(train_partners_list(c->nodes, c->size, c->rank, members),
                     c->count, "case %zu", i);
        cr_expect_eq(
            memcmp(members, c->members, (size_t)c->count * sizeof *members), 0,
            "case %zu", i);
    }
}

/* ---- copies -------------------------------------------------------------- */

#define SIZE 7
#define NODES 3
#define ELEMS 20011
#define WINDOW 4096 /* so that a part is sent in several slices */
static const int nodes[SIZE] = {0, 1, 1, 0, 2, 1, 2};

typedef struct job {
    const char *root;
    bool writes;
} job_t;

typedef struct rank {
    comm_group_t *group;
    train_partners_t *partners;
    hdf5io_votes_t votes;
    char *home;
    float *data;
} rank_t;

static err_code_t exchange(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err)
{
    return comm_allgather(context, mine, bytes, all, err);
}

static void job_do(const job_t *job, const rank_t *rank, err_t *err)
{
    const hdf5io_checkpoint_config_t config = {
        .votes = &rank->votes, .window_bytes = WINDOW, .config_text = ""};
    const hdf5io_nodeset_t set = {
        .home = rank->home,
        .checkpoint = &config,
        .nodes = nodes,
        .partners = train_partners_votes(rank->partners),
        .members = train_partners_members(rank->partners)};
    const hdf5io_tensor_t tensor = {
        .name = "model/w", .ndim = 1, .dims = {ELEMS}, .data = rank->data};
    const hdf5io_progress_t progress = {.step = 5, .best = -1};
    hdf5io_nodeset_found_t found = {.found = true};
    hdf5io_checkpoint_info_t info;
    uint64_t nonce;
    err_code_t rc;

    for (int e = 0; job->writes && e < ELEMS; e++)
        rank->data[e] = (float)e;
    if (job->writes)
        rc = hdf5io_nodeset_write(&set, &progress, &tensor, 1, &nonce, err);
    else
        rc = hdf5io_nodeset_read(&set, 0, &tensor, 1, &found, &info, err);
    for (int e = 0; rc == ERR_OK && e < ELEMS; e++)
        if (!found.found || rank->data[e] != (float)e)
            rc = err_set(err, ERR_DATA, "element %d differs", e);
}

static int rank_main(const comm_oob_t *oob, void *argument)
{
    const comm_config_t config = {.backend = "threads", .timeout = 300};
    const job_t *job = argument;
    rank_t rank = {.data = calloc(ELEMS, sizeof(float))};
    err_t err = ERR_INIT;

    log_level_set(LOG_ERROR);
    RANKS_CHECK(rank.data != NULL);
    RANKS_OK(comm_group_open(&config, oob, &rank.group, &err), err);
    rank.votes = (hdf5io_votes_t){.context = rank.group,
                                  .rank = oob->rank,
                                  .size = oob->size,
                                  .exchange = exchange};
    RANKS_OK(train_partners_open(rank.group, nodes, &rank.partners, &err), err);
    RANKS_CHECK(rank.partners != NULL);
    rank.home = str_printf("%s/node-%d", job->root, nodes[oob->rank]);
    job_do(job, &rank, &err);
    train_partners_close(rank.partners);
    comm_group_close(rank.group);
    free(rank.home);
    free(rank.data);
    RANKS_OK(err.code, err);
    return 0;
}

Test(partners, keep_copies_of_each_node, .timeout = 300)
{
    char root[] = "/tmp/cddp-partners-XXXXXX";

    cr_assert_not_null(mkdtemp(root));
    for (int lost = 0; lost < NODES; lost++) {
        job_t job = {.root = root, .writes = true};
        char *home = str_printf("%s/node-%d", root, lost);

        cr_assert_eq(ranks_threads(SIZE, rank_main, &job), 0);
        cr_assert_eq(file_remove_tree(home, NULL), 0);
        job.writes = false;
        cr_assert_eq(ranks_threads(SIZE, rank_main, &job), 0, "without node %d",
                     lost);
        free(home);
    }
    file_remove_tree(root, NULL);
}

/* The ranks of a single node have no partners. */
static int alone_main(const comm_oob_t *oob, void *argument)
{
    static const int one[2] = {0, 0};
    const comm_config_t config = {.backend = "threads", .timeout = 300};
    train_partners_t *partners = NULL;
    comm_group_t *group;
    err_t err = ERR_INIT;

    (void)argument;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_OK(train_partners_open(group, one, &partners, &err), err);
    RANKS_CHECK(partners == NULL);
    train_partners_close(partners);
    comm_group_close(group);
    return 0;
}

Test(partners, are_none_on_one_node)
{
    cr_expect_eq(ranks_threads(2, alone_main, NULL), 0);
}
