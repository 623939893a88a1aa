/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/crew.h"

#include <stdint.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/thread.h"

typedef struct crew_member {
    crew_t *crew;
    int number;
    pthread_t thread;
} crew_member_t;

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t called; /* a new job, or the end */
    pthread_cond_t back;   /* the last member has finished */
    uint64_t jobs;         /* number of jobs so far */
    bool ended;
    int busy;
    crew_job_t *job;
    void *context;
    int started;  /* started threads */
    bool running; /* used only by the thread that runs jobs */
    crew_member_t members[];
};

/* Wait for the job after job number [done]; false: the crew ends. */
static bool member_wait(crew_t *crew, uint64_t done)
{
    bool ended;

    pthread_mutex_lock(&crew->lock);
    while (!crew->ended && crew->jobs == done)
        pthread_cond_wait(&crew->called, &crew->lock);
    ended = crew->ended;
    check(ended || crew->jobs == done + 1,
          "job %llu follows job %llu for a member",
          (unsigned long long)crew->jobs, (unsigned long long)done);
    pthread_mutex_unlock(&crew->lock);
    return !ended;
}

static void *member_main(void *argument)
{
    const crew_member_t *member = argument;
    crew_t *crew = member->crew;

    for (uint64_t done = 0; member_wait(crew, done); done++) {
        crew->job(crew->context, member->number);
        pthread_mutex_lock(&crew->lock);
        check(crew->busy > 0 && crew->busy <= crew->started,
              "member %d is through, and %d of %d are busy", member->number,
              crew->busy, crew->started);
        if (--crew->busy == 0)
            pthread_cond_signal(&crew->back);
        pthread_mutex_unlock(&crew->lock);
    }
    return NULL;
}

err_code_t crew_open(int size, const char *name, crew_t **out, err_t *err)
{
    const size_t threads = (size_t)size - 1;
    crew_t *crew = NULL;
    err_code_t rc;

    rc = mem_new_tail(crew_t, members, threads, "worker threads", &crew, err);
    if (rc != ERR_OK)
        return rc;
    pthread_mutex_init(&crew->lock, NULL);
    thread_cond_init(&crew->called);
    thread_cond_init(&crew->back);
    for (int i = 0; rc == ERR_OK && i < size - 1; i++) {
        crew_member_t *member = &crew->members[i];

        member->crew = crew;
        member->number = i + 1;
        rc = thread_start(name, member_main, member, &member->thread, err);
        if (rc == ERR_OK)
            crew->started++;
    }
    if (rc != ERR_OK) {
        crew_close(crew);
        return rc;
    }
    *out = crew;
    return ERR_OK;
}

void crew_close(crew_t *crew)
{
    if (crew == NULL)
        return;
    check(!crew->running && crew->busy == 0,
          "a crew is closed while %d members are busy", crew->busy);
    pthread_mutex_lock(&crew->lock);
    crew->ended = true;
    pthread_cond_broadcast(&crew->called);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < crew->started; i++)
        pthread_join(crew->members[i].thread, NULL);
    pthread_cond_destroy(&crew->back);
    pthread_cond_destroy(&crew->called);
    pthread_mutex_destroy(&crew->lock);
    mem_free(crew);
}

int crew_size(const crew_t *crew)
{
    return crew->started + 1;
}

bool crew_busy(const crew_t *crew)
{
    return crew->running;
}

/* Wait until all threads have finished the job. */
static void crew_wait(crew_t *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->busy > 0)
        pthread_cond_wait(&crew->back, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

void crew_run(crew_t *crew, crew_job_t *job, void *context)
{
    check(!crew->running && crew->busy == 0,
          "a job while one runs on %d members", crew->busy);
    crew->running = true;
    if (crew->started > 0) {
        pthread_mutex_lock(&crew->lock);
        crew->job = job;
        crew->context = context;
        crew->busy = crew->started;
        crew->jobs++;
        pthread_cond_broadcast(&crew->called);
        pthread_mutex_unlock(&crew->lock);
    }
    job(context, 0);
    if (crew->started > 0)
        crew_wait(crew);
    crew->running = false;
}
