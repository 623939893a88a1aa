/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Opens an optimizer: its kind, options, state. update.c makes the updates. */
#include "optim/optim.h"

#include "base/check.h"
#include "base/mem.h"
#include "optim/optim_priv.h"

const opt_row_t optim_ema_options[] = {
    {.name = "decay",
     .type = OPT_REAL,
     .offset = offsetof(optim_ema_t, decay),
     .fallback = "0",
     .min = 0,
     .max = 0.9999999,
     .help =
         "decay of a moving average of the parameters, such as 0.999; 0: no "
         "average"},
    {.name = "evaluate",
     .type = OPT_BOOL,
     .offset = offsetof(optim_ema_t, evaluate),
     .fallback = "true",
     .help = "evaluate with the average of the parameters (and the current "
             "running statistics)"},
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

const opt_row_t *optim_option_rows(const char *name)
{
    const opt_pick_row_t *rows[KIND_COUNT];

    kind_rows(rows);
    return opt_pick_rows(rows, KIND_COUNT, name);
}

/* ---- opening ------------------------------------------------------------- */

static err_code_t kind_read(optim_t *optim, const tree_t *tree,
                            opt_pick_t *choice, err_t *err)
{
    const opt_pick_row_t *rows[KIND_COUNT];
    char at[OPT_PLACE_TEXT];
    err_code_t rc;

    if (tree == NULL)
        return err_set(err, ERR_CONFIG,
                       "the run file has no optimizer; add a line such as "
                       "'optimizer: {adamw: {lr: 1.0e-3}}'");
    kind_rows(rows);
    rc = opt_pick_read(
        tree, &(opt_pick_table_t){"optimizer", "groups", rows, KIND_COUNT},
        optim->options, choice, err);
    if (rc != ERR_OK)
        return rc;
    optim->kind = kinds[choice->index];
    optim->lr =
        *(const double *)(const void *)(optim->options + optim->kind->lr);
    if (optim->kind->validate == NULL)
        return ERR_OK;
    rc = optim->kind->validate(optim->options, err);
    if (rc != ERR_OK)
        err_prefix(err, "%s", tree_place_format(choice->place, at, sizeof at));
    return rc;
}

static err_code_t groups_open(optim_t *optim, const opt_pick_t *choice,
                              const tree_t *groups,
                              const optim_layout_t *layout, err_t *err)
{
    const optim_base_t base = {.kind = optim->kind,
                               .written = choice->options,
                               .groups = groups,
                               .options = optim->options};
    int *set_of = NULL;
    err_code_t rc;

    rc = mem_new(int, (size_t)layout->view_count + 1, "parameter groups",
                 &set_of, err);
    if (rc == ERR_OK)
        rc = optim_groups_read(&base, layout, &optim->sets, set_of, err);
    if (rc == ERR_OK)
        rc = optim_runs_cut(optim, layout, set_of, err);
    mem_free(set_of);
    return rc;
}

/* Memory of the place for [count] numbers of [each] bytes. NULL if there are
 * none. */
static err_code_t block_open(const optim_t *optim, size_t count, size_t each,
                             void **out, err_t *err)
{
    return count == 0 || optim->dev == NULL
               ? ERR_OK
               : dev_alloc(optim->dev, count * each, "the optimizer's state",
                           out, err);
}

static err_code_t slot_open(optim_t *optim, const char *name, float **out,
                            err_t *err)
{
    void *slot = NULL;
    err_code_t rc =
        block_open(optim, optim->state_elems, sizeof **out, &slot, err);

    if (rc != ERR_OK)
        return rc;
    optim->slot_names[optim->slot_count] = name;
    optim->slots[optim->slot_count++] = slot;
    *out = slot;
    return ERR_OK;
}

static err_code_t slots_open(optim_t *optim, const optim_ema_t *ema, err_t *err)
{
    optim_table_t *table = &optim->table;
    unsigned used = 0;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < optim->sets.count; i++)
        used |= optim->kind->slots_used(optim->sets.list[i].options);
    for (int i = 0; i < OPTIM_SLOTS_MAX && rc == ERR_OK; i++)
        if ((used >> i) & 1)
            rc = slot_open(optim, optim->kind->slots[i], &table->slots[i], err);
    if (rc == ERR_OK && ema != NULL && ema->decay > 0) {
        table->fresh = (float)(1 - ema->decay);
        rc = slot_open(optim, "ema", &table->average, err);
    }
    return rc;
}

