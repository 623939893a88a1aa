/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reducer. Buckets are contiguous runs of views, formed once (bucket.c).
 * The all-reduce of a bucket starts when its last gradient is ready and all
 * earlier buckets have started: so all ranks start the buckets in one order,
 * whatever the order of their gradients. The all-reduce of the tail (float64
 * sums) starts after the one of the last bucket. All of them work in place;
 * nothing is copied.
 */
#include "ddp/ddp.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_vote.h"
#include "ddp/ddp_priv.h"

/* ---- opening ------------------------------------------------------------- */

static err_code_t tables_alloc(ddp_t *ddp, const ddp_config_t *config,
                               const ddp_layout_t *layout, err_t *err)
{
    size_t views = (size_t)layout->view_count;
    err_code_t rc;

    rc = mem_new(uint64_t, (size_t)comm_group_size(ddp->group), "replica check",
                 &ddp->hashes, err);
    if (rc == ERR_OK)
        rc = mem_new(int, views, "buckets", &ddp->bucket_of_view, err);
    if (rc == ERR_OK)
        rc = mem_new(bool, views, "buckets", &ddp->ready, err);
    if (rc == ERR_OK)
        rc = mem_new(ddp_bucket_t, views, "buckets", &ddp->buckets, err);
    if (rc != ERR_OK)
        return rc;
    ddp->bucket_count = ddp_bucket_cut(config, layout, ddp->buckets);
    for (int b = 0; b < ddp->bucket_count; b++)
        for (int v = 0; v < ddp->buckets[b].view_count; v++)
            ddp->bucket_of_view[ddp->buckets[b].first_view + v] = b;
    rc = mem_new(ddp_flight_t, (size_t)(ddp->bucket_count + 1), "buckets",
                 &ddp->flights, err);
    for (int b = 0; rc == ERR_OK && ddp->dev != NULL && b <= ddp->bucket_count;
         b++)
        rc = dev_event_open(ddp->dev, &ddp->flights[b].after, err);
    return rc;
}

static err_code_t arena_open(ddp_t *ddp, err_t *err)
{
    size_t grad_bytes = mem_round(ddp->grad_elems * sizeof(float));
    err_code_t rc;

    rc = comm_arena_open(ddp->group,
                         grad_bytes + ddp->tail_doubles * sizeof(double),
                         &ddp->arena, err);
    if (rc != ERR_OK)
        return rc;
    ddp->grads = comm_arena_data(ddp->arena);
    ddp->tail = (double *)((char *)comm_arena_data(ddp->arena) + grad_bytes);
    check((uintptr_t)ddp->tail % MEM_ALIGN == 0 &&
              (char *)ddp->tail >= (char *)(ddp->grads + ddp->grad_elems),
          "the tail is %zu bytes behind %zu gradients", grad_bytes,
          ddp->grad_elems);
    return ERR_OK;
}

static err_code_t hook_open(ddp_t *ddp, const ddp_config_t *config,
                            const ddp_layout_t *layout, err_t *err)
{
    const bool away = ddp->dev != NULL && ddp_hook_wanted(config);
    ddp_hooked_plan_t plan = {.layout = layout,
                              .buckets = ddp->buckets,
                              .bucket_count = ddp->bucket_count,
                              .grads = ddp->grads,
                              .group = ddp->group,
                              .stats = &ddp->stats,
                              .rank = comm_group_rank(ddp->group),
                              .size = comm_group_size(ddp->group)};
    ddp_hook_choice_t choice;
    err_code_t rc = ddp_hook_choose(config, ddp->dev, &choice, err);

    if (rc != ERR_OK)
        return rc;
    if (choice.place == DDP_HOOK_DEVICE)
        plan.dev = ddp->dev;
    else if (away && choice.rounds && comm_group_enqueues(ddp->group)) {
        rc = ddp_half_open(ddp, &choice.rounding, err);
        if (rc != ERR_OK || ddp->half != NULL)
            return rc;
    }
    if (away && plan.dev == NULL) {
        rc = ddp_mirror_open(ddp, err);
        plan.grads = ddp->mirror;
        plan.group = ddp->control;
    }
    return rc == ERR_OK ? ddp_hooked_open(config, &plan, &ddp->hooked, err)
                        : rc;
}

