/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * straggler: which ranks or hosts make the others wait, and why. All ranks wait
 * for the slowest one in each step, so their steps are equally long. What
 * differs is the time that a rank needs for itself: to wait for its data, and
 * to compute. A rank is slow if this time is above OBS_STRAGGLER_FACTOR times
 * the median over ranks in each of the last OBS_STRAGGLER_WINDOWS windows, and
 * if that is a part of a step that matters. A window is some seconds of
 * training.
 *
 * The median of an even number of ranks is the lower one of the two in the
 * middle: of two ranks, the slower one can be named.
 *
 * Pure: what is found depends only on the numbers that were given. Thread rule:
 * one thread.
 */
#ifndef CDDP_OBS_STRAGGLER_H
#define CDDP_OBS_STRAGGLER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OBS_STRAGGLER_WINDOWS 3
#define OBS_STRAGGLER_FACTOR 1.2

/* What a rank has measured in a window: mean seconds of a step, unless another
 * unit is stated. */
typedef enum obs_load_number {
    OBS_LOAD_STEP,
    OBS_LOAD_DATA,      /* waiting for its samples */
    OBS_LOAD_COMPUTE,   /* its own work */
    OBS_LOAD_COMM,      /* waiting for other ranks and for messages */
    OBS_LOAD_BYTES,     /* bytes that it has reduced */
    OBS_LOAD_THROTTLED, /* its cgroup was not allowed to run */
    OBS_LOAD_DELAY,     /* its threads were ready, but had no core */
    OBS_LOAD_HERTZ,     /* frequency of its core in Hz; 0: not known */
    OBS_LOAD_NUMBERS
} obs_load_number_t;

typedef struct obs_load {
    double at[OBS_LOAD_NUMBERS];
} obs_load_t;

/* name, text: why a rank is slow. The reasons behind COMPUTE are those for
 * which a rank computes slowly. COMM: messages from a host take long. */
#define OBS_SLOW_MAP(X)                    \
    X(DATA, "data")                        \
    X(COMM, "comm")                        \
    X(COMPUTE, "compute")                  \
    X(THROTTLED, "compute, throttled")     \
    X(SHARED_CORE, "compute, shared core") \
    X(FREQUENCY, "compute, low frequency")

typedef enum obs_slow_cause {
#define OBS_SLOW_ENUM(name, text) OBS_SLOW_##name,
    OBS_SLOW_MAP(OBS_SLOW_ENUM)
#undef OBS_SLOW_ENUM
} obs_slow_cause_t;

/* The text of a cause. Static. */
const char *obs_slow_text(obs_slow_cause_t cause);

/* A slow rank, or a host all of whose ranks are slow. The numbers are means
 * over the windows. */
typedef struct obs_slow {
    int rank; /* -1: the whole host */
    int host; /* its number */
    obs_slow_cause_t cause;
    /* Seconds of a step that it needs for itself, and their median over ranks.
     * COMM: seconds of a message, and their median over hosts. */
    double seconds, median;
} obs_slow_t;

typedef struct obs_straggler obs_straggler_t;

/* Rank r of [ranks] is on host hosts[r]; hosts are counted from 0. ERR_MEMORY.
 */
err_code_t obs_straggler_open(const int *hosts, int ranks,
                              obs_straggler_t **out, err_t *err);
void obs_straggler_close(obs_straggler_t *straggler); /* NULL allowed */

/*
 * A window has ended, in which the ranks had [loads]. links[h]: seconds of a
 * message of [bytes] bytes from host h to others; NULL: not measured. Write to
 * [found], which has [room] elements, who is slow now and was not slow before.
 * Returns their number.
 */
typedef struct obs_window {
    const obs_load_t *loads; /* [ranks] */
    const double *links;     /* [hosts] */
    double bytes;
} obs_window_t;
int obs_straggler_window(obs_straggler_t *straggler, const obs_window_t *window,
                         obs_slow_t *found, int room);

/* Do ranks wait long enough for messages that links should be measured? Equal
 * on ranks that have equal [loads]. [sorted] is scratch, [ranks]. */
bool obs_straggler_links_matter(const obs_load_t *loads, int ranks,
                                double *sorted);

/* Write a sentence about [slow], on the host of name [host], to [out] of [room]
 * bytes; returns [out]. */
char *obs_slow_format(const obs_slow_t *slow, const char *host, char *out,
                      size_t room);

#endif
