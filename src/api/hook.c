/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Wraps the hooks of a program. Each becomes a hook table of the reducer, whose
 * state refers to the program's own table and state. Buckets and views are
 * converted to the public types once, when the hook is opened.
 */
#include "api/hook.h"

#include "api/api.h"
#include "base/mem.h"

typedef struct hooked {
    const cddp_hook_t *hook;
    const dev_device_t *dev;
    void *state; /* state of the program's hook */
    cddp_hook_plan_t plan;
    cddp_hook_bucket_t *buckets;
    cddp_hook_view_t *views;
} hooked_t;

/* ---- collectives of a turn ----------------------------------------------- */

static ddp_wire_t *wire_of(cddp_wire_t *wire)
{
    return (ddp_wire_t *)wire;
}

int cddp_wire_rank(const cddp_wire_t *wire)
{
    return ddp_wire_rank((const ddp_wire_t *)wire);
}

int cddp_wire_size(const cddp_wire_t *wire)
{
    return ddp_wire_size((const ddp_wire_t *)wire);
}

cddp_code_t cddp_wire_sum(cddp_wire_t *wire, void *data, size_t count,
                          cddp_type_t type, cddp_error_t *error)
{
    comm_type_t inner;
    err_t err = ERR_INIT;
    cddp_code_t code = api_type(type, &inner, error);

    if (code != CDDP_OK)
        return code;
    return api_answer(ddp_wire_sum(wire_of(wire), data, count, inner, &err),
                      &err, error);
}

cddp_code_t cddp_wire_gather(cddp_wire_t *wire, const void *mine, size_t bytes,
                             void *all, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(ddp_wire_gather(wire_of(wire), mine, bytes, all, &err),
                      &err, error);
}

cddp_code_t cddp_wire_wait(cddp_wire_t *wire, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(ddp_wire_wait(wire_of(wire), &err), &err, error);
}

void *cddp_wire_stream(const cddp_wire_t *wire)
{
    dev_stream_t *stream = ddp_wire_stream((const ddp_wire_t *)wire);

    return stream != NULL ? dev_stream_handle(stream) : NULL;
}

/* ---- a program's table --------------------------------------------------- */

static cddp_hook_view_t view_of(const ddp_hook_view_t *view)
{
    return (cddp_hook_view_t){.offset = view->offset,
                              .count = view->count,
                              .rows = view->rows,
                              .columns = view->columns};
}

/* Convert the buckets of [plan], and their views, which are stored bucket after
 * bucket in one array. */
static err_code_t buckets_convert(hooked_t *hooked, const ddp_hook_plan_t *plan,
                                  err_t *err)
{
    size_t views = 0;
    err_code_t rc;

    for (int b = 0; b < plan->bucket_count; b++)
        views += (size_t)plan->buckets[b].view_count;
    rc = mem_new(cddp_hook_bucket_t, (size_t)plan->bucket_count, "comm hook",
                 &hooked->buckets, err);
    if (rc == ERR_OK)
        rc = mem_new(cddp_hook_view_t, views, "comm hook", &hooked->views, err);
    views = 0;
    for (int b = 0; rc == ERR_OK && b < plan->bucket_count; b++) {
        const ddp_hook_bucket_t *bucket = &plan->buckets[b];

        hooked->buckets[b] =
            (cddp_hook_bucket_t){.index = b,
                                 .grads = bucket->grads,
                                 .offset = bucket->offset,
                                 .count = bucket->count,
                                 .views = hooked->views + views,
                                 .view_count = bucket->view_count};
        for (int v = 0; v < bucket->view_count; v++)
            hooked->views[views++] = view_of(&bucket->views[v]);
    }
    return rc;
}

/* May the program's function use the hook's memory? If the device was given
 * up, a call of CUDA that frees memory might never return. */
static bool closable(const hooked_t *hooked)
{
    return hooked->hook->place == CDDP_HOOK_HOST || hooked->dev == NULL ||
           !dev_abandoned(hooked->dev);
}

static void hook_close(void *state)
{
    hooked_t *hooked = state;

    if (hooked->state != NULL && closable(hooked))
        hooked->hook->close(hooked->state);
    mem_free(hooked->views);
    mem_free(hooked->buckets);
    mem_free(hooked);
}

