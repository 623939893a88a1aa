/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/patience.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define TICKS 4 /* reports within fault.timeout */
#define MORE 2  /* groups beside the first one */

struct train_patience {
    comm_group_t *group;
    comm_group_t *also[MORE]; /* further groups to report to, under lock; NULL:
                                 none */
    double tick, limit;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double since; /* clock instant of the last begin, under lock; 0 after end */
    int64_t step;
    const char *phase;
    bool stop;
};

static void *patience_main(void *argument)
{
    train_patience_t *p = argument;
    double now;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        thread_cond_wait(&p->changed, &p->lock, clock_now() + p->tick);
        now = clock_now();
        if (p->since <= 0 || now - p->since >= p->limit)
            continue;
        comm_group_report(p->group, p->step, p->phase);
        for (int i = 0; i < MORE; i++)
            if (p->also[i] != NULL)
                comm_group_report(p->also[i], p->step, p->phase);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

err_code_t train_patience_open(comm_group_t *group, double timeout,
                               double limit, train_patience_t **out, err_t *err)
{
    train_patience_t *p = NULL;
    err_code_t rc = mem_new(train_patience_t, 1, "patience", &p, err);

    if (rc != ERR_OK)
        return rc;
    *p = (train_patience_t){
        .group = group, .tick = timeout / TICKS, .limit = limit};
    pthread_mutex_init(&p->lock, NULL);
    thread_cond_init(&p->changed);
    rc = thread_start("cddp-patience", patience_main, p, &p->thread, err);
    if (rc == ERR_OK) {
        *out = p;
        return ERR_OK;
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
    return rc;
}

void train_patience_close(train_patience_t *patience)
{
    if (patience == NULL)
        return;
    pthread_mutex_lock(&patience->lock);
    patience->stop = true;
    pthread_cond_signal(&patience->changed);
    pthread_mutex_unlock(&patience->lock);
    pthread_join(patience->thread, NULL);
    pthread_cond_destroy(&patience->changed);
    pthread_mutex_destroy(&patience->lock);
    mem_free(patience);
}

void train_patience_also(train_patience_t *patience, comm_group_t *group)
{
    int free = 0;

    if (patience == NULL || group == NULL)
        return;
    pthread_mutex_lock(&patience->lock);
    while (free < MORE - 1 && patience->also[free] != NULL)
        free++;
    check(patience->also[free] == NULL, "more than %d groups", 1 + MORE);
    patience->also[free] = group;
    pthread_mutex_unlock(&patience->lock);
}

void train_patience_only(train_patience_t *patience)
{
    if (patience == NULL)
        return;
    pthread_mutex_lock(&patience->lock);
    for (int i = 0; i < MORE; i++)
        patience->also[i] = NULL;
    pthread_mutex_unlock(&patience->lock);
}

void train_patience_begin(train_patience_t *patience, int64_t step,
                          const char *phase)
{
    if (patience == NULL)
        return;
    pthread_mutex_lock(&patience->lock);
    patience->since = clock_now();
    patience->step = step;
    patience->phase = phase;
    pthread_mutex_unlock(&patience->lock);
}

void train_patience_end(train_patience_t *patience)
{
    if (patience == NULL)
        return;
    pthread_mutex_lock(&patience->lock);
    patience->since = 0;
    pthread_mutex_unlock(&patience->lock);
}
