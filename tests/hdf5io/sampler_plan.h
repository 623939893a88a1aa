/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Data sets for tests of order 2 of the sampler. */
#ifndef CDDP_TESTS_HDF5IO_SAMPLER_PLAN_H
#define CDDP_TESTS_HDF5IO_SAMPLER_PLAN_H

#include "hdf5io/sampler.h"

/* A data set and how it is read. */
typedef struct plan {
    hdf5io_units_t *units;
    int64_t samples, batch, lanes, grain;
    hdf5io_shuffle_t shuffle;
    uint64_t seed;
} plan_t;

/* Shards of many sizes: empty ones, shorter than a unit, other chunks. */
#define PLAN_SPANS 11
extern const hdf5io_span_t plan_uneven[PLAN_SPANS];

/* The shards [spans]; seed 3, `chunk`. The caller closes plan.units. */
plan_t plan_open(const hdf5io_span_t *spans, int count, int64_t batch,
                 int64_t lanes);

/* [samples] samples in one shard. */
plan_t plan_even(int64_t samples, int64_t unit, int64_t batch, int64_t lanes);

/* The sampler of [rank] of [size], in order 2, at [epoch]. */
hdf5io_sampler_t *plan_sampler(const plan_t *plan, int rank, int size,
                               int64_t epoch);

/* The complete order of an epoch. The caller frees it. */
int64_t *plan_order(const plan_t *plan, int64_t epoch);

/* Number of the unit of each sample. The caller frees it. */
int64_t *plan_units(const plan_t *plan);

#endif
