/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Chooses a hook, and takes its turns for all buckets. The choice is among the
 * built-in hooks and those of the configuration: there is no global registry.
 */
#include "ddp/hook.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "ddp/ddp_priv.h"
#include "ddp/hook_priv.h"
#include "op/op.h"

#define HOOKS_MAX 16

struct ddp_hooked {
    const ddp_hook_ops_t *ops;
    void *options; /* struct filled from the table ops->row.options */
    void *state;
    ddp_hook_plan_t plan;
    ddp_hook_view_t *views;
    ddp_hook_bucket_t *buckets;
    ddp_wire_t *wires; /* [bucket_count] */
    int *turns;        /* [bucket_count]: number of turns taken in this step */
    int bucket_count;
    bool failed;    /* a turn of this step has failed: none follows */
    trace_t *trace; /* NULL: none */
};

static const ddp_hook_ops_t *const builtin[] = {
    &ddp_hook_none, &ddp_hook_fp16, &ddp_hook_bf16, &ddp_hook_powersgd};

enum { BUILTIN = sizeof builtin / sizeof builtin[0] };

static const opt_row_t no_options[] = {{.name = NULL}};

/* The hook "none" is only a choice for the run file; it is never opened. */
const ddp_hook_ops_t ddp_hook_none = {
    .row = {.name = "none",
            .help = "Gradients are summed as they are",
            .options = no_options}};

/* ---- choosing ------------------------------------------------------------ */

/* List all hooks: the built-in ones, then those of [config]. */
static err_code_t hooks_list(const ddp_config_t *config,
                             const ddp_hook_ops_t *hooks[HOOKS_MAX],
                             const opt_pick_row_t *rows[HOOKS_MAX], int *count,
                             err_t *err)
{
    int n = 0;

    for (; n < BUILTIN; n++)
        hooks[n] = builtin[n];
    for (int i = 0; config->hooks != NULL && config->hooks[i] != NULL; i++) {
        if (n == HOOKS_MAX)
            return err_set(err, ERR_CONFIG, "more than %d comm hooks",
                           HOOKS_MAX - BUILTIN);
        hooks[n++] = config->hooks[i];
    }
    for (int i = 0; i < n; i++)
        rows[i] = &hooks[i]->row;
    *count = n;
    return ERR_OK;
}

/* Find the hook that [config] names, and read its options; options_free frees
 * them. */
static err_code_t hook_pick(const ddp_config_t *config,
                            const ddp_hook_ops_t **out, void **options,
                            err_t *err)
{
    const ddp_hook_ops_t *hooks[HOOKS_MAX];
    const opt_pick_row_t *rows[HOOKS_MAX];
    opt_pick_t pick = {0};
    size_t bytes = 0;
    void *values = NULL;
    err_code_t rc;
    int count = 0;

    rc = hooks_list(config, hooks, rows, &count, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < count; i++)
        if (hooks[i]->option_bytes > bytes)
            bytes = hooks[i]->option_bytes;
    rc = mem_alloc(bytes, "options of a comm hook", &values, err);
    if (rc == ERR_OK)
        rc = opt_pick_read(config->hook,
                           &(opt_pick_table_t){"ddp.hook", NULL, rows, count},
                           values, &pick, err);
    if (rc != ERR_OK) {
        mem_free(values);
        return rc;
    }
    *out = hooks[pick.index];
    *options = values;
    return ERR_OK;
}

static void options_free(const ddp_hook_ops_t *ops, void *options)
{
    if (options == NULL)
        return;
    opt_free(ops->row.options, options);
    mem_free(options);
}

bool ddp_hook_wanted(const ddp_config_t *config)
{
    const char *word = NULL;

    if (config->hook == NULL || tree_kind(config->hook) == TREE_NULL)
        return false;
    if (tree_kind(config->hook) == TREE_SCALAR)
        word = tree_text(config->hook);
    if (tree_kind(config->hook) == TREE_MAP && tree_count(config->hook) == 1)
        word = tree_key(config->hook, 0);
    return word == NULL || strcmp(word, ddp_hook_none.row.name) != 0;
}

