/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * boot_wire: PMIx calls behind deadlines of our own, for boot_pmix.c only.
 *
 * PMIX_TIMEOUT bounds neither the part of a fence between nodes (that obeys
 * SLURM_PMIX_TIMEOUT, 300 s, which the launching side reads) nor a get from a
 * rank of the same node that never published. So every wait is on a callback,
 * with our limit. A callback may come after we gave up; what it writes to is
 * kept until PMIx is finalized.
 */
#ifndef CDDP_BOOT_BOOT_WIRE_H
#define CDDP_BOOT_BOOT_WIRE_H

#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct boot_wire boot_wire_t;

/* One rank's answer in a gathering. */
typedef struct boot_answer {
    boot_wire_t *wire;
    pmix_status_t verdict; /* PMIX_ERR_TIMEOUT: none came in time */

    /* Lock held: a late callback may still write here. */
    bool done;
    bool wanted; /* false: too late, [target] is no longer ours */
    pmix_status_t status;
    size_t found; /* bytes that the rank gave */
    size_t bytes; /* expected */
    char *target;
} boot_answer_t;

/* What all ranks answered. */
typedef struct boot_gather {
    struct boot_gather *next;
    pmix_info_t limit;       /* PMIx reads it later, too */
    boot_answer_t answers[]; /* by rank; our own is done */
} boot_gather_t;

struct boot_wire {
    pmix_proc_t self;
    int rank, size; /* set once PMIx is open */
    boot_gather_t *kept;

    /* For what callbacks write: the fence and the answers. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool fence_done;
    pmix_status_t fence_status;
    pmix_info_t fence_info[2]; /* PMIx may read it until then */
};

/* Make and free the bookkeeping; free only after PMIx_Finalize, which ends the
 * thread that calls back. NULL: out of memory. */
boot_wire_t *boot_wire_new(void);
void boot_wire_free(boot_wire_t *wire);

/* Publish [bytes] bytes at [mine] under [key], which nobody used before. */
pmix_status_t boot_wire_put(const char *key, const void *mine, size_t bytes);

/* Wait until all ranks have come and collect what they have put (without
 * collecting a fence is no barrier across nodes). PMIX_ERR_TIMEOUT after
 * [timeout] seconds; then never fence again. */
pmix_status_t boot_wire_fence(boot_wire_t *wire, double timeout);

/*
 * Ask all other ranks at once for their [bytes] bytes under [key], put into
 * [all] in rank order; wait at most [timeout] seconds. Who answered what is in
 * the result, NULL: out of memory. boot_wire_drop releases the newest one early
 * when all have answered.
 */
boot_gather_t *boot_wire_gather(boot_wire_t *wire, const char *key,
                                size_t bytes, char *all, double timeout);
void boot_wire_drop(boot_wire_t *wire, boot_gather_t *gathering);

#endif
