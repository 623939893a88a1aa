/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * libcddp on several emulated GPUs, one process for each rank: NCCL sums the
 * gradients and sums of a reducer in the memory of the GPUs, also those of a
 * hook that works there. If a rank ends early, the others end with an error
 * that names this rank.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/check.h"
#include "api/device_steps.h"
#include "base/clock.h"
#include "comm/waits.h"
#include "cuda/emu.h"
#include "lib/ranks.h"
#include "lib/ranks_boot.h"

#define SECONDS 60 /* only a rank that hangs takes so long */
#define BUCKETS "bucket_cap_mb: 0.001, first_bucket_mb: 0.001"

typedef struct plan {
    const fake_cuda_t *fake;
    int gpus; /* 0: one for each rank */
    int order;
    bool nodes;          /* each two ranks are on a node of their own */
    bool within;         /* a fault is in a sub-group, which rank 0 is not in */
    int64_t late;        /* nccl_late of the stand-in */
    const char *backend; /* as the program names it */
    const char *sums;    /* the backend that is expected to sum gradients */
    bool lacks;          /* the last rank has no NCCL */
    double timeout;
    const char *what; /* of a fault */
    const char *options;
    const cddp_hook_t *hook;
    cddp_rank_t body;
    cddp_code_t code; /* of all ranks */
    cddp_code_t own;  /* if not CDDP_OK: of the last rank instead */
    const char *word; /* in the sentence */
} plan_t;

/* ---- ranks --------------------------------------------------------------- */

/* global: the exchange of this process, a rank. */
static const comm_oob_t *exchange;
/* global: the plan's [nodes]. */
static bool nodes;

err_code_t __wrap_boot_open(const boot_config_t *config, boot_t **out,
                            err_t *err);
err_code_t __wrap_boot_open(const boot_config_t *config, boot_t **out,
                            err_t *err)
{
    (void)config;
    return ranks_boot(exchange, out, err);
}

/* The name of this rank's node. */
int __wrap_gethostname(char *name, size_t room);
int __wrap_gethostname(char *name, size_t room)
{
    snprintf(name, room, "n%d", nodes ? exchange->rank / 2 : 0);
    return 0;
}

static bool is_last(const cddp_group_t *group)
{
    return cddp_group_rank(group) == cddp_group_size(group) - 1;
}

static int rank_main(const comm_oob_t *oob, void *argument)
{
    plan_t *plan = argument;
    const cddp_run_config_t config = {
        .device = "cuda", .backend = plan->backend, .timeout = plan->timeout};
    cddp_error_t error = {.text = "", .culprit = -1};
    const bool last = oob->rank == oob->size - 1;
    const cddp_code_t expected =
        last && plan->own != CDDP_OK ? plan->own : plan->code;
    cddp_code_t code;

    exchange = oob;
    nodes = plan->nodes;
    ranks_transports();
    emu_set(plan->fake, devices, plan->gpus > 0 ? plan->gpus : oob->size);
    emu_set(plan->fake, order, plan->order);
    emu_set(plan->fake, nccl_late, plan->late);
    emu_set(plan->fake, nccl, !(plan->lacks && last));
    code = cddp_run(&config, plan->body, plan, &error);
    if (code != expected ||
        (code == CDDP_PEER && error.culprit != oob->size - 1))
        fprintf(stderr, "rank %d: %d: %d: %s\n", oob->rank, code, error.culprit,
                error.text);
    RANKS_CHECK(code == expected);
    RANKS_CHECK(plan->word == NULL || strstr(error.text, plan->word) != NULL);
    RANKS_CHECK(code != CDDP_PEER || error.culprit == oob->size - 1);
    if (code == CDDP_PEER)
        return 0; /* its GPU may still wait for the other rank */
    RANKS_CHECK(plan->fake->counts().bytes == 0);
    RANKS_CHECK(plan->fake->counts().objects == 0);
    return 0;
}

