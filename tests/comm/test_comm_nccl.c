/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Groups of NCCL on emulated GPUs, one process for each rank: the results of
 * all collectives, captured steps, and faults. After any fault each rank must
 * end with a sentence.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/nccl_rig.h"
#include "comm/waits.h"
#include "lib/alloc_fail.h"

/* ---- collectives --------------------------------------------------------- */

static double value(int rank, size_t i)
{
    return (double)((rank + 1) * (int)(i % 5)) - (double)(i % 3);
}

/* The expected result of a reduction over all ranks. */
static double reduced(int size, size_t i, comm_op_t op)
{
    double result = value(0, i);

    for (int r = 1; r < size; r++) {
        const double next = value(r, i);

        if (op == COMM_SUM)
            result += next;
        else if (op == COMM_MAX ? next > result : next < result)
            result = next;
    }
    return result;
}

static int values_expect(const nccl_rig_t *rig, size_t first, size_t end,
                         comm_op_t op)
{
    for (size_t i = first; i < end; i++)
        RANKS_CHECK(rig->back[i] == reduced(rig->size, i, op));
    return 0;
}

static int allreduce_one(nccl_rig_t *rig, size_t count, comm_op_t op)
{
    const size_t bytes = count * sizeof(double);
    comm_work_t *work = NULL;
    err_t err = ERR_INIT;

    for (size_t i = 0; i < count; i++)
        rig->host[i] = value(rig->rank, i);
    RANKS_OK(nccl_rig_put(rig, bytes, &err), err);
    RANKS_CHECK(comm_allreduce_start(rig->group, rig->data, count, COMM_FLOAT64,
                                     op, &work, &err) == COMM_PENDING);
    if (op == COMM_MAX)
        RANKS_CHECK(waits_poll(work) == COMM_DONE);
    if (op == COMM_MIN)
        RANKS_OK(comm_work_wait(work, &err), err);
    else
        RANKS_OK(comm_work_wait_on(work, rig->stream, &err), err);
    RANKS_OK(nccl_rig_get(rig, bytes, &err), err);
    return values_expect(rig, 0, count, op);
}

/* Divide the elements among the ranks: evenly, or unevenly with an empty range
 * for rank 0. */
static void cuts_make(const nccl_rig_t *rig, bool even, size_t *cuts)
{
    cuts[0] = 0;
    for (int r = 0; r < rig->size; r++)
        cuts[r + 1] = even     ? cuts[r] + 1000
                      : r == 0 ? 0
                               : cuts[r] + 100 * (size_t)r + 1;
    if (!even && rig->size == 1)
        cuts[1] = 77;
}

static int ranges_one(nccl_rig_t *rig, bool even)
{
    size_t cuts[RANKS_MAX + 1], count;
    err_t err = ERR_INIT;

    cuts_make(rig, even, cuts);
    count = cuts[rig->size];
    for (size_t i = 0; i < count; i++)
        rig->host[i] = value(rig->rank, i);
    RANKS_OK(nccl_rig_put(rig, count * sizeof(double), &err), err);
    RANKS_OK(comm_reduce_scatter(rig->group, rig->data, cuts, COMM_FLOAT64,
                                 COMM_SUM, &err),
             err);
    RANKS_OK(
        comm_allgather_ranges(rig->group, rig->data, cuts, COMM_FLOAT64, &err),
        err);
    RANKS_OK(nccl_rig_get(rig, count * sizeof(double), &err), err);
    return values_expect(rig, 0, count, COMM_SUM);
}

static int copies_one(nccl_rig_t *rig)
{
    const int root = rig->size - 1;
    const size_t bytes = NCCL_RIG_COUNT * sizeof(double), mine = 72;
    err_t err = ERR_INIT;

    for (size_t i = 0; i < NCCL_RIG_COUNT; i++)
        rig->host[i] = value(rig->rank, i);
    RANKS_OK(nccl_rig_put(rig, bytes, &err), err);
    RANKS_OK(comm_broadcast(rig->group, rig->data, bytes, root, &err), err);
    RANKS_OK(nccl_rig_get(rig, bytes, &err), err);
    for (size_t i = 0; i < NCCL_RIG_COUNT; i++)
        RANKS_CHECK(rig->back[i] == value(root, i));
    RANKS_OK(nccl_rig_put(rig, bytes, &err), err);
    RANKS_OK(comm_allgather(rig->group, rig->data, mine,
                            rig->data + RANKS_MAX * mine, &err),
             err);
    RANKS_OK(nccl_rig_get(rig, 2 * RANKS_MAX * mine, &err), err);
    for (int r = 0; r < rig->size; r++)
        for (size_t i = 0; i < mine / sizeof(double); i++)
            RANKS_CHECK(
                rig->back[(RANKS_MAX + (size_t)r) * mine / sizeof(double) +
                          i] == value(r, i));
    RANKS_OK(comm_barrier(rig->group, &err), err);
    return 0;
}

