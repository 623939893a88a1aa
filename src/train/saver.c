/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A save goes through three states: idle, working (from start until the thread
 * is done), and ended (until join). If storage does not answer a thread that
 * works, the saver is stuck until the process ends. Copying is divided into
 * pieces, which both threads take in turn. So a thread that gets no core does
 * not stop an update: the training copies all pieces itself.
 */
#include "train/saver.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/comm_split.h"
#include "train/patience.h"
#include "train/sound.h"
#include "train/vote.h"

#define PIECE ((int64_t)1 << 20) /* elements that are copied at once */
/* Seconds between two calls of wait_tell. */
#define TELL_SECONDS 0.2

typedef enum saver_state {
    SAVER_IDLE,
    SAVER_WORKS,
    SAVER_ENDED,
    SAVER_STUCK /* nobody waits for the thread any more */
} saver_state_t;

struct train_saver {
    comm_group_t *group;
    train_patience_t *patience; /* NULL if there is only one rank */
    double io_timeout;          /* seconds: fault.io_timeout */
    /* Seconds; if storage has not answered for so long, the saver is stuck. */
    double limit;
    const train_kept_t *kept;
    trace_t *trace; /* of the thread; NULL: none */
    bool behind, copies, threaded;
    hdf5io_votes_t votes;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* [state], [stop] or [copied] has changed */
    saver_state_t state;    /* under lock, as the next five */
    bool stop;
    /* Clock instant at which the thread began to wait for storage, or to work;
     * 0: it waits for other ranks, and their group has a timeout. */
    double since;
    /* Elements of the share that some thread copies or has copied; that are
     * copied; that are to be copied. */
    int64_t taken, copied, all;
    /* save.alone was called for this save. Only the training's thread uses
     * this. */
    bool told;
    /* The save in progress, and its outcome. The thread owns them while it
     * works, otherwise the training does. */
    train_save_t save;
    double began, ended; /* clock instants */
    bool allowed;        /* the files were to be written */
    err_code_t rc;
    err_t err;
};

/* ---- copying ------------------------------------------------------------- */

/* Copy the next piece. False: none is left that nobody copies. */
static bool piece_copy(train_saver_t *saver)
{
    int64_t first, last;

    pthread_mutex_lock(&saver->lock);
    first = saver->taken;
    last = saver->all - first < PIECE ? saver->all : first + PIECE;
    saver->taken = last;
    pthread_mutex_unlock(&saver->lock);
    if (first == last)
        return false;
    hdf5io_share_copy(saver->kept->share, first, last);
    pthread_mutex_lock(&saver->lock);
    saver->copied += last - first;
    check(saver->copied <= saver->all, "%lld of %lld elements are copied",
          (long long)saver->copied, (long long)saver->all);
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
    return true;
}

/* Copy what is left, and wait for the pieces that the other thread copies. */
static void copy_finish(train_saver_t *saver)
{
    while (piece_copy(saver))
        continue;
    pthread_mutex_lock(&saver->lock);
    while (saver->copied < saver->all)
        thread_cond_wait(&saver->changed, &saver->lock, -1);
    pthread_mutex_unlock(&saver->lock);
}

/* ---- the thread ---------------------------------------------------------- */

static void since_set(train_saver_t *saver, double instant)
{
    pthread_mutex_lock(&saver->lock);
    saver->since = instant;
    pthread_mutex_unlock(&saver->lock);
}

static err_code_t saver_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    train_saver_t *saver = context;
    err_code_t rc;

    since_set(saver, 0);
    rc = comm_allgather(saver->group, mine, bytes, all, err);
    since_set(saver, clock_now());
    return rc;
}

/* Report progress; the next access to storage may be slow, too. */
static void saver_alive(void *context)
{
    train_saver_t *saver = context;

    since_set(saver, clock_now());
    comm_group_report(saver->group, saver->save.progress.step, "checkpoint");
    train_patience_begin(saver->patience, saver->save.progress.step,
                         "checkpoint");
}

