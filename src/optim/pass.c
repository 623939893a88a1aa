/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An update is one pass over the arena. The arena is divided into runs:
 * neighbouring parameters with equal options form one run, which includes the
 * gaps between them. So a model without groups has one run. An optimizer that
 * needs norms of tensors has a run for each tensor. A run ends where this
 * rank's range ends. Threads share the pieces of runs. Pieces and blocks begin
 * at multiples of their size in the arena, so neither threads nor ranges change
 * a bit.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "optim/optim_priv.h"
#include "simd/team.h"
#include "simd/vector.h"

/* Elements of a piece: whole blocks, few enough to stay in the cache until the
 * moving average is updated, too. */
#define PIECE ((size_t)4 * OPTIM_BLOCK)

/* ---- cutting ------------------------------------------------------------- */

/* Number of units of [unit] elements that overlap [from, to), a range that is
 * not empty. */
static size_t touched(size_t from, size_t to, size_t unit)
{
    return (to - 1) / unit - from / unit + 1;
}

static err_code_t parts_take(optim_t *optim, const optim_layout_t *layout,
                             err_t *err)
{
    const view_range_t all = {.count = layout->elems};
    const bool whole = layout->ranges == NULL;
    const int count = whole ? 1 : layout->range_count;
    size_t end = 0;
    err_code_t rc;

    rc = mem_new(optim_part_t, (size_t)count + 1, "parameter ranges",
                 &optim->parts, err);
    if (rc != ERR_OK)
        return rc;
    optim->whole = whole;
    optim->part_count = count;
    for (int i = 0; i < count; i++) {
        const view_range_t range = whole ? all : layout->ranges[i];

        check(i == 0 || range.count == 0 || range.first >= end,
              "part %d begins at %zu, before %zu", i, range.first, end);
        end = range.first + range.count;
        check(range.first % OPTIM_UNIT == 0, "a part begins at element %zu",
              range.first);
        check((range.first + range.count) % OPTIM_UNIT == 0 ||
                  range.first + range.count == layout->elems,
              "a part ends at element %zu of %zu", range.first + range.count,
              layout->elems);
        optim->parts[i] =
            (optim_part_t){.range = range, .state = optim->state_elems};
        optim->state_elems += range.count;
    }
    return ERR_OK;
}

/* A part of the arena that is one run if this rank has the whole arena. */
typedef struct stretch {
    size_t from, to;
    const optim_set_t *set;
    bool vector;
    size_t sums, sum_count;
} stretch_t;

/* Add the run where the range of [part] and [stretch] overlap, if they do. */
static void run_add(optim_t *optim, optim_part_t *part,
                    const stretch_t *stretch)
{
    const size_t begin = part->range.first, end = begin + part->range.count;
    const size_t from = stretch->from > begin ? stretch->from : begin;
    const size_t to = stretch->to < end ? stretch->to : end;
    optim_run_t *run = &optim->runs[optim->run_count];

    if (from >= to)
        return;
    *run = (optim_run_t){.offset = from,
                         .elems = to - from,
                         .state = part->state + (from - begin),
                         .set = stretch->set,
                         .vector = stretch->vector,
                         .tensor = stretch->from,
                         .sums = stretch->sums,
                         .sum_count = stretch->sum_count,
                         .ratio = 1};
    if (part->runs == 0)
        part->run = optim->run_count;
    run->first = part->pieces;
    if (!run->set->freeze)
        run->pieces = (int64_t)touched(from, to, PIECE);
    part->pieces += run->pieces;
    part->runs++;
    optim->run_count++;
}

/* Join neighbouring views, from view [first] on, into one stretch. Returns the
 * first view after it. */
static int stretch_make(optim_t *optim, const optim_layout_t *layout,
                        const int *set_of, int first, stretch_t *out)
{
    const optim_view_t *view = &layout->views[first];
    const bool alone = optim->kind->measure != NULL;
    int next = first + 1;

    *out = (stretch_t){.from = view->offset,
                       .to = view->offset + view->count,
                       .set = &optim->sets.list[set_of[first]],
                       .vector = view->ndim <= 1};
    if (alone && view->count > 0) {
        out->sums = optim->sum_count;
        out->sum_count = touched(out->from, out->to, OPTIM_BLOCK);
        optim->sum_count += out->sum_count;
    }
    for (; !alone && next < layout->view_count && set_of[next] == set_of[first];
         next++) {
        view = &layout->views[next];
        check(view->offset >= out->to,
              "a parameter begins at %zu, the one before ends at %zu",
              view->offset, out->to);
        out->to = view->offset + view->count;
    }
    check(out->to <= layout->elems, "parameters end at %zu of %zu", out->to,
          layout->elems);
    return next;
}

/* Check that within each part runs ascend, do not overlap and stay in its
 * range. */
