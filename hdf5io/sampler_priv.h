/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to the files sampler*.c: how the order of an epoch is computed. */
#ifndef CDDP_HDF5IO_SAMPLER_PRIV_H
#define CDDP_HDF5IO_SAMPLER_PRIV_H

#include "hdf5io/sampler.h"

/* Order 2 of `chunk`: units in a window of a lane. All lanes together keep
 * lanes * SAMPLER_UNITS units in use, so this number is small. Another number
 * would be another order. */
#define SAMPLER_UNITS 4
/* Keys of windows hold the lane above this bit, the window below it. */
#define SAMPLER_LANE_SHIFT 46

/* One way to order the samples. Its state belongs to one thread. */
typedef struct sampler_kind {
    /* The configuration was checked. No epoch is set yet. ERR_CONFIG: too many
     * samples for this kind. ERR_MEMORY. */
    err_code_t (*open)(const hdf5io_sampler_config_t *config, void **state,
                       err_t *err);
    void (*close)(void *state); /* NULL allowed */
    void (*epoch_set)(void *state, int64_t epoch);
    /* see hdf5io_sampler_index */
    void (*index)(void *state, int64_t first, int64_t count, int64_t *index);
} sampler_kind_t;

/* Order 1: tables of samples (full) or of chunks of 256 samples (chunk). */
extern const sampler_kind_t sampler_tables;

/* Order 2 of `chunk`, and of `full`. */
extern const sampler_kind_t sampler_lanes;
extern const sampler_kind_t sampler_whole;

#endif
