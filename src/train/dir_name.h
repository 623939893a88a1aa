/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dir_name: the run directory that a run file asks for. Two runs must not share
 * a directory by accident, such as two tasks of a Slurm array, which share a
 * run file. */
#ifndef CDDP_TRAIN_DIR_NAME_H
#define CDDP_TRAIN_DIR_NAME_H

#include "base/err.h"
#include "slurm/job.h"

/*
 * Set *out to the directory for the pattern [pattern] (run.dir); the caller
 * frees it. In [pattern], {name} is replaced by [name], and {array} and {job}
 * by those of [job]. An empty pattern means runs/{name}, and
 * runs/{name}-{array} in a Slurm array. [job] NULL: the job is not known yet,
 * so {array} and {job} stay. ERR_CONFIG: [pattern] has another word in braces,
 * a word for which this job has no value, or control characters, on which a
 * terminal would act. The message continues after the word "run.dir". Pure.
 */
err_code_t train_dir_name(const char *pattern, const char *name,
                          const slurm_job_t *job, char **out, err_t *err);

#endif
