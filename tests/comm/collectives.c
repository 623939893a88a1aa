/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/collectives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/half.h"
#include "base/hash.h"
#include "comm/comm_ops.h"
#include "comm/waits.h"
#include "lib/ranks.h"

#define MOST 1000007

static const size_t sizes[] = {0, 1, 3, 17, 1000, 4095, 100003, MOST};

/* A function that touches no memory but its own variables: the thread sanitizer
 * would find nothing in it, and would take longer than the function itself. */
#define PURE __attribute__((no_sanitize_thread))

/* The value of element [i] of [rank]: sums of these values depend on the order
 * of summation. */
PURE static double value(int rank, size_t i)
{
    uint64_t mix = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)rank;

    mix ^= mix >> 31;
    mix *= UINT64_C(0xbf58476d1ce4e5b9);
    mix ^= mix >> 29;
    return ((double)(mix & 0xfffff) - 524288.0) / (double)(1 + (mix >> 61));
}

/* value() as [type] stores it. For 16-bit floats it is rounded; for float16 it
 * is also scaled, so that sums do not overflow. */
PURE static double typed_value(int rank, size_t i, comm_type_t type)
{
    float one = (float)value(rank, i);
    uint16_t half;

    switch (type) {
    case COMM_FLOAT32:
        return (double)one;
    case COMM_FLOAT64:
        break;
    case COMM_INT64:
    case COMM_INT32:
        return (double)(int64_t)value(rank, i);
    case COMM_BFLOAT16:
        half_round_bf16(&half, &one, 1);
        half_widen_bf16(&one, &half, 1);
        return (double)one;
    case COMM_FLOAT16:
        one /= 1024;
        half_round_fp16(&half, &one, 1);
        half_widen_fp16(&one, &half, 1);
        return (double)one;
    }
    return value(rank, i);
}

static void element_set(void *data, size_t i, comm_type_t type, double to)
{
    float one = (float)to;

    switch (type) {
    case COMM_FLOAT32:
        ((float *)data)[i] = one;
        break;
    case COMM_FLOAT64:
        ((double *)data)[i] = to;
        break;
    case COMM_INT64:
        ((int64_t *)data)[i] = (int64_t)to;
        break;
    case COMM_INT32:
        ((int32_t *)data)[i] = (int32_t)to;
        break;
    case COMM_BFLOAT16:
        half_round_bf16((uint16_t *)data + i, &one, 1);
        break;
    case COMM_FLOAT16:
        half_round_fp16((uint16_t *)data + i, &one, 1);
        break;
    }
}

static double element(const void *data, size_t i, comm_type_t type)
{
    float one = 0;

    switch (type) {
    case COMM_FLOAT32:
        return (double)((const float *)data)[i];
    case COMM_FLOAT64:
        return ((const double *)data)[i];
    case COMM_INT64:
        return (double)((const int64_t *)data)[i];
    case COMM_INT32:
        return (double)((const int32_t *)data)[i];
    case COMM_BFLOAT16:
        half_widen_bf16(&one, (const uint16_t *)data + i, 1);
        break;
    case COMM_FLOAT16:
        half_widen_fp16(&one, (const uint16_t *)data + i, 1);
        break;
    }
    return (double)one;
}

void collectives_fill(void *data, size_t count, comm_type_t type, int rank)
{
    for (size_t i = 0; i < count; i++)
        element_set(data, i, type, typed_value(rank, i, type));
}

/* Largest allowed error of a sum over [size] ranks whose magnitudes add up to
 * [span]. 16-bit floats may be rounded by each rank. */
static double room_of(comm_type_t type, double span, int size)
{
    static const double rooms[COMM_TYPES] = {
        [COMM_FLOAT32] = 1e-6,
        [COMM_FLOAT64] = 1e-14,
        [COMM_BFLOAT16] = 0x1.02p-8,
        [COMM_FLOAT16] = 0x1.02p-11,
    };

    return rooms[type] * span * (comm_type_rounds(type) ? size : 1);
}

