/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/seen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "obs/lives.h"
#include "train/limits.h"

void train_seen_begin(train_state_t *run)
{
    run->seen.spent.mark = run->env->started;
    run->seen.loss = NAN;
}

void train_seen_mark(train_state_t *run, obs_spent_kind_t kind)
{
    obs_spent_mark(&run->seen.spent, kind, clock_now());
    run->seen.spent.wall = clock_wall();
}

/* ---- earlier starts ------------------------------------------------------ */

/* What the starts before have spent, up to [step]. */
typedef struct past {
    int64_t step;
    bool found;
    bool complete; /* the newest such line is the end of a complete run */
    obs_spent_t spent;
} past_t;

static void past_visit(void *context, const obs_lives_read_t *read)
{
    past_t *past = context;
    const obs_lives_line_t *line = &read->line;

    if (line->event == OBS_LIVES_BEGIN && strcmp(line->detail, "fresh") == 0)
        past->found = false;
    if (line->spent == NULL || line->step != past->step)
        return;
    past->found = true;
    past->complete = line->event == OBS_LIVES_END && line->status == 0;
    past->spent = *line->spent;
}

void train_seen_past(train_state_t *run)
{
    const train_resume_t how = run->env->resume;
    past_t past = {.step = run->progress.step};
    err_t trouble = ERR_INIT;

    if (how == TRAIN_RESUME_AUTO || !run->dir.first) {
        if (obs_lives_read(run->dir.path, past_visit, &past, NULL, &trouble) !=
            ERR_OK)
            log_warn("train", "%s", trouble.text);
        if (past.found)
            obs_spent_continue(&run->seen.spent, &past.spent,
                               clock_wall() - clock_now() + run->env->started,
                               past.complete);
    }
    train_seen_mark(run, OBS_SPENT_START);
}

/* ---- while it runs ------------------------------------------------------- */

void train_seen_open(train_state_t *run)
{
    err_t trouble = ERR_INIT;

    if (run->world.rank == 0 &&
        obs_progress_open(run->config->obs.every, clock_now(),
                          &run->seen.progress, &trouble) != ERR_OK)
        log_warn("train", "no lines of progress: %s", trouble.text);
}

void train_seen_close(train_state_t *run)
{
    obs_progress_close(run->seen.progress);
    run->seen.progress = NULL;
}

static void place_show(train_state_t *run, double now)
{
    const hdf5io_progress_t *progress = &run->progress;
    const obs_place_t place = {
        .epoch = progress->epoch + 1,
        .epochs = run->config->train.epochs,
        .epoch_step = progress->epoch_step,
        .epoch_steps = run->data.train.steps,
        .step = progress->step,
        .loss = run->seen.loss,
        .samples = run->seen.samples,
        .exposed_s = run->life.exposed_s,
        .left = run->leave.deadline.limits.end - now,
        .saved = run->dir.saved_step >= 0 ? run->dir.saved_at : NAN};

    obs_progress_step(run->seen.progress, &place, now);
}

void train_seen_step(train_state_t *run, double now)
{
    obs_spent_step(&run->seen.spent, &run->seen.parts, now);
    run->seen.parts = (obs_spent_step_t){0};
    if (obs_progress_due(run->seen.progress, now))
        place_show(run, now);
}

void train_seen_eval(train_state_t *run, const train_eval_t *eval)
{
    char accuracy[48] = "";

    if (run->progress.epoch_step == run->data.train.steps)
        return;
    if (!isnan(eval->accuracy))
        snprintf(accuracy, sizeof accuracy, "  accuracy %.2f %%",
                 100 * eval->accuracy);
    obs_progress_say(run->seen.progress, clock_now(),
                     "evaluated at step %lld  valid loss %.4g%s",
                     (long long)run->progress.step, eval->loss, accuracy);
}

void train_seen_saved(train_state_t *run, const train_saved_t *saved)
{
    char size[32];

    obs_progress_say(
        run->seen.progress, clock_now(),
        "saved a checkpoint of step %lld  %s  %.2f s", (long long)saved->step,
        str_bytes((uint64_t)saved->bytes, size, sizeof size), saved->seconds);
}

/* ---- the end ------------------------------------------------------------- */

/* CPU time of this rank so far. Ranks that are threads of one process share its
 * time evenly. */
static double cpu_seconds(const train_world_t *world)
{
    struct rusage usage;
    double seconds;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return NAN;
    seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
              1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return strcmp(comm_group_backend(world->group), "threads") == 0
               ? seconds / world->size
               : seconds;
}

err_code_t train_seen_sum(train_state_t *run, err_t *err)
{
    double sums[] = {cpu_seconds(&run->world), run->compute.cores};
    err_code_t rc =
        comm_allreduce(run->world.group, sums, 2, COMM_FLOAT64, COMM_SUM, err);

    if (rc != ERR_OK)
        return rc;
    run->seen.cpu_s = sums[0];
    run->seen.cores = sums[1];
    return ERR_OK;
}

double train_seen_cpu(const train_state_t *run)
{
    const double wall = clock_now() - run->env->started;
    const bool all = run->seen.cores > 0;
    const double cpu = all ? run->seen.cpu_s : cpu_seconds(&run->world);
    const double cores = all ? run->seen.cores : run->compute.cores;

    return cpu / (cores * wall);
}

static void end_print(train_state_t *run)
{
    const slurm_memory_t limit = train_limits_node("");
    const double peak =
        run->life.peak_rss > 0 ? run->life.peak_rss : mem_peak();
    char table[OBS_SPENT_TABLE], used[32], most[32];
    char *text = str_printf(
        "time of the run over all its starts:\n%s"
        "CPU efficiency of this start: %.0f %% of %.0f cores%s\n"
        "peak memory: %s on the rank that used most; the ranks of a node may "
        "use %s (%s)\n",
        obs_spent_format(&run->seen.spent, table, sizeof table),
        100 * train_seen_cpu(run),
        run->seen.cores > 0 ? run->seen.cores : run->compute.cores,
        run->seen.cores > 0 || run->world.size == 1 ? "" : " (rank 0)",
        str_bytes((uint64_t)peak, used, sizeof used),
        str_bytes(limit.bytes, most, sizeof most), limit.source);

    obs_progress_text(run->seen.progress, text);
    free(text);
}

void train_seen_end(train_state_t *run, err_code_t rc)
{
    train_seen_mark(run, OBS_SPENT_OTHER);
    if (run->life.opened && run->seen.progress != NULL &&
        (rc == ERR_OK || rc == ERR_REQUEUE))
        end_print(run);
}
