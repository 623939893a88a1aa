/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* history: what lives.jsonl tells of a run, and whether the run still runs. */
#ifndef CDDP_REPORT_HISTORY_H
#define CDDP_REPORT_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef enum report_state {
    REPORT_STATE_UNKNOWN,
    REPORT_STATE_RUNNING,  /* a process holds the lock of the directory */
    REPORT_STATE_COMPLETE, /* the last start has ended with status 0 */
    REPORT_STATE_ENDED,    /* with another status, and is not repeated */
    REPORT_STATE_WAITING,  /* with a status after which Slurm starts it again */
    REPORT_STATE_INTERRUPTED /* nobody holds the lock, and no end was written */
} report_state_t;

typedef struct report_history {
    json_t *events; /* all but checkpoints: objects with the keys of the file */
    json_t *saves;  /* checkpoints: [time, step, seconds, bytes]; if there are
                       many, every second, fourth, ... of them */
    int64_t save_count, stride;
    json_t *spent; /* the newest "spent": seconds by kind; NULL: none */
    int64_t step;  /* the largest one of a line; -1: none */
    char time[32]; /* of the last line; "": none */
    int status;    /* of the last "end" or "requeue"; -1: there is a start
                      behind it, or none */
    bool begun;    /* there is a "begin" */
    int skipped;   /* lines that could not be read */
    bool failed;   /* out of memory while reading */
} report_history_t;

/* Read [run_dir]/lives.jsonl; a missing file has no lines. ERR_IO, ERR_DATA,
 * ERR_MEMORY. report_history_free frees what is inside [out], also after an
 * error. */
err_code_t report_history_read(const char *run_dir, report_history_t *out,
                               err_t *err);
void report_history_free(report_history_t *history);

/* The state of the run in [run_dir]. Asks the kernel (on NFS the server) for
 * the lock of RUNDIR/lock, which is not taken. */
report_state_t report_state(const char *run_dir,
                            const report_history_t *history);

/* A word for the state, with the status if that is not 0: "running", "ended
 * (70)". Written to [out] of [room] bytes, which is returned. */
char *report_state_text(report_state_t state, int status, char *out,
                        size_t room);

#endif