static err_code_t config_check(const ddp_config_t *config,
                               const ddp_layout_t *layout, err_t *err)
{
    if (config->zero != 0 && layout->shards == NULL)
        return err_set(err, ERR_CONFIG,
                       "ddp.zero is 1, but this program keeps the optimizer's "
                       "state whole on every rank; leave ddp.zero 0");
    return ERR_OK;
}

/* Check that views are in order, do not overlap, and are within the arena. */
static void views_check(const ddp_layout_t *layout)
{
    size_t end = 0;

    for (int v = 0; CHECK_ON && v < layout->view_count; v++) {
        const ddp_view_t *view = &layout->views[v];

        check(view->offset >= end, "%s begins at %zu, before %zu", view->name,
              view->offset, end);
        end = view->offset + view->count;
        check(end <= layout->grad_elems, "%s ends at %zu of %zu", view->name,
              end, layout->grad_elems);
    }
}

/* Open what this rank needs for itself. On failure *out may be NULL. Local. */
static err_code_t parts_open(const ddp_config_t *config, comm_group_t *control,
                             comm_group_t *data, const ddp_layout_t *layout,
                             ddp_t **out, err_t *err)
{
    ddp_t *ddp = NULL;
    err_code_t rc = config_check(config, layout, err);

    if (rc == ERR_OK)
        rc = mem_new(ddp_t, 1, "reducer", &ddp, err);
    if (rc != ERR_OK)
        return rc;
    *out = ddp;
    ddp->control = control;
    ddp->group = data;
    ddp->dev = comm_group_dev(data);
    ddp->grad_elems = layout->grad_elems;
    ddp->tail_doubles = layout->tail_doubles;
    ddp->view_count = layout->view_count;
    rc = tables_alloc(ddp, config, layout, err);
    return rc == ERR_OK && layout->shards != NULL
               ? ddp_zero_open(ddp, layout, err)
               : rc;
}

/* Open what ranks open together, and what needs the address of the arena. All
 * ranks succeed, or none. Collective. */
static err_code_t rest_open(ddp_t *ddp, const ddp_config_t *config,
                            const ddp_layout_t *layout, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc = ddp_layout_check(ddp, layout, err);

    if (rc != ERR_OK)
        return rc;
    if (arena_open(ddp, &mine) == ERR_OK)
        (void)hook_open(ddp, config, layout, &mine);
    return comm_vote(ddp->control, &mine, err);
}

/* Opening the arena is collective with ucx and nccl, so the ranks vote before
 * it. After a vote without an error, this rank has its parts. */
err_code_t ddp_open(const ddp_config_t *config, comm_group_t *control,
                    comm_group_t *data, const ddp_layout_t *layout, ddp_t **out,
                    err_t *err)
{
    ddp_t *ddp = NULL;
    err_t mine = ERR_INIT;
    err_code_t rc;

    views_check(layout);
    (void)parts_open(config, control, data, layout, &ddp, &mine);
    rc = comm_vote(control, &mine, err);
    if (rc == ERR_OK && ddp != NULL)
        rc = rest_open(ddp, config, layout, err);
    if (rc == ERR_OK)
        *out = ddp;
    else
        ddp_close(ddp);
    return rc;
}

void ddp_close(ddp_t *ddp)
{
    if (ddp == NULL)
        return;
    ddp_hooked_close(ddp->hooked);
    ddp_mirror_close(ddp);
    ddp_half_close(ddp);
    if (ddp->arena != NULL)
        comm_arena_close(ddp->arena);
    ddp_zero_close(ddp);
    for (int b = 0; ddp->flights != NULL && b <= ddp->bucket_count; b++)
        dev_event_close(ddp->flights[b].after);
    mem_free(ddp->hashes);
    mem_free(ddp->flights);
    mem_free(ddp->buckets);
    mem_free(ddp->ready);
    mem_free(ddp->bucket_of_view);
    mem_free(ddp);
}

float *ddp_grads(ddp_t *ddp)
{
    return ddp->grads;
}

double *ddp_tail(ddp_t *ddp)
{
    return ddp->tail;
}

size_t ddp_grad_elems(const ddp_t *ddp)
{
    return ddp->grad_elems;
}

size_t ddp_tail_doubles(const ddp_t *ddp)
{
    return ddp->tail_doubles;
}

int ddp_buckets(const ddp_t *ddp)
{
    return ddp->bucket_count;
}

err_code_t ddp_broadcast(ddp_t *ddp, void *data, size_t bytes, err_t *err)
{
    return comm_broadcast(ddp->control, data, bytes, 0, err);
}

