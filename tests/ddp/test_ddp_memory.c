/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Either all ranks open a reducer, or none. One rank is refused a block of
 * memory, another block in each run. All ranks get the error of this rank.
 * Afterwards the ranks open a reducer with the same group.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "conf/conf.h"
#include "ddp/ddp.h"
#include "lib/alloc_fail.h"
#include "lib/ranks.h"

enum { VIEWS = 6, SIZE = 3000, CULPRIT = 1, RANKS = 3 };

typedef struct plan {
    const char *backend;
    const char *hook; /* ddp.hook; NULL: none */
    bool shards;
} plan_t;

typedef struct rig {
    ddp_view_t views[VIEWS];
    ddp_layout_t layout;
    ddp_config_t config;
    tree_t *hook;
    ddp_shards_t *shards;
    comm_group_t *group;
} rig_t;

static err_code_t rig_open(rig_t *rig, const plan_t *plan,
                           const comm_oob_t *oob, err_t *err)
{
    const comm_config_t config = {.backend = plan->backend, .timeout = 60};
    err_code_t rc = comm_group_open(&config, oob, &rig->group, err);

    for (int v = 0; v < VIEWS; v++)
        rig->views[v] = (ddp_view_t){.name = "w",
                                     .offset = (size_t)v * SIZE,
                                     .count = SIZE,
                                     .ndim = 2,
                                     .rows = 30};
    rig->config = (ddp_config_t){
        .first_bucket_mb = 0.02, .bucket_cap_mb = 0.02, .last_bucket_mb = 0.02};
    rig->layout = (ddp_layout_t){.views = rig->views,
                                 .view_count = VIEWS,
                                 .grad_elems = (size_t)VIEWS * SIZE,
                                 .tail_doubles = 3};
    if (rc == ERR_OK && plan->hook != NULL)
        rc = conf_parse("hook", plan->hook, &rig->hook, err);
    rig->config.hook = rig->hook;
    if (rc == ERR_OK && plan->shards)
        rc = ddp_shards_open(&rig->config, &rig->layout, oob->size, 64,
                             &rig->shards, err);
    rig->layout.shards = rig->shards;
    return rc;
}

static void rig_close(rig_t *rig)
{
    ddp_shards_close(rig->shards);
    tree_free(rig->hook);
    comm_group_close(rig->group);
}

/* Open a reducer, and refuse block [number] of the culprit. All ranks learn
 * from *more whether the culprit needed so many blocks. */
static int open_once(rig_t *rig, int rank, long number, bool *more)
{
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT, why = ERR_INIT;
    err_code_t rc;

    if (rank == CULPRIT)
        alloc_fail(number);
    rc = ddp_open(&rig->config, rig->group, rig->group, &rig->layout, &ddp,
                  &err);
    *more = alloc_fail_end();
    RANKS_OK(comm_broadcast(rig->group, more, sizeof *more, CULPRIT, &why),
             why);
    if (*more) {
        RANKS_CHECK(rc == ERR_MEMORY);
        RANKS_CHECK(strncmp(err.text, "rank 1 on ", 10) == 0);
        RANKS_CHECK(ddp == NULL);
        return 0;
    }
    RANKS_OK(rc, err);
    ddp_close(ddp);
    return 0;
}

static int memory_main(const comm_oob_t *oob, void *argument)
{
    const plan_t *plan = argument;
    rig_t rig = {0};
    err_t err = ERR_INIT;
    bool more = true;
    long number = 0;

    RANKS_OK(rig_open(&rig, plan, oob, &err), err);
    while (more)
        if (open_once(&rig, oob->rank, ++number, &more) != 0)
            return 1;
    /* The reducer and its five tables; more with a hook or shards. */
    RANKS_CHECK(number > 6);
    rig_close(&rig);
    return 0;
}

static void check_memory(plan_t plan)
{
    int results[RANKS_MAX];

    if (strcmp(plan.backend, "threads") == 0)
        cr_assert_eq(ranks_threads(RANKS, memory_main, &plan), 0);
    else
        cr_assert_eq(ranks_forks(RANKS, 200, memory_main, &plan, results), 0);
}

TestSuite(ddp_memory, .init = ranks_transports, .timeout = 240);

Test(ddp_memory, threads)
{
    check_memory((plan_t){.backend = "threads"});
    check_memory((plan_t){.backend = "threads", .shards = true});
    check_memory((plan_t){.backend = "threads", .hook = "powersgd: {rank: 2}"});
}

/* Here opening the arena of the gradients is collective. */
Test(ddp_memory, processes)
{
    check_memory((plan_t){.backend = "ucx"});
    check_memory((plan_t){.backend = "ucx", .hook = "fp16: {}"});
}