static err_code_t hook_open(const ddp_hook_plan_t *plan, void **state,
                            err_t *err)
{
    const api_hook_t *own = plan->context;
    cddp_error_t error = {.culprit = -1};
    hooked_t *hooked = NULL;
    err_code_t rc;

    rc = mem_new(hooked_t, 1, "comm hook", &hooked, err);
    if (rc != ERR_OK)
        return rc;
    hooked->hook = own->hook;
    hooked->dev = own->dev;
    rc = buckets_convert(hooked, plan, err);
    hooked->plan = (cddp_hook_plan_t){.context = hooked->hook->context,
                                      .buckets = hooked->buckets,
                                      .bucket_count = plan->bucket_count,
                                      .elems = plan->elems,
                                      .rank = plan->rank,
                                      .size = plan->size};
    if (rc == ERR_OK)
        rc = api_question(
            hooked->hook->open(&hooked->plan, &hooked->state, &error), &error,
            err);
    if (rc != ERR_OK) {
        hook_close(hooked);
        return rc;
    }
    *state = hooked;
    return ERR_OK;
}

static void hook_begin(void *state, int64_t step)
{
    const hooked_t *hooked = state;

    if (hooked->hook->begin != NULL)
        hooked->hook->begin(hooked->state, step);
}

static err_code_t hook_turn(void *state, const ddp_hook_bucket_t *bucket,
                            int turn, ddp_wire_t *wire, err_t *err)
{
    const hooked_t *hooked = state;
    cddp_error_t error = {.culprit = -1};

    return api_question(hooked->hook->turn(hooked->state,
                                           &hooked->buckets[bucket->index],
                                           turn, (cddp_wire_t *)wire, &error),
                        &error, err);
}

/* ---- the list ------------------------------------------------------------ */

static const opt_row_t no_options[] = {{.name = NULL}};

static ddp_hook_place_t place_of(const cddp_hook_t *hook)
{
    return hook->place == CDDP_HOOK_DEVICE ? DDP_HOOK_DEVICE : DDP_HOOK_HOST;
}

static err_code_t hook_check(const cddp_hook_t *hook, int index, err_t *err)
{
    if (hook->name == NULL || hook->turns < 1 || hook->open == NULL ||
        hook->close == NULL || hook->turn == NULL)
        return err_set(
            err, ERR_CONFIG,
            "hook %d (%s) is incomplete: it needs name, turns (at least "
            "1), open, close and turn",
            index, hook->name != NULL ? hook->name : "no name");
    if (hook->place == CDDP_HOOK_HOST || hook->place == CDDP_HOOK_DEVICE)
        return ERR_OK;
    return err_set(
        err, ERR_CONFIG,
        "hook %d (%s) has the place %d; expected CDDP_HOOK_HOST (%d) "
        "or CDDP_HOOK_DEVICE (%d)",
        index, hook->name, (int)hook->place, CDDP_HOOK_HOST, CDDP_HOOK_DEVICE);
}

err_code_t api_hooks_open(const cddp_hook_t *const *hooks,
                          const dev_device_t *dev, api_hooks_t *out, err_t *err)
{
    api_hooks_t made = {.hooks = NULL};
    size_t count = 0;
    err_code_t rc;

    *out = made;
    while (hooks != NULL && hooks[count] != NULL)
        count++;
    if (count == 0)
        return ERR_OK;
    rc = mem_new(api_hook_t, count, "comm hooks", &made.hooks, err);
    if (rc == ERR_OK)
        rc = mem_new(ddp_hook_ops_t, count, "comm hooks", &made.tables, err);
    if (rc == ERR_OK)
        rc = mem_new(const ddp_hook_ops_t *, count + 1, "comm hooks",
                     &made.list, err);
    for (size_t i = 0; rc == ERR_OK && i < count; i++) {
        rc = hook_check(hooks[i], (int)i, err);
        made.hooks[i] = (api_hook_t){hooks[i], dev};
        made.tables[i] = (ddp_hook_ops_t){.row = {.name = hooks[i]->name,
                                                  .help = "A program's own",
                                                  .options = no_options},
                                          .context = &made.hooks[i],
                                          .turns = hooks[i]->turns,
                                          .place = place_of(hooks[i]),
                                          .open = hook_open,
                                          .close = hook_close,
                                          .begin = hook_begin,
                                          .turn = hook_turn};
        made.list[i] = &made.tables[i];
    }
    if (rc == ERR_OK)
        *out = made;
    else
        api_hooks_close(&made);
    return rc;
}

void api_hooks_close(api_hooks_t *hooks)
{
    mem_free(hooks->hooks);
    mem_free(hooks->tables);
    mem_free((void *)hooks->list);
}