int collectives_check(const void *data, size_t count, comm_type_t type,
                      comm_op_t op, int size)
{
    for (size_t i = 0; i < count; i += 1 + count / 501) {
        double sum = 0, span = 0, max = -INFINITY, min = INFINITY;
        double found = element(data, i, type);

        for (int rank = 0; rank < size; rank++) {
            double one = typed_value(rank, i, type);

            sum += one;
            span += fabs(one);
            max = fmax(max, one);
            min = fmin(min, one);
        }
        if (op == COMM_SUM)
            RANKS_CHECK(fabs(found - sum) <= room_of(type, span, size));
        else
            RANKS_CHECK(found == (op == COMM_MAX ? max : min));
    }
    return 0;
}

/* ---- collectives --------------------------------------------------------- */

/* Check that [data] has the same bytes on all ranks. */
static int check_same(comm_group_t *group, const void *data, size_t bytes)
{
    uint64_t all[RANKS_MAX], mine = hash_bytes(data, bytes);
    err_t err = ERR_INIT;

    RANKS_OK(comm_allgather(group, &mine, sizeof mine, all, &err), err);
    for (int rank = 0; rank < comm_group_size(group); rank++)
        RANKS_CHECK(memcmp(&all[rank], &mine, sizeof mine) == 0);
    return 0;
}

static int run_allreduce(comm_group_t *group, void *data, bool large)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    err_t err = ERR_INIT;

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes - !large; s++)
        for (int type = 0; type < COMM_TYPES; type++)
            for (int op = 0; op < COMM_OPS; op++) {
                size_t count = sizes[s];

                /* Large buffers take time: try only some combinations. */
                if (count > 5000 && type != COMM_FLOAT32 &&
                    (s + (size_t)type) % COMM_OPS != (size_t)op)
                    continue;
                if (count == MOST && op != COMM_SUM)
                    continue;
                collectives_fill(data, count, (comm_type_t)type, rank);
                RANKS_OK(comm_allreduce(group, data, count, (comm_type_t)type,
                                        (comm_op_t)op, &err),
                         err);
                if (collectives_check(data, count, (comm_type_t)type,
                                      (comm_op_t)op, size) ||
                    check_same(group, data,
                               count * comm_type_bytes((comm_type_t)type)))
                    return 1;
            }
    return 0;
}

#define FLIGHTS 9

/* Several works in flight. Ranks start them at different times and wait for
 * them from the last to the first. */
static int run_flights(comm_group_t *group)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    static const size_t counts[FLIGHTS] = {5,     70000, 1,    4096, 33,
                                           50000, 2,     9000, 100};
    comm_work_t *works[FLIGHTS];
    void *data[FLIGHTS];
    err_t err = ERR_INIT;
    int failed = 0;

    for (int i = 0; i < FLIGHTS; i++) {
        data[i] = malloc(counts[i] * sizeof(double));
        collectives_fill(data[i], counts[i], COMM_FLOAT64, rank);
        /* For each work another rank is late on purpose: without this delay it
         * would be rare that others have waited for long. */
        if ((rank + i) % 4 == 1)
            usleep(1500);
        RANKS_CHECK(comm_allreduce_start(group, data[i], counts[i],
                                         COMM_FLOAT64, COMM_SUM, &works[i],
                                         &err) != COMM_FAILED);
    }
    for (int i = FLIGHTS - 1; i >= 0; i--)
        RANKS_OK(comm_work_wait(works[i], &err), err);
    for (int i = 0; i < FLIGHTS; i++) {
        failed |= collectives_check(data[i], counts[i], COMM_FLOAT64, COMM_SUM,
                                    size) ||
                  check_same(group, data[i], counts[i] * sizeof(double));
        free(data[i]);
    }
    return failed;
}

/* A caller that only polls sees the end of its work, too. */
static int run_poll(comm_group_t *group)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    double *data = malloc(40000 * sizeof *data);
    comm_work_t *work;
    err_t err = ERR_INIT;
    int failed;

    collectives_fill(data, 40000, COMM_FLOAT64, rank);
    RANKS_CHECK(comm_allreduce_start(group, data, 40000, COMM_FLOAT64, COMM_SUM,
                                     &work, &err) != COMM_FAILED);
    RANKS_CHECK(waits_poll(work) == COMM_DONE);
    RANKS_OK(comm_work_wait(work, &err), err);
    failed = collectives_check(data, 40000, COMM_FLOAT64, COMM_SUM, size);
    free(data);
    return failed;
}

