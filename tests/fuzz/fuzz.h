/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What is fuzzed. Each target takes any bytes as the content of one kind of
 * file, gives them to the code that reads such files, and checks what must hold
 * for every input: the code returns a documented status with a sentence, and
 * what was accepted is the same after it is printed and read again. A target
 * ends the process (abort, or a sanitizer's report) if that does not hold.
 *
 * `make fuzz` links each target with libFuzzer; tests/fuzz/test_flips runs the
 * same functions on damaged copies of good files in `make check`.
 */
#ifndef CDDP_TESTS_FUZZ_FUZZ_H
#define CDDP_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The status that the reader returned for the [bytes] bytes at [data]. */
typedef err_code_t fuzz_target_t(const uint8_t *data, size_t bytes);

/* A run file: YAML, option tables, and the graph of the model. */
fuzz_target_t fuzz_run_file;

/* MANIFEST.json of a checkpoint. The hash at its end is made right first, as
 * otherwise no input would come further than that. */
fuzz_target_t fuzz_manifest;

/* Datasets: the bytes choose what HDF5 files a writer makes (dataset_case.h),
 * which are then opened, digested and read. */
fuzz_target_t fuzz_dataset;

/* Abort unless [err] is a complete answer for status [rc]: success, or a code
 * of [allowed] (ended by ERR_OK) and one sentence. */
void fuzz_check(err_code_t rc, const err_t *err, const err_code_t *allowed);

#endif
