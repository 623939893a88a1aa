/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * boot_wire: wraps PMIx calls, adding our own deadlines; used by boot_pmix.c
 * only.
 *
 * PMIX_TIMEOUT limits neither the part of a fence between nodes (which obeys
 * SLURM_PMIX_TIMEOUT, 300 s, read by the launcher) nor a get from a rank of the
 * same node that never published. So all calls are non-blocking, and we wait
 * for their callbacks with our own deadline. A callback may run after the
 * deadline, so the memory that it writes to is kept until PMIx is finalized.
 * PMIx_Init is blocking only, so it runs in a thread of its own.
 */
#ifndef CDDP_BOOT_BOOT_WIRE_H
#define CDDP_BOOT_BOOT_WIRE_H

#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct boot_wire boot_wire_t;

/* The answer of one rank to a get. */
typedef struct boot_answer {
    boot_wire_t *wire;
    /* status at the deadline; PMIX_ERR_TIMEOUT: no answer in time */
    pmix_status_t verdict;

    /* The fields below are protected by the lock, since a late callback may
     * still write to them. */
    bool done;
    /* false: the deadline has passed, [target] must not be written any more */
    bool wanted;
    pmix_status_t status;
    size_t found; /* number of bytes that the rank published */
    size_t bytes; /* number of bytes expected */
    char *target;
} boot_answer_t;

/* The answers of all ranks. */
typedef struct boot_gather {
    struct boot_gather *next;
    pmix_info_t limit; /* must stay valid, since PMIx reads it later */
    /* in rank order; the answer of this rank itself is marked done */
    boot_answer_t answers[];
} boot_gather_t;

struct boot_wire {
    pmix_proc_t self;
    int rank, size; /* set once PMIx is open */
    boot_gather_t *kept;

    /* Protects what callbacks write: fence_done, fence_status and the answers;
     * and open_done and open_status. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int opened;     /* eventfd: PMIx_Init has returned */
    bool open_done; /* PMIx_Init has returned open_status */
    bool open_late; /* PMIx_Init is late, and may still write to this state */
    pmix_status_t open_status;
    bool fence_done;
    pmix_status_t fence_status;
    pmix_info_t fence_info[2]; /* PMIx may read these until the fence is done */
};

/* Make the state. ERR_MEMORY; ERR_UNAVAILABLE: no more files can be opened. */
err_code_t boot_wire_new(boot_wire_t **out, err_t *err);

/* Free the state (NULL allowed), but only after PMIx_Finalize, which ends the
 * thread that runs callbacks. Does nothing if PMIx_Init did not return in time.
 */
void boot_wire_free(boot_wire_t *wire);

/* Call PMIx_Init and set wire->self. ERR_UNAVAILABLE if it fails, or has not
 * returned after [timeout] seconds; then nothing but boot_wire_free is allowed.
 * ERR_MEMORY. */
err_code_t boot_wire_open(boot_wire_t *wire, double timeout, err_t *err);

/* Publish [bytes] bytes at [mine] under a new [key]. */
pmix_status_t boot_wire_put(const char *key, const void *mine, size_t bytes);

/* Wait until all ranks have called this, and collect the data that they
 * published. (A fence that does not collect data is no barrier across nodes.)
 * PMIX_ERR_TIMEOUT after [timeout] seconds; then no further fence is allowed.
 */
pmix_status_t boot_wire_fence(boot_wire_t *wire, double timeout);

/*
 * Ask all other ranks for their [bytes] bytes under [key] and write them to
 * [all] in rank order; wait at most [timeout] seconds. Returns the answers of
 * all ranks; NULL: out of memory. boot_wire_drop frees the newest result before
 * PMIx is closed; all ranks must have answered.
 */
boot_gather_t *boot_wire_gather(boot_wire_t *wire, const char *key,
                                size_t bytes, char *all, double timeout);
void boot_wire_drop(boot_wire_t *wire, boot_gather_t *gathering);

#endif