/* May it be written, and are its numbers finite? All ranks get one answer. */
static err_code_t save_check(train_saver_t *saver, err_t *err)
{
    const train_votes_t votes = train_votes_of_group(saver->group);
    const train_save_t *save = &saver->save;
    bool speaker;
    err_code_t rc = ERR_OK;

    if (save->allowed != NULL)
        rc = save->allowed(save->context, err);
    since_set(saver, 0);
    rc = train_vote(&votes, rc, &speaker, err);
    if (rc == ERR_OK)
        rc = train_sound(saver->group, saver->kept, save->progress.step,
                         save->saved_step, err);
    since_set(saver, clock_now());
    return rc;
}

static err_code_t save_write(train_saver_t *saver, err_t *err)
{
    const train_save_t *save = &saver->save;
    hdf5io_checkpoint_config_t config = *save->config;
    hdf5io_checkpoint_info_t info;
    err_code_t rc;

    if (save->write != NULL)
        return save->write(save, &saver->votes, err);
    config.votes = &saver->votes;
    config.share = saver->kept->share;
    rc = hdf5io_checkpoint_write(&config, &save->progress, saver->kept->tensors,
                                 saver->kept->count, &info, err);
    saver->ended = clock_now();
    /* If the saver is stuck, the run has ended without this save. */
    if (rc == ERR_OK && save->published != NULL && !train_saver_stuck(saver))
        save->published(save->context, saver->ended - saver->began);
    return rc;
}

static void save_do(train_saver_t *saver)
{
    const double span = trace_begin(saver->trace);

    saver->err = (err_t)ERR_INIT;
    saver_alive(saver);
    copy_finish(saver);
    saver->rc = save_check(saver, &saver->err);
    saver->allowed = saver->rc == ERR_OK;
    if (saver->allowed)
        saver->rc = save_write(saver, &saver->err);
    train_patience_end(saver->patience);
    saver->ended = clock_now();
    trace_end(saver->trace, span, "save", NULL, saver->save.progress.step);
}

static void *saver_main(void *argument)
{
    train_saver_t *saver = argument;

    log_rank_set(comm_group_rank(saver->group));
    if (saver->behind)
        thread_stand_back();
    pthread_mutex_lock(&saver->lock);
    while (saver->state == SAVER_WORKS || !saver->stop) {
        if (saver->state != SAVER_WORKS) {
            thread_cond_wait(&saver->changed, &saver->lock, -1);
            continue;
        }
        pthread_mutex_unlock(&saver->lock);
        save_do(saver);
        pthread_mutex_lock(&saver->lock);
        /* Nobody waits for this thread any more: it stays here until the
         * process ends. */
        while (saver->state == SAVER_STUCK)
            thread_cond_wait(&saver->changed, &saver->lock, -1);
        saver->state = SAVER_ENDED;
        pthread_cond_broadcast(&saver->changed);
    }
    pthread_mutex_unlock(&saver->lock);
    return NULL;
}

/* ---- opening ------------------------------------------------------------- */

static err_code_t group_open(train_saver_t *saver, comm_group_t *parent,
                             err_t *err)
{
    const comm_config_t config = {.backend = comm_group_backend(parent),
                                  .timeout = comm_group_timeout(parent)};
    err_code_t rc = comm_split_whole(parent, &config, &saver->group, err);

    if (rc == ERR_OK)
        saver->votes = (hdf5io_votes_t){.context = saver,
                                        .rank = comm_group_rank(saver->group),
                                        .size = comm_group_size(saver->group),
                                        .exchange = saver_exchange,
                                        .alive = saver_alive};
    return rc;
}

/* What this rank needs and no other rank takes part in. */
static err_code_t own_open(const train_saver_plan_t *plan, train_saver_t **out,
                           err_t *err)
{
    train_saver_t *saver = NULL;
    err_code_t rc = mem_new(train_saver_t, 1, "a saver", &saver, err);

    if (rc != ERR_OK)
        return rc;
    saver->io_timeout = plan->io_timeout;
    saver->limit = plan->io_timeout + 2 * comm_group_timeout(plan->parent);
    saver->kept = plan->kept;
    saver->behind = plan->behind;
    saver->copies = plan->copies;
    pthread_mutex_init(&saver->lock, NULL);
    thread_cond_init(&saver->changed);
    *out = saver;
    return plan->copies ? hdf5io_share_buffer(plan->kept->share, err) : ERR_OK;
}

