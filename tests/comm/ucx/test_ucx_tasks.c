/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The algorithms of collectives, with all members in one process and messages
 * in memory. Members run in an order that changes from round to round. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "comm/ucx/ucx_task.h"

#define MEMBERS_MOST 17
#define LANES 2
#define MAIL_MOST 64 /* messages in flight from one member to another */

typedef struct message {
    void *data;
    size_t bytes;
} message_t;

typedef struct mailbox { /* messages from one member to another on one lane */
    message_t messages[MAIL_MOST];
    int head, tail;
} mailbox_t;

typedef struct wait { /* a posted receive */
    int member;
    message_t into;
} wait_t;

typedef struct runner { /* one lane of one member */
    ucx_task_t task, part;
    int lane;
    bool alive;
    wait_t waits[4 * MEMBERS_MOST];
    int waiting;
} runner_t;

static int size;
static mailbox_t mail[LANES][MEMBERS_MOST][MEMBERS_MOST]; /* [lane][to][from] */
static runner_t runners[LANES][MEMBERS_MOST];
static unsigned seed;

/* ---- messages ------------------------------------------------------------ */

static void send_copy(void *context, int member, const void *data, size_t bytes)
{
    const runner_t *self = context;
    mailbox_t *box = &mail[self->lane][member][self->task.rank];
    message_t *message = &box->messages[box->tail++ % MAIL_MOST];

    cr_assert_lt(box->tail - box->head, MAIL_MOST);
    cr_assert(member >= 0 && member < size && member != self->task.rank);
    *message = (message_t){malloc(bytes + 1), bytes};
    if (bytes > 0)
        memcpy(message->data, data, bytes);
}

static void recv_post(void *context, int member, void *data, size_t bytes)
{
    runner_t *self = context;

    cr_assert(member >= 0 && member < size && member != self->task.rank);
    self->waits[self->waiting++] = (wait_t){member, {data, bytes}};
}

static void fail(void *context, const err_t *fault)
{
    (void)context;
    cr_assert_fail("%s", fault->text);
}

static const ucx_task_ops_t ops = {
    .send = send_copy, .recv = recv_post, .fail = fail};

/* Deliver the messages that have arrived. Returns whether no posted receive is
 * left. */
static bool deliver(runner_t *self)
{
    int left = 0;

    for (int i = 0; i < self->waiting; i++) {
        wait_t wait = self->waits[i];
        mailbox_t *box = &mail[self->lane][self->task.rank][wait.member];
        message_t *message = &box->messages[box->head % MAIL_MOST];
        /* an earlier posted receive from this member is still open */
        bool earlier = false;

        for (int j = 0; j < left; j++)
            earlier |= self->waits[j].member == wait.member;
        if (box->head == box->tail || earlier) {
            self->waits[left++] = wait;
            continue;
        }
        cr_assert_eq(message->bytes, wait.into.bytes);
        if (message->bytes > 0)
            memcpy(wait.into.data, message->data, message->bytes);
        free(message->data);
        box->head++;
    }
    self->waiting = left;
    return left == 0;
}

/* ---- a collective -------------------------------------------------------- */

static void begin(runner_t *self, const comm_request_t *request, int lane,
                  int lanes, int rank)
{
    size_t bytes = ucx_task_scratch(size);

    *self = (runner_t){.lane = lane, .alive = true};
    self->task =
        (ucx_task_t){.ops = &ops,
                     .context = self,
                     .rank = rank,
                     .size = size,
                     .request = request,
                     .index = lane,
                     .lanes = lanes,
                     .scratch = malloc(bytes),
                     .scratch_bytes = bytes,
                     .ranges = calloc((size_t)size * 2, sizeof(int64_t)),
                     .part = &self->part};
    ucx_task_begin(&self->task);
}

static void end(int lanes)
{
    for (int lane = 0; lane < lanes; lane++)
        for (int i = 0; i < size; i++) {
            free(runners[lane][i].task.scratch);
            free(runners[lane][i].task.ranges);
            for (int j = 0; j < size; j++)
                cr_assert_eq(mail[lane][i][j].head, mail[lane][i][j].tail,
                             "a message from %d to %d is left", j, i);
        }
}