/* ---- one step ------------------------------------------------------------ */

/* Set [flight] back, for a bucket that lacks [missing] gradients. */
static void flight_reset(ddp_flight_t *flight, int missing)
{
    *flight = (ddp_flight_t){.after = flight->after, .missing = missing};
}

void ddp_step_begin(ddp_t *ddp, dev_stream_t *stream)
{
    memset(ddp->ready, 0, (size_t)ddp->view_count * sizeof *ddp->ready);
    for (int b = 0; CHECK_ON && b <= ddp->bucket_count; b++)
        check(ddp->flights[b].work == NULL,
              "step %lld begins, but bucket %d is still in flight",
              (long long)ddp->step + 1, b);
    for (int b = 0; b < ddp->bucket_count; b++)
        flight_reset(&ddp->flights[b], ddp->buckets[b].view_count);
    flight_reset(&ddp->flights[ddp->bucket_count], 0);
    ddp->next = 0;
    ddp->mirrored = 0;
    ddp->local = false;
    ddp->stream = stream;
    ddp->gaps_due = ddp->shards != NULL;
    if (ddp->hooked != NULL)
        ddp_hooked_begin(ddp->hooked, ddp->step, stream);
    ddp->step++;
}

void ddp_step_local(ddp_t *ddp)
{
    check(ddp->next == 0, "a step becomes local after %d buckets started",
          ddp->next);
    ddp->local = true;
}

void ddp_step_replay(ddp_t *ddp)
{
    check(ddp->hooked == NULL, "a step with a hook is no graph");
    for (int b = 0; b < ddp->bucket_count; b++) {
        const size_t count = ddp->shards != NULL
                                 ? ddp_shards_whole(ddp->shards, b).count
                                 : ddp->buckets[b].count;
        size_t bytes = count * sizeof *ddp->grads;

        if (ddp->half != NULL)
            bytes = ddp_half_bytes(ddp, b);
        if (ddp->shards != NULL) /* after the update, the parameters */
            bytes += count * sizeof *ddp->grads;
        ddp->stats.bytes += (int64_t)bytes;
    }
    ddp->stats.bytes += (int64_t)(ddp->tail_doubles * sizeof *ddp->tail);
    ddp->step++;
}

static void flight_trace(ddp_t *ddp, const ddp_flight_t *flight, double now)
{
    const int bucket = (int)(flight - ddp->flights);

    if (bucket < ddp->bucket_count)
        ddp_bucket_trace(ddp->trace, bucket,
                         ddp->shards != NULL && ddp->half == NULL
                             ? "reduce-scatter"
                             : "all-reduce",
                         flight->started);
    else if (trace_begin(ddp->trace) >= 0)
        trace_add(ddp->trace, &(trace_span_t){.begin = flight->started,
                                              .end = now,
                                              .name = "tail",
                                              .what = "all-reduce",
                                              .number = TRACE_NO_NUMBER,
                                              .track = 1 + bucket});
}

/* Note that [flight] was complete at the clock instant [now]. */
static void flight_end(ddp_t *ddp, ddp_flight_t *flight, double now)
{
    if (flight->done)
        return;
    check(flight->started > 0, "a bucket is complete that never started");
    flight->done = true;
    ddp->stats.comm_s += now - flight->started;
    flight_trace(ddp, flight, now);
}

/* Start the collective of bucket [index], or the one of the tail if [index] is
 * the number of buckets. */
static comm_state_t flight_launch(ddp_t *ddp, int index, size_t *bytes,
                                  err_t *err)
{
    comm_work_t **work = &ddp->flights[index].work;
    const ddp_bucket_t *bucket = &ddp->buckets[index];
    view_range_t whole;

    if (index == ddp->bucket_count) {
        *bytes = ddp->tail_doubles * sizeof(double);
        return comm_allreduce_start(ddp->group, ddp->tail, ddp->tail_doubles,
                                    COMM_FLOAT64, COMM_SUM, work, err);
    }
    if (ddp->half != NULL) {
        *bytes = ddp_half_bytes(ddp, index);
        return ddp_half_start(ddp, index, work, err);
    }
    if (ddp->shards == NULL) {
        *bytes = bucket->count * sizeof(float);
        return comm_allreduce_start(ddp->group, ddp->grads + bucket->offset,
                                    bucket->count, COMM_FLOAT32, COMM_SUM, work,
                                    err);
    }
    whole = ddp_shards_whole(ddp->shards, index);
    *bytes = whole.count * sizeof(float);
    return comm_reduce_scatter_start(ddp->group, ddp->grads + whole.first,
                                     ddp_shards_cuts(ddp->shards, index),
                                     COMM_FLOAT32, COMM_SUM, work, err);
}

