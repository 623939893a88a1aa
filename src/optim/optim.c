/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* An optimizer: its row, its options and its state. */
#include "optim/optim.h"

#include <assert.h>
#include <stddef.h>

#include "base/mem.h"
#include "optim/optim_priv.h"

struct optim {
    const optim_kind_t *kind;
    size_t elems;
    int slot_count;
    float *slots[OPTIM_SLOTS_MAX];
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
};

static const optim_kind_t *const kinds[] = {
    &optim_kind_sgd,
    &optim_kind_adamw,
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static void kind_rows(const optim_row_t *rows[KIND_COUNT])
{
    for (int i = 0; i < KIND_COUNT; i++)
        rows[i] = &kinds[i]->row;
}

static err_code_t optim_configure(optim_t *optim, const tree_t *tree,
                                  err_t *err)
{
    const optim_row_t *rows[KIND_COUNT];
    char at[OPTIM_PLACE_TEXT];
    int index;
    err_code_t code;

    if (tree == NULL)
        return err_set(err, ERR_CONFIG,
                       "the run file has no optimizer; add a line such as "
                       "'optimizer: {adamw: {lr: 1.0e-3}}'");
    kind_rows(rows);
    code = optim_row_read(tree, "optimizer", rows, KIND_COUNT, optim->options,
                          &index, err);
    if (code != ERR_OK)
        return code;
    optim->kind = kinds[index];
    if (optim->kind->check == NULL)
        return ERR_OK;
    code = optim->kind->check(optim->options, err);
    if (code != ERR_OK)
        err_prefix(err, "%s",
                   tree_place_format(tree_place(tree), at, sizeof at));
    return code;
}

err_code_t optim_open(const tree_t *optimizer, size_t elems, optim_t **out,
                      err_t *err)
{
    optim_t *optim = NULL;
    void *block;
    err_code_t code;

    code = mem_alloc(sizeof *optim, "the optimizer", &block, err);
    if (code != ERR_OK)
        return code;
    optim = block;
    optim->elems = elems;
    code = optim_configure(optim, optimizer, err);
    if (code != ERR_OK)
        goto fail;
    for (int i = 0; i < optim->kind->slots_used(optim->options); i++) {
        code = mem_alloc(elems * sizeof(float), "the optimizer's state", &block,
                         err);
        if (code != ERR_OK)
            goto fail;
        optim->slots[optim->slot_count++] = block;
    }
    *out = optim;
    return ERR_OK;
fail:
    optim_close(optim);
    return code;
}

void optim_close(optim_t *optim)
{
    if (optim == NULL)
        return;
    for (int i = 0; i < optim->slot_count; i++)
        mem_free(optim->slots[i]);
    if (optim->kind != NULL)
        opt_free(optim->kind->row.options, optim->options);
    mem_free(optim);
}

const char *optim_name(const optim_t *optim)
{
    return optim->kind->row.name;
}

double optim_lr(const optim_t *optim)
{
    return optim->kind->lr(optim->options);
}

void optim_step(optim_t *optim, float *params, const float *grads, double lr,
                int64_t step)
{
    optim_update_t update = {
        .options = optim->options,
        .elems = optim->elems,
        .params = params,
        .grads = grads,
        .lr = lr,
        .step = step,
    };

    assert(step >= 1);
    for (int i = 0; i < optim->slot_count; i++)
        update.slots[i] = optim->slots[i];
    optim->kind->update(&update);
}

int optim_slots(const optim_t *optim)
{
    return optim->slot_count;
}

const char *optim_slot_name(const optim_t *optim, int slot)
{
    return optim->kind->slots[slot];
}

float *optim_slot_data(optim_t *optim, int slot)
{
    return optim->slots[slot];
}

void optim_document(str_buf_t *out)
{
    const optim_row_t *rows[KIND_COUNT];

    kind_rows(rows);
    str_buf_add(out, "## Optimizers\n\n");
    optim_rows_document(rows, KIND_COUNT, "optimizer", out);
    optim_schedule_document(out);
}
