/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/crew.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#define SIZE 5
#define JOBS 200

typedef struct work {
    pthread_barrier_t all;
    crew_t *crew;
    int count[SIZE];
    pthread_t who[SIZE];
} work_t;

/* Plain memory without atomics: the crew must order the accesses. */
static void work_do(void *context, int member)
{
    work_t *work = context;

    pthread_barrier_wait(&work->all);
    work->count[member]++;
    if (member == 0)
        cr_assert(crew_busy(work->crew));
    work->who[member] = pthread_self();
}

Test(crew, every_member_does_every_job_at_the_same_time)
{
    crew_t *crew = NULL;
    err_t err = ERR_INIT;
    work_t work;

    for (int size = 1; size <= SIZE; size++) {
        memset(&work, 0, sizeof work);
        pthread_barrier_init(&work.all, NULL, (unsigned)size);
        cr_assert_eq(crew_open(size, "crew", &crew, &err), ERR_OK, "%s",
                     err.text);
        cr_assert_eq(crew_size(crew), size);
        work.crew = crew;
        for (int job = 1; job <= JOBS; job++) {
            cr_assert_not(crew_busy(crew));
            crew_run(crew, work_do, &work);
            for (int i = 0; i < size; i++)
                cr_assert_eq(work.count[i], job, "member %d of %d", i, size);
        }
        cr_assert(pthread_equal(work.who[0], pthread_self()));
        crew_close(crew);
        pthread_barrier_destroy(&work.all);
    }
}

Test(crew, may_go_home_without_a_job)
{
    crew_t *crew = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(crew_open(3, "crew", &crew, &err), ERR_OK, "%s", err.text);
    crew_close(crew);
    crew_close(NULL);
}
