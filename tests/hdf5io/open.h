/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* open: the dataset that the tests of this folder share: shards of /spins
 * [rows, 3, 4], /phase [rows] and /temperature [rows, 2], numbered globally. */
#ifndef CDDP_TESTS_HDF5IO_OPEN_H
#define CDDP_TESTS_HDF5IO_OPEN_H

#include "files.h"
#include "hdf5io/dataset.h"

#define OPEN_ELEMS 12
#define OPEN_CLASSES 3

/* The stored values of sample [row]. */
double open_spin(int64_t row, int64_t element);
double open_phase(int64_t row, int64_t element);
double open_temperature(int64_t row, int64_t element);

/* Everything that hdf5io_dataset_config_t points to; change it as needed. */
typedef struct open_setup {
    char *patterns[4];
    opt_texts_t shards;
    hdf5io_field_t input, target;
    hdf5io_dataset_config_t config;
} open_setup_t;

/* Classes from /phase, all files that match directory/pattern. */
void open_setup(open_setup_t *setup, const char *directory,
                const char *pattern);
void open_setup_free(open_setup_t *setup);

/* Write directory/name with [rows] samples from [first]; int8 spins, int64
 * phases, float64 temperatures. */
void open_write(const char *directory, const char *name, files_layout_t layout,
                int64_t first, int64_t rows);

/* Open, or fail the test with the sentence. */
hdf5io_dataset_t *open_dataset(const open_setup_t *setup);

/* Read [count] samples; how many numbers are not what was written? */
int open_wrong_samples(hdf5io_dataset_t *dataset, const int64_t *index,
                       int64_t count);
/* All samples in order, backwards, in leaps, twice. */
int open_wrong_orders(hdf5io_dataset_t *dataset, int64_t samples);

#endif
