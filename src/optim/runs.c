/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An update is one pass over the arena. The arena is divided into runs:
 * neighbouring parameters with equal options form one run, which includes the
 * gaps between them. So a model without groups has one run. An optimizer that
 * needs norms of tensors has a run for each tensor. A run ends where this
 * rank's range ends. Pieces and blocks begin at multiples of their size in the
 * arena, so neither threads nor ranges change a bit.
 */
#include "base/check.h"
#include "base/mem.h"
#include "optim/optim_priv.h"

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
                 &optim->table.parts, err);
    if (rc != ERR_OK)
        return rc;
    optim->whole = whole;
    optim->table.part_count = count;
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
        optim->table.parts[i] =
            (optim_part_t){.range = range, .state = optim->state_elems};
        optim->state_elems += range.count;
    }
    return ERR_OK;
}

/* A part of the arena that is one run if this rank has the whole arena. */
typedef struct stretch {
    size_t from, to;
    int set;
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
    optim_run_t *run = &optim->table.runs[optim->table.run_count];
    const optim_rule_t *rule = &optim->table.rules[stretch->set];

    if (from >= to)
        return;
    *run = (optim_run_t){.offset = from,
                         .elems = to - from,
                         .state = part->state + (from - begin),
                         .set = stretch->set,
                         .freeze = optim->sets.list[stretch->set].freeze,
                         .adapts = optim->kind->norms &&
                                   (rule->adapt_vectors || !stretch->vector),
                         .tensor = stretch->from,
                         .sums = stretch->sums,
                         .sum_count = stretch->sum_count};
    if (part->runs == 0)
        part->run = optim->table.run_count;
    run->first = part->pieces;
    if (!run->freeze)
        run->pieces = (int64_t)touched(from, to, OPTIM_PIECE);
    part->pieces += run->pieces;
    part->runs++;
    optim->table.run_count++;
}

/* Join neighbouring views, from view [first] on, into one stretch. Returns the
 * first view after it. */
static int stretch_make(optim_t *optim, const optim_layout_t *layout,
                        const int *set_of, int first, stretch_t *out)
{
    const optim_view_t *view = &layout->views[first];
    const bool alone = optim->kind->norms;
    int next = first + 1;

    *out = (stretch_t){.from = view->offset,
                       .to = view->offset + view->count,
                       .set = set_of[first],
                       .vector = view->ndim <= 1};
    if (alone && view->count > 0) {
        out->sums = optim->table.sum_count;
        out->sum_count = touched(out->from, out->to, OPTIM_BLOCK);
        optim->table.sum_count += out->sum_count;
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

    for (int p = 0; CHECK_ON && p < optim->table.part_count; p++) {
        const optim_part_t *part = &optim->table.parts[p];
        size_t end = part->range.first;
        int64_t pieces = 0;

        check(part->runs == 0 || part->run == runs,
              "part %d has runs from %d on, expected %d", p, part->run, runs);
        for (int r = runs; r < runs + part->runs; r++) {
            const optim_run_t *run = &optim->table.runs[r];

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
    check(runs == optim->table.run_count, "%d runs of %d", runs,
          optim->table.run_count);
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
        while (r < optim->table.run_count &&
               optim->table.runs[r].offset + optim->table.runs[r].elems <=
                   view->offset)
            r++;
        run = &optim->table.runs[r];
        check(r < optim->table.run_count && run->offset <= view->offset &&
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
        for (; part < optim->table.part_count; part++) {
            const view_range_t range = optim->table.parts[part].range;

            run_add(optim, &optim->table.parts[part], &stretch);
            if (range.first + range.count > stretch.to)
                break;
        }
    }
}

/* The rules of the sets, which are complete. */
static err_code_t rules_make(optim_t *optim, err_t *err)
{
    const optim_sets_t *sets = &optim->sets;
    err_code_t rc;

    rc = mem_new(optim_rule_t, (size_t)sets->count + 1, "parameter groups",
                 &optim->table.rules, err);
    for (int i = 0; rc == ERR_OK && i < sets->count; i++)
        optim->kind->rule(sets->list[i].options, &optim->table.rules[i]);
    optim->table.rule_count = sets->count;
    optim->table.measures = optim->kind->norms;
    return rc;
}

err_code_t optim_runs_cut(optim_t *optim, const optim_layout_t *layout,
                          const int *set_of, err_t *err)
{
    err_code_t rc = rules_make(optim, err);

    if (rc == ERR_OK)
        rc = parts_take(optim, layout, err);
    if (rc == ERR_OK)
        rc = mem_new(optim_run_t,
                     (size_t)layout->view_count +
                         (size_t)optim->table.part_count,
                     "parameter groups", &optim->table.runs, err);
    if (rc != ERR_OK)
        return rc;
    runs_cut(optim, layout, set_of);
    runs_check(optim);
    cover_check(optim, layout);
    for (int v = 0; v < layout->view_count; v++)
        if (optim->sets.list[set_of[v]].freeze)
            optim->frozen += layout->views[v].count;
    return ERR_OK;
}
