/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Initial values of an arena. The stream of a tensor is that of its name alone,
 * and its blocks can be drawn from anywhere, so a crew shares a large tensor
 * without a change of bits. A block of the generator gives two uniform numbers,
 * but a normal one or none: before those are drawn, each member counts what its
 * blocks hold.
 */
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/rng.h"
#include "nn/nn_build.h"

/* Tensors from here on are worth a call to the crew (half a millisecond). */
#define SHARED_ELEMS ((size_t)1 << 16)
#define MEMBERS_MAX 64
/* A uniform share begins at a whole number of these, thus at a block. */
#define UNIFORM_GRAIN 512

typedef struct fill {
    const nn_tensor_t *tensor;
    float *to;
    rng_t start;     /* of the tensor's stream */
    int members;     /* who take part */
    uint64_t blocks; /* normal: a member's */
    size_t counts[MEMBERS_MAX], firsts[MEMBERS_MAX]; /* normal: its numbers */
} fill_t;

static void draw(const nn_tensor_t *tensor, rng_t *rng, float *to, size_t count)
{
    if (tensor->fill == NN_FILL_NORMAL)
        rng_fill_normal(rng, tensor->mean, tensor->bound, to, count);
    else
        rng_fill_uniform(rng, tensor->bound, to, count);
}

/* ---- with a crew --------------------------------------------------------- */

static void uniform_share(void *context, int member)
{
    const fill_t *fill = context;
    const size_t count = fill->tensor->public.count;
    const size_t members = (size_t)fill->members;
    const size_t share = (count / members / UNIFORM_GRAIN + 1) * UNIFORM_GRAIN;
    const size_t first = (size_t)member * share;
    rng_t rng = fill->start;

    if (first >= count)
        return;
    rng_skip(&rng, first / 2);
    draw(fill->tensor, &rng, fill->to + first,
         count - first < share ? count - first : share);
}

static void normal_count(void *context, int member)
{
    fill_t *fill = context;
    rng_t rng = fill->start;

    if (member >= fill->members)
        return;
    rng_skip(&rng, (uint64_t)member * fill->blocks);
    fill->counts[member] = rng_count_normal(&rng, fill->blocks);
}

static void normal_share(void *context, int member)
{
    const fill_t *fill = context;
    rng_t rng = fill->start;

    if (member >= fill->members)
        return;
    rng_skip(&rng, (uint64_t)member * fill->blocks);
    draw(fill->tensor, &rng, fill->to + fill->firsts[member],
         fill->counts[member]);
}

/* pi / 4 of all blocks give a number, so a tensor takes 1.273 blocks for each.
 * The crew draws 1 + 17/64 = 1.266 of them, a little less than it needs lest
 * numbers be drawn for nothing; the rest, about one in 170, is drawn alone. */
static void normal_fill(fill_t *fill, crew_t *crew)
{
    const size_t count = fill->tensor->public.count;
    const uint64_t blocks = count + count / 64 * 17;
    size_t first = 0;
    rng_t rest = fill->start;

    fill->blocks = blocks / (uint64_t)fill->members + 1;
    crew_run(crew, normal_count, fill);
    for (int m = 0; m < fill->members; m++) {
        if (fill->counts[m] > count - first)
            fill->counts[m] = count - first;
        fill->firsts[m] = first;
        first += fill->counts[m];
    }
    check(first <= count, "%d threads draw %llu of %zu numbers", fill->members,
          (unsigned long long)first, (size_t)count);
    crew_run(crew, normal_share, fill);
    rng_skip(&rest, (uint64_t)fill->members * fill->blocks);
    draw(fill->tensor, &rest, fill->to + first, count - first);
}

/* ---- tensors ------------------------------------------------------------- */

static void random_fill(const nn_tensor_t *tensor, uint64_t seed, crew_t *crew,
                        float *to)
{
    const nn_param_t *public = &tensor->public;
    const int members = crew == NULL ? 1 : crew_size(crew);
    fill_t fill = {.tensor = tensor,
                   .to = to,
                   .members = members < MEMBERS_MAX ? members : MEMBERS_MAX};

    /* Keyed by the name: a layer put in elsewhere changes no other. */
    rng_open(&fill.start, seed, RNG_INIT,
             hash_bytes(public->name, strlen(public->name)), 0);
    if (fill.members == 1 || public->count < SHARED_ELEMS)
        draw(tensor, &fill.start, to, public->count);
    else if (tensor->fill == NN_FILL_NORMAL)
        normal_fill(&fill, crew);
    else
        crew_run(crew, uniform_share, &fill);
}

/* Fill with the tensor's constant; false: it has none, its values are drawn. */
static bool constant_fill(const nn_tensor_t *tensor, float *to)
{
    static const float values[] = {
        [NN_FILL_ZERO] = 0, [NN_FILL_ONE] = 1, [NN_FILL_QUARTER] = 0.25f};

    if ((size_t)tensor->fill >= sizeof values / sizeof values[0])
        return false;
    for (size_t k = 0; k < tensor->public.count; k++)
        to[k] = values[tensor->fill];
    return true;
}

void nn_table_fill(const nn_table_t *table, uint64_t seed, crew_t *crew,
                   float *to)
{
    for (int i = 0; i < table->count; i++) {
        const nn_tensor_t *tensor = &table->tensors[i];
        const nn_param_t *public = &tensor->public;
        const size_t end = i + 1 < table->count
                               ? table->tensors[i + 1].public.offset
                               : table->elems;
        float *from = to + public->offset;

        check(public->offset + public->count <= end,
              "%s ends after %zu, where the next tensor starts", public->name,
              end);
        if (!constant_fill(tensor, from))
            random_fill(tensor, seed, crew, from);
        for (float *gap = from + public->count; gap < to + end; gap++)
            *gap = 0;
    }
}