static void run(ucx_algorithm_t algorithm, const comm_request_t *requests,
                int lanes)
{
    int alive = size * lanes, turns = 0;

    for (int lane = 0; lane < lanes; lane++)
        for (int i = 0; i < size; i++)
            begin(&runners[lane][i], &requests[i], lane, lanes, i);
    while (alive > 0) {
        int which = (int)(rand_r(&seed) % (unsigned)(size * lanes));
        runner_t *self = &runners[which / size][which % size];

        cr_assert_lt(turns++, 10000000, "it does not end");
        if (!self->alive || !deliver(self))
            continue;
        self->alive = algorithm(&self->task);
        alive -= !self->alive;
    }
    end(lanes);
}

/* ---- all-reduce ---------------------------------------------------------- */

static float *copies[MEMBERS_MOST];

static void data_open(size_t count)
{
    for (int i = 0; i < size; i++) {
        copies[i] = malloc((count + 1) * sizeof(float));
        for (size_t k = 0; k < count; k++)
            copies[i][k] = (float)((int)(rand_r(&seed) % 2001) - 1000) / 7;
    }
}

static void data_close(void)
{
    for (int i = 0; i < size; i++)
        free(copies[i]);
}

/* Sums in double, with which the float results are compared; to be freed. */
static double *sum_of(size_t count)
{
    double *sum = calloc(count + 1, sizeof *sum);

    for (int i = 0; i < size; i++)
        for (size_t k = 0; k < count; k++)
            sum[k] += copies[i][k];
    return sum;
}

static void sums_check(const double *sum, size_t begin_at, size_t end_at,
                       int member)
{
    for (size_t k = begin_at; k < end_at; k++)
        cr_assert_float_eq(copies[member][k], sum[k], 1e-2,
                           "member %d of %d, element %zu", member, size, k);
}

/* Check that all members get the sum, with equal bits. */
static void reduces(ucx_algorithm_t algorithm, size_t count, int lanes)
{
    comm_request_t requests[MEMBERS_MOST];
    double *sum;

    data_open(count);
    sum = sum_of(count);
    for (int i = 0; i < size; i++)
        requests[i] = (comm_request_t){.kind = COMM_ALLREDUCE,
                                       .data = copies[i],
                                       .count = count,
                                       .type = COMM_FLOAT32,
                                       .op = COMM_SUM};
    run(algorithm, requests, lanes);
    sums_check(sum, 0, count, 0);
    for (int i = 1; i < size; i++)
        cr_assert_arr_eq(copies[i], copies[0], count * sizeof(float));
    free(sum);
    data_close();
}

static void reduces_all(ucx_algorithm_t algorithm, int lanes, size_t most)
{
    static const size_t counts[] = {1, 2, 3, 7, 16, 100, 1001, 20000, 70001};

    for (size = 2; size <= MEMBERS_MOST; size += size < 9 ? 1 : 4)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            if (counts[i] <= most)
                reduces(algorithm, counts[i], lanes);
}

Test(ucx_tasks, doubling)
{
    reduces_all(ucx_doubling, 1, 20000);
}

Test(ucx_tasks, halving)
{
    reduces_all(ucx_halving, 1, 20000);
}

Test(ucx_tasks, ring_reduce)
{
    reduces_all(ucx_ring_reduce, 1, 70001);
    reduces_all(ucx_ring_reduce, 2, 70001);
}

Test(ucx_tasks, ring_even)
{
    reduces_all(ucx_ring_even, 1, 20000);
}

Test(ucx_tasks, direct_reduce)
{
    reduces_all(ucx_direct_reduce, 1, 70001);
    reduces_all(ucx_direct_reduce, 2, 70001);
}

/* ---- ranges -------------------------------------------------------------- */

/* Cut [count] elements into uneven ranges, one of them empty. */
static void cut(size_t *cuts, size_t count)
{
    cuts[0] = 0;
    for (int i = 1; i < size; i++)
        cuts[i] = count * (size_t)i * (size_t)i / (size_t)(size * size);
    if (size > 2)
        cuts[2] = cuts[1];
    cuts[size] = count;
}

/* Reduce-scatter, then all-gather of the ranges: together an all-reduce. */
static void ranges(ucx_algorithm_t scatter, ucx_algorithm_t gather,
                   size_t count, int lanes)
{
    comm_request_t requests[MEMBERS_MOST];
    size_t cuts[MEMBERS_MOST + 1];
    double *sum;

    cut(cuts, count);
    data_open(count);
    sum = sum_of(count);
    for (int i = 0; i < size; i++)
        requests[i] = (comm_request_t){.kind = COMM_REDUCE_SCATTER,
                                       .data = copies[i],
                                       .count = count,
                                       .type = COMM_FLOAT32,
                                       .op = COMM_SUM,
                                       .cuts = cuts};
    run(scatter, requests, lanes);
    for (int i = 0; i < size; i++)
        sums_check(sum, cuts[i], cuts[i + 1], i);
    run(gather, requests, lanes);
    for (int i = 0; i < size; i++) {
        sums_check(sum, 0, count, i);
        cr_assert_arr_eq(copies[i], copies[0], count * sizeof(float));
    }
    free(sum);
    data_close();
}

