/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The updates of an optimizer, and its copies and fills of arenas: what the
 * host enqueues. The places compute. */
#include "base/check.h"
#include "optim/optim_priv.h"

size_t optim_in_bytes(const optim_t *optim)
{
    return sizeof(optim_in_t) +
           (size_t)optim->sets.count * sizeof(optim_set_in_t);
}

void optim_in_fill(const optim_t *optim, double lr, int64_t number,
                   optim_in_t *out)
{
    optim_set_in_t *sets = (optim_set_in_t *)(out + 1);

    check(number >= 1, "update number %lld", (long long)number);
    *out = (optim_in_t){.number = number, .sets = optim->sets.count};
    for (int i = 0; i < optim->sets.count; i++) {
        const optim_set_t *set = &optim->sets.list[i];
        const optim_rate_t rate = {.lr = lr * set->lr_ratio, .number = number};

        sets[i] = (optim_set_in_t){.rate = rate.lr};
        optim->kind->scalars(set->options, &rate, sets[i].scalars);
    }
}

static optim_pass_t pass_of(const optim_t *optim, const optim_args_t *args)
{
    return (optim_pass_t){.table = &optim->table,
                          .state = optim->table_state,
                          .args = *args,
                          .most = optim->most};
}

err_code_t optim_prepare(optim_t *optim, const optim_args_t *args,
                         dev_stream_t *stream, err_t *err)
{
    const optim_table_t *table = &optim->table;
    const optim_pass_t pass = pass_of(optim, args);
    err_code_t rc = ERR_OK;

    /* Other ranks fill in the sums of their ranges. */
    if (table->sum_count > 0)
        rc = dev_fill(stream, table->sums, 0,
                      2 * table->sum_count * sizeof *table->sums, err);
    return rc == ERR_OK
               ? optim->place->ops->measure(optim->place, &pass, stream, err)
               : rc;
}

double *optim_sums(optim_t *optim, size_t *count)
{
    *count = 2 * optim->table.sum_count;
    return optim->table.sums;
}

err_code_t optim_apply(optim_t *optim, int range, const optim_args_t *args,
                       dev_stream_t *stream, err_t *err)
{
    const optim_pass_t pass = pass_of(optim, args);

    check(range >= 0 && range < optim->table.part_count, "range %d of %d",
          range, optim->table.part_count);
    return optim->place->ops->update(optim->place, &pass, range, stream, err);
}

err_code_t optim_step(optim_t *optim, const optim_args_t *args,
                      dev_stream_t *stream, err_t *err)
{
    err_code_t rc = optim_prepare(optim, args, stream, err);

    for (int i = 0; i < optim->table.part_count && rc == ERR_OK; i++)
        rc = optim_apply(optim, i, args, stream, err);
    return rc;
}

err_code_t optim_mask(const optim_t *optim, float *grads, dev_stream_t *stream,
                      err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < optim->table.run_count && rc == ERR_OK; i++) {
        const optim_run_t *run = &optim->table.runs[i];

        if (run->freeze)
            rc = dev_fill(stream, grads + run->offset, 0,
                          run->elems * sizeof *grads, err);
    }
    return rc;
}

/* ---- the moving average -------------------------------------------------- */

err_code_t optim_start(optim_t *optim, const float *params,
                       dev_stream_t *stream, err_t *err)
{
    const optim_table_t *table = &optim->table;
    err_code_t rc = ERR_OK;

    for (int i = 0; table->average != NULL && i < table->part_count; i++) {
        const optim_part_t *part = &table->parts[i];

        if (rc == ERR_OK)
            rc = dev_copy(stream, table->average + part->state,
                          params + part->range.first,
                          part->range.count * sizeof *params, DEV_DEV_TO_DEV,
                          err);
    }
    return rc;
}

err_code_t optim_average_store(const optim_t *optim, float *params,
                               dev_stream_t *stream, err_t *err)
{
    const optim_table_t *table = &optim->table;
    err_code_t rc = ERR_OK;

    for (int i = 0; table->average != NULL && i < table->part_count; i++) {
        const optim_part_t *part = &table->parts[i];

        if (rc == ERR_OK)
            rc = dev_copy(stream, params + part->range.first,
                          table->average + part->state,
                          part->range.count * sizeof *params, DEV_DEV_TO_DEV,
                          err);
    }
    return rc;
}
