/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * boot_wire: PMIx calls with our own deadlines, for boot_pmix.c only.
 *
 * PMIX_TIMEOUT limits neither the part of a fence between nodes (which obeys
 * SLURM_PMIX_TIMEOUT, 300 s, read by the launcher) nor a get from a rank of the
 * same node that never published. So every wait is for a callback, with our
 * deadline. A callback may run after we gave up, so the memory that it writes
 * to is kept until PMIx is finalized.
 */
#ifndef CDDP_BOOT_BOOT_WIRE_H
#define CDDP_BOOT_BOOT_WIRE_H

#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct boot_wire boot_wire_t;

/* The answer of one rank. */
typedef struct boot_answer {
    boot_wire_t *wire;
    pmix_status_t verdict; /* PMIX_ERR_TIMEOUT: no answer in time */

    /* Under the lock, since a late callback may still write here: */
    bool done;
    bool wanted; /* false: too late, [target] must not be written any more */
    pmix_status_t status;
    size_t found; /* bytes that the rank published */
    size_t bytes; /* expected bytes */
    char *target;
} boot_answer_t;

/* The answers of all ranks. */
typedef struct boot_gather {
    struct boot_gather *next;
    pmix_info_t limit;       /* must stay valid, since PMIx reads it later */
    boot_answer_t answers[]; /* in rank order; our own is already done */
} boot_gather_t;

struct boot_wire {
    pmix_proc_t self;
    int rank, size; /* set when PMIx is open */
    boot_gather_t *kept;

    /* Protects what callbacks write: the fence and the answers. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool fence_done;
    pmix_status_t fence_status;
    pmix_info_t fence_info[2]; /* PMIx may read it until the fence is done */
};

/* Make and free the state. Free it only after PMIx_Finalize, which ends the
 * thread that runs callbacks. NULL: out of memory. */
boot_wire_t *boot_wire_new(void);
void boot_wire_free(boot_wire_t *wire);

/* Publish [bytes] bytes at [mine] under a new [key]. */
pmix_status_t boot_wire_put(const char *key, const void *mine, size_t bytes);

/* Wait until all ranks have come, and collect what they published (a fence
 * without collection is no barrier across nodes). PMIX_ERR_TIMEOUT after
 * [timeout] seconds; then no further fence is allowed. */
pmix_status_t boot_wire_fence(boot_wire_t *wire, double timeout);

/*
 * Ask all other ranks for their [bytes] bytes under [key] and write them to
 * [all] in rank order; wait at most [timeout] seconds. Returns the answers of
 * all ranks; NULL: out of memory. boot_wire_drop frees the newest result early,
 * if all ranks have answered.
 */
boot_gather_t *boot_wire_gather(boot_wire_t *wire, const char *key,
                                size_t bytes, char *all, double timeout);
void boot_wire_drop(boot_wire_t *wire, boot_gather_t *gathering);

#endif
