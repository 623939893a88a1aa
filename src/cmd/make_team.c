/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The threads of a team take blocks of rows from a common counter. */
#include "cmd/make_team.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/thread.h"

enum { BLOCK = 8 }; /* rows that a thread takes at a time */

typedef struct team {
    int64_t rows;
    cmd_draw_t draw;
    void *context;
    atomic_llong next; /* first row that no thread has taken */
    atomic_bool failed;
    err_code_t rc; /* the first failure; its message is in err */
    err_t err;
} team_t;

static void team_fail(team_t *team, err_code_t rc, const err_t *err)
{
    if (!atomic_exchange(&team->failed, true)) {
        team->rc = rc;
        team->err = *err;
    }
    atomic_store(&team->next, team->rows);
}

static void *team_work(void *argument)
{
    team_t *team = argument;

    for (;;) {
        const int64_t first = atomic_fetch_add(&team->next, BLOCK);

        if (first >= team->rows)
            return NULL;
        for (int64_t i = first; i < first + BLOCK && i < team->rows; i++) {
            err_t err = ERR_INIT;
            const err_code_t rc = team->draw(team->context, i, &err);

            if (rc != ERR_OK) {
                team_fail(team, rc, &err);
                return NULL;
            }
        }
    }
}

err_code_t cmd_team_draw(const char *name, int threads, int64_t rows,
                         cmd_draw_t draw, void *context, err_t *err)
{
    team_t team = {.rows = rows, .draw = draw, .context = context};
    pthread_t *mates = NULL;
    int started = 0;
    err_code_t rc = mem_new(pthread_t, (size_t)threads, "threads", &mates, err);

    if (rc != ERR_OK)
        return rc;
    while (started < threads - 1 && rc == ERR_OK) {
        rc = thread_start(name, team_work, &team, &mates[started], err);
        if (rc == ERR_OK)
            started++;
    }
    if (rc == ERR_OK)
        team_work(&team);
    else
        atomic_store(&team.next, rows);
    for (int i = 0; i < started; i++)
        pthread_join(mates[i], NULL);
    mem_free(mates);
    if (rc == ERR_OK && team.rc != ERR_OK)
        rc = err_copy(err, &team.err);
    return rc;
}
