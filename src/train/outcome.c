/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/outcome.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "obs/summary.h"
#include "slurm/job.h"
#include "train/limits.h"
#include "train/lives.h"
#include "train/nodeset.h"
#include "train/seen.h"

/* Seconds for which a rank waits for the thread that records how the run ended.
 */
#define RECORD_SECONDS 30.0

void train_outcome_fill(const train_state_t *run, train_outcome_t *out)
{
    out->speaker = run->world.speaker;
    out->have_eval = run->last_eval.step >= 0;
    out->loss = run->last_eval.found.loss;
    out->accuracy = run->last_eval.found.accuracy;
    out->bound = run->data.valid.bound;
    out->step = run->progress.step;
    out->device_lost =
        run->compute.dev != NULL && dev_abandoned(run->compute.dev);
}

void train_outcome_tell_fault(train_state_t *run, const err_t *fault)
{
    train_world_tell(&run->world, fault);
    train_saver_tell(run->saving.saver, fault);
    train_nodeset_tell(run, fault);
}

bool train_outcome_speaks(const train_world_t *world, err_code_t rc,
                          const err_t *err)
{
    const bool same_node = rc == ERR_MEMORY;
    const int culprit = rc == ERR_PEER || same_node ? err->culprit : -1;

    if (culprit < 0 || world->size == 1)
        return world->rank == 0;
    for (int r = 0; world->group != NULL && r < world->size; r++)
        if (r != culprit &&
            same_node == (strcmp(comm_group_host(world->group, r),
                                 comm_group_host(world->group, culprit)) == 0))
            return world->rank == r;
    return world->rank == (culprit == 0 ? 1 : 0);
}

bool train_outcome_start_refused(const train_dir_t *dir, err_code_t rc)
{
    return !dir->accepted && !err_code_requeue(rc);
}

static void record_write(const train_state_t *run, err_code_t rc,
                         const err_t *err, const char *cause)
{
    err_t trouble = ERR_INIT;
    slurm_exit_t record = {.job = run->env->job,
                           .status = rc,
                           .rank = run->world.rank,
                           .culprit = rc == ERR_OK ? -1 : err->culprit,
                           .culprit_host = rc == ERR_OK ? "" : err->host,
                           .phase = run->world.phase,
                           .step = run->progress.step,
                           .text = rc == ERR_OK ? "" : err->text,
                           .cause = cause};

    train_lives_end(run, rc, err);
    if (slurm_exit_write(run->config->run.dir, &record, &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
}

/* Is this the rank that writes what a run leaves in its directory? */
static bool is_writer(const train_state_t *run, err_code_t rc, const err_t *err)
{
    return run->dir.owned && !train_outcome_start_refused(&run->dir, rc) &&
           train_outcome_speaks(&run->world, rc, err);
}

/* Write the record. A rank on the culprit's node may know better why the
 * culprit died. That rank writes its file (oom.h) first and the record
 * afterwards. So this rank looks for the file after it has written the record:
 * whichever rank is faster, the last record then has the better cause. */
void train_outcome_record(const train_state_t *run, err_code_t rc,
                          const err_t *err)
{
    char cause[TRAIN_OOM_CAUSE_MAX];
    err_t better = ERR_INIT;

    if (!is_writer(run, rc, err))
        return;
    record_write(run, rc, err, run->life.oom.cause);
    if (rc == ERR_PEER && train_oom_found(&run->life.oom, &better, cause))
        record_write(run, better.code, &better, cause);
}

static err_code_t summary_write(const train_state_t *run, err_code_t rc,
                                err_t *err)
{
    obs_summary_t summary = {
        .status = rc,
        .step = run->progress.step,
        .epoch = run->progress.epoch,
        .loss = run->last_eval.step >= 0 ? run->last_eval.found.loss : NAN,
        .accuracy =
            run->last_eval.step >= 0 ? run->last_eval.found.accuracy : NAN,
        .values = run->last_eval.found.values,
        .value_count =
            run->last_eval.step >= 0 ? run->last_eval.found.value_count : 0,
        .bound = run->data.valid.bound,
        .seconds = clock_now() - run->env->started,
        .first_step_s = run->life.first_step_s,
        .main_to_step_s = run->life.main_to_step_s,
        .first_step_at = run->life.first_step_at,
        .data_share =
            run->life.step_s > 0.0 ? run->life.data_s / run->life.step_s : 0.0,
        .peak_rss_mb =
            1e-6 * (run->life.peak_rss > 0.0 ? run->life.peak_rss : mem_peak()),
        .world_size = run->world.size,
        .spent = &run->seen.spent,
        .cpu_efficiency = NAN,
        .memory_limit_mb = 1e-6 * (double)train_limits_node("").bytes};

    summary.cpu_efficiency = train_seen_cpu(run);
    return obs_summary_write(run->config->run.dir, &summary, err);
}

err_code_t train_outcome_summary(const train_state_t *run, err_code_t rc,
                                 const err_t *why, err_t *err)
{
    if (!run->life.opened || !run->dir.owned ||
        !train_outcome_speaks(&run->world, rc, why))
        return ERR_OK;
    return summary_write(run, rc, err);
}

/* ---- in a thread --------------------------------------------------------- */

/* What the thread records. The thread owns it. */
typedef struct ending {
    const train_state_t *run;
    err_code_t rc;
    err_t err;
} ending_t;

static void *ending_main(void *argument)
{
    ending_t *ending = argument;
    const train_state_t *run = ending->run;
    err_t trouble = ERR_INIT;

    log_rank_set(run->world.rank);
    record_write(run, ending->rc, &ending->err, run->life.oom.cause);
    if (run->life.opened && summary_write(run, ending->rc, &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
    mem_free(ending);
    return NULL;
}

/* Is this rank 0, and does its own storage not answer? Then perhaps the storage
 * of no rank answers, and no other rank records how the run ended. */
static bool is_stuck_rank_0(const train_state_t *run, err_code_t rc,
                            const err_t *err)
{
    return rc == ERR_PEER && run->world.rank == 0 && err->culprit == 0 &&
           run->dir.owned;
}

void train_outcome_record_in_thread(const train_state_t *run, err_code_t rc,
                                    const err_t *err)
{
    ending_t *ending = NULL;
    bool in_time = false;
    err_t why = ERR_INIT;
    err_code_t started;

    if (!is_stuck_rank_0(run, rc, err) && !is_writer(run, rc, err))
        return;
    started = mem_new(ending_t, 1, "the end of the run", &ending, &why);
    if (started == ERR_OK) {
        *ending = (ending_t){.run = run, .rc = rc, .err = *err};
        started = thread_call("cddp-end", ending_main, ending, RECORD_SECONDS,
                              &in_time, &why);
        if (started != ERR_OK)
            mem_free(ending);
    }
    if (started != ERR_OK)
        log_warn("train", "how the run ended is not recorded: %s", why.text);
    else if (!in_time)
        log_warn("train",
                 "how the run ended is not recorded: the storage of the run "
                 "directory has not answered for %.3g s, either",
                 RECORD_SECONDS);
}
