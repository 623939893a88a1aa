/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sampler: the samples of each step, and those of this rank. A pure function of
 * (seed, epoch, step, rank, size): every rank knows the whole plan, so no rank
 * enters a collective that another one skips. Position p of the epoch's order
 * belongs to step p / batch. The n samples of a step are divided into
 * contiguous runs (rank r has [n r / size, n (r + 1) / size)), so the last step
 * may be short, and some ranks may have no sample. With a grain g > 1, runs of
 * g samples are distributed instead of single samples (the last run of a step
 * may be short), so that the division into runs does not depend on the number
 * of ranks.
 *
 * Shuffles: none (file order), full and chunk (see order.h), in two versions
 * (config.order):
 * - 1: full is a table of all samples, made by Fisher-Yates with the
 *   counter-based generator, 4 bytes a sample. chunk permutes chunks of 256
 *   consecutive samples by a table, then samples within windows of 64 chunks.
 * - 2: no tables. full is a bijection (base/bijection.h) of the samples. chunk
 *   permutes units (units.h) by a bijection, cuts the result into lanes, mixes
 *   samples within windows of 4 units of a lane, and takes a part of each step
 *   from each lane. Neighbouring samples of a step are in the same lane or in
 *   neighbouring lanes, so a rank reads the units of its lanes only. If size
 *   divides lanes (and grain is 1), all ranks together read each unit once,
 *   except for up to size - 1 units in which the lanes of two ranks meet.
 *
 * Thread rule: steps, shares and orders are constant after open and may be used
 * by any thread; epoch_set and index belong to one thread (the loader's).
 */
#ifndef CDDP_HDF5IO_SAMPLER_H
#define CDDP_HDF5IO_SAMPLER_H

#include <stdint.h>

#include "base/err.h"
#include "hdf5io/order.h"
#include "hdf5io/units.h"

typedef struct hdf5io_sampler hdf5io_sampler_t;

#define HDF5IO_LANES_MAX (1 << 16)

typedef struct hdf5io_sampler_config {
    int64_t samples; /* in the dataset */
    int64_t batch;   /* global batch of a step */
    int rank, size;
    int64_t grain; /* number of samples that stay together; 0 counts as 1 */
    hdf5io_shuffle_t shuffle;
    uint64_t seed;
    int order; /* version of chunk and full, 1 or 2; 0 counts as 1 */
    /* version 2 of chunk only: */
    int64_t lanes; /* 1 .. HDF5IO_LANES_MAX; at most [batch] are used */
    const hdf5io_units_t *units; /* of [samples] samples; not owned */
} hdf5io_sampler_config_t;

/* One rank's share of one step. */
typedef struct hdf5io_share {
    int64_t first;  /* position of its first sample in the epoch's order */
    int64_t count;  /* number of its samples, may be 0 */
    int64_t global; /* samples of the step over all ranks */
} hdf5io_share_t;

/* The sampler begins with epoch 0. ERR_DATA: no samples. ERR_CONFIG: a number
 * is out of range, or too many samples for this shuffle. ERR_MEMORY. Local. */
err_code_t hdf5io_sampler_open(const hdf5io_sampler_config_t *config,
                               hdf5io_sampler_t **out, err_t *err);
void hdf5io_sampler_close(hdf5io_sampler_t *sampler); /* NULL allowed */

/* Epoch [epoch] was begun in [order] and stays in it: version 1 (0 counts as
 * 1), or version 2 with other lanes. All other epochs are as configured.
 * [epoch] -1: all epochs are as configured, and [order] is not used. Shuffle
 * and batch are those of the configuration. The next hdf5io_sampler_epoch_set
 * prepares it. Nothing changes without shuffle, or if all epochs are in
 * order 1. ERR_CONFIG: too many samples for order 1, or impossible lanes.
 * ERR_MEMORY. Local; before the loader starts. */
err_code_t hdf5io_sampler_old_epoch(hdf5io_sampler_t *sampler, int64_t epoch,
                                    const hdf5io_order_t *order, err_t *err);

/* The order of [epoch]. Pure. */
hdf5io_order_t hdf5io_sampler_order(const hdf5io_sampler_t *sampler,
                                    int64_t epoch);

/* Steps per epoch: ceil(samples / batch). */
int64_t hdf5io_sampler_steps(const hdf5io_sampler_t *sampler);

/* Prepare the sample order of [epoch] (from 0). */
void hdf5io_sampler_epoch_set(hdf5io_sampler_t *sampler, int64_t epoch);

/* Share of this rank in step [step] (from 0), or of any rank. Pure. */
hdf5io_share_t hdf5io_sampler_share(const hdf5io_sampler_t *sampler,
                                    int64_t step);
hdf5io_share_t hdf5io_sampler_share_of(const hdf5io_sampler_t *sampler,
                                       int64_t step, int rank);

/* Maximum number of samples of this rank in any step. */
int64_t hdf5io_sampler_share_max(const hdf5io_sampler_t *sampler);

/* Number of units that this rank has in use at a time, in an epoch that is as
 * configured. A rank that keeps so many units in memory reads nearly no unit
 * twice. 0: the order has no lanes. Pure. */
int64_t hdf5io_sampler_units_used(const hdf5io_sampler_t *sampler);

/* Global sample numbers at positions [first, first + count) of the order. The
 * result depends only on the configuration and the epoch. */
void hdf5io_sampler_index(hdf5io_sampler_t *sampler, int64_t first,
                          int64_t count, int64_t *index);

#endif
