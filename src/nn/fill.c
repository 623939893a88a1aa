/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Initial values of an arena. Each tensor has a random stream of its own, keyed
 * by seed and name. The stream's blocks (one call of the generator each) can be
 * drawn from any point on, so that a crew shares a large tensor without
 * changing bits. A block gives two uniform numbers, but one normal number or
 * none. So before normal numbers are drawn, each member of the crew counts how
 * many its blocks give.
 */
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/rng.h"
#include "nn/nn_build.h"

/* Minimum elements of a tensor that the crew shares (about half a millisecond
 * of work). */
#define SHARED_ELEMS ((size_t)1 << 16)
#define MEMBERS_MAX 64
/* Uniform numbers are shared in multiples of this, so that each share begins
 * with a block. */
#define UNIFORM_GRAIN 512

typedef struct fill {
    const nn_tensor_t *tensor;
    float *to;
    rng_t start;                /* beginning of the tensor's stream */
    int members;                /* members of the crew that take part */
    uint64_t blocks;            /* normal: number of blocks for each member */
    size_t counts[MEMBERS_MAX], /* normal: elements that each member writes */
        firsts[MEMBERS_MAX];    /* normal: first element of each member */
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

/* pi / 4 of all blocks give a number, so a tensor takes about 1.273 blocks for
 * each element. The crew draws 1 + 17/64 = 1.266 blocks for each, slightly too
 * few, so that no numbers are drawn in vain. The rest, about one in 170
 * elements, is drawn by one thread. */
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

    /* Keyed by the name: adding a layer elsewhere changes no other tensor. */
    rng_open(&fill.start, seed, RNG_INIT,
             hash_bytes(public->name, strlen(public->name)), 0);
    if (fill.members == 1 || public->count < SHARED_ELEMS)
        draw(tensor, &fill.start, to, public->count);
    else if (tensor->fill == NN_FILL_NORMAL)
        normal_fill(&fill, crew);
    else
        crew_run(crew, uniform_share, &fill);
}

/* Fill with the tensor's constant. Returns false if its values are random
 * instead. */
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