/* Run [ranks] ranks, which must end as [plan] says. */
static void run(int ranks, plan_t *plan)
{
    int results[RANKS_MAX];

    plan->fake = emu_open();
    cr_assert_eq(ranks_forks(ranks, SECONDS, rank_main, plan, results), 0,
                 "%d ranks", ranks);
}

/* ---- sums ---------------------------------------------------------------- */

/* Do steps, and check which backend sums. Other collectives work on the memory
 * of the host. */
static cddp_code_t reduce(cddp_group_t *group, void *context,
                          cddp_error_t *error)
{
    const plan_t *plan = context;
    const int size = cddp_group_size(group);
    int64_t ranks = 1;

    CHECK(strcmp(cddp_group_backend(group), plan->sums) == 0);
    OK(device_steps(group, plan->options, plan->hook, error));
    CHECK((plan->fake->counts().collectives > 0) ==
          (strcmp(plan->sums, "nccl") == 0));
    OK(cddp_allreduce(group, &ranks, 1, CDDP_INT64, CDDP_SUM, error));
    CHECK(ranks == size);
    return CDDP_OK;
}

Test(nccl, gradients_are_summed_in_the_memory_of_the_gpus)
{
    plan_t plan = {.sums = "nccl", .body = reduce, .options = "{" BUCKETS "}"};

    for (int ranks = 2; ranks <= 3; ranks++) {
        plan.order = ranks % 2;
        plan.late = ranks == 3 ? 2 : 0;
        run(ranks, &plan);
    }
}

Test(nccl, a_hook_sends_from_the_memory_of_the_gpus)
{
    const fake_cuda_t *fake = emu_open();
    const cddp_hook_t hook = device_hook(&fake);
    plan_t plan = {.sums = "nccl",
                   .body = reduce,
                   .hook = &hook,
                   .options = "{" BUCKETS ", hook: last}"};

    for (int ranks = 2; ranks <= 3; ranks++) {
        plan.order = ranks % 2;
        run(ranks, &plan);
    }
}

Test(nccl, a_program_can_choose_the_backend)
{
    plan_t plan = {.backend = "ucx", .sums = "ucx", .body = reduce};

    run(2, &plan);
    plan.backend = plan.sums = "nccl";
    run(2, &plan);
    /* One rank needs no NCCL, unless the program names it. */
    run(1, &plan);
    plan.backend = "auto";
    plan.sums = "self";
    run(1, &plan);
}

static cddp_code_t share(cddp_group_t *group, void *context,
                         cddp_error_t *error)
{
    const plan_t *plan = context;
    const char *host = getenv("NCCL_HOSTID");
    char expected[32];

    snprintf(expected, sizeof expected, "cddp-rank-%d", cddp_group_rank(group));
    if (strcmp(plan->sums, "nccl") == 0)
        CHECK(host != NULL && strcmp(host, expected) == 0);
    else
        CHECK(host == NULL);
    return reduce(group, context, error);
}

/* NCCL accepts ranks that share a GPU only under other names of hosts. */
Test(nccl, ranks_that_share_a_gpu_use_nccl_only_if_it_is_named)
{
    plan_t plan = {.gpus = 1, .sums = "ucx", .body = share};

    unsetenv("NCCL_HOSTID");
    run(2, &plan);
    plan.backend = plan.sums = "nccl";
    run(2, &plan);
}

/* ---- sub-groups ---------------------------------------------------------- */

/* Do steps in the sub-group of [ranks], then in the whole group, then again in
 * the sub-group. */
