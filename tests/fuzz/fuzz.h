/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The fuzz targets. Each target takes any bytes as the content of one kind of
 * file, passes them to the code that reads such files, and checks conditions
 * that hold for every input: the code returns a documented status with a
 * message, and accepted input is unchanged after it is printed and read again.
 * If not, the target ends the process (by abort or a sanitizer's report).
 *
 * `make fuzz` links each target with libFuzzer; tests/fuzz/test_flips runs the
 * same functions on damaged copies of good files in `make check`.
 */
#ifndef CDDP_TESTS_FUZZ_FUZZ_H
#define CDDP_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Returns the reader's status for the [bytes] bytes at [data]. */
typedef err_code_t fuzz_target_t(const uint8_t *data, size_t bytes);

/* A run file: YAML, option tables, and the graph of the model. */
fuzz_target_t fuzz_run_file;

/* MANIFEST.json of a checkpoint. Its hash is corrected first, since otherwise
 * every input would be refused for its hash. */
fuzz_target_t fuzz_manifest;

/* A safetensors file: the first 8 bytes as the length of its map; also, as most
 * lengths are refused, the first 2 as the number of bytes that follow the map,
 * and the rest as the map. Returns the status of this second reading. */
fuzz_target_t fuzz_safetensors;

/* Datasets: the bytes choose HDF5 files that are written (dataset_case.h), then
 * opened, digested and read. */
fuzz_target_t fuzz_dataset;

/* .cddp-index without its hash; the target appends the hash. Returns the status
 * of its sections. */
fuzz_target_t fuzz_index;

/* A file for cddp-data convert. The first byte chooses its format: 'n' npy, 'i'
 * IDX, 'c' CSV, 'z' npz, 'f' CIFAR-100, 'p' a picture. */
fuzz_target_t fuzz_import;

/* A stored chunk, and how it was stored: number of filters, kinds of filters
 * (filter_kind_t), size of a number minus 1, mask of the filters that were left
 * out, and two bytes for the decoded length; then the bytes of the chunk. */
fuzz_target_t fuzz_filter;

/* Abort unless [rc] is success, or a code in [allowed] (a list that ends with
 * ERR_OK) that [err] has with a message. */
void fuzz_check(err_code_t rc, const err_t *err, const err_code_t *allowed);

#endif
