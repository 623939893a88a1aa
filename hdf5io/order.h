/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * order: what the order of the samples in an epoch depends on, besides seed and
 * epoch. A checkpoint within an epoch keeps it, since the rest of the epoch
 * must be read in the same order. docs/FORMATS.md specifies the orders.
 */
#ifndef CDDP_HDF5IO_ORDER_H
#define CDDP_HDF5IO_ORDER_H

#include <stdint.h>

typedef enum hdf5io_shuffle {
    HDF5IO_SHUFFLE_NONE,  /* the order of the files */
    HDF5IO_SHUFFLE_CHUNK, /* pieces of the files are permuted, then samples
                             within a few pieces: large reads */
    HDF5IO_SHUFFLE_FULL   /* all samples are permuted */
} hdf5io_shuffle_t;

/* Versions of the orders `chunk` and `full`. Version 1 is that of checkpoints
 * without the member "order". */
#define HDF5IO_ORDER_FIRST 1
#define HDF5IO_ORDER_NEWEST 2

typedef struct hdf5io_order {
    int version; /* 0: not known */
    hdf5io_shuffle_t shuffle;
    /* version 2 of `chunk` only, else 0: */
    int64_t batch, lanes;
    uint64_t units; /* hash, see hdf5io_units_hash */
} hdf5io_order_t;

#endif
