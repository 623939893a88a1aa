/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * slow: finds out whether storage is slow. A read that takes long may have
 * waited for storage, or its thread may have waited for a core. So before each
 * of the next SLOW_DOUBTS reads, the system is asked whether the page cache
 * holds the bytes of this read. If not, storage is slow. Then the system is
 * told in advance of the next SLOW_TELLS reads, which makes these reads fast.
 * Later reads are not announced until storage is found to be slow again.
 *
 * Thread rule: any thread.
 */
#ifndef CDDP_HDF5IO_SLOW_H
#define CDDP_HDF5IO_SLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At first all 0. */
typedef struct slow {
    atomic_int doubts; /* before how many reads the system is asked */
    atomic_int tells;  /* of how many reads the system is told */
} slow_t;

/* The system is asked before this number of reads after one that took long. */
#define SLOW_DOUBTS 4
/* The system is told of this number of reads once storage is slow. */
#define SLOW_TELLS 4096
/* A read of n bytes takes long if it takes more than SLOW_S + n * SLOW_BYTE_S
 * seconds. */
#define SLOW_S 1e-4
#define SLOW_BYTE_S 1e-9

/* A read of [bytes] took [seconds]. [slow] may be NULL. */
static inline void slow_note(slow_t *slow, size_t bytes, double seconds)
{
    if (slow != NULL && seconds > SLOW_S + SLOW_BYTE_S * (double)bytes)
        atomic_store(&slow->doubts, SLOW_DOUBTS);
}

/* Is hdf5io_slow_look to be called before the next read? [slow] may be NULL. */
static inline bool slow_doubts(slow_t *slow)
{
    return slow != NULL && atomic_load(&slow->doubts) > 0;
}

/* Ask the system whether the page cache holds the [bytes] bytes of [fd] from
 * byte [at] on, and note the answer. True: it does not hold them, or the system
 * cannot tell, so storage counts as slow. Does not change errno. */
bool hdf5io_slow_look(slow_t *slow, int fd, uint64_t at, uint64_t bytes);

/* Is the system to be told of reads? */
static inline bool slow_is(slow_t *slow)
{
    return atomic_load(&slow->tells) > 0;
}

/* Tell the system that [bytes] bytes of [fd] will be read soon, from byte [at]
 * on. An error of this call is ignored. */
void hdf5io_slow_tell(int fd, uint64_t at, uint64_t bytes);

/* The system was told of a read. */
static inline void slow_told(slow_t *slow)
{
    if (slow_is(slow))
        atomic_fetch_sub(&slow->tells, 1);
}

#endif
