/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dir_name: the run directory of a run file. Two runs must not share one by
 * accident, such as the tasks of a Slurm array, which share a run file. */
#ifndef CDDP_TRAIN_DIR_NAME_H
#define CDDP_TRAIN_DIR_NAME_H

#include "base/err.h"
#include "slurm/job.h"

/*
 * The directory for [pattern] (run.dir) into *out, which the caller frees. In
 * [pattern], {name} becomes [name], {array} and {job} those of [job]. "" means
 * runs/{name}, in a Slurm array runs/{name}-{array}. [job] NULL: the job is not
 * known yet, {array} and {job} stay. ERR_CONFIG: another word in braces, a
 * value that this job lacks, or control characters, on which a terminal would
 * act. The message continues after the word "run.dir". Pure.
 */
err_code_t train_dir_name(const char *pattern, const char *name,
                          const slurm_job_t *job, char **out, err_t *err);

#endif