err_code_t ddp_hook_check(const ddp_config_t *config, err_t *err)
{
    const ddp_hook_ops_t *ops = NULL;
    void *options = NULL;
    err_code_t rc = ERR_OK;

    if (ddp_hook_wanted(config))
        rc = hook_pick(config, &ops, &options, err);
    options_free(ops, options);
    return rc;
}

err_code_t ddp_hook_choose(const ddp_config_t *config, const dev_device_t *dev,
                           ddp_hook_choice_t *out, err_t *err)
{
    const op_backend_ops_t *backend = NULL;
    const ddp_hook_ops_t *ops = NULL;
    void *options = NULL;
    err_code_t rc;

    *out = (ddp_hook_choice_t){.place = DDP_HOOK_HOST};
    if (!ddp_hook_wanted(config))
        return ERR_OK;
    rc = hook_pick(config, &ops, &options, err);
    if (rc != ERR_OK)
        return rc;
    out->place = ops->place;
    if (dev != NULL && ops->fits != NULL &&
        op_backend_get(dev_name(dev), &backend, NULL) == ERR_OK &&
        ops->fits(backend))
        out->place = DDP_HOOK_DEVICE;
    out->rounds = ops->rounds != NULL;
    if (out->rounds)
        ops->rounds(options, &out->rounding);
    options_free(ops, options);
    if (out->place != DDP_HOOK_DEVICE || dev != NULL)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "the comm hook \"%s\" wants gradients in the memory of a "
                   "GPU, but in this run they are in the memory of the host; "
                   "run on a GPU, or choose a hook for the host",
                   ops->row.name);
}

bool ddp_hook_fits_device(const ddp_config_t *config, const dev_device_t *dev,
                          bool enqueues)
{
    ddp_hook_choice_t choice;

    return ddp_hook_choose(config, dev, &choice, NULL) == ERR_OK &&
           (choice.place == DDP_HOOK_DEVICE || (enqueues && choice.rounds));
}

void ddp_hook_document(str_buf_t *out)
{
    const opt_pick_row_t *rows[BUILTIN];

    for (int i = 0; i < BUILTIN; i++)
        rows[i] = &builtin[i]->row;
    str_buf_add(out,
                "## Comm hooks\n\n"
                "What is summed over ranks instead of the plain gradients: "
                "`ddp.hook: NAME`, or `ddp.hook: {NAME: {OPTION: "
                "VALUE}}`. See docs/DDP-HOOKS.md.\n\n");
    opt_pick_document(rows, BUILTIN, "ddp.hook", out);
}

/* ---- opening ------------------------------------------------------------- */

static ddp_hook_view_t view_of(const ddp_view_t *view)
{
    size_t rows = view->ndim > 1 ? view->rows : 0;

    return (ddp_hook_view_t){.offset = view->offset,
                             .count = view->count,
                             .rows = (int64_t)rows,
                             .columns =
                                 rows > 0 ? (int64_t)(view->count / rows) : 0};
}

/* Open the events of all wires, for a hook on a device. */
static err_code_t events_open(ddp_hooked_t *hooked, dev_device_t *dev,
                              err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && dev != NULL &&
                    i < hooked->bucket_count * DDP_WIRE_WORKS;
         i++)
        rc = dev_event_open(
            dev, &hooked->wires[i / DDP_WIRE_WORKS].after[i % DDP_WIRE_WORKS],
            err);
    return rc;
}

