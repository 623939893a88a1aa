/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * slow: finds out from the time that reads take whether storage is slow. After
 * a slow read, the system is told in advance of the next SLOW_TELLS reads,
 * which makes these reads fast. Later reads are not announced until a read is
 * slow again.
 *
 * Thread rule: any thread.
 */
#ifndef CDDP_HDF5IO_SLOW_H
#define CDDP_HDF5IO_SLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of reads of which the system is still to be told; at first 0. */
typedef atomic_int slow_t;

/* The system is told of this number of reads after a slow read. */
#define SLOW_TELLS 4096
/* A read that takes longer than this, and than SLOW_BYTE_S for each byte, did
 * not come from the page cache. */
#define SLOW_S 1e-4
#define SLOW_BYTE_S 1e-9

/* A read of [bytes] took [seconds]. Returns whether that is slow, and notes it
 * in [slow], unless that is NULL. */
static inline bool slow_note(slow_t *slow, size_t bytes, double seconds)
{
    const bool is = seconds > SLOW_S + SLOW_BYTE_S * (double)bytes;

    if (is && slow != NULL)
        atomic_store(slow, SLOW_TELLS);
    return is;
}

/* Is the system to be told of reads? */
static inline bool slow_is(slow_t *slow)
{
    return atomic_load(slow) > 0;
}

/* Tell the system that [bytes] bytes of [fd] will be read soon, from byte [at]
 * on. An error of this call is ignored. */
void hdf5io_slow_tell(int fd, uint64_t at, uint64_t bytes);

/* The system was told of a read. */
static inline void slow_told(slow_t *slow)
{
    if (slow_is(slow))
        atomic_fetch_sub(slow, 1);
}

#endif