static cddp_code_t sub_reduce(cddp_group_t *group, const int *ranks, int count,
                              const plan_t *plan, cddp_error_t *error)
{
    const char *sums = count > 1 ? "nccl" : "self";
    cddp_group_t *sub = NULL;
    cddp_code_t code = CDDP_OK;

    OK(cddp_group_split(group, ranks, count, &sub, error));
    CHECK((sub != NULL) == (count > 0));
    if (sub != NULL) {
        CHECK(strcmp(cddp_group_backend(sub), sums) == 0);
        code = device_steps(sub, plan->options, plan->hook, error);
    }
    if (code == CDDP_OK)
        code = device_steps(group, plan->options, plan->hook, error);
    if (code == CDDP_OK && sub != NULL)
        code = device_steps(sub, plan->options, plan->hook, error);
    cddp_group_close(sub);
    return code;
}

/* Four ranks on two nodes: sub-groups of both kinds, one that rank 0 is not in,
 * and sub-groups of one rank. */
static cddp_code_t subs_reduce(cddp_group_t *group, void *context,
                               cddp_error_t *error)
{
    const plan_t *plan = context;
    const int rank = cddp_group_rank(group), most[] = {3, 1, 2};
    int ranks[RANKS_MAX];

    CHECK(cddp_group_ranks(group, CDDP_SPLIT_NODE, ranks) == 2);
    CHECK(ranks[0] == rank - rank % 2 && ranks[1] == ranks[0] + 1);
    OK(sub_reduce(group, ranks, 2, plan, error));
    CHECK(cddp_group_ranks(group, CDDP_SPLIT_ACROSS, ranks) == 2);
    CHECK(ranks[0] == rank % 2 && ranks[1] == ranks[0] + 2);
    OK(sub_reduce(group, ranks, 2, plan, error));
    OK(sub_reduce(group, most, rank > 0 ? 3 : 0, plan, error));
    OK(sub_reduce(group, &rank, 1, plan, error));
    return reduce(group, context, error);
}

Test(nccl, sub_groups_sum_in_the_memory_of_the_gpus)
{
    plan_t plan = {.nodes = true,
                   .sums = "nccl",
                   .body = subs_reduce,
                   .options = "{" BUCKETS "}"};

    run(4, &plan);
    plan.order = 1;
    plan.late = 2;
    run(4, &plan);
}

Test(nccl, a_hook_sends_within_a_sub_group)
{
    const fake_cuda_t *fake = emu_open();
    const cddp_hook_t hook = device_hook(&fake);
    plan_t plan = {.nodes = true,
                   .sums = "nccl",
                   .body = subs_reduce,
                   .hook = &hook,
                   .options = "{" BUCKETS ", hook: last}"};

    run(4, &plan);
}

/* ---- refusals ------------------------------------------------------------ */

static cddp_code_t never(cddp_group_t *group, void *context,
                         cddp_error_t *error)
{
    (void)group;
    (void)context;
    return cddp_error_set(error, CDDP_DATA, "the ranks ran");
}

Test(nccl, all_ranks_learn_that_one_has_no_nccl)
{
    plan_t plan = {.body = never,
                   .lacks = true,
                   .code = CDDP_UNAVAILABLE,
                   .word = "libnccl"};

    run(3, &plan);
    plan.word = "the backend ucx needs no NCCL";
    run(2, &plan);
}

/* cddp_run refuses [local] threads on [device], and its message has [word]. */
static void refused(const char *device, int local, const char *word)
{
    const cddp_run_config_t config = {
        .local = local, .device = device, .backend = "nccl"};
    cddp_error_t error = {.text = ""};

    cr_expect_eq(cddp_run(&config, never, NULL, &error), CDDP_CONFIG, "%s",
                 error.text);
    cr_expect_not_null(strstr(error.text, word), "%s", error.text);
}

Test(nccl, nccl_needs_gpus_and_processes)
{
    emu_open();
    refused("cpu", 2, "the device is cpu");
    refused("cuda", 2, "the 2 ranks are threads");
}

/* ---- faults -------------------------------------------------------------- */

/* Begin a sum of [group], in which the last rank takes no part, as [what] says:
 * it is killed, or it returns an error. */