static void runs_check(const optim_t *optim)
{
    int runs = 0;

    for (int p = 0; CHECK_ON && p < optim->part_count; p++) {
        const optim_part_t *part = &optim->parts[p];
        size_t end = part->range.first;
        int64_t pieces = 0;

        check(part->runs == 0 || part->run == runs,
              "part %d has runs from %d on, expected %d", p, part->run, runs);
        for (int r = runs; r < runs + part->runs; r++) {
            const optim_run_t *run = &optim->runs[r];

            check(run->offset >= end, "run %d begins at %zu, before %zu", r,
                  run->offset, end);
            check(run->first == pieces,
                  "run %d has pieces from %lld on, "
                  "expected %lld",
                  r, (long long)run->first, (long long)pieces);
            end = run->offset + run->elems;
            pieces += run->pieces;
        }
        check(end <= part->range.first + part->range.count,
              "the runs of part %d end at %zu", p, end);
        check(pieces == part->pieces, "%lld pieces of %lld", (long long)pieces,
              (long long)part->pieces);
        runs += part->runs;
    }
    check(runs == optim->run_count, "%d runs of %d", runs, optim->run_count);
}

/* Check that every parameter is in exactly one run, if this rank has the whole
 * arena. */
static void cover_check(const optim_t *optim, const optim_layout_t *layout)
{
    int r = 0;

    for (int v = 0; CHECK_ON && optim->whole && v < layout->view_count; v++) {
        const optim_view_t *view = &layout->views[v];
        const optim_run_t *run;

        if (view->count == 0)
            continue;
        while (r < optim->run_count &&
               optim->runs[r].offset + optim->runs[r].elems <= view->offset)
            r++;
        run = &optim->runs[r];
        check(r < optim->run_count && run->offset <= view->offset &&
                  view->offset + view->count <= run->offset + run->elems,
              "no run has all of %s", view->name);
    }
}

/* Find all overlaps of stretches and ranges. Both ascend, so one walk over both
 * is enough. */
static void runs_cut(optim_t *optim, const optim_layout_t *layout,
                     const int *set_of)
{
    int part = 0;

    for (int next = 0; next < layout->view_count;) {
        stretch_t stretch;

        next = stretch_make(optim, layout, set_of, next, &stretch);
        for (; part < optim->part_count; part++) {
            const view_range_t range = optim->parts[part].range;

            run_add(optim, &optim->parts[part], &stretch);
            if (range.first + range.count > stretch.to)
                break;
        }
    }
}

err_code_t optim_runs_cut(optim_t *optim, const optim_layout_t *layout,
                          const int *set_of, err_t *err)
{
    err_code_t rc;

    rc = parts_take(optim, layout, err);
    if (rc == ERR_OK)
        rc = mem_new(optim_run_t,
                     (size_t)layout->view_count + (size_t)optim->part_count,
                     "parameter groups", &optim->runs, err);
    if (rc != ERR_OK)
        return rc;
    runs_cut(optim, layout, set_of);
    runs_check(optim);
    cover_check(optim, layout);
    for (int v = 0; v < layout->view_count; v++)
        if (optim->sets.list[set_of[v]].freeze)
            optim->frozen += layout->views[v].count;
    if (optim->sum_count == 0)
        return ERR_OK;
    return mem_new(double, 2 * optim->sum_count, "norms of tensors",
                   &optim->sums, err);
}

/* ---- updating ------------------------------------------------------------ */

/* One pass over a part of the arena, shared by the threads. */
typedef struct pass {
    const optim_t *optim;
    const optim_part_t *part;
    float *params;
    const float *grads;
    double lr;
    int64_t update;
} pass_t;

/* As torch.optim.swa_utils: the average begins with the result of the first
 * update. */
SIMD_CLONES static void average_update(float *restrict average,
                                       const float *restrict params,
                                       size_t elems, float fresh, bool first)
{
    if (first) {
        memcpy(average, params, elems * sizeof *average);
        return;
    }
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        average[i] += fresh * (params[i] - average[i]);
}

/* The update of elements [offset, offset + elems) of [run], as an optimizer
 * gets it. */
static optim_update_t update_of(const pass_t *pass, const optim_run_t *run,
                                size_t offset, size_t elems)
{
    const optim_t *optim = pass->optim;
    const size_t state = run->state + (offset - run->offset);
    optim_update_t update = {.options = run->set->options,
                             .elems = elems,
                             .params = pass->params + offset,
                             .grads = pass->grads + offset,
                             .lr = pass->lr * run->set->lr_ratio * run->ratio,
                             .number = pass->update,
                             .vector = run->vector};

    for (int i = 0; i < OPTIM_SLOTS_MAX; i++)
        if (optim->state[i] != NULL)
            update.slots[i] = optim->state[i] + state;
    return update;
}

