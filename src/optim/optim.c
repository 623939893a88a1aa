/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An optimizer: its row, its options, its state, and the stretches of the arena
 * that one set of options holds for. Neighbours in the arena with the same set
 * are one stretch, gaps included, so that a model without groups is one flat
 * pass; only an optimizer that needs norms of tensors sees them one by one.
 */
#include "optim/optim.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "op/cpu/team.h"
#include "op/cpu/vector.h"
#include "optim/optim_priv.h"

/* The pass goes in pieces, which the threads share; one stays in the cache
 * until the moving average has taken it in. */
#define PIECE ((size_t)16384)
/* Fewer elements are not worth a team. */
#define TEAM_ELEMS ((size_t)262144)

typedef struct stretch {
    size_t offset, elems;
    const optim_set_t *set;
    bool vector;
    int64_t first, pieces; /* numbers of its pieces; frozen: none */
} stretch_t;

/* One pass, shared by the threads. */
typedef struct pass {
    const optim_t *optim;
    float *params;
    const float *grads;
    double lr;
    int64_t step;
} pass_t;

struct optim {
    const optim_kind_t *kind;
    size_t elems;
    size_t frozen;
    double lr;
    float *state[OPTIM_SLOTS_MAX]; /* as the kind's; NULL: unused */
    float *average;                /* NULL: none */
    float fresh;                   /* 1 - decay of the average */
    const char *slot_names[OPTIM_SLOTS_MAX + 1]; /* those that exist */
    float *slots[OPTIM_SLOTS_MAX + 1];
    int slot_count;
    optim_set_t *sets;
    int set_count;
    stretch_t *stretches;
    int stretch_count;
    int64_t pieces; /* of all stretches */
    int threads;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
};

const opt_row_t optim_ema_options[] = {
    {.name = "decay",
     .type = OPT_REAL,
     .offset = offsetof(optim_ema_t, decay),
     .fallback = "0",
     .min = 0,
     .max = 0.9999999,
     .help = "keep a moving average of the parameters that forgets this slowly "
             "(such as 0.999); 0: none"},
    {.name = "evaluate",
     .type = OPT_BOOL,
     .offset = offsetof(optim_ema_t, evaluate),
     .fallback = "true",
     .help = "evaluate with the average, and with the current running "
             "statistics"},
    {.name = NULL},
};

