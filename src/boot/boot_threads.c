/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The backend for ranks that are threads of this process. They share one
 * team_t. In an exchange (a round) every rank copies its bytes into a buffer of
 * the team. The last rank to arrive ends the round; then every rank copies the
 * whole buffer.
 *
 * There are two buffers, used alternately: a rank may already be in the next
 * round while others still copy from this one, but no rank can be two rounds
 * ahead.
 *
 * Locks: team->lock protects all fields of team_t. Closing the last handle
 * frees the team.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "boot/boot_backend.h"

typedef struct team {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* round ended, failure, or a rank left */
    int size;
    int handles; /* number of open handles */
    int arrived; /* number of ranks that arrived in this round */
    uint64_t round;
    size_t bytes;  /* bytes per rank in this round */
    char *data[2]; /* size * bytes each; data[round % 2] is in use */
    bool *here;    /* here[rank]: the rank arrived in this round */
    bool *gone;    /* gone[rank]: the rank closed its handle */
    bool failed;
    err_t fault;
} team_t;

static void team_free(team_t *team)
{
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    free(team->data[0]);
    free(team->data[1]);
    mem_free(team->here);
    mem_free(team->gone);
    mem_free(team);
}

static err_code_t team_new(int size, team_t **out, err_t *err)
{
    team_t *team = NULL;
    err_code_t rc = mem_new(team_t, 1, "start-up", &team, err);

    if (rc != ERR_OK)
        return rc;
    pthread_mutex_init(&team->lock, NULL);
    thread_cond_init(&team->changed);
    team->size = size;
    rc = mem_new(bool, (size_t)size, "start-up", &team->here, err);
    if (rc == ERR_OK)
        rc = mem_new(bool, (size_t)size, "start-up", &team->gone, err);
    if (rc == ERR_OK)
        *out = team;
    else
        team_free(team);
    return rc;
}

/* Make all current and later exchanges fail with [fault]. Lock held. */
static void team_fail(team_t *team, const err_t *fault)
{
    if (team->failed)
        return;
    team->failed = true;
    team->fault = *fault;
    pthread_cond_broadcast(&team->changed);
}

/* Make the exchange fail with a message that names the missing ranks: those
 * that did not arrive in this round and, unless [only] is NULL, are marked in
 * [only]. Lock held. */
static void team_fail_absent(team_t *team, const bool *only, const char *why)
{
    char names[256];
    bool *absent = NULL;
    err_t fault = ERR_INIT;
    int first = -1;

    if (mem_new(bool, (size_t)team->size, "start-up", &absent, &fault) !=
        ERR_OK) {
        team_fail(team, &fault);
        return;
    }
    for (int rank = team->size - 1; rank >= 0; rank--) {
        absent[rank] = !team->here[rank] && (only == NULL || only[rank]);
        if (absent[rank])
            first = rank;
    }
    boot_rank_list(absent, team->size, names, sizeof names);
    err_set_peer(&fault, first, NULL, "start-up exchange %llu: %s %s",
                 (unsigned long long)team->round, names, why);
    team_fail(team, &fault);
    mem_free(absent);
}

/* Allocate the buffer of a round; called by the first rank to arrive. Lock
 * held. */
static void team_begin(team_t *team, size_t bytes)
{
    char **data = &team->data[team->round % 2];
    size_t total = (size_t)team->size * bytes;
    char *grown = realloc(*data, total == 0 ? 1 : total);
    err_t fault = ERR_INIT;

    team->bytes = bytes;
    if (grown != NULL) {
        *data = grown;
        return;
    }
    err_set(&fault, ERR_MEMORY, "out of memory exchanging %zu bytes", total);
    team_fail(team, &fault);
}

/* Has a rank left without arriving in this round? Lock held. */
static bool team_gone(const team_t *team)
{
    for (int rank = 0; rank < team->size; rank++)
        if (team->gone[rank] && !team->here[rank])
            return true;
    return false;
}

/* Copy [mine] of [rank] into the buffer, and end the round if all ranks have
 * arrived. Lock held. */
static void team_arrive(team_t *team, int rank, const void *mine, size_t bytes)
{
    err_t fault = ERR_INIT;

    if (team->arrived == 0)
        team_begin(team, bytes);
    if (!team->failed && bytes != team->bytes) {
        err_set(&fault, ERR_CONFIG,
                "start-up exchange %llu: rank %d gives %zu bytes, others %zu: "
                "do all ranks run the same build and run file?",
                (unsigned long long)team->round, rank, bytes, team->bytes);
        team_fail(team, &fault);
    }
    if (team->failed)
        return;
    check(!team->here[rank] && !team->gone[rank],
          "rank %d comes to exchange %llu: here %d, gone %d", rank,
          (unsigned long long)team->round, team->here[rank], team->gone[rank]);
    if (bytes > 0)
        memcpy(team->data[team->round % 2] + (size_t)rank * bytes, mine, bytes);
    team->here[rank] = true;
    team->arrived++;
    check(team->arrived <= team->size, "%d of %d ranks are in exchange %llu",
          team->arrived, team->size, (unsigned long long)team->round);
    if (team->arrived == team->size) {
        memset(team->here, 0, (size_t)team->size * sizeof *team->here);
        team->arrived = 0;
        team->round++;
        pthread_cond_broadcast(&team->changed);
    }
}