/* Whole blocks are compared: if each byte were, the sanitizers would take most
 * of the test's time. */
static int run_broadcast(comm_group_t *group, unsigned char *data)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    static const size_t bytes[] = {0, 1, 13, 5000, 300001};
    unsigned char *sent = malloc(300001);
    err_t err = ERR_INIT;

    for (size_t s = 0; s < sizeof bytes / sizeof *bytes; s++) {
        for (size_t i = 0; i < bytes[s]; i++)
            sent[i] = (unsigned char)(i * 7 + s);
        for (int root = 0; root < size; root += s == 1 ? 1 : 1 + size / 2) {
            memset(data, 0xee, bytes[s]);
            if (rank == root)
                memcpy(data, sent, bytes[s]);
            RANKS_OK(comm_broadcast(group, data, bytes[s], root, &err), err);
            RANKS_CHECK(memcmp(data, sent, bytes[s]) == 0);
        }
    }
    free(sent);
    return 0;
}

/* Rank r gives bytes that count up from 3 r: a part of one ramp. */
static int run_allgather(comm_group_t *group, unsigned char *all)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    static const size_t bytes[] = {0, 1, 8, 1001, 70001};
    unsigned char *ramp = malloc(70001 + 3 * RANKS_MAX);
    err_t err = ERR_INIT;

    for (size_t i = 0; i < 70001 + 3 * RANKS_MAX; i++)
        ramp[i] = (unsigned char)i;
    for (size_t s = 0; s < sizeof bytes / sizeof *bytes; s++)
        for (int in_place = 0; in_place < 2; in_place++) {
            unsigned char *mine = malloc(bytes[s] + 1), *from = mine;

            memset(all, 0xee, bytes[s] * (size_t)size);
            if (in_place)
                from = all + (size_t)rank * bytes[s];
            memcpy(from, ramp + 3 * rank, bytes[s]);
            RANKS_OK(comm_allgather(group, from, bytes[s], all, &err), err);
            for (size_t r = 0; r < (size_t)size; r++)
                RANKS_CHECK(
                    memcmp(all + r * bytes[s], ramp + 3 * r, bytes[s]) == 0);
            free(mine);
        }
    free(ramp);
    return 0;
}

/* ---- ranges -------------------------------------------------------------- */

/* Offsets [0, size] of the ranks' ranges in [count] elements. [way] chooses:
 * equal ranges, growing ones, all elements on one rank, or random ranges, some
 * of them empty. */
static void cuts_make(size_t *cuts, size_t count, int size, int way)
{
    size_t ranks = (size_t)size;

    for (size_t r = 0; r <= ranks; r++)
        cuts[r] = way == 0   ? count / ranks * r + count % ranks * r / ranks
                  : way == 1 ? (size_t)((double)count * (double)(r * r) /
                                        (double)(ranks * ranks))
                  : way == 2 ? (r > ranks / 2 ? count : 0)
                             : (size_t)(value((int)r, count) < 0 ? 0 : count);
    for (size_t r = 1; way == 3 && r < ranks; r++) {
        size_t mix = (size_t)fabs(value((int)r + 7, count)) % (count + 1);

        cuts[r] = r % 3 == 0 || mix < cuts[r - 1] ? cuts[r - 1] : mix;
    }
    cuts[0] = 0;
    cuts[ranks] = count;
}

static int check_range(const void *data, const size_t *cuts, int rank,
                       const void *all, comm_type_t type)
{
    size_t width = comm_type_bytes(type), begin = cuts[rank] * width;

    RANKS_CHECK(memcmp((const char *)data + begin, (const char *)all + begin,
                       (cuts[rank + 1] - cuts[rank]) * width) == 0);
    return 0;
}

