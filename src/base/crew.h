/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * crew: threads that stay and do one job together, again and again. The thread
 * that runs a job is member 0, so a crew of one has no thread of its own.
 * Members wait asleep. Thread rule: one thread runs jobs.
 */
#ifndef CDDP_BASE_CREW_H
#define CDDP_BASE_CREW_H

#include <stdbool.h>

#include "base/err.h"

typedef struct crew crew_t;
typedef void crew_job_t(void *context, int member);

/* Start a crew of [size] members (>= 1), its threads called [name]. */
err_code_t crew_open(int size, const char *name, crew_t **out, err_t *err);
void crew_close(crew_t *crew); /* NULL allowed */

/* Every member calls [job]; returns when all are back, and what they wrote is
 * seen. Allocates nothing. */
void crew_run(crew_t *crew, crew_job_t *job, void *context);

/* Members; and is a job under way? To be asked by who runs jobs, who may find
 * itself inside of one. */
int crew_size(const crew_t *crew);
bool crew_busy(const crew_t *crew);

#endif
