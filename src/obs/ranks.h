/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ranks: what each rank needed for a step, as means over many windows of the
 * search for slow ranks (straggler.h). A run writes them to metrics.jsonl from
 * time to time, and cddp-report draws them.
 *
 * Each of the first windows after a start has a row of its own. A later row
 * covers an eighth of the windows since the start, so a week of windows of a
 * minute has about 60 rows. A row has about 30 bytes for each rank.
 *
 * Thread rule: one thread.
 */
#ifndef CDDP_OBS_RANKS_H
#define CDDP_OBS_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "obs/straggler.h"

/* Runs with more ranks get no rows: readers of metrics.jsonl take lines of at
 * most 1 MiB. */
#define OBS_RANKS_MAX 8192

typedef struct obs_ranks obs_ranks_t;

/* Where the ranks are: rank r of [ranks] is on host hosts[r], whose name is
 * names[hosts[r]]. Hosts are counted from 0, and each host has a rank. */
typedef struct obs_ranks_places {
    const int *hosts; /* [ranks] */
    int ranks;
    const char *const *names; /* copied */
} obs_ranks_places_t;

/* Open *out without any window. The caller closes it. ERR_MEMORY. */
err_code_t obs_ranks_open(const obs_ranks_places_t *places, obs_ranks_t **out,
                          err_t *err);
void obs_ranks_close(obs_ranks_t *ranks); /* NULL allowed */

/* Add a window of [steps] steps that has ended. loads[r] is what rank r needed
 * for a step of this window, on average. Allocates nothing. */
void obs_ranks_add(obs_ranks_t *ranks, const obs_load_t *loads, int64_t steps);

/* Number of windows since the last row; should these windows get a row now? */
int64_t obs_ranks_windows(const obs_ranks_t *ranks);
bool obs_ranks_due(const obs_ranks_t *ranks);

/* Append the means over the steps since the last row to [out], as the JSON
 * object that docs/FORMATS.md describes, and begin the next row. Returns the
 * number of these steps. */
int64_t obs_ranks_print(obs_ranks_t *ranks, str_buf_t *out);

#endif
