/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * tb: RUNDIR/tb/, what TensorBoard shows of a run. Every start of the run
 * writes a file of its own, in which a first record hides the steps of earlier
 * files that this start makes again. Records are collected and written
 * together. Thread rule: one thread.
 */
#ifndef CDDP_OBS_TB_H
#define CDDP_OBS_TB_H

#include "base/err.h"
#include "obs/metrics.h"
#include "obs/tb_event.h"

typedef struct obs_tb obs_tb_t;

typedef struct obs_tb_config {
    const char *directory; /* is made if it does not exist */
    int64_t step;          /* later steps of earlier files are hidden */
    double every;          /* seconds after which records are written */
    const char *run_file;  /* text of the run file */
    const obs_tb_hparam_t *hparams;
    int hparam_count; /* those after OBS_TB_SCALARS_MAX are left out */
} obs_tb_config_t;

/* Make the file of this start, whose name sorts behind all earlier ones, and
 * write settings and run file to it. ERR_IO; ERR_UNAVAILABLE: this build cannot
 * write event files (obs_tb_built). */
err_code_t obs_tb_open(const obs_tb_config_t *config, obs_tb_t **out,
                       err_t *err);

/* Add a step: loss, lr, grad_norm, samples_per_s and its values; or an
 * evaluation: valid/loss, valid/accuracy and its values as valid/NAME. Numbers
 * that are NaN are left out. Allocates nothing. If something cannot be written
 * (disk full, file removed), a warning is logged once, and the run
 * continues. */
void obs_tb_step(obs_tb_t *tb, const obs_step_t *row);
void obs_tb_eval(obs_tb_t *tb, const obs_eval_t *row);

/* The run goes back to [step]: hide later steps. */
void obs_tb_back(obs_tb_t *tb, int64_t step);

/* Write what was collected. To be called before a checkpoint is published, as
 * no later start makes the steps before it again. */
void obs_tb_flush(obs_tb_t *tb);

void obs_tb_close(obs_tb_t *tb); /* flushes; NULL allowed, here and above */

#endif
