/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * boot: gives rank and size of the job, and exchanges data between ranks at
 * start-up. It is closed before training, except with `io: mpi`, where it is
 * closed last. Backends: solo (one rank), threads and spawn (`--local N` on
 * CPUs and on GPUs), pmix (srun --mpi=pmix).
 *
 * Thread rule: one thread per handle. Every wait is bounded by the timeout.
 */
#ifndef CDDP_BOOT_BOOT_H
#define CDDP_BOOT_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct boot boot_t;

typedef struct boot_config {
    double timeout; /* seconds per exchange */
} boot_config_t;

/* Open a handle for rank 0 of 1; calls no library. ERR_MEMORY. */
err_code_t boot_solo_open(boot_t **out, err_t *err);

/* Open handles out[0 .. count-1] for [count] ranks that are threads of this
 * process. Each handle is used and closed by its own thread. ERR_CONFIG if
 * [count] is below 1; ERR_MEMORY. */
err_code_t boot_threads_open(int count, const boot_config_t *config,
                             boot_t **out, err_t *err);

/* The main function of a rank in boot_threads_run; it must close [boot]. */
typedef void (*boot_main_t)(boot_t *boot, int rank, void *context);

/* Run [main] in [count] ranks, which are threads of this process; the calling
 * thread is rank 0. Returns when all ranks have returned. If a thread cannot be
 * started, the ranks already running fail at their first exchange, since the
 * others never arrive. */
err_code_t boot_threads_run(int count, const boot_config_t *config,
                            boot_main_t main, void *context, err_t *err);

/* Ranks that are processes of this machine. */
typedef struct boot_spawn {
    int count;
    char *const *argv; /* of each rank; ends with NULL */
    double timeout;    /* seconds per exchange */
    /* Seconds for which ranks may outlive the failure of another one. */
    double patience;
    /* (optional) Returns a signal that came before boot_spawn_run and shall be
     * passed on to the ranks, too; 0: none. */
    int (*early)(void);
} boot_spawn_t;

/*
 * Start this program again as [count] ranks, in which boot_open gives a handle
 * of the backend "spawn", and return when all have ended. Ranks begin at main,
 * so nothing that was changed in the memory of this process reaches them. This
 * process may not have touched CUDA or started threads. USR1, USR2, TERM, XCPU,
 * INT and HUP are passed on to all ranks, except those from the terminal, which
 * sends them to all ranks itself. *status becomes the highest exit status of a
 * rank. A warning names each rank that was killed by a signal; it counts as
 * ERR_PEER (by INT: as 130). Ranks do not outlive this process. ERR_UNAVAILABLE
 * if a rank cannot be started; ERR_MEMORY.
 */
err_code_t boot_spawn_run(const boot_spawn_t *spawn, int *status, err_t *err);

/* Open the handle of a rank that boot_spawn_run has started; its signals are
 * blocked until then, so install handlers before. ERR_UNAVAILABLE if its parent
 * has ended. */
err_code_t boot_spawn_open(const boot_config_t *config, boot_t **out,
                           err_t *err);
/* Was this process started as a rank by boot_spawn_run, and has not opened its
 * handle yet? */
bool boot_spawn_is_rank(void);

/* Join the PMIx job that srun started. ERR_UNAVAILABLE if PMIx fails or does
 * not answer in time (60 s, or config->timeout if that is longer); ERR_MEMORY.
 * ERR_CONFIG, with the correct command line, if the step was started without
 * --mpi=pmix (no PMIx, but SLURM_STEP_NUM_TASKS > 1). */
err_code_t boot_pmix_open(const boot_config_t *config, boot_t **out,
                          err_t *err);

/* Open the backend that the environment asks for: spawn if boot_spawn_run
 * started this process, pmix if a PMIx server did, else solo. ERR_CONFIG in a
 * step of several tasks without PMIx. */
err_code_t boot_open(const boot_config_t *config, boot_t **out, err_t *err);

/* Rank and number of ranks, and name of the backend. */
int boot_rank(const boot_t *boot);
int boot_size(const boot_t *boot);
const char *boot_name(const boot_t *boot); /* "pmix", "threads", ... */

/*
 * All-gather: every rank gives [bytes] bytes (the same number everywhere) and
 * receives those of all ranks, in rank order, in [all] (size * bytes). All
 * ranks must call it, in the same order. Blocks until the timeout at most; then
 * ERR_PEER, whose message names the missing ranks as far as they are known.
 * After a failure only boot_close is allowed.
 */
err_code_t boot_exchange(boot_t *boot, const void *mine, size_t bytes,
                         void *all, err_t *err);

/* boot_exchange with [boot] as an untyped pointer, for callers that get their
 * exchange as a function (comm_oob_t, votes). */
err_code_t boot_exchange_call(void *boot, const void *mine, size_t bytes,
                              void *all, err_t *err);

/* Check that all ranks have the same 64-bit [hash] of [what] ("configuration").
 * If not, ERR_CONFIG on every rank names the ranks that differ from the
 * majority. Collective. */
err_code_t boot_agree(boot_t *boot, const char *what, uint64_t hash,
                      err_t *err);

/* Leave the job. Afterwards the death of a rank no longer ends the step. All
 * ranks call it; NULL allowed. */
void boot_close(boot_t *boot);

#endif