static err_code_t threads_start(const train_saver_plan_t *plan,
                                train_saver_t *saver, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (saver->votes.size > 1)
        rc = train_patience_open(saver->group, comm_group_timeout(saver->group),
                                 plan->io_timeout, &saver->patience, err);
    if (rc == ERR_OK)
        rc = thread_start("cddp-saver", saver_main, saver, &saver->thread, err);
    saver->threaded = rc == ERR_OK;
    return rc;
}

err_code_t train_saver_open(const train_saver_plan_t *plan, train_saver_t **out,
                            err_t *err)
{
    const train_votes_t votes = train_votes_of_group(plan->parent);
    train_saver_t *saver = NULL;
    bool speaker;
    err_code_t rc = own_open(plan, &saver, err);

    rc = train_vote(&votes, rc, &speaker, err);
    if (rc == ERR_OK && saver != NULL)
        rc = group_open(saver, plan->parent, err);
    if (rc == ERR_OK && saver != NULL)
        rc = train_vote(&votes, threads_start(plan, saver, err), &speaker, err);
    if (rc == ERR_OK)
        *out = saver;
    else
        train_saver_close(saver);
    return rc;
}

/* While storage may still answer, call save.waits. Later, if the other ranks
 * have given up the save in progress, call save.alone, but only once for a
 * save. (If this rank waits for the other ranks, or its storage answers, it
 * gets their error soon.) The caller holds the lock. The function releases the
 * lock during the calls. */
static void wait_tell(train_saver_t *saver)
{
    const train_save_t *save = &saver->save;
    const double since = saver->since;
    const double seconds = since > 0 ? clock_now() - since : 0;
    const bool late = seconds > saver->io_timeout;

    if (late ? save->alone == NULL || saver->told : save->waits == NULL)
        return;
    pthread_mutex_unlock(&saver->lock);
    if (!late) {
        save->waits(save->context);
    } else if (train_saver_failed(saver)) {
        saver->told = true;
        save->alone(save->context, seconds);
    }
    pthread_mutex_lock(&saver->lock);
}

/* Wait for the end of the save in progress. False: storage does not answer the
 * thread, and the saver is stuck. The caller holds the lock. */
static bool ended_wait(train_saver_t *saver)
{
    while (saver->state == SAVER_WORKS) {
        const double since = saver->since, now = clock_now();
        const double end = (since > 0 ? since : now) + saver->limit;

        if (thread_cond_wait(&saver->changed, &saver->lock,
                             fmin(end, now + TELL_SECONDS)))
            continue;
        /* A change of [since] does not end the wait, so compare it again. */
        if (clock_now() < end) {
            wait_tell(saver);
        } else if (saver->state == SAVER_WORKS && since > 0 &&
                   saver->since == since) {
            saver->state = SAVER_STUCK;
            pthread_detach(saver->thread); /* nobody will join the thread */
        }
    }
    return saver->state != SAVER_STUCK;
}

void train_saver_close(train_saver_t *saver)
{
    if (saver == NULL)
        return;
    if (saver->threaded) {
        bool ended;

        pthread_mutex_lock(&saver->lock);
        saver->stop = true;
        pthread_cond_broadcast(&saver->changed);
        ended = ended_wait(saver);
        pthread_mutex_unlock(&saver->lock);
        if (!ended)
            return;
        pthread_join(saver->thread, NULL);
    }
    train_patience_close(saver->patience);
    comm_group_close(saver->group);
    pthread_cond_destroy(&saver->changed);
    pthread_mutex_destroy(&saver->lock);
    mem_free(saver);
}

/* ---- the training's side ------------------------------------------------- */