/* The place, and its memory beside the slots. */
static err_code_t place_open(optim_t *optim, err_t *err)
{
    optim_table_t *table = &optim->table;
    const size_t runs = (size_t)table->run_count;
    void *sums = NULL, *ratios = NULL;
    err_code_t rc;

    rc = optim_place_open(optim->dev, table->elems, &optim->place, err);
    if (rc == ERR_OK)
        rc = block_open(optim, 2 * table->sum_count, sizeof *table->sums, &sums,
                        err);
    table->sums = sums;
    if (rc == ERR_OK && optim->kind->norms)
        rc = block_open(optim, runs, sizeof *table->ratios, &ratios, err);
    table->ratios = ratios;
    if (rc == ERR_OK && optim->place->ops->table_open != NULL)
        rc = optim->place->ops->table_open(optim->place, table,
                                           &optim->table_state, err);
    return rc;
}

err_code_t optim_open(const tree_t *optimizer, const optim_ema_t *ema,
                      const optim_layout_t *layout, optim_t **out, err_t *err)
{
    opt_pick_t choice = {0};
    optim_t *optim = NULL;
    err_code_t rc;

    rc = mem_new(optim_t, 1, "the optimizer", &optim, err);
    if (rc != ERR_OK)
        return rc;
    optim->dev = layout->dev;
    optim->table.elems = layout->elems;
    rc = kind_read(optim, optimizer, &choice, err);
    if (rc == ERR_OK)
        rc = groups_open(optim, &choice, tree_get(optimizer, "groups"), layout,
                         err);
    if (rc == ERR_OK)
        rc = slots_open(optim, ema, err);
    if (rc == ERR_OK && optim->dev != NULL)
        rc = place_open(optim, err);
    if (rc != ERR_OK)
        optim_close(optim);
    else
        *out = optim;
    return rc;
}

void optim_close(optim_t *optim)
{
    optim_table_t *table;

    if (optim == NULL)
        return;
    table = &optim->table;
    if (optim->table_state != NULL)
        optim->place->ops->table_close(optim->place, optim->table_state);
    optim_place_close(optim->place);
    for (int i = 0; i < optim->slot_count && optim->dev != NULL; i++)
        dev_free(optim->dev, optim->slots[i]);
    dev_free(optim->dev, table->sums);
    dev_free(optim->dev, table->ratios);
    mem_free(table->runs);
    mem_free(table->parts);
    mem_free(table->rules);
    if (optim->kind != NULL) {
        optim_sets_free(optim->kind, &optim->sets);
        opt_free(optim->kind->row.options, optim->options);
    }
    mem_free(optim);
}

/* ---- using --------------------------------------------------------------- */

optim_place_t *optim_place(optim_t *optim)
{
    return optim->place;
}

void optim_clip_value(optim_t *optim, double limit)
{
    optim->most = (float)limit;
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

size_t optim_state_bytes(const optim_t *optim)
{
    return (size_t)optim->slot_count * optim->state_elems * sizeof(float);
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
    check(slot >= 0 && slot < optim->slot_count, "slot %d of %d", slot,
          optim->slot_count);
    return optim->slots[slot];
}

float *optim_slot_at(optim_t *optim, int slot, size_t elem)
{
    for (int i = 0; i < optim->table.part_count; i++) {
        const optim_part_t *part = &optim->table.parts[i];

        if (elem >= part->range.first &&
            elem - part->range.first < part->range.count)
            return optim->slots[slot] + part->state +
                   (elem - part->range.first);
    }
    return NULL;
}

const float *optim_average(const optim_t *optim)
{
    return optim->whole ? optim->table.average : NULL;
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