static err_code_t threads_exchange(boot_t *boot, const void *mine, size_t bytes,
                                   void *all, err_t *err)
{
    team_t *team = boot->state;
    double deadline = clock_now() + boot->timeout;
    err_code_t rc = ERR_OK;
    uint64_t round;

    pthread_mutex_lock(&team->lock);
    round = team->round;
    if (!team->failed)
        team_arrive(team, boot->rank, mine, bytes);
    while (team->round == round && !team->failed) {
        if (team_gone(team))
            team_fail_absent(team, team->gone, "left before it");
        else if (!thread_cond_wait(&team->changed, &team->lock, deadline) &&
                 team->round == round)
            team_fail_absent(team, NULL, "did not come in time");
    }
    check(team->round - round <= 1,
          "rank %d leaves exchange %llu in exchange %llu", boot->rank,
          (unsigned long long)round, (unsigned long long)team->round);
    if (team->round != round) {
        if (bytes > 0)
            memcpy(all, team->data[round % 2], (size_t)team->size * bytes);
    } else {
        rc = err_copy(err, &team->fault);
    }
    pthread_mutex_unlock(&team->lock);
    return rc;
}

static void threads_close(boot_t *boot)
{
    team_t *team = boot->state;
    bool last;

    pthread_mutex_lock(&team->lock);
    check(!team->gone[boot->rank] && team->handles > 0,
          "rank %d leaves, gone %d, %d handles", boot->rank,
          team->gone[boot->rank], team->handles);
    team->gone[boot->rank] = true;
    last = --team->handles == 0;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    if (last)
        team_free(team);
}

static const boot_backend_t threads_backend = {
    .name = "threads",
    .exchange = threads_exchange,
    .close = threads_close,
};

err_code_t boot_threads_open(int count, const boot_config_t *config,
                             boot_t **out, err_t *err)
{
    team_t *team = NULL;
    err_code_t rc;
    int made;

    if (count < 1)
        return err_set(err, ERR_CONFIG, "%d ranks: expected at least one",
                       count);
    rc = team_new(count, &team, err);
    if (rc != ERR_OK)
        return rc;
    for (made = 0; made < count; made++) {
        rc = boot_new(&threads_backend, config, &out[made], err);
        if (rc != ERR_OK)
            goto fail;
        out[made]->rank = made;
        out[made]->size = count;
        out[made]->state = team;
    }
    team->handles = count;
    return ERR_OK;

fail:
    while (made-- > 0)
        mem_free(out[made]);
    team_free(team);
    return rc;
}

/* ---- running the ranks --------------------------------------------------- */

typedef struct runner {
    boot_main_t main;
    void *context;
    boot_t *boot;
    int rank;
    pthread_t thread;
} runner_t;

static void *runner_main(void *argument)
{
    const runner_t *runner = argument;

    runner->main(runner->boot, runner->rank, runner->context);
    return NULL;
}

/* Start ranks 1 to count-1. *started becomes the number of the first rank that
 * was not started. On failure, close the handles of rank 0 and of the ranks
 * that were not started. */
static err_code_t runners_start(runner_t *runners, int count, int *started,
                                err_t *err)
{
    err_code_t rc = ERR_OK;
    int next = 1;

    while (next < count && rc == ERR_OK) {
        rc = thread_start("cddp-rank", runner_main, &runners[next],
                          &runners[next].thread, err);
        if (rc == ERR_OK)
            next++;
    }
    *started = next;
    if (rc == ERR_OK)
        return ERR_OK;
    boot_close(runners[0].boot);
    for (int r = next; r < count; r++)
        boot_close(runners[r].boot);
    return rc;
}

err_code_t boot_threads_run(int count, const boot_config_t *config,
                            boot_main_t main, void *context, err_t *err)
{
    runner_t *runners = NULL;
    boot_t **boots = NULL;
    int started = 1;
    err_code_t rc;

    rc = mem_new(runner_t, (size_t)count, "start-up", &runners, err);
    if (rc == ERR_OK)
        rc = mem_new(boot_t *, (size_t)count, "start-up", &boots, err);
    if (rc == ERR_OK)
        rc = boot_threads_open(count, config, boots, err);
    if (rc != ERR_OK)
        goto free;
    for (int r = 0; r < count; r++)
        runners[r] = (runner_t){
            .main = main, .context = context, .boot = boots[r], .rank = r};
    rc = runners_start(runners, count, &started, err);
    if (rc == ERR_OK)
        main(runners[0].boot, 0, context);
    for (int r = 1; r < started; r++)
        pthread_join(runners[r].thread, NULL);
free:
    mem_free(boots);
    mem_free(runners);
    return rc;
}
