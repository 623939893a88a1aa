/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_still: for how long a number has not grown. Several threads may wait for
 * a device and look at the same counter; each of them may call this. So the
 * state has a lock of its own.
 */
#ifndef CDDP_COMM_COMM_STILL_H
#define CDDP_COMM_COMM_STILL_H

#include <pthread.h>
#include <stdint.h>

typedef struct comm_still {
    pthread_mutex_t lock;
    uint64_t number; /* the largest number that was given */
    double since;    /* clock instant of the first call that gave it */
} comm_still_t;

/* Begin at the clock instant [now] with the number 0. */
void comm_still_open(comm_still_t *still, double now);
void comm_still_close(comm_still_t *still);

/* Give the [number] that was read at the clock instant [now]. Returns for how
 * many seconds it has not grown: 0 if it has grown since the last call. Another
 * thread may have given a larger number meanwhile: then the seconds are those
 * of the larger number. Any thread; never blocks for long. */
double comm_still_for(comm_still_t *still, uint64_t number, double now);

#endif
