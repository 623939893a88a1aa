/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * loads: what each rank of a run needed for a step, from the rows "ranks" of
 * metrics.jsonl (obs/ranks.h). The numbers of a rank on a host are added up
 * over all rows, also over those of starts with other ranks and hosts. Medians
 * are taken over the ranks of one row: a rank is compared only with the ranks
 * beside which it ran. Thread rule: one thread.
 */
#ifndef CDDP_REPORT_LOADS_H
#define CDDP_REPORT_LOADS_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "report/row.h"

/* Ranks beyond this number are left out. A rank that ran on two hosts counts
 * twice. Hosts beyond this number are left out, too. */
#define REPORT_LOADS_MAX 16384

typedef struct report_loads report_loads_t;

err_code_t report_loads_open(report_loads_t **out, err_t *err);
void report_loads_close(report_loads_t *loads); /* NULL allowed */

/* Add a row whose event is "ranks". A row that does not have the form of
 * docs/FORMATS.md is left out as a whole. ERR_MEMORY. */
err_code_t report_loads_add(report_loads_t *loads, const report_row_t *row,
                            err_t *err);

/* Number of rows that were left out, and of ranks that were left out of other
 * rows. NULL: 0. */
int64_t report_loads_bad(const report_loads_t *loads);
int64_t report_loads_left_out(const report_loads_t *loads);

/*
 * Return what is known, for the page: {"hosts": names, "ranks": lists}. There
 * is a list for each rank on each of its hosts: [number of the host, rank,
 * steps, "own" divided by its median, the largest such ratio of a row, and
 * seconds of a step: data, compute, comm, throttled, delay]. "own" is data +
 * compute. JSON's null: there is no rank, or [loads] is NULL. The caller owns
 * the result. NULL: out of memory.
 */
json_t *report_loads_json(const report_loads_t *loads);

#endif
