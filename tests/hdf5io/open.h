/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* open: the common dataset of the tests in this folder: shards with /spins
 * [rows, 3, 4], /phase [rows] and /temperature [rows, 2], with global row
 * numbers. */
#ifndef CDDP_TESTS_HDF5IO_OPEN_H
#define CDDP_TESTS_HDF5IO_OPEN_H

#include "files.h"
#include "hdf5io/dataset.h"

#define OPEN_ELEMS 12
#define OPEN_CLASSES 3

/* The stored values of row [row]. */
double open_spin(int64_t row, int64_t element);
double open_phase(int64_t row, int64_t element);
double open_temperature(int64_t row, int64_t element);

/* A configuration with everything it points to; tests change it as needed. */
typedef struct open_setup {
    char *patterns[4];
    opt_texts_t shards;
    hdf5io_field_t input, target;
    hdf5io_dataset_config_t config;
} open_setup_t;

/* A setup with inputs from /spins and classes from /phase, in all files that
 * match directory/pattern. */
void open_setup(open_setup_t *setup, const char *directory,
                const char *pattern);
void open_setup_free(open_setup_t *setup);

/* Change the setup: a sample is [length] numbers of the stream /tokens, [shape]
 * is its shape in messages, and the next numbers, all below [limit], are its
 * targets. */
void open_setup_stream(open_setup_t *setup, int length, const char *shape,
                       int limit);

/* Make a directory and a setup for [pattern] in it; open_end frees both. */
void open_begin(char **directory, open_setup_t *setup, const char *pattern);
void open_end(char *directory, open_setup_t *setup);

/* The directory and the setup that the Criterion fixture below makes, for the
 * pattern "*.h5". */
extern char *open_directory;
extern open_setup_t open_all;
void open_start(void);
void open_stop(void);

/* Write directory/name with [rows] samples from row [first] on: int8 spins,
 * int64 phases, float64 temperatures. */
void open_write(const char *directory, const char *name, files_layout_t layout,
                int64_t first, int64_t rows);

/* Write [count] such shards of [rows] samples each, directory/part-0.h5 and so
 * on. */
void open_write_parts(const char *directory, files_layout_t layout, int count,
                      int64_t rows);

/* Open the dataset; if that fails, the test fails with the message. */
hdf5io_dataset_t *open_dataset(const open_setup_t *setup);

/* Opening must fail with [code] and a message that contains all of [texts]. */
void open_refused(const open_setup_t *setup, err_code_t code,
                  const char *const *texts);
#define OPEN_REFUSED(setup, code, ...) \
    open_refused((setup), (code), (const char *const[]){__VA_ARGS__, NULL})

/* Read [count] samples; returns the number of values that differ from those
 * written. */
int open_wrong_samples(hdf5io_dataset_t *dataset, const int64_t *index,
                       int64_t count);
/* open_wrong_samples for all samples in order, backwards, with jumps, and
 * twice. */
int open_wrong_orders(hdf5io_dataset_t *dataset, int64_t samples);

#endif
