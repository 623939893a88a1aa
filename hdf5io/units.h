/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * units: runs of consecutive samples that are read together: a row of chunks of
 * an HDF5 dataset, or, where it has no chunks, some megabytes. A unit never
 * crosses shards. Units are numbered in the order of the samples. The list
 * takes 24 bytes per shard, and nothing per unit.
 *
 * Most units have the same number of samples, the usual one. The others (the
 * short units at the ends of shards, and shards with other chunks) are called
 * odd.
 *
 * Thread rule: constant after hdf5io_units_open; any thread.
 */
#ifndef CDDP_HDF5IO_UNITS_H
#define CDDP_HDF5IO_UNITS_H

#include <stdint.h>

#include "base/err.h"

typedef struct hdf5io_units hdf5io_units_t;

/* The samples of one shard. */
typedef struct hdf5io_span {
    int64_t samples; /* may be 0 */
    int64_t unit;    /* samples per unit, >= 1; the last one may have fewer */
} hdf5io_span_t;

/* One unit: samples [first, first + count). */
typedef struct hdf5io_unit {
    int64_t first, count;
} hdf5io_unit_t;

/* Copies what it needs of [spans]. ERR_DATA: no samples. ERR_MEMORY. Local. */
err_code_t hdf5io_units_open(const hdf5io_span_t *spans, int count,
                             hdf5io_units_t **out, err_t *err);
void hdf5io_units_close(hdf5io_units_t *units); /* NULL allowed */

/* Number of units and of samples, and the usual number of samples of a unit. */
int64_t hdf5io_units_count(const hdf5io_units_t *units);
int64_t hdf5io_units_samples(const hdf5io_units_t *units);
int64_t hdf5io_units_usual(const hdf5io_units_t *units);

/* Unit [number] (0 .. count-1), in O(log shards). */
hdf5io_unit_t hdf5io_units_get(const hdf5io_units_t *units, int64_t number);

/* Write the numbers of all odd units to [numbers], if it is not NULL, in
 * ascending order; returns how many there are. */
int64_t hdf5io_units_odd(const hdf5io_units_t *units, int64_t *numbers);

/* A hash of all limits of units: equal only for equal units. */
uint64_t hdf5io_units_hash(const hdf5io_units_t *units);

#endif
