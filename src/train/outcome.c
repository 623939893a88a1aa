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

/* Seconds for which a rank waits for the thread that writes its record. */
#define APART_WAIT 30.0

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

void train_outcome_tell(train_state_t *run, const err_t *fault)
{
    train_world_tell(&run->world, fault);
    train_saver_tell(run->saving.saver, fault);
    train_nodeset_tell(run, fault);
}

bool train_outcome_survivor(const train_world_t *world, err_code_t rc,
                            const err_t *err)
{
    /* ERR_MEMORY with a culprit comes from a rank on the culprit's node
     * (oom.h). */
    const bool mate = rc == ERR_MEMORY;
    const int culprit = rc == ERR_PEER || mate ? err->culprit : -1;

    if (culprit < 0 || world->size == 1)
        return world->rank == 0;
    for (int r = 0; world->group != NULL && r < world->size; r++)
        if (r != culprit &&
            mate == (strcmp(comm_group_host(world->group, r),
                            comm_group_host(world->group, culprit)) == 0))
            return world->rank == r;
    return world->rank == (culprit == 0 ? 1 : 0);
}

bool train_outcome_refused(const train_dir_t *dir, err_code_t rc)
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

/* Does this rank write what a run leaves in its directory? */
static bool writes(const train_state_t *run, err_code_t rc, const err_t *err)
{
    return run->dir.owned && !train_outcome_refused(&run->dir, rc) &&
           train_outcome_survivor(&run->world, rc, err);
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

    if (!writes(run, rc, err))
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
        !train_outcome_survivor(&run->world, rc, why))
        return ERR_OK;
    return summary_write(run, rc, err);
}

/* ---- in a thread --------------------------------------------------------- */

/* What the thread writes. If it is not done in time, it stays with this. */
typedef struct apart {
    const train_state_t *run;
    err_code_t rc;
    err_t err;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done; /* under lock */
} apart_t;

static void *apart_main(void *argument)
{
    apart_t *apart = argument;
    const train_state_t *run = apart->run;
    err_t trouble = ERR_INIT;

    log_rank_set(run->world.rank);
    record_write(run, apart->rc, &apart->err, run->life.oom.cause);
    if (run->life.opened && summary_write(run, apart->rc, &trouble) != ERR_OK)
        log_warn("train", "%s", trouble.text);
    pthread_mutex_lock(&apart->lock);
    apart->done = true;
    pthread_cond_signal(&apart->changed);
    pthread_mutex_unlock(&apart->lock);
    return NULL;
}

/* Wait until the thread is done (true) or until [instant] (false). */
static bool apart_wait(apart_t *apart, double instant)
{
    bool done;

    pthread_mutex_lock(&apart->lock);
    while (!apart->done &&
           thread_cond_wait(&apart->changed, &apart->lock, instant))
        continue;
    done = apart->done;
    pthread_mutex_unlock(&apart->lock);
    return done;
}

static err_code_t apart_start(const train_state_t *run, err_code_t rc,
                              const err_t *why, apart_t **out,
                              pthread_t *thread, err_t *err)
{
    apart_t *apart = NULL;
    err_code_t started = mem_new(apart_t, 1, "the end of the run", &apart, err);

    if (started != ERR_OK)
        return started;
    apart->run = run;
    apart->rc = rc;
    apart->err = *why;
    pthread_mutex_init(&apart->lock, NULL);
    thread_cond_init(&apart->changed);
    started = thread_start("cddp-end", apart_main, apart, thread, err);
    if (started == ERR_OK)
        *out = apart;
    else
        mem_free(apart);
    return started;
}

void train_outcome_apart(const train_state_t *run, err_code_t rc,
                         const err_t *err)
{
    const bool alone = rc == ERR_PEER && run->world.rank == 0 &&
                       err->culprit == 0 && run->dir.owned;
    apart_t *apart = NULL;
    pthread_t thread;
    err_t why = ERR_INIT;

    if (!alone && !writes(run, rc, err))
        return;
    if (apart_start(run, rc, err, &apart, &thread, &why) != ERR_OK) {
        log_warn("train", "how the run ended is not recorded: %s", why.text);
    } else if (apart_wait(apart, clock_now() + APART_WAIT)) {
        pthread_join(thread, NULL);
        mem_free(apart);
    } else {
        pthread_detach(thread);
        log_warn("train",
                 "how the run ended is not recorded: the storage of the run "
                 "directory has not answered for %.3g s, either",
                 APART_WAIT);
    }
}