/* Set [*from, *to) to the arena elements of piece number [piece] of [run]. */
static void piece_find(const optim_run_t *run, int64_t piece, size_t *from,
                       size_t *to)
{
    const size_t end = run->offset + run->elems;
    const size_t at =
        (run->offset / PIECE + (size_t)(piece - run->first)) * PIECE;

    *from = at > run->offset ? at : run->offset;
    *to = at + PIECE < end ? at + PIECE : end;
}

static void piece_update(const pass_t *pass, const optim_run_t *run,
                         size_t from, size_t to)
{
    const optim_t *optim = pass->optim;
    const optim_update_t update = update_of(pass, run, from, to - from);

    optim->kind->update(&update);
    if (optim->average != NULL)
        average_update(optim->average + run->state + (from - run->offset),
                       update.params, update.elems, optim->fresh,
                       pass->update == 1);
}

static void piece_measure(const pass_t *pass, const optim_run_t *run,
                          size_t from, size_t to)
{
    while (from < to) {
        const size_t block = from / OPTIM_BLOCK;
        const size_t end = (block + 1) * OPTIM_BLOCK;
        const size_t stop = end < to ? end : to;
        const optim_update_t update = update_of(pass, run, from, stop - from);
        const size_t place = run->sums + block - run->tensor / OPTIM_BLOCK;

        pass->optim->kind->measure(&update, pass->optim->sums + 2 * place);
        from = stop;
    }
}

typedef void piece_t(const pass_t *pass, const optim_run_t *run, size_t from,
                     size_t to);

/* Compute pieces [first, last) in the calling thread. */
static void pieces_run(const pass_t *pass, int64_t first, int64_t last,
                       piece_t *body)
{
    const optim_run_t *run = pass->optim->runs + pass->part->run;

    for (int64_t piece = first; piece < last; piece++) {
        size_t from, to;

        while (piece >= run->first + run->pieces)
            run++;
        piece_find(run, piece, &from, &to);
        body(pass, run, from, to);
    }
}

static void update_body(void *context, int64_t first, int64_t last)
{
    pieces_run(context, first, last, piece_update);
}

static void measure_body(void *context, int64_t first, int64_t last)
{
    pieces_run(context, first, last, piece_measure);
}

/* ---- the rates of tensors ------------------------------------------------ */

static double run_ratio(const optim_t *optim, const optim_run_t *run)
{
    const optim_update_t update = {.options = run->set->options,
                                   .vector = run->vector};
    const double *pairs = optim->sums + 2 * run->sums;
    optim_sum_t sums[2] = {{.blocks = 0}, {.blocks = 0}};
    double squares[2];

    for (size_t i = 0; i < run->sum_count; i++) {
        optim_sum_add(&sums[0], pairs[2 * i]);
        optim_sum_add(&sums[1], pairs[2 * i + 1]);
    }
    squares[0] = optim_sum_total(&sums[0]);
    squares[1] = optim_sum_total(&sums[1]);
    return optim->kind->ratio(&update, squares);
}

static void ratios_take(optim_t *optim, const optim_part_t *part)
{
    for (int i = part->run; i < part->run + part->runs; i++)
        if (!optim->runs[i].set->freeze)
            optim->runs[i].ratio = run_ratio(optim, &optim->runs[i]);
}

/* ---- the calls ----------------------------------------------------------- */

void optim_prepare(optim_t *optim, float *params, const float *grads,
                   int64_t update)
{
    pass_t pass = {
        .optim = optim, .params = params, .grads = grads, .update = update};

    if (optim->sum_count == 0)
        return;
    memset(optim->sums, 0, 2 * optim->sum_count * sizeof *optim->sums);
    for (int i = 0; i < optim->part_count; i++) {
        pass.part = &optim->parts[i];
        simd_team_run(optim->threads, pass.part->pieces, 1, measure_body,
                      &pass);
    }
}

double *optim_sums(optim_t *optim, size_t *count)
{
    *count = 2 * optim->sum_count;
    return optim->sums;
}

/* Every piece is computed by one thread, so the bits do not depend on the
 * number of threads. */
void optim_apply(optim_t *optim, int range, float *params, const float *grads,
                 double lr, int64_t update)
{
    const optim_part_t *part = &optim->parts[range];
    pass_t pass = {.optim = optim,
                   .part = part,
                   .params = params,
                   .grads = grads,
                   .lr = lr,
                   .update = update};

    check(update >= 1, "update number %lld", (long long)update);
    check(range >= 0 && range < optim->part_count, "range %d of %d", range,
          optim->part_count);
    if (optim->sum_count > 0)
        ratios_take(optim, part);
    simd_team_run(optim->threads, part->pieces, 1, update_body, &pass);
}

void optim_step(optim_t *optim, float *params, const float *grads, double lr,
                int64_t update)
{
    optim_prepare(optim, params, grads, update);
    for (int i = 0; i < optim->part_count; i++)
        optim_apply(optim, i, params, grads, lr, update);
}