/* All ranks must get the same bits, also for 16-bit floats. */
static int types_one(nccl_rig_t *rig, comm_type_t type)
{
    char *own = (char *)rig->host, *others = NULL;
    err_t err = ERR_INIT;
    int equal = 0;

    for (size_t i = 0; i < NCCL_RIG_COUNT; i++)
        own[i] = (char)(i % 50 + (size_t)rig->rank);
    RANKS_OK(nccl_rig_put(rig, 8000, &err), err);
    RANKS_OK(comm_allreduce(rig->group, rig->data, 1000, type, COMM_SUM, &err),
             err);
    RANKS_OK(nccl_rig_get(rig, 8000, &err), err);
    others = malloc(2000 * (size_t)rig->size);
    RANKS_OK(comm_allgather(rig->control, rig->back, 2000, others, &err), err);
    for (int r = 0; r < rig->size; r++)
        equal += memcmp(others + 2000 * (size_t)r, rig->back, 2000) == 0;
    free(others);
    RANKS_CHECK(equal == rig->size);
    return 0;
}

static int collectives_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    RANKS_CHECK(strcmp(comm_group_backend(rig.group), "nccl") == 0);
    for (int op = COMM_SUM; op <= COMM_MIN; op++) {
        RANKS_CHECK(allreduce_one(&rig, NCCL_RIG_COUNT, (comm_op_t)op) == 0);
        RANKS_CHECK(allreduce_one(&rig, 1, (comm_op_t)op) == 0);
    }
    RANKS_CHECK(ranges_one(&rig, true) == 0);
    RANKS_CHECK(ranges_one(&rig, false) == 0);
    RANKS_CHECK(copies_one(&rig) == 0);
    for (int type = COMM_FLOAT32; type <= COMM_FLOAT16; type++)
        RANKS_CHECK(types_one(&rig, (comm_type_t)type) == 0);
    nccl_rig_close(&rig);
    plan->fake->reset(); /* aborts if an object is still open */
    return 0;
}

Test(comm_nccl, collectives_give_what_they_should)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT};
    int ranks;

    for (int i = 0; (ranks = nccl_rig_vary(&plan, i)) > 0; i++)
        nccl_rig_run(ranks, collectives_main, &plan);
}

/* ---- arenas -------------------------------------------------------------- */

/* [fail] of the plan is the setting nccl_windows of the last rank. All ranks
 * have a window, or none. */
static int arenas_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const bool windows = plan->fail == 1;
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    if (oob->rank == oob->size - 1)
        emu_set(plan->fake, nccl_windows, plan->fail);
    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    RANKS_CHECK(plan->fake->counts().windows == windows);
    RANKS_CHECK(plan->fake->counts().registered == !windows);
    RANKS_CHECK(allreduce_one(&rig, NCCL_RIG_COUNT, COMM_SUM) == 0);
    nccl_rig_close(&rig);
    RANKS_CHECK(plan->fake->counts().windows == 0);
    RANKS_CHECK(plan->fake->counts().registered == 0);
    plan->fake->reset();
    return 0;
}

Test(comm_nccl, arenas_are_windows_if_all_ranks_have_them)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT};

    for (plan.fail = 0; plan.fail <= 2; plan.fail++)
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            plan.late = ranks == 3 ? 2 : 0;
            plan.silent = 0;
            nccl_rig_run(ranks, arenas_main, &plan);
            plan.silent = 1;
            nccl_rig_run(ranks, arenas_main, &plan);
        }
}

/* The last rank has no memory for a second arena. All ranks learn this, and
 * their group still works. */