/* Reduce-scatter, then all-gather of ranges. The result is close to the serial
 * sum and equal on all ranks. If the sum is taken in rank order, its bits do
 * not depend on the ranges. The all-gather does not change a rank's own range.
 */
static int run_ranges_once(comm_group_t *group, void *data, size_t count,
                           comm_type_t type, comm_op_t op, int way)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    size_t bytes = count * comm_type_bytes(type), own, end;
    size_t cuts[RANKS_MAX + 1];
    void *kept = malloc(bytes + 1);
    err_t err = ERR_INIT;
    int failed;

    cuts_make(cuts, count, size, way);
    collectives_fill(data, count, type, rank);
    RANKS_OK(comm_reduce_scatter(group, data, cuts, type, op, &err), err);
    memcpy(kept, data, bytes);
    own = cuts[rank] * comm_type_bytes(type);
    end = cuts[rank + 1] * comm_type_bytes(type);
    memset(data, 0xee, own);
    memset((char *)data + end, 0xee, bytes - end);
    RANKS_OK(comm_allgather_ranges(group, data, cuts, type, &err), err);
    failed = check_range(data, cuts, rank, kept, type) ||
             collectives_check(data, count, type, op, size) ||
             check_same(group, data, bytes);
    free(kept);
    return failed;
}

static int run_ranges(comm_group_t *group, void *data, bool large)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes - !large; s++)
        for (int type = 0; type < COMM_TYPES; type++)
            for (int way = 0; way < 4; way++) {
                if (sizes[s] > 5000 && way % 3 != type % 3)
                    continue;
                if (run_ranges_once(group, data, sizes[s], (comm_type_t)type,
                                    (comm_op_t)((way + type) % COMM_OPS), way))
                    return 1;
            }
    return 0;
}

/* The sum of element [i] in rank order, rounded once at the end, as [type]
 * stores it. */
static void serial_sum(void *into, size_t i, comm_type_t type, int size)
{
    double sum = typed_value(0, i, type);

    for (int rank = 1; rank < size; rank++) {
        sum += typed_value(rank, i, type);
        if (type != COMM_FLOAT64)
            /* exact for integers, which are small enough */
            sum = (double)(float)sum;
    }
    element_set(into, 0, type, sum);
}

static int check_serial(const void *data, size_t begin, size_t end,
                        comm_type_t type, int size)
{
    size_t width = comm_type_bytes(type);
    int64_t sum;

    for (size_t i = begin; i < end; i++) {
        serial_sum(&sum, i, type, size);
        RANKS_CHECK(memcmp(&sum, (const char *)data + i * width, width) == 0);
    }
    return 0;
}

/* Reduce-scatter in rank order: the result has the bits of a serial loop,
 * whatever the ranges are. */
static int run_rank_order(comm_group_t *group, void *data, size_t count,
                          comm_type_t type)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    size_t cuts[RANKS_MAX + 1];
    err_t err = ERR_INIT;
    int failed = 0;

    for (int way = 0; way < 4 && !failed; way++) {
        cuts_make(cuts, count, size, way);
        collectives_fill(data, count, type, rank);
        RANKS_OK(comm_reduce_scatter(group, data, cuts, type, COMM_SUM, &err),
                 err);
        failed = check_serial(data, cuts[rank], cuts[rank + 1], type, size);
    }
    return failed;
}

/* Run run_rank_order both in ordinary memory and at [data]. */
static int run_rank_orders(comm_group_t *group, void *data)
{
    void *plain = malloc(40007 * sizeof(double));
    int failed = 0;

    for (int type = 0; type < COMM_TYPES; type++) {
        size_t count = type == COMM_FLOAT32 ? 40007 : 3001;

        failed |= run_rank_order(group, plain, count, (comm_type_t)type) ||
                  run_rank_order(group, data, count, (comm_type_t)type);
    }
    free(plain);
    return failed;
}

/* ---- tree ---------------------------------------------------------------- */

PURE static float leaf(int64_t number, size_t i)
{
    return (float)value((int)number + 100, i);
}