Test(ucx_tasks, ranges)
{
    for (size = 2; size <= 9; size++)
        for (int lanes = 1; lanes <= 2; lanes++) {
            ranges(ucx_ring_scatter, ucx_ring_gather, 100, lanes);
            ranges(ucx_ring_scatter, ucx_ring_gather, 90001, lanes);
            ranges(ucx_direct_scatter, ucx_direct_gather, 100, lanes);
            ranges(ucx_direct_scatter, ucx_direct_gather, 90001, lanes);
        }
}

/* ---- the others ---------------------------------------------------------- */

static void gathers(ucx_algorithm_t algorithm, size_t bytes, int lanes)
{
    comm_request_t requests[MEMBERS_MOST];
    char *mine[MEMBERS_MOST], *all[MEMBERS_MOST];

    for (int i = 0; i < size; i++) {
        mine[i] = malloc(bytes);
        all[i] = calloc((size_t)size, bytes);
        memset(mine[i], i + 1, bytes);
        requests[i] = (comm_request_t){.kind = COMM_ALLGATHER,
                                       .data = all[i],
                                       .count = bytes,
                                       .mine = mine[i]};
    }
    run(algorithm, requests, lanes);
    for (int i = 0; i < size; i++) {
        for (size_t k = 0; k < bytes * (size_t)size; k++)
            cr_assert_eq(all[i][k], (char)(k / bytes + 1));
        free(mine[i]);
        free(all[i]);
    }
}

Test(ucx_tasks, gathers)
{
    for (size = 2; size <= MEMBERS_MOST; size++) {
        gathers(ucx_bruck, 1, 1);
        gathers(ucx_bruck, 4096, 1);
        gathers(ucx_ring_gather, 5, 1);
        gathers(ucx_ring_gather, 150000, 2);
    }
}

static void broadcasts(int root, size_t bytes, int lanes)
{
    comm_request_t requests[MEMBERS_MOST];
    char *data[MEMBERS_MOST];

    for (int i = 0; i < size; i++) {
        data[i] = malloc(bytes);
        for (size_t k = 0; k < bytes; k++)
            data[i][k] = (char)(i == root ? k * 7 : 0);
        requests[i] = (comm_request_t){.kind = COMM_BROADCAST,
                                       .data = data[i],
                                       .count = bytes,
                                       .root = root};
    }
    run(ucx_broadcast, requests, lanes);
    for (int i = 0; i < size; i++)
        cr_assert_arr_eq(data[i], data[root], bytes);
    for (int i = 0; i < size; i++)
        free(data[i]);
}

Test(ucx_tasks, broadcast)
{
    for (size = 2; size <= MEMBERS_MOST; size += 3)
        for (int root = 0; root < size; root += 2) {
            broadcasts(root, 1, 1);
            broadcasts(root, 300000, 2);
        }
}

Test(ucx_tasks, barrier)
{
    comm_request_t requests[MEMBERS_MOST] = {{.kind = COMM_BARRIER}};

    for (size = 2; size <= MEMBERS_MOST; size++)
        run(ucx_barrier, requests, 1);
}

/* One or two leaves per member: the tree sum has bits that do not depend on the
 * number of members. */
static void trees(size_t count)
{
    comm_request_t requests[MEMBERS_MOST];
    void *views[MEMBERS_MOST];
    double *sum;

    data_open(count);
    sum = sum_of(count);
    for (int i = 0; i < size; i++) {
        views[i] = copies[i];
        requests[i] = (comm_request_t){.kind = COMM_TREE,
                                       .data = copies[i],
                                       .count = count,
                                       .type = COMM_FLOAT32,
                                       .op = COMM_SUM,
                                       .views = &views[i],
                                       .first = i,
                                       .held = 1,
                                       .leaves = size};
    }
    run(ucx_tree, requests, 1);
    sums_check(sum, 0, count, 0);
    for (int i = 1; i < size; i++)
        cr_assert_arr_eq(copies[i], copies[0], count * sizeof(float));
    free(sum);
    data_close();
}

Test(ucx_tasks, tree)
{
    for (size = 2; size <= MEMBERS_MOST; size++) {
        trees(1);
        trees(3000);
        trees(100000);
    }
}