static int memory_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const bool last = oob->rank == oob->size - 1;
    comm_arena_t *arena = NULL;
    err_t err = ERR_INIT;
    nccl_rig_t rig;
    err_code_t rc;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    if (last)
        alloc_fail(1);
    rc = comm_arena_open(rig.group, 4096, &arena, &err);
    RANKS_CHECK(alloc_fail_end() == last);
    RANKS_CHECK(rc == ERR_MEMORY && arena == NULL);
    RANKS_CHECK(last || strncmp(err.text, "rank 2 on ", 10) == 0);
    RANKS_CHECK(allreduce_one(&rig, NCCL_RIG_COUNT, COMM_SUM) == 0);
    nccl_rig_close(&rig);
    plan->fake->reset();
    return 0;
}

Test(comm_nccl, all_learn_that_one_has_no_memory_for_an_arena)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT};

    nccl_rig_run(3, memory_main, &plan);
}

/* ---- many ranks ---------------------------------------------------------- */

/* The exchange of one rank. */
static err_code_t alone_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    (void)context;
    (void)err;
    memcpy(all, mine, bytes);
    return ERR_OK;
}

/* [fail] of the plan is the number of ids that are expected. A control group
 * only has to find faults, and there are none here: so each rank has a control
 * group of its own. */
static int ids_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const comm_oob_t alone = {.size = 1, .exchange = alone_exchange};
    const comm_config_t host = {.backend = "self", .timeout = plan->timeout};
    comm_config_t config = {.backend = "nccl", .timeout = plan->timeout};
    nccl_rig_t rig = {.rank = oob->rank, .size = oob->size};
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&host, &alone, &rig.control, &err), err);
    RANKS_OK(nccl_rig_device(&rig, &err), err);
    config.dev = rig.dev;
    config.beside = rig.control;
    RANKS_OK(comm_group_open(&config, oob, &rig.group, &err), err);
    RANKS_CHECK(plan->fake->counts().ids == plan->fail);
    RANKS_OK(comm_barrier(rig.group, &err), err);
    nccl_rig_close(&rig);
    return 0;
}

Test(comm_nccl, many_ranks_have_several_ids)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT, .fail = 1};

    nccl_rig_run(3, ids_main, &plan);
    plan.fail = 2;
    nccl_rig_run(RANKS_MAX, ids_main, &plan);
}

/* ---- graphs -------------------------------------------------------------- */

/* Capture two buckets. Each collective waits for the copy that writes its
 * bucket, and the final copy to the host waits for both collectives. */
static err_code_t step_capture(nccl_rig_t *rig, dev_graph_t **out, err_t *err)
{
    const size_t half = NCCL_RIG_COUNT / 2;
    comm_work_t *works[2];
    err_code_t rc = dev_capture_begin(rig->stream, err);

    for (size_t i = 0; rc == ERR_OK && i < 2; i++) {
        rc = nccl_rig_put(rig, NCCL_RIG_COUNT * sizeof(double), err);
        if (rc == ERR_OK &&
            comm_allreduce_start(
                rig->group, rig->data + i * half * sizeof(double), half,
                COMM_FLOAT64, COMM_SUM, &works[i], err) != COMM_PENDING)
            rc = err->code;
        if (rc == ERR_OK && comm_work_poll(works[i]) == COMM_FAILED)
            rc = ERR_PEER;
        if (rc == ERR_OK)
            rc = comm_work_wait_on(works[i], rig->stream, err);
    }
    if (rc == ERR_OK)
        rc = dev_copy(rig->stream, rig->back, rig->data,
                      NCCL_RIG_COUNT * sizeof(double), DEV_DEV_TO_HOST, err);
    return rc == ERR_OK ? dev_capture_end(rig->stream, out, err) : rc;
}

static int graph_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const size_t half = NCCL_RIG_COUNT / 2;
    dev_graph_t *graph = NULL;
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    RANKS_OK(step_capture(&rig, &graph, &err), err);
    for (int step = 0; step < 3; step++) {
        for (size_t i = 0; i < NCCL_RIG_COUNT; i++)
            rig.host[i] = value(rig.rank + step, i);
        RANKS_OK(dev_graph_launch(graph, rig.stream, &err), err);
        RANKS_OK(dev_stream_wait(rig.stream, &err), err);
        /* Each copy writes both buckets, so the second copy has overwritten
         * the sum of the first bucket. */
        for (size_t i = 0; i < half; i++) {
            double sum = 0;

            for (int r = 0; r < rig.size; r++)
                sum += value(r + step, half + i);
            RANKS_CHECK(rig.back[i] == value(rig.rank + step, i));
            RANKS_CHECK(rig.back[half + i] == sum);
        }
        RANKS_CHECK(allreduce_one(&rig, NCCL_RIG_COUNT, COMM_SUM) == 0);
    }
    dev_graph_close(graph);
    nccl_rig_close(&rig);
    plan->fake->reset();
    return 0;
}

