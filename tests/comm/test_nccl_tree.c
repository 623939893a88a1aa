/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sums along a tree by NCCL on emulated GPUs, one process for each rank. They
 * have the bits of sums on the host. The bits depend neither on which rank has
 * which leaves, nor on the size of segments. Captured sums have the same bits.
 * All ranks refuse a sum that does not fit, and after a fault all ranks end.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "comm/comm_fold.h"
#include "comm/nccl_rig.h"
#include "comm/reduce.h"

#define COUNT 1003
#define LEAVES 31
#define BIG ((size_t)1 << 20)
#define SMALL ((size_t)1024) /* sums have several segments */

/* The numbers of all leaves, and their sum, whose bits depend on the order of
 * the additions. */
typedef struct numbers {
    comm_type_t type;
    int64_t leaves;
    size_t bytes; /* of a leaf */
    char leaf[LEAVES][COUNT * sizeof(double)];
    char whole[COUNT * sizeof(double)]; /* the sum of all leaves */
} numbers_t;

/* Add leaves [begin, end), a subtree, in the memory of the first of them. */
static void leaves_add(numbers_t *numbers, int64_t begin, int64_t end)
{
    comm_fold_t fold;

    comm_fold_begin(&fold, numbers->leaves, COUNT, numbers->type);
    for (int64_t k = begin; k < end; k++)
        comm_fold_push(&fold, k, k + 1, numbers->leaf[k]);
}

static void numbers_draw(numbers_t *numbers, comm_type_t type, int64_t leaves,
                         int step)
{
    numbers->type = type;
    numbers->leaves = leaves;
    numbers->bytes = COUNT * comm_type_bytes(type);
    for (int64_t k = 0; k < leaves; k++) {
        rng_t rng;

        rng_open(&rng, (uint64_t)step, RNG_INIT, (uint64_t)k, 0);
        for (size_t i = 0; i < COUNT; i++) {
            const double value = rng_normal(&rng);

            if (type == COMM_FLOAT64)
                ((double *)numbers->leaf[k])[i] = value;
            else
                ((float *)numbers->leaf[k])[i] = (float)value;
        }
    }
}

/* Draw numbers, and store their sum. */
static numbers_t *numbers_new(comm_type_t type, int64_t leaves, int step)
{
    numbers_t *numbers = calloc(1, sizeof *numbers);

    numbers_draw(numbers, type, leaves, step);
    leaves_add(numbers, 0, leaves);
    memcpy(numbers->whole, numbers->leaf[0], numbers->bytes);
    numbers_draw(numbers, type, leaves, step);
    return numbers;
}

/* ---- one sum ------------------------------------------------------------- */

/* The share of [rank] of [leaves]: with few leaves some ranks have none. */
static comm_leaves_t share_of(const nccl_rig_t *rig, int rank, int64_t leaves)
{
    const int64_t first = leaves * rank / rig->size;

    return (comm_leaves_t){.first = first,
                           .held = leaves * (rank + 1) / rig->size - first,
                           .leaves = leaves};
}

/* The leaves of all ranks. */
static void ranges_list(const nccl_rig_t *rig, int64_t leaves, int64_t *ranges)
{
    for (int r = 0; r < rig->size; r++) {
        const comm_leaves_t share = share_of(rig, r, leaves);

        ranges[2 * r] = share.first;
        ranges[2 * r + 1] = share.held;
    }
}

/* Sum this rank's leaves to its views, and put the views into rig->host, one
 * after the other. [views] are their places on the device. Returns the number
 * of views. */
static int views_fill(nccl_rig_t *rig, numbers_t *numbers,
                      const comm_leaves_t *mine, void **views)
{
    int64_t at = mine->first, end = at + mine->held;
    int count = 0;

    while (at < end) {
        const int64_t next = comm_tree_view_end(at, end, numbers->leaves);
        const size_t offset = (size_t)count * numbers->bytes;

        leaves_add(numbers, at, next);
        memcpy((char *)rig->host + offset, numbers->leaf[at], numbers->bytes);
        views[count++] = rig->data + offset;
        at = next;
    }
    return count;
}

/* The result goes to the last view if [inside], else behind the views. If not
 * [inside], the caller also gives the leaves of all ranks. */
