/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * `cddp-data make fields`: densities in three dimensions (data_fields.h), as
 * shards DIR/train-NN.h5 and DIR/valid-NN.h5 with /density float32 and /web
 * uint8 [n, edge, edge, edge], /parameters float32 [n, 3] and the same scaled
 * to [-1, 1], /scaled.
 */
#ifndef CDDP_CMD_MAKE_FIELDS_H
#define CDDP_CMD_MAKE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cmd_fields_config {
    const char *directory;
    uint64_t seed;
    int64_t train, valid; /* samples, > 0 */
    int edge;             /* cells: a power of two, from 4 on */
    int shards;           /* of train; valid has half as many, at least 1 */
    int threads;          /* changes nothing but the speed */
    bool force;           /* replace shards that are there */
} cmd_fields_config_t;

typedef struct cmd_fields_report {
    double web_guess; /* accuracy on valid of always the most frequent kind */
    int train_shards, valid_shards;
    int64_t bytes;
} cmd_fields_report_t;

/* Write the files. Shards that are there already are refused (ERR_USAGE). */
err_code_t cmd_make_fields(const cmd_fields_config_t *config,
                           cmd_fields_report_t *report, err_t *err);

#endif