static const optim_kind_t *const kinds[] = {
    &optim_kind_sgd,     &optim_kind_adam, &optim_kind_adamw,
    &optim_kind_rmsprop, &optim_kind_lamb, &optim_kind_lars,
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static void kind_rows(const opt_pick_row_t *rows[KIND_COUNT])
{
    for (int i = 0; i < KIND_COUNT; i++)
        rows[i] = &kinds[i]->row;
}

/* ---- opening ------------------------------------------------------------- */

static err_code_t kind_read(optim_t *optim, const tree_t *tree,
                            opt_pick_t *choice, err_t *err)
{
    const opt_pick_row_t *rows[KIND_COUNT];
    char at[OPT_PLACE_TEXT];
    err_code_t code;

    if (tree == NULL)
        return err_set(err, ERR_CONFIG,
                       "the run file has no optimizer; add a line such as "
                       "'optimizer: {adamw: {lr: 1.0e-3}}'");
    kind_rows(rows);
    code = opt_pick_read(tree, "optimizer", "groups", rows, KIND_COUNT,
                         optim->options, choice, err);
    if (code != ERR_OK)
        return code;
    optim->kind = kinds[choice->index];
    optim->lr =
        *(const double *)(const void *)(optim->options + optim->kind->lr);
    if (optim->kind->check == NULL)
        return ERR_OK;
    code = optim->kind->check(optim->options, err);
    if (code != ERR_OK)
        err_prefix(err, "%s", tree_place_format(choice->place, at, sizeof at));
    return code;
}

/* Cut the arena; set_of[view] is an index into the sets. */
static err_code_t stretches_cut(optim_t *optim, const optim_layout_t *layout,
                                const int *set_of, err_t *err)
{
    void *block;
    err_code_t code;

    code =
        mem_alloc(((size_t)layout->view_count + 1) * sizeof *optim->stretches,
                  "parameter groups", &block, err);
    if (code != ERR_OK)
        return code;
    optim->stretches = block;
    for (int i = 0; i < layout->view_count; i++) {
        const optim_view_t *view = &layout->views[i];
        const optim_set_t *set = &optim->sets[set_of[i]];
        stretch_t *next = &optim->stretches[optim->stretch_count];

        assert(view->offset + view->count <= layout->elems);
        if (set->freeze)
            optim->frozen += view->count;
        if (i > 0 && next[-1].set == set && !optim->kind->per_tensor) {
            assert(view->offset >= next[-1].offset + next[-1].elems);
            next[-1].elems = view->offset + view->count - next[-1].offset;
            continue;
        }
        *next = (stretch_t){.offset = view->offset,
                            .elems = view->count,
                            .set = set,
                            .vector = view->ndim <= 1};
        optim->stretch_count++;
    }
    return ERR_OK;
}

static void pieces_count(optim_t *optim)
{
    for (int i = 0; i < optim->stretch_count; i++) {
        stretch_t *stretch = &optim->stretches[i];

        stretch->first = optim->pieces;
        if (!stretch->set->freeze)
            stretch->pieces =
                optim->kind->per_tensor
                    ? 1
                    : (int64_t)((stretch->elems + PIECE - 1) / PIECE);
        optim->pieces += stretch->pieces;
    }
}

static err_code_t groups_open(optim_t *optim, const opt_pick_t *choice,
                              const tree_t *groups,
                              const optim_layout_t *layout, err_t *err)
{
    const optim_base_t base = {.kind = optim->kind,
                               .written = choice->options,
                               .options = optim->options};
    int *set_of = NULL;
    err_code_t code;

    code = mem_alloc(((size_t)layout->view_count + 1) * sizeof *set_of,
                     "parameter groups", (void **)&set_of, err);
    if (code == ERR_OK)
        code = optim_groups_read(&base, groups, layout, &optim->sets,
                                 &optim->set_count, set_of, err);
    if (code == ERR_OK)
        code = stretches_cut(optim, layout, set_of, err);
    if (code == ERR_OK)
        pieces_count(optim);
    mem_free(set_of);
    return code;
}

static err_code_t slot_open(optim_t *optim, const char *name, float **out,
                            err_t *err)
{
    void *block;
    err_code_t code;

    code = mem_alloc(optim->elems * sizeof(float), "the optimizer's state",
                     &block, err);
    if (code != ERR_OK)
        return code;
    optim->slot_names[optim->slot_count] = name;
    optim->slots[optim->slot_count++] = block;
    *out = block;
    return ERR_OK;
}

static err_code_t slots_open(optim_t *optim, const optim_ema_t *ema, err_t *err)
{
    unsigned used = 0;
    err_code_t code = ERR_OK;

    for (int i = 0; i < optim->set_count; i++)
        used |= optim->kind->slots_used(optim->sets[i].options);
    for (int i = 0; i < OPTIM_SLOTS_MAX && code == ERR_OK; i++)
        if ((used >> i) & 1)
            code =
                slot_open(optim, optim->kind->slots[i], &optim->state[i], err);
    if (code == ERR_OK && ema != NULL && ema->decay > 0) {
        optim->fresh = (float)(1 - ema->decay);
        code = slot_open(optim, "ema", &optim->average, err);
    }
    return code;
}

err_code_t optim_open(const tree_t *optimizer, const optim_ema_t *ema,
                      const optim_layout_t *layout, optim_t **out, err_t *err)
{
    opt_pick_t choice = {0};
    optim_t *optim = NULL;
    err_code_t code;

    code = mem_alloc(sizeof *optim, "the optimizer", (void **)&optim, err);
    if (code != ERR_OK)
        return code;
    optim->elems = layout->elems;
    optim->threads = 1;
    code = kind_read(optim, optimizer, &choice, err);
    if (code == ERR_OK)
        code = groups_open(optim, &choice, tree_get(optimizer, "groups"),
                           layout, err);
    if (code == ERR_OK)
        code = slots_open(optim, ema, err);
    if (code != ERR_OK)
        optim_close(optim);
    else
        *out = optim;
    return code;
}

void optim_close(optim_t *optim)
{
    if (optim == NULL)
        return;
    for (int i = 0; i < optim->slot_count; i++)
        mem_free(optim->slots[i]);
    mem_free(optim->stretches);
    if (optim->kind != NULL) {
        optim_sets_free(optim->kind, optim->sets, optim->set_count);
        opt_free(optim->kind->row.options, optim->options);
    }
    mem_free(optim);
}

void optim_team(optim_t *optim, int threads)
{
    optim->threads = optim->elems < TEAM_ELEMS ? 1 : threads;
}

/* ---- using --------------------------------------------------------------- */

void optim_start(optim_t *optim, const float *params)
{
    if (optim->average != NULL)
        memcpy(optim->average, params, optim->elems * sizeof *params);
}

const char *optim_name(const optim_t *optim)
{
    return optim->kind->row.name;
}

double optim_lr(const optim_t *optim)
{
    return optim->lr;
}

void optim_scale_lr(optim_t *optim, double factor)
{
    optim->lr *= factor;
}

size_t optim_frozen(const optim_t *optim)
{
    return optim->frozen;
}

void optim_mask(const optim_t *optim, float *grads)
{
    for (int i = 0; i < optim->stretch_count; i++) {
        const stretch_t *stretch = &optim->stretches[i];

        if (stretch->set->freeze)
            memset(grads + stretch->offset, 0, stretch->elems * sizeof *grads);
    }
}

/* As torch.optim.swa_utils: the first update's result begins the average. */
CPU_CLONES static void average_update(float *restrict average,
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

/* Update [elems] elements from [offset] of the arena. */
static void piece_step(const pass_t *pass, const stretch_t *stretch,
                       size_t offset, size_t elems)
{
    const optim_t *optim = pass->optim;
    optim_update_t update = {.options = stretch->set->options,
                             .elems = elems,
                             .params = pass->params + offset,
                             .grads = pass->grads + offset,
                             .lr = pass->lr * stretch->set->lr_ratio,
                             .step = pass->step,
                             .vector = stretch->vector};

    for (int i = 0; i < OPTIM_SLOTS_MAX; i++)
        if (optim->state[i] != NULL)
            update.slots[i] = optim->state[i] + offset;
    optim->kind->update(&update);
    if (optim->average != NULL)
        average_update(optim->average + offset, update.params, elems,
                       optim->fresh, pass->step == 1);
}

/* Pieces [first, last), for one thread. */
static void pass_body(void *context, int64_t first, int64_t last)
{
    const pass_t *pass = context;
    const bool whole = pass->optim->kind->per_tensor;
    const stretch_t *stretch = pass->optim->stretches;

    for (int64_t piece = first; piece < last; piece++) {
        size_t from, left;

        while (piece >= stretch->first + stretch->pieces)
            stretch++;
        from = whole ? 0 : (size_t)(piece - stretch->first) * PIECE;
        left = stretch->elems - from;
        piece_step(pass, stretch, stretch->offset + from,
                   whole || left < PIECE ? left : PIECE);
    }
}

/* Every piece is computed alone, so the bits do not hang on the threads. */
void optim_step(optim_t *optim, float *params, const float *grads, double lr,
                int64_t step)
{
    pass_t pass = {.optim = optim,
                   .params = params,
                   .grads = grads,
                   .lr = lr,
                   .step = step};

    assert(step >= 1);
    cpu_team_run(optim->threads, optim->pieces, 1, pass_body, &pass);
}

int optim_slots(const optim_t *optim)
{
    return optim->slot_count;
}

const char *optim_slot_name(const optim_t *optim, int slot)
{
    return optim->slot_names[slot];
}

float *optim_slot_data(optim_t *optim, int slot)
{
    return optim->slots[slot];
}

const float *optim_average(const optim_t *optim)
{
    return optim->average;
}

void optim_document(str_buf_t *out)
{
    const opt_pick_row_t *rows[KIND_COUNT];

    kind_rows(rows);
    str_buf_add(out, "## Optimizers\n\n");
    opt_pick_document(rows, KIND_COUNT, "optimizer", out);
    optim_groups_document(out);
    optim_schedule_document(out);
}