static err_code_t tables_make(ddp_hooked_t *hooked,
                              const ddp_hooked_plan_t *plan, err_t *err)
{
    const ddp_layout_t *layout = plan->layout;
    const ddp_bucket_t *buckets = plan->buckets;
    size_t count = (size_t)plan->bucket_count;
    err_code_t rc;

    rc = mem_new(ddp_hook_view_t, (size_t)layout->view_count, "comm hook",
                 &hooked->views, err);
    if (rc == ERR_OK)
        rc = mem_new(ddp_hook_bucket_t, count, "comm hook", &hooked->buckets,
                     err);
    if (rc == ERR_OK)
        rc = mem_new(ddp_wire_t, count, "comm hook", &hooked->wires, err);
    if (rc == ERR_OK)
        rc = mem_new(int, count, "comm hook", &hooked->turns, err);
    if (rc != ERR_OK)
        return rc;
    for (int v = 0; v < layout->view_count; v++)
        hooked->views[v] = view_of(&layout->views[v]);
    for (int b = 0; b < plan->bucket_count; b++) {
        hooked->wires[b] = (ddp_wire_t){
            .group = plan->group, .stats = plan->stats, .bucket = b};
        hooked->buckets[b] = (ddp_hook_bucket_t){
            .index = b,
            .grads =
                plan->grads == NULL ? NULL : plan->grads + buckets[b].offset,
            .offset = buckets[b].offset,
            .count = buckets[b].count,
            .views = hooked->views + buckets[b].first_view,
            .view_count = buckets[b].view_count};
    }
    return events_open(hooked, plan->dev, err);
}

static err_code_t hooked_make(const ddp_config_t *config,
                              const ddp_hooked_plan_t *plan, ddp_hooked_t **out,
                              err_t *err)
{
    ddp_hooked_t *hooked = NULL;
    err_code_t rc;

    rc = mem_new(ddp_hooked_t, 1, "comm hook", &hooked, err);
    if (rc != ERR_OK)
        return rc;
    hooked->bucket_count = plan->bucket_count;
    rc = hook_pick(config, &hooked->ops, &hooked->options, err);
    if (rc == ERR_OK)
        rc = tables_make(hooked, plan, err);
    if (rc != ERR_OK)
        goto close;
    hooked->plan = (ddp_hook_plan_t){.options = hooked->options,
                                     .context = hooked->ops->context,
                                     .buckets = hooked->buckets,
                                     .bucket_count = plan->bucket_count,
                                     .elems = plan->layout->grad_elems,
                                     .rank = plan->rank,
                                     .size = plan->size,
                                     .dev = plan->dev,
                                     .counted = plan->grads == NULL};
    rc = hooked->ops->open(&hooked->plan, &hooked->state, err);
    if (rc != ERR_OK)
        goto close;
    *out = hooked;
    return ERR_OK;

close:
    ddp_hooked_close(hooked);
    return rc;
}

err_code_t ddp_hooked_open(const ddp_config_t *config,
                           const ddp_hooked_plan_t *plan, ddp_hooked_t **out,
                           err_t *err)
{
    *out = NULL;
    return ddp_hook_wanted(config) ? hooked_make(config, plan, out, err)
                                   : ERR_OK;
}

err_code_t ddp_hook_bytes(const ddp_config_t *config,
                          const ddp_layout_t *layout, int ranks, size_t *bytes,
                          err_t *err)
{
    ddp_hooked_plan_t plan = {.layout = layout, .size = ranks};
    ddp_hooked_t *hooked = NULL;
    ddp_bucket_t *buckets = NULL;
    err_code_t rc;

    *bytes = 0;
    if (!ddp_hook_wanted(config))
        return ERR_OK;
    rc = mem_new(ddp_bucket_t, (size_t)layout->view_count, "buckets", &buckets,
                 err);
    if (rc != ERR_OK)
        return rc;
    plan.buckets = buckets;
    plan.bucket_count = ddp_bucket_cut(config, layout, buckets);
    rc = hooked_make(config, &plan, &hooked, err);
    if (rc == ERR_OK && hooked->ops->bytes != NULL)
        *bytes = hooked->ops->bytes(hooked->state);
    ddp_hooked_close(hooked);
    mem_free(buckets);
    return rc;
}