Test(comm_nccl, captured_collectives_are_repeated)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT};

    nccl_rig_run(2, graph_main, &plan);
    plan.order = 1;
    plan.late = 2;
    nccl_rig_run(3, graph_main, &plan);
}

/* ---- ranks that cannot join ---------------------------------------------- */

/* The last rank lacks a library, or one of its calls fails; all ranks must get
 * the same code. */
static int lack_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const bool last = oob->rank == oob->size - 1;
    const bool library = strcmp(plan->what, "library") == 0;
    err_t err = ERR_INIT;
    err_code_t rc;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_control(&rig, plan, oob, &err), err);
    RANKS_OK(nccl_rig_device(&rig, &err), err);
    if (last && library)
        emu_set(plan->fake, nccl, 0);
    if (last && plan->fail > 0)
        emu_set(plan->fake, fail, plan->fail);
    rc = nccl_rig_group(&rig, rig.dev, &err);
    RANKS_CHECK(rc == ERR_UNAVAILABLE ||
                (plan->fail > 0 && (rc == ERR_OK || rc == ERR_MEMORY)));
    RANKS_CHECK(rc == ERR_OK || strstr(err.text, "rank 1") != NULL);
    RANKS_CHECK(!library || strstr(err.text, "libnccl") != NULL);
    emu_set(plan->fake, fail, 0);
    nccl_rig_close(&rig);
    plan->fake->reset();
    return 0;
}

/* One rank has no GPU, but the other has. */
static int cpu_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    err_t err = ERR_INIT;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_control(&rig, plan, oob, &err), err);
    if (oob->rank == 0)
        RANKS_OK(nccl_rig_device(&rig, &err), err);
    RANKS_CHECK(nccl_rig_group(&rig, rig.dev, &err) == ERR_CONFIG);
    RANKS_CHECK(strstr(err.text, "rank 1") != NULL);
    nccl_rig_close(&rig);
    return 0;
}

Test(comm_nccl, all_learn_why_one_cannot_join)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT, .what = "library"};

    nccl_rig_run(2, lack_main, &plan);
    nccl_rig_run(2, cpu_main, &plan);
    plan.what = "call";
    for (plan.fail = 1; plan.fail < 600; plan.fail += plan.fail < 5 ? 1 : 149)
        nccl_rig_run(2, lack_main, &plan);
}

/* ---- faults -------------------------------------------------------------- */

/* What the other ranks say if the group beside this one finds the fault. If it
 * does not, they give up after twice the timeout with other words. */
static const char *fault_words(const char *what)
{
    if (strcmp(what, "never enters") == 0)
        return "its device has not begun collective";
    if (strcmp(what, "kernel hangs") == 0)
        return "although it has begun on all devices";
    return "";
}

/* The fault is always on the last rank: the others must name it as culprit,
 * unless all devices are in the same collective. */
static int fault_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const bool last = oob->rank == oob->size - 1;
    const bool nobody = strcmp(plan->what, "kernel hangs") == 0;
    double begin;
    comm_work_t *work = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = ERR_OK;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    RANKS_CHECK(allreduce_one(&rig, NCCL_RIG_COUNT, COMM_SUM) == 0);
    /* The last rank passes this barrier only when all ranks have the sum. Then
     * its fault comes, so this barrier may already fail on the others. */
    (void)comm_barrier(rig.control, NULL);
    if (last && strcmp(plan->what, "dies") == 0)
        kill(getpid(), SIGKILL);
    if (last && strcmp(plan->what, "stops") == 0)
        kill(getpid(), SIGSTOP);
    if (strcmp(plan->what, "abort hangs") == 0) {
        emu_set(plan->fake, nccl_hangs, 1);
        if (last)
            kill(getpid(), SIGKILL);
    }
    if (last && strcmp(plan->what, "device hangs") == 0)
        emu_set(plan->fake, hang_copy, 1);
    if (last && strcmp(plan->what, "call fails") == 0)
        emu_set(plan->fake, fail, plan->fail);
    if (last && nobody)
        emu_set(plan->fake, nccl_stuck, 1);
    begin = clock_now();
    /* This one hangs on the host: it starts no collective. */
    if (last && strcmp(plan->what, "never enters") == 0) {
        waits_fault(rig.control, &err);
        rc = err.code;
    }
    for (int i = 0; rc == ERR_OK && i < 3; i++) {
        rc = nccl_rig_put(&rig, NCCL_RIG_COUNT * sizeof(double), &err);
        if (rc != ERR_OK)
            comm_group_fail(rig.group, &err);
        if (rc == ERR_OK &&
            comm_allreduce_start(rig.group, rig.data, NCCL_RIG_COUNT,
                                 COMM_FLOAT64, COMM_SUM, &work,
                                 &err) == COMM_FAILED)
            rc = err.code;
        if (rc == ERR_OK)
            rc = comm_work_wait(work, &err);
    }
    RANKS_CHECK(rc == ERR_PEER || last);
    RANKS_CHECK(err.culprit == (nobody ? -1 : oob->size - 1) || last);
    RANKS_CHECK(strstr(err.text, fault_words(plan->what)) != NULL || last);
    if (strcmp(plan->what, "call fails") != 0)
        RANKS_CHECK(clock_now() - begin < 2 * plan->timeout + 20);
    nccl_rig_close(&rig);
    _exit(0); /* skip what CUDA would do at the end of a process */
}

