/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The request of the target `dataset` for a case, and the expected result. */
#ifndef CDDP_TESTS_FUZZ_DATASET_TARGET_H
#define CDDP_TESTS_FUZZ_DATASET_TARGET_H

#include "fuzz/dataset_case.h"
#include "hdf5io/dataset.h"

#define TARGET_FIELDS 2

/* One case: its files, the requested fields, and the expected result. */
typedef struct target {
    case_bytes_t bytes;
    case_model_t model;
    char *paths[CASE_FILES];
    opt_texts_t shards;
    hdf5io_field_t fields[TARGET_FIELDS];
    hdf5io_dataset_config_t config;
    int sets[CASE_FILES]
            [TARGET_FIELDS]; /* dataset of each shard and field; -1: none */
    uint64_t rows;           /* samples of all shards */
    case_verdict_t verdict;
    const char *why; /* why it must be refused, or NULL */
} target_t;

/* Fill [sets], [rows], [verdict] and [why] by the rules of docs/FORMATS.md. */
void fuzz_dataset_judge(target_t *target);

#endif
