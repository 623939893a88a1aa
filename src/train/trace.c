/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "obs/trace.h"
#include "train/clocks.h"
#include "train/run_priv.h"

/* Spans of a step, without those of layers and buckets. */
#define SPANS_STEP 64
/* Spans of a bucket in a step: turns of a comm hook, and collectives. */
#define SPANS_BUCKET 6
/* The most spans that a thread keeps. */
#define SPANS_MAX ((size_t)1 << 18)
/* Seconds for which clocks are compared again while the doubt is large. */
#define PATIENCE 5.0

/* ---- opening and closing ------------------------------------------------- */

/* The spans that a thread has room for: those of all layers, forward and
 * backward, in each part of a step that is computed alone, and those of all
 * buckets. */
static size_t room_of(const train_state_t *run)
{
    const train_config_t *config = run->config;
    const size_t nodes =
        (size_t)(nn_graph_layers(run->graph) + nn_graph_losses(run->graph) + 2);
    const size_t buckets = (size_t)ddp_buckets(run->replica.ddp);
    const size_t steps = (size_t)(run->trace.last - run->trace.first + 1);
    size_t parts = (size_t)config->train.accumulate;
    size_t spans;

    if (config->train.reproducible)
        parts = (size_t)(config->train.batch / config->train.microbatch /
                             run->world.size +
                         2);
    if (__builtin_mul_overflow(2 * nodes * parts + SPANS_STEP +
                                   SPANS_BUCKET * buckets,
                               steps, &spans) ||
        spans > SPANS_MAX)
        return SPANS_MAX;
    return spans;
}

/* Let the parts of the run know their traces. */
static void trace_bind(train_state_t *run)
{
    const train_trace_t *trace = &run->trace;
    const int readers = run->data.train.readers;
    const int teams = run->replica.team_count;

    run->replica.traces = trace->threads;
    ddp_trace(run->replica.ddp, trace->threads[0]);
    hdf5io_dataset_trace(run->data.train.dataset,
                         trace->threads + (readers > 0 ? teams : 0),
                         readers > 0 ? readers : 1);
    if (run->saving.saver != NULL)
        train_saver_trace(run->saving.saver, trace->threads[trace->count - 1]);
}

/* The name of thread [t]. */
static void name_of(const train_state_t *run, int t, char *out, size_t room)
{
    const int teams = run->replica.team_count;
    const int readers = run->data.train.readers;

    if (t == 0)
        snprintf(out, room, "training");
    else if (t < teams)
        snprintf(out, room, "team %d", t);
    else if (t == teams + readers)
        snprintf(out, room, "saver");
    else if (t == teams)
        snprintf(out, room, "loader");
    else
        snprintf(out, room, "loader %d", t - teams);
}

err_code_t train_trace_open(train_state_t *run, err_t *err)
{
    train_trace_t *trace = &run->trace;
    const int threads = run->replica.team_count + run->data.train.readers +
                        (run->saving.saver != NULL ? 1 : 0);
    err_code_t rc;

    if (run->config->obs.trace == TRAIN_TRACE_NONE)
        return ERR_OK;
    train_trace_steps(run->config, &trace->first, &trace->last);
    rc = mem_new(trace_t *, (size_t)threads, "traces", &trace->threads, err);
    if (rc == ERR_OK)
        rc = mem_new(double, 3 * (size_t)run->world.size, "traces",
                     &trace->room, err);
    for (int t = 0; rc == ERR_OK && t < threads; t++) {
        char name[24];

        name_of(run, t, name, sizeof name);
        rc = trace_open(name, room_of(run), &trace->threads[t], err);
        trace->count += rc == ERR_OK;
    }
    if (rc == ERR_OK)
        trace_bind(run);
    return rc;
}

void train_trace_close(train_trace_t *trace)
{
    for (int t = 0; t < trace->count; t++)
        trace_close(trace->threads[t]);
    mem_free(trace->room);
    mem_free(trace->threads);
    *trace = (train_trace_t){0};
}

/* ---- the file ------------------------------------------------------------ */

/* Rank 0's file while it is written. */
typedef struct output {
    FILE *file; /* NULL: on other ranks, or after an error */
    char *path, *draft;
} output_t;

/* Warn, and write nothing more. */
static void output_fail(output_t *output, const char *why)
{
    log_warn("train", "cannot write %s: %s; there is no trace", output->path,
             why);
    if (output->file != NULL)
        fclose(output->file);
    output->file = NULL;
    unlink(output->draft);
}

static void output_open(const train_state_t *run, output_t *output)
{
    err_t why = ERR_INIT;
    int fd;

    *output = (output_t){0};
    if (run->world.rank != 0)
        return;
    output->path = str_printf("%s/trace.json", run->dir.path);
    output->draft = str_printf("%s.tmp", output->path);
    if (file_open_regular(output->draft, O_WRONLY | O_CREAT | O_TRUNC, FILE_OWN,
                          &fd, &why) != ERR_OK) {
        output_fail(output, why.text);
        return;
    }
    output->file = fdopen(fd, "w");
    if (output->file == NULL) {
        close(fd);
        output_fail(output, strerror(errno));
    }
}

static void output_add(output_t *output, const char *text, size_t bytes)
{
    if (output->file != NULL && fwrite(text, 1, bytes, output->file) != bytes)
        output_fail(output, strerror(errno));
}

