/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The run directory that a run file means: two runs must not share one by
 * accident, such as the tasks of a Slurm array, which have one run file. */
#ifndef CDDP_TRAIN_DIR_NAME_H
#define CDDP_TRAIN_DIR_NAME_H

#include "base/err.h"
#include "slurm/job.h"

/*
 * The directory that [pattern] (run.dir) stands for, into *out, freed by the
 * caller. It may hold {name} (the run's [name]), {array} and {job} (of [job]);
 * "" means runs/{name}, in a Slurm array runs/{name}-{array}. [job] NULL: it is
 * not known yet, {array} and {job} stay as they are. ERR_CONFIG: anything else
 * in braces, what this job does not have, or a path with control characters
 * (which a terminal would take); the sentence goes on after the
 * word "run.dir". Pure.
 */
err_code_t train_dir_name(const char *pattern, const char *name,
                          const slurm_job_t *job, char **out, err_t *err);

#endif