static err_code_t flight_start(ddp_t *ddp, int index, err_t *err)
{
    ddp_flight_t *flight = &ddp->flights[index];
    size_t bytes = 0;
    comm_state_t state;
    err_code_t rc;

    check(index == ddp->next || index + 1 == ddp->next,
          "bucket %d starts when it is the turn of %d", index, ddp->next);
    check(flight->missing == 0 && flight->work == NULL,
          "bucket %d starts, and lacks %d gradients", index, flight->missing);
    flight->started = clock_now();
    flight->work = NULL;
    rc = ddp->half != NULL && index < ddp->bucket_count
             ? ddp_half_round(ddp, index, err)
             : ERR_OK;
    if (rc == ERR_OK)
        rc = ddp_place_after(ddp, flight->after, ddp->stream, err);
    if (rc != ERR_OK)
        return rc;
    state = flight_launch(ddp, index, &bytes, err);
    ddp->stats.bytes += (int64_t)bytes;
    if (state == COMM_FAILED)
        return err != NULL ? err->code : ERR_PEER;
    if (state == COMM_DONE)
        flight_end(ddp, flight, clock_now());
    return ERR_OK;
}

/* Start bucket [index] with the hook. The flight has no work handle, as the
 * hook waits for its collectives and measures them. */
static err_code_t hook_start(ddp_t *ddp, int index, err_t *err)
{
    ddp->flights[index].done = true;
    return ddp->mirror != NULL ? ddp_mirror_start(ddp, index, err)
                               : ddp_hooked_start(ddp->hooked, index, err);
}

/* Start every bucket that is ready and whose predecessors have started; after
 * the last bucket start the tail. */
static err_code_t buckets_start(ddp_t *ddp, err_t *err)
{
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && ddp->next < ddp->bucket_count &&
           ddp->flights[ddp->next].missing == 0) {
        rc = ddp->hooked != NULL ? hook_start(ddp, ddp->next, err)
                                 : flight_start(ddp, ddp->next, err);
        ddp->next++;
    }
    if (rc == ERR_OK && ddp->next == ddp->bucket_count && ddp->tail_doubles > 0)
        rc = flight_start(ddp, ddp->next++, err);
    return rc;
}

/* Note the time at which flights became complete. */
static void flights_poll(ddp_t *ddp)
{
    if (ddp->hooked != NULL)
        ddp_hooked_poll(ddp->hooked);
    for (int b = 0; b < ddp->next && b <= ddp->bucket_count; b++) {
        ddp_flight_t *flight = &ddp->flights[b];

        if (!flight->done && flight->work != NULL &&
            comm_work_poll(flight->work) == COMM_DONE)
            flight_end(ddp, flight, clock_now());
    }
}

err_code_t ddp_grad_ready(ddp_t *ddp, int view, err_t *err)
{
    err_code_t rc;

    check(view >= 0 && view < ddp->view_count, "gradient %d of %d", view,
          ddp->view_count);
    if (ddp->ready[view])
        return ERR_OK;
    rc = ddp_zero_gaps(ddp, err);
    if (rc != ERR_OK)
        return rc;
    check(ddp->flights[ddp->bucket_of_view[view]].missing > 0,
          "gradient %d is ready, but bucket %d lacks none", view,
          ddp->bucket_of_view[view]);
    ddp->ready[view] = true;
    ddp->flights[ddp->bucket_of_view[view]].missing--;
    if (ddp->local)
        return ERR_OK;
    flights_poll(ddp);
    return buckets_start(ddp, err);
}

/* End the buckets of a local step: none is started, and each counts as
 * complete. */
static void buckets_stay(ddp_t *ddp)
{
    for (int b = 0; b < ddp->bucket_count; b++)
        ddp->flights[b].done = true;
    ddp->next = ddp->bucket_count;
}