static int tree_one(nccl_rig_t *rig, comm_type_t type, int64_t leaves,
                    bool inside)
{
    numbers_t *numbers = numbers_new(type, leaves, 7);
    comm_leaves_t mine = share_of(rig, rig->rank, leaves);
    int64_t ranges[2 * RANKS_MAX];
    void *views[COMM_VIEWS_MAX];
    const int count = views_fill(rig, numbers, &mine, views);
    const int place = inside && count > 0 ? count - 1 : count;
    const size_t offset = (size_t)place * numbers->bytes;
    err_t err = ERR_INIT;
    int wrong;

    ranges_list(rig, leaves, ranges);
    if (!inside)
        mine.ranges = ranges;
    RANKS_OK(nccl_rig_put(rig, (size_t)(count + 1) * numbers->bytes, &err),
             err);
    RANKS_OK(comm_allreduce_tree(rig->group, views, &mine, rig->data + offset,
                                 COUNT, type, &err),
             err);
    RANKS_OK(nccl_rig_get(rig, offset + numbers->bytes, &err), err);
    wrong =
        memcmp((char *)rig->back + offset, numbers->whole, numbers->bytes) != 0;
    free(numbers);
    RANKS_CHECK(!wrong);
    return 0;
}

static int sums_main(const comm_oob_t *oob, void *argument)
{
    static const int64_t leaves[] = {1, 2, 5, 13, LEAVES};
    const nccl_plan_t *plan = argument;
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        const comm_type_t type = i % 2 == 0 ? COMM_FLOAT32 : COMM_FLOAT64;

        RANKS_CHECK(tree_one(&rig, type, leaves[i], i < 3) == 0);
        RANKS_CHECK(tree_one(&rig, COMM_FLOAT32, leaves[i], i >= 3) == 0);
    }
    nccl_rig_close(&rig);
    plan->fake->reset(); /* aborts if an object is still open */
    return 0;
}

Test(nccl_tree, sums_have_the_bits_of_the_host)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT, .scratch = SMALL};
    int ranks;

    nccl_rig_run(8, sums_main, &plan);
    for (int i = 0; (ranks = nccl_rig_vary(&plan, i)) > 0; i++) {
        plan.scratch = i % 2 == 0 ? BIG : SMALL;
        nccl_rig_run(ranks, sums_main, &plan);
    }
}

/* ---- graphs -------------------------------------------------------------- */

/* Capture the copy of the views, their sum, and the copy of the result. */
static err_code_t step_capture(nccl_rig_t *rig, void *const *views,
                               const comm_leaves_t *mine, size_t bytes,
                               dev_graph_t **out, err_t *err)
{
    comm_work_t *work = NULL;
    err_code_t rc = dev_capture_begin(rig->stream, err);

    if (rc == ERR_OK)
        rc = nccl_rig_put(rig, NCCL_RIG_COUNT * sizeof(double), err);
    if (rc == ERR_OK &&
        comm_allreduce_tree_start(rig->group, views, mine, rig->data, COUNT,
                                  COMM_FLOAT32, &work, err) != COMM_PENDING)
        rc = err->code;
    if (rc == ERR_OK)
        rc = comm_work_wait_on(work, rig->stream, err);
    if (rc == ERR_OK)
        rc = dev_copy(rig->stream, rig->back, rig->data, bytes, DEV_DEV_TO_HOST,
                      err);
    return rc == ERR_OK ? dev_capture_end(rig->stream, out, err) : rc;
}

static int graph_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    dev_graph_t *graph = NULL;
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    for (int step = 0; step < 3; step++) {
        numbers_t *numbers = numbers_new(COMM_FLOAT32, 13, step);
        const comm_leaves_t mine = share_of(&rig, oob->rank, 13);
        void *views[COMM_VIEWS_MAX];

        (void)views_fill(&rig, numbers, &mine, views);
        if (graph == NULL)
            RANKS_OK(
                step_capture(&rig, views, &mine, numbers->bytes, &graph, &err),
                err);
        RANKS_OK(dev_graph_launch(graph, rig.stream, &err), err);
        RANKS_OK(dev_stream_wait(rig.stream, &err), err);
        RANKS_CHECK(memcmp(rig.back, numbers->whole, numbers->bytes) == 0);
        free(numbers);
    }
    dev_graph_close(graph);
    nccl_rig_close(&rig);
    plan->fake->reset();
    return 0;
}

Test(nccl_tree, captured_sums_are_repeated)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT, .scratch = SMALL};

    nccl_rig_run(2, graph_main, &plan);
    plan.order = 1;
    plan.late = 2;
    nccl_rig_run(3, graph_main, &plan);
}

/* ---- what is refused ----------------------------------------------------- */