PURE static float tree_sum(int64_t begin, int64_t end, size_t i)
{
    int64_t split = 1;

    if (end - begin == 1)
        return leaf(begin, i);
    while (split * 2 < end - begin)
        split *= 2;
    return tree_sum(begin, begin + split, i) + tree_sum(begin + split, end, i);
}

/* Number of leaves of the ranks before [rank]. Shares are uneven, and some
 * ranks have none. */
static int64_t leaves_before(int rank, int size, int64_t leaves)
{
    return rank == 0      ? 0
           : rank == size ? leaves
                          : leaves * rank * rank / (size * size);
}

static int run_tree_once(comm_group_t *group, int64_t leaves, size_t count)
{
    int rank = comm_group_rank(group), size = comm_group_size(group);
    int64_t first = leaves_before(rank, size, leaves);
    int64_t held = leaves_before(rank + 1, size, leaves) - first;
    int64_t at = first;
    void *views[COMM_VIEWS_MAX];
    float *data = malloc(count * sizeof *data);
    int n = 0;
    err_t err = ERR_INIT;

    while (at < first + held) {
        int64_t next = comm_tree_view_end(at, first + held, leaves);
        float *view = malloc(count * sizeof *view);

        for (size_t i = 0; i < count; i++)
            view[i] = tree_sum(at, next, i);
        views[n++] = view;
        at = next;
    }
    RANKS_CHECK(n == comm_tree_views(first, held, leaves));
    RANKS_OK(comm_allreduce_tree(group, views,
                                 &(comm_leaves_t){first, held, leaves, NULL},
                                 data, count, COMM_FLOAT32, &err),
             err);
    for (size_t i = 0; i < count; i++) {
        float expected = tree_sum(0, leaves, i);

        RANKS_CHECK(memcmp(&data[i], &expected, sizeof expected) == 0);
    }
    while (n > 0)
        free(views[--n]);
    free(data);
    return 0;
}

static int run_tree(comm_group_t *group, bool large)
{
    static const int64_t leaves[] = {1, 2, 7, 16, 21};

    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
        if (run_tree_once(group, leaves[i], 1) ||
            run_tree_once(group, leaves[i], 1003))
            return 1;
    return large ? run_tree_once(group, 11, 60001) : 0;
}

int collectives_run(const comm_oob_t *real, void *argument)
{
    const collectives_t *what = argument;
    char host[] = "node-?";
    comm_oob_t pretended = *real;
    const comm_oob_t *oob = &pretended;
    comm_config_t config = {
        .backend = what->backend, .timeout = 20, .table = what->table};
    size_t bytes = MOST * sizeof(double);
    comm_arena_t *arena = NULL;
    comm_group_t *group;
    err_t err = ERR_INIT;
    void *data;
    int failed;

    if (bytes < 70001 * (size_t)oob->size)
        bytes = 70001 * (size_t)oob->size;
    if (what->nodes != NULL) {
        host[strlen(host) - 1] = what->nodes[oob->rank];
        pretended.host = host;
    }
    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    RANKS_CHECK(comm_group_rank(group) == oob->rank);
    RANKS_CHECK(comm_group_size(group) == oob->size);
    RANKS_CHECK(strcmp(comm_group_backend(group), what->backend) == 0);
    RANKS_CHECK(strlen(comm_group_host(group, oob->size - 1)) > 0);
    if (!what->plain)
        RANKS_OK(comm_arena_open(group, bytes, &arena, &err), err);
    data = what->plain ? calloc(1, bytes) : comm_arena_data(arena);
    failed = run_allreduce(group, data, what->large) || run_flights(group) ||
             run_poll(group) || run_broadcast(group, data) ||
             run_allgather(group, data) ||
             run_ranges(group, data, what->large) ||
             (what->rank_order && run_rank_orders(group, data)) ||
             run_tree(group, what->large);
    comm_arena_close(arena);
    if (what->plain)
        free(data);
    if (!failed)
        RANKS_OK(comm_barrier(group, &err), err);
    RANKS_OK(comm_group_check(group, &err), err);
    comm_group_close(group);
    return failed;
}