static cddp_code_t sum_leave(cddp_group_t *group, const char *what,
                             cddp_error_t *error)
{
    const cddp_view_t view = {"a", 0, 100};
    const cddp_ddp_config_t config = {
        .views = &view, .view_count = 1, .elems = 100};
    cddp_ddp_t *ddp = NULL;
    cddp_code_t code;

    OK(device_steps(group, NULL, NULL, error));
    OK(cddp_ddp_open(group, &config, &ddp, error));
    cddp_ddp_begin(ddp);
    if (is_last(group) && strcmp(what, "killed") == 0)
        raise(SIGKILL);
    code = is_last(group) ? cddp_error_set(error, CDDP_DATA, "its own error")
                          : cddp_ddp_ready(ddp, 0, error);
    if (code == CDDP_OK)
        code = cddp_ddp_wait(ddp, error);
    cddp_ddp_close(ddp);
    return code;
}

/* The fault of [plan] in the group, or in a sub-group. Rank 0 is not in the
 * latter, and learns of the fault in the group. */
static cddp_code_t leave(cddp_group_t *group, void *context,
                         cddp_error_t *error)
{
    const plan_t *plan = context;
    const int ranks[] = {1, 2}, rank = cddp_group_rank(group);
    cddp_group_t *sub = NULL, *at = group;
    cddp_code_t code;

    if (plan->within) {
        OK(cddp_group_split(group, ranks, rank > 0 ? 2 : 0, &sub, error));
        at = sub;
    }
    code = at == NULL ? device_steps(group, NULL, NULL, error)
           : plan->hook != NULL
               ? device_steps(at, plan->options, plan->hook, error)
               : sum_leave(at, plan->what, error);
    cddp_group_close(sub);
    return code;
}

/* Run three ranks, of which the last one ends with [result]. The others must
 * end in time, with an error that names it. */
static void fault(plan_t *plan, int result)
{
    const double begin = clock_now();
    int results[RANKS_MAX];

    plan->fake = emu_open();
    plan->code = CDDP_PEER;
    plan->timeout = waits_timeout(10);
    ranks_forks(3, SECONDS, rank_main, plan, results);
    cr_expect_eq(results[0], 0);
    cr_expect_eq(results[1], 0);
    cr_expect_eq(results[2], result, "%d", results[2]);
    cr_expect_lt(clock_now() - begin, waits_deadline(plan->timeout));
}

Test(nccl, a_rank_is_killed_before_a_sum)
{
    plan_t plan = {.body = leave, .what = "killed"};

    fault(&plan, 128 + SIGKILL);
    plan.within = true;
    fault(&plan, 128 + SIGKILL);
}

Test(nccl, a_rank_returns_an_error_before_a_sum)
{
    plan_t plan = {.body = leave, .what = "error", .own = CDDP_DATA};

    fault(&plan, 0);
    plan.within = true;
    fault(&plan, 0);
}

/* The hook of the last rank kills it in the fourth turn. */
static cddp_code_t dying_turn(void *state, const cddp_hook_bucket_t *bucket,
                              int turn, cddp_wire_t *wire, cddp_error_t *error)
{
    static int turns;
    const fake_cuda_t *fake = NULL;

    if (++turns == 4 && cddp_wire_rank(wire) == cddp_wire_size(wire) - 1)
        raise(SIGKILL);
    return device_hook(&fake).turn(state, bucket, turn, wire, error);
}

/* The others wait for the streams of their GPUs. */
Test(nccl, a_rank_is_killed_in_a_turn_of_a_hook)
{
    const fake_cuda_t *fake = emu_open();
    cddp_hook_t hook = device_hook(&fake);
    plan_t plan = {
        .body = leave, .hook = &hook, .options = "{" BUCKETS ", hook: last}"};

    hook.turn = dying_turn;
    fault(&plan, 128 + SIGKILL);
    plan.within = true;
    fault(&plan, 128 + SIGKILL);
}
