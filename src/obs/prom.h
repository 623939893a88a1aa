/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * prom: the state of a rank in a text file that Prometheus's node_exporter
 * reads (its textfile collector). The file is replaced by a rename, so a reader
 * never sees a part of it, and removed at the end of the run. The file of a
 * killed run is removed by its next start on the host. Thread rule: one thread.
 */
#ifndef CDDP_OBS_PROM_H
#define CDDP_OBS_PROM_H

#include "base/err.h"
#include "obs/metrics.h"

typedef struct obs_prom obs_prom_t;

typedef struct obs_prom_config {
    const char *directory; /* of the collector, on a local disk; must exist */
    const char *job;       /* label job, Slurm's id; "" outside Slurm */
    const char *run;       /* label run */
    const char *run_dir; /* tells the files of this run from those of others */
    int rank;            /* label rank */
    double every;        /* seconds between two versions of the file */
} obs_prom_config_t;

/* Remove the files that earlier starts of the run, on whichever ranks, left in
 * the directory. The file of this start is made by the first obs_prom_step. No
 * rank may call that before all ranks were here. ERR_IO: the directory cannot
 * be read or written. */
err_code_t obs_prom_open(const obs_prom_config_t *config, obs_prom_t **out,
                         err_t *err);

/* Tell what has happened. A step writes the file if it is due. Allocates
 * nothing. If the file cannot be written, a warning is logged once, and the run
 * continues. */
void obs_prom_step(obs_prom_t *prom, const obs_step_t *row);
void obs_prom_eval(obs_prom_t *prom, const obs_eval_t *row);
void obs_prom_saved(obs_prom_t *prom, int64_t step); /* a checkpoint */

/* Remove the file. NULL allowed, here and above. */
void obs_prom_close(obs_prom_t *prom);

#endif