/* Sum with the leaves [mine]; it must be refused with [words]. */
static int refused(nccl_rig_t *rig, const comm_leaves_t *mine, comm_type_t type,
                   const char *words)
{
    void *views[COMM_VIEWS_MAX];
    err_t err = ERR_INIT;

    for (int i = 0; i < COMM_VIEWS_MAX; i++)
        views[i] = rig->data;
    RANKS_CHECK(comm_allreduce_tree(rig->group, views, mine, rig->data, COUNT,
                                    type, &err) == ERR_CONFIG);
    if (strstr(err.text, words) == NULL)
        RANKS_OK(ERR_CONFIG, err);
    return 0;
}

static int refusals_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const comm_leaves_t all = {0, 5, 5, NULL};
    const comm_leaves_t gap = {3 * oob->rank, 2, 5, NULL};
    const comm_leaves_t other = {oob->rank, 1, 2 + oob->rank, NULL};
    comm_leaves_t mine;
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    mine = share_of(&rig, oob->rank, LEAVES);
    if (strcmp(plan->what, "scratch") == 0)
        RANKS_CHECK(refused(&rig, &mine, COMM_FLOAT32, "tree_scratch") == 0);
    else {
        RANKS_CHECK(refused(&rig, &all, COMM_FLOAT32, "rank 1 holds") == 0);
        RANKS_CHECK(refused(&rig, &gap, COMM_FLOAT32, "end at 2") == 0);
        RANKS_CHECK(refused(&rig, &other, COMM_FLOAT32, "rank 1 asks") == 0);
        RANKS_CHECK(refused(&rig, &mine, COMM_BFLOAT16, "bfloat16") == 0);
        RANKS_CHECK(tree_one(&rig, COMM_FLOAT32, 13, true) == 0);
    }
    nccl_rig_close(&rig);
    plan->fake->reset();
    return 0;
}

Test(nccl_tree, all_ranks_refuse_what_does_not_fit)
{
    nccl_plan_t plan = {
        .timeout = NCCL_RIG_TIMEOUT, .what = "leaves", .scratch = BIG};

    nccl_rig_run(2, refusals_main, &plan);
    plan.what = "scratch";
    plan.scratch = 0;
    nccl_rig_run(2, refusals_main, &plan);
    plan.scratch = 8;
    nccl_rig_run(2, refusals_main, &plan);
}

/* ---- faults -------------------------------------------------------------- */

/* Exit code of a rank without an error: a failed call may have no effect. */
#define WELL 2

/* On the last rank a call fails, or its GPU hangs in the sum and the rank dies.
 * The other ranks must name this rank. */
static int fault_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const bool last = oob->rank == oob->size - 1;
    const bool dies = strcmp(plan->what, "dies") == 0;
    const comm_leaves_t mine = {2 * oob->rank, 2, 2 * oob->size, NULL};
    comm_work_t *work = NULL;
    err_t err = ERR_INIT;
    err_code_t rc;
    void *view;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    view = rig.data;
    if (last && dies)
        emu_set(plan->fake, nccl_stuck, 1);
    else if (last)
        emu_set(plan->fake, fail, plan->fail);
    rc = comm_allreduce_tree_start(rig.group, &view, &mine, rig.data, COUNT,
                                   COMM_FLOAT32, &work, &err) == COMM_FAILED
             ? err.code
             : ERR_OK;
    while (last && dies) {
        if (plan->fake->counts().collectives > 0)
            kill(getpid(), SIGKILL);
        sched_yield();
    }
    if (rc == ERR_OK)
        rc = comm_work_wait(work, &err);
    RANKS_CHECK(rc == ERR_PEER || !dies || last);
    RANKS_CHECK(rc == ERR_OK || last || err.culprit == oob->size - 1);
    nccl_rig_close(&rig);
    _exit(rc == ERR_OK ? WELL : 0); /* skip what CUDA would do at the end */
}

Test(nccl_tree, a_fault_in_a_sum_ends_all_ranks)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT,
                        .scratch = SMALL,
                        .what = "dies",
                        .fake = emu_open()};
    int results[RANKS_MAX], ends = 0;

    ranks_forks(3, 3 * NCCL_RIG_TIMEOUT, fault_main, &plan, results);
    cr_assert_eq(results[0] + results[1], 0);
    cr_assert_eq(results[2], 128 + SIGKILL);
    plan.what = "fails";
    for (plan.fail = 2; plan.fail <= 14; plan.fail += 2) {
        ranks_forks(3, 3 * NCCL_RIG_TIMEOUT, fault_main, &plan, results);
        for (int r = 0; r < 3; r++)
            cr_assert(results[r] == results[2] &&
                          (results[r] == 0 || results[r] == WELL),
                      "call %lld: rank %d: %d", (long long)plan.fail, r,
                      results[r]);
        ends += results[0] == 0;
    }
    cr_assert_gt(ends, 3);
}