err_code_t ddp_step_zero(ddp_t *ddp, err_t *err)
{
    err_code_t rc = ddp_zero_gaps(ddp, err);

    for (int b = ddp->next; rc == ERR_OK && b < ddp->bucket_count; b++) {
        const ddp_bucket_t *bucket = &ddp->buckets[b];

        if (!ddp->local || ddp->flights[b].missing > 0)
            rc = ddp_place_zero(ddp, bucket->offset, bucket->count, err);
    }
    return rc;
}

err_code_t ddp_step_skip(ddp_t *ddp, err_t *err)
{
    const err_code_t rc = ddp_step_zero(ddp, err);

    if (rc != ERR_OK)
        return rc;
    for (int b = ddp->next; b < ddp->bucket_count; b++)
        ddp->flights[b].missing = 0;
    if (ddp->local)
        buckets_stay(ddp);
    memset(ddp->ready, true, (size_t)ddp->view_count * sizeof *ddp->ready);
    return buckets_start(ddp, err);
}

/* Take the hook's turns that are left. */
static err_code_t hook_finish(ddp_t *ddp, dev_stream_t *on, err_t *err)
{
    err_t reason = ERR_INIT;
    err_code_t rc;

    if (ddp->mirror != NULL)
        return ddp_mirror_finish(ddp, on, err);
    rc = ddp_hooked_finish(ddp->hooked, ddp->next, err);
    if (rc != ERR_OK || ddp->dev == NULL)
        return rc;
    rc = ddp_place_join(ddp, on, &reason);
    return ddp_place_result(ddp, rc, &reason, err);
}

/* Wait for every flight even after a failure, as each has a work handle to be
 * freed. Returns the first error. */
static err_code_t flights_wait(ddp_t *ddp, dev_stream_t *on, err_t *err)
{
    double begin = clock_now();
    err_code_t rc = ERR_OK;

    if (ddp->hooked != NULL && !ddp->local)
        rc = hook_finish(ddp, on, err);
    for (int b = 0; b < ddp->next && b <= ddp->bucket_count; b++) {
        ddp_flight_t *flight = &ddp->flights[b];
        err_code_t one;

        one = ddp_place_wait(ddp, flight->work, flight->after, on,
                             rc == ERR_OK ? err : NULL);
        flight->work = NULL;
        flight_end(ddp, flight, clock_now());
        if (rc != ERR_OK || one == ERR_OK)
            continue;
        rc = one;
        if (one == ERR_PEER && b < ddp->bucket_count)
            err_suffix(err, "that was gradient bucket %d of %d", b + 1,
                       ddp->bucket_count);
    }
    if (rc == ERR_OK && ddp->half != NULL && !ddp->local)
        rc = ddp_half_widen(ddp, on, err);
    ddp->stats.exposed_s += clock_now() - begin;
    return rc;
}

err_code_t ddp_step_wait(ddp_t *ddp, err_t *err)
{
    return flights_wait(ddp, NULL, err);
}

err_code_t ddp_step_wait_on(ddp_t *ddp, dev_stream_t *stream, err_t *err)
{
    return flights_wait(ddp, ddp->dev == NULL ? NULL : stream, err);
}

err_code_t ddp_step_set(ddp_t *ddp, int64_t step, err_t *err)
{
    if (step < 0 || step > DDP_STEP_MAX)
        return err_set(err, ERR_CONFIG,
                       "a reducer cannot go on from step %" PRId64
                       ": give the number of updates made so far, from 0 to "
                       "%" PRId64,
                       step, DDP_STEP_MAX);
    ddp->step = step;
    return ERR_OK;
}

int ddp_hook_parts(ddp_t *ddp, ddp_hook_part_t *parts)
{
    if (ddp->half != NULL)
        return ddp_half_parts(ddp, parts);
    return ddp->hooked == NULL ? 0 : ddp_hooked_parts(ddp->hooked, parts);
}

bool ddp_hook_away(const ddp_t *ddp)
{
    return ddp->mirror != NULL;
}

bool ddp_hook_turns(const ddp_t *ddp)
{
    return ddp->hooked != NULL;
}

ddp_stats_t ddp_stats_take(ddp_t *ddp)
{
    ddp_stats_t stats = ddp->stats;

    ddp->stats = (ddp_stats_t){0};
    return stats;
}

void ddp_trace(ddp_t *ddp, trace_t *trace)
{
    ddp->trace = trace;
    if (ddp->hooked != NULL)
        ddp_hooked_trace(ddp->hooked, trace);
}
