/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * boot: who am I, who are the others, exchange a blob. Used only at start-up
 * (and, with keep_open, closed last). Backends: solo (one rank), threads
 * (`--local N`), pmix (srun --mpi=pmix).
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
    double timeout; /* seconds, for each exchange */
} boot_config_t;

/* Rank 0 of 1, no library involved. */
err_code_t boot_solo_open(boot_t **out, err_t *err);

/* Make [count] handles for the ranks of this process, out[0 .. count-1]; each
 * is then used by its own thread and closed by it. */
err_code_t boot_threads_open(int count, const boot_config_t *config,
                             boot_t **out, err_t *err);

/* What a rank of boot_threads_run does; it closes [boot]. */
typedef void (*boot_main_t)(boot_t *boot, int rank, void *context);

/* Run [main] in [count] ranks, threads of this process of which the caller is
 * rank 0; returns when all have returned. When a thread cannot be started, the
 * ranks that run already give up by themselves, as others never come. */
err_code_t boot_threads_run(int count, const boot_config_t *config,
                            boot_main_t main, void *context, err_t *err);

/* Join the PMIx job that srun started. ERR_UNAVAILABLE if cddp was built
 * without PMIx; ERR_CONFIG with the mending line when the step was started
 * without --mpi=pmix (PMIx unreachable but SLURM_STEP_NUM_TASKS > 1). */
err_code_t boot_pmix_open(const boot_config_t *config, boot_t **out,
                          err_t *err);

/* Choose by the environment: a Slurm step -> pmix (a step of one task without
 * PMIx is solo), otherwise solo. */
err_code_t boot_open(const boot_config_t *config, boot_t **out, err_t *err);

int boot_rank(const boot_t *boot);
int boot_size(const boot_t *boot);
const char *boot_name(const boot_t *boot); /* "pmix", "threads", "solo" */

/*
 * All-gather: every rank gives [bytes] bytes (the same number everywhere) and
 * gets all of them in rank order in [all] (size * bytes). All ranks must call
 * it, in the same order. Blocks, at most the timeout; then ERR_PEER whose
 * sentence names the absent ranks as far as they are known. After a failure
 * only boot_close is allowed.
 */
err_code_t boot_exchange(boot_t *boot, const void *mine, size_t bytes,
                         void *all, err_t *err);

/* Compare a 64-bit [hash] of [what] ("configuration") across ranks: ERR_CONFIG
 * on every rank, naming the ranks that differ from the majority. Collective. */
err_code_t boot_agree(boot_t *boot, const char *what, uint64_t hash,
                      err_t *err);

/* Leave: after it the death of a rank no longer kills the step. All ranks call
 * it; NULL allowed. */
void boot_close(boot_t *boot);

#endif