/* Give the file its name. */
static void output_close(output_t *output)
{
    FILE *file = output->file;

    output->file = NULL;
    if (file != NULL &&
        (fclose(file) != 0 || rename(output->draft, output->path) != 0))
        output_fail(output, strerror(errno));
    free(output->draft);
    free(output->path);
}

/* ---- what ranks send ----------------------------------------------------- */

/* Broadcast the text of each rank in turn; rank 0 writes it. [most] bytes at
 * [buffer] hold any of them. */
static err_code_t texts_pass(train_state_t *run, const str_buf_t *mine,
                             const double *lengths, char *buffer,
                             output_t *output, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int r = 0; r < run->world.size && rc == ERR_OK; r++) {
        const size_t bytes = (size_t)lengths[r];
        char *text = r == run->world.rank ? mine->text : buffer;

        train_phase_set(&run->world, "writing the trace");
        if (r != 0)
            rc = comm_broadcast(run->world.group, text, bytes, r, err);
        if (rc == ERR_OK)
            output_add(output, text, bytes);
    }
    return rc;
}

static err_code_t texts_gather(train_state_t *run, const str_buf_t *mine,
                               output_t *output, err_t *err)
{
    double *lengths = run->trace.room;
    const double length = (double)mine->length;
    double most = 1;
    char *buffer = NULL;
    err_code_t rc =
        comm_allgather(run->world.group, &length, sizeof length, lengths, err);

    if (rc != ERR_OK)
        return rc;
    for (int r = 0; r < run->world.size; r++)
        most = lengths[r] > most ? lengths[r] : most;
    rc = mem_new(char, (size_t)most, "the trace of a rank", &buffer, err);
    rc = train_world_vote(&run->world, rc, err);
    if (rc == ERR_OK)
        rc = texts_pass(run, mine, lengths, buffer, output, err);
    mem_free(buffer);
    return rc;
}

/* Compare the clocks; [rank] gets its shift and the common origin. [about]
 * becomes what the file says of the whole. */
static err_code_t times_agree(train_state_t *run, obs_trace_rank_t *rank,
                              str_buf_t *about, err_t *err)
{
    comm_group_t *group = run->world.group;
    /* A run that has to stop still needs the time for its checkpoint. */
    const double patience = run->agreed.stop ? 0 : PATIENCE;
    train_clock_t clock;
    double first, lost = 0;
    err_code_t rc =
        train_clocks_compare(group, patience, run->trace.room, &clock, err);

    if (rc != ERR_OK)
        return rc;
    rank->shift = clock.shift;
    first = obs_trace_first(rank) + clock.shift;
    for (int t = 0; t < run->trace.count; t++)
        lost += (double)atomic_load(&run->trace.threads[t]->lost);
    rc = comm_allreduce(group, &first, 1, COMM_FLOAT64, COMM_MIN, err);
    if (rc == ERR_OK)
        rc =
            comm_allreduce(group, &clock.doubt, 1, COMM_FLOAT64, COMM_MAX, err);
    if (rc == ERR_OK)
        rc = comm_allreduce(group, &lost, 1, COMM_FLOAT64, COMM_SUM, err);
    rank->origin = first;
    str_buf_add(about,
                "\"ranks\":%d,\"clocks_differ_us\":%.3f,\"lost_spans\":%.0f",
                run->world.size, 1e6 * clock.doubt, lost);
    return rc;
}

static err_code_t trace_write(train_state_t *run, err_t *err)
{
    obs_trace_rank_t rank = {
        .rank = run->world.rank,
        .host = comm_group_host(run->world.group, run->world.rank),
        .threads = run->trace.threads,
        .count = run->trace.count};
    str_buf_t text = {0}, about = {0};
    output_t output;
    err_code_t rc;

    train_phase_set(&run->world, "writing the trace");
    rc = times_agree(run, &rank, &about, err);
    if (rc == ERR_OK) {
        output_open(run, &output);
        if (run->world.rank == 0)
            obs_trace_head(about.text, &text);
        obs_trace_events(&rank, &text);
        rc = texts_gather(run, &text, &output, err);
        str_buf_free(&text);
        obs_trace_tail(&text);
        output_add(&output, text.text, text.length);
        output_close(&output);
    }
    str_buf_free(&about);
    str_buf_free(&text);
    return rc;
}

/* ---- steps --------------------------------------------------------------- */

static void trace_turn(train_trace_t *trace, bool on)
{
    trace->on = on;
    for (int t = 0; t < trace->count; t++)
        trace_switch(trace->threads[t], on);
}

void train_trace_step(train_state_t *run)
{
    train_trace_t *trace = &run->trace;
    const int64_t step = run->progress.step + 1;

    if (trace->threads != NULL && !trace->on && step >= trace->first &&
        step <= trace->last)
        trace_turn(trace, true);
}

err_code_t train_trace_done(train_state_t *run, bool ends, err_t *err)
{
    train_trace_t *trace = &run->trace;

    if (!trace->on || (!ends && run->progress.step < trace->last))
        return ERR_OK;
    trace_turn(trace, false);
    /* Once is enough, also if the run goes back. */
    trace->last = 0;
    return trace_write(run, err);
}