/* On the last rank the event behind which its sum begins cannot be recorded.
 * The other ranks get a fault that names this rank. */
static int event_main(const comm_oob_t *oob, void *argument)
{
    const nccl_plan_t *plan = argument;
    const int last = oob->size - 1;
    err_t err = ERR_INIT;
    err_code_t rc;
    nccl_rig_t rig;

    RANKS_OK(nccl_rig_open(&rig, plan, oob, &err), err);
    rig.host[0] = oob->rank + 1;
    RANKS_OK(nccl_rig_put(&rig, sizeof(double), &err), err);
    RANKS_OK(comm_sum_on(rig.group, (double *)rig.data, 1, rig.event,
                         rig.stream, &err),
             err);
    RANKS_OK(nccl_rig_get(&rig, sizeof(double), &err), err);
    RANKS_CHECK(rig.back[0] == oob->size * (oob->size + 1) / 2);
    /* The fault of the last rank comes after this barrier. So the barrier may
     * already fail on the other ranks. */
    (void)comm_barrier(rig.control, NULL);
    if (oob->rank == last)
        emu_set(plan->fake, fail, 1);
    rc = comm_sum_on(rig.group, (double *)rig.data, 1, rig.event, rig.stream,
                     &err);
    RANKS_CHECK(rc == ERR_PEER || oob->rank != last);
    if (oob->rank != last)
        waits_fault(rig.control, &err);
    RANKS_CHECK(err.code == ERR_PEER && err.culprit == last);
    nccl_rig_close(&rig);
    _exit(0); /* skip what CUDA would do at the end of a process */
}

static void fault_run(const char *what, int result, double timeout)
{
    nccl_plan_t plan = {.timeout = timeout, .what = what, .fake = emu_open()};
    int results[RANKS_MAX];

    plan.fail = 2;
    ranks_forks(3, 3 * NCCL_RIG_TIMEOUT, fault_main, &plan, results);
    cr_assert_eq(results[0], 0, "%s", what);
    cr_assert_eq(results[1], 0, "%s", what);
    cr_assert_eq(results[2], result, "%s: %d", what, results[2]);
}

Test(comm_nccl, a_rank_that_dies_ends_the_others)
{
    fault_run("dies", 128 + SIGKILL, NCCL_RIG_TIMEOUT);
    fault_run("abort hangs", 128 + SIGKILL, NCCL_RIG_TIMEOUT);
}

/* The last rank itself finds that its device hangs, while the others wait in
 * the collective. */
Test(comm_nccl, a_device_that_hangs_ends_all)
{
    fault_run("device hangs", 0, 10);
}

/* Nothing but the beats of the group beside this one can find out who is to
 * blame. */
Test(comm_nccl, a_rank_that_never_enters_is_named)
{
    fault_run("never enters", 0, 10);
}

Test(comm_nccl, a_collective_that_never_ends_ends_all)
{
    fault_run("kernel hangs", 0, 10);
}

Test(comm_nccl, a_rank_whose_calls_fail_ends_the_others)
{
    nccl_plan_t plan = {.timeout = NCCL_RIG_TIMEOUT};

    fault_run("call fails", 0, NCCL_RIG_TIMEOUT);
    nccl_rig_run(3, event_main, &plan);
}
