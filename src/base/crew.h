/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * crew: a group of threads that executes one job at a time together. The
 * calling thread is member 0, so a crew of one has no thread of its own.
 * Members sleep while they wait. Thread rule: only one thread runs jobs.
 */
#ifndef CDDP_BASE_CREW_H
#define CDDP_BASE_CREW_H

#include <stdbool.h>

#include "base/err.h"

typedef struct crew crew_t;
typedef void crew_job_t(void *context, int member);

/* Start a crew of [size] members (>= 1). Its threads are called [name].
 * ERR_MEMORY. */
err_code_t crew_open(int size, const char *name, crew_t **out, err_t *err);

/* End the threads and free the crew (NULL allowed). No job may be running. */
void crew_close(crew_t *crew);

/* Every member calls [job]. Returns when all have finished; what they wrote is
 * visible to the caller. Allocates nothing. */
void crew_run(crew_t *crew, crew_job_t *job, void *context);

/* Number of members, and whether a job is running. Only the thread that runs
 * jobs may ask; it may be inside of a job. */
int crew_size(const crew_t *crew);
bool crew_busy(const crew_t *crew);

#endif