void ddp_hooked_close(ddp_hooked_t *hooked)
{
    if (hooked == NULL)
        return;
    if (hooked->state != NULL)
        hooked->ops->close(hooked->state);
    options_free(hooked->ops, hooked->options);
    for (int b = 0; hooked->wires != NULL && b < hooked->bucket_count; b++)
        for (int i = 0; i < DDP_WIRE_WORKS; i++)
            dev_event_close(hooked->wires[b].after[i]);
    mem_free(hooked->turns);
    mem_free(hooked->wires);
    mem_free(hooked->buckets);
    mem_free(hooked->views);
    mem_free(hooked);
}

/* ---- a step -------------------------------------------------------------- */

void ddp_hooked_begin(ddp_hooked_t *hooked, int64_t step, dev_stream_t *stream)
{
    for (int b = 0; hooked->plan.dev != NULL && b < hooked->bucket_count; b++)
        hooked->wires[b].stream = stream;
    hooked->failed = false;
    memset(hooked->turns, 0,
           (size_t)hooked->bucket_count * sizeof *hooked->turns);
    if (hooked->ops->begin != NULL)
        hooked->ops->begin(hooked->state, step);
}

static err_code_t turn_take(ddp_hooked_t *hooked, int bucket, int turn,
                            err_t *err)
{
    const double begin = trace_begin(hooked->trace);
    err_code_t rc;

    check(bucket >= 0 && bucket < hooked->bucket_count, "bucket %d of %d",
          bucket, hooked->bucket_count);
    check(hooked->turns[bucket] == turn && turn < hooked->ops->turns,
          "%s: bucket %d takes turn %d of %d, expected %d",
          hooked->ops->row.name, bucket, turn, hooked->ops->turns,
          hooked->turns[bucket]);
    hooked->turns[bucket]++;
    rc = hooked->ops->turn(hooked->state, &hooked->buckets[bucket], turn,
                           &hooked->wires[bucket], err);
    hooked->failed = rc != ERR_OK;
    trace_end(hooked->trace, begin, hooked->ops->row.name, "hook", bucket + 1);
    return rc;
}

err_code_t ddp_hooked_start(ddp_hooked_t *hooked, int bucket, err_t *err)
{
    return turn_take(hooked, bucket, 0, err);
}

void ddp_hooked_poll(ddp_hooked_t *hooked)
{
    for (int b = 0; b < hooked->bucket_count; b++)
        if (hooked->wires[b].flying)
            ddp_wire_poll(&hooked->wires[b]);
}

/* [started] is less than the number of buckets only if the step has already
 * failed. */
err_code_t ddp_hooked_finish(ddp_hooked_t *hooked, int started, err_t *err)
{
    const bool whole = started >= hooked->bucket_count && !hooked->failed;
    err_code_t rc = ERR_OK;

    for (int turn = 1; whole && turn < hooked->ops->turns; turn++)
        for (int b = 0; rc == ERR_OK && b < hooked->bucket_count; b++)
            rc = turn_take(hooked, b, turn, err);
    for (int b = 0; b < hooked->bucket_count; b++) {
        err_code_t one;

        one = ddp_wire_wait(&hooked->wires[b], rc == ERR_OK ? err : NULL);
        if (rc == ERR_OK)
            rc = one;
    }
    return rc;
}

void ddp_hooked_trace(ddp_hooked_t *hooked, trace_t *trace)
{
    hooked->trace = trace;
    for (int b = 0; b < hooked->bucket_count; b++)
        hooked->wires[b].trace = trace;
}

int ddp_hooked_parts(ddp_hooked_t *hooked, ddp_hook_part_t *parts)
{
    return hooked->ops->parts == NULL
               ? 0
               : hooked->ops->parts(hooked->state, parts);
}