static saver_state_t state_of(train_saver_t *saver)
{
    saver_state_t state;

    if (saver == NULL)
        return SAVER_IDLE;
    pthread_mutex_lock(&saver->lock);
    state = saver->state;
    pthread_mutex_unlock(&saver->lock);
    return state;
}

void train_saver_trace(train_saver_t *saver, trace_t *trace)
{
    check(!train_saver_busy(saver), "tracing begins during a save");
    saver->trace = trace;
}

bool train_saver_busy(train_saver_t *saver)
{
    return state_of(saver) != SAVER_IDLE;
}

bool train_saver_ended(train_saver_t *saver)
{
    return state_of(saver) == SAVER_ENDED;
}

bool train_saver_failed(train_saver_t *saver)
{
    return state_of(saver) == SAVER_WORKS &&
           comm_group_check(saver->group, NULL) != ERR_OK;
}

void train_saver_tell(train_saver_t *saver, const err_t *fault)
{
    if (saver != NULL)
        comm_group_tell(saver->group, fault);
}

void train_saver_start(train_saver_t *saver, const train_save_t *save)
{
    const train_kept_t *kept = saver->kept;
    const int64_t elems = hdf5io_share_elems(kept->share);
    const int64_t stays =
        hdf5io_share_before(kept->share, kept->count - kept->hook_count);

    check(!train_saver_busy(saver), "a save of step %lld during one of %lld",
          (long long)save->progress.step, (long long)saver->save.progress.step);
    saver->began = clock_now();
    saver->save = *save;
    saver->told = false;
    hdf5io_share_copy(kept->share, stays, elems);
    pthread_mutex_lock(&saver->lock);
    saver->taken = saver->copied = 0;
    saver->all = saver->copies ? stays : 0;
    saver->since = saver->began;
    saver->state = SAVER_WORKS;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
}

void train_saver_also(train_saver_t *saver, comm_group_t *group)
{
    train_patience_also(saver->patience, group);
}

double train_saver_settle(train_saver_t *saver)
{
    double begin;

    if (!train_saver_busy(saver))
        return 0;
    begin = clock_now();
    copy_finish(saver);
    return clock_now() - begin;
}

/* The other ranks have given this rank up. They ended with ERR_PEER, and so
 * does this rank. A rank that is alone ends with ERR_IO. */
static err_code_t stuck_fail(const train_saver_t *saver, err_t *err)
{
    const int rank = saver->votes.rank;
    const bool local = saver->save.write != NULL;
    char text[ERR_TEXT_MAX];

    snprintf(text, sizeof text,
             "storage has not answered the %scheckpoint of step %lld for %.3g "
             "s (fault.io_timeout and twice fault.timeout): the run ends "
             "without it; look at the file system of %s",
             local ? "local " : "", (long long)saver->save.progress.step,
             saver->limit, local ? "checkpoint.local" : "the run directory");
    return saver->votes.size == 1
               ? err_set(err, ERR_IO, "%s", text)
               : err_set_peer(err, rank, comm_group_host(saver->group, rank),
                              "%s", text);
}

err_code_t train_saver_join(train_saver_t *saver, double *seconds, err_t *err)
{
    bool ended;

    check(train_saver_busy(saver), "no save is in progress after step %lld",
          (long long)saver->save.progress.step);
    pthread_mutex_lock(&saver->lock);
    ended = ended_wait(saver);
    if (ended)
        saver->state = SAVER_IDLE;
    pthread_mutex_unlock(&saver->lock);
    if (!ended)
        return stuck_fail(saver, err);
    *seconds = saver->ended - saver->began;
    return saver->rc == ERR_OK ? ERR_OK : err_copy(err, &saver->err);
}

bool train_saver_allowed(const train_saver_t *saver)
{
    return saver->allowed;
}

bool train_saver_wait(train_saver_t *saver)
{
    bool ended;

    if (saver == NULL)
        return true;
    pthread_mutex_lock(&saver->lock);
    ended = ended_wait(saver);
    pthread_mutex_unlock(&saver->lock);
    return ended;
}

bool train_saver_stuck(train_saver_t *saver)
{
    return state_of(saver) == SAVER_STUCK;
}
