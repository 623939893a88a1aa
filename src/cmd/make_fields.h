/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * `cddp-data make fields`: draws densities in three dimensions (data_fields.h)
 * and writes shards DIR/train-NN.h5 and DIR/valid-NN.h5 with /density float32
 * [n, edge, edge, edge], /web uint8 [n, edge, edge, edge], /parameters float32
 * [n, 3], and /scaled float32 [n, 3]: the parameters, scaled to [-1, 1].
 */
#ifndef CDDP_CMD_MAKE_FIELDS_H
#define CDDP_CMD_MAKE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cmd_fields_config {
    const char *directory;
    uint64_t seed;
    int64_t train, valid; /* number of samples of each split, > 0 */
    int edge;             /* cells along an edge: a power of two, 4 to 256 */
    /* number of shards of train; valid has half as many, at least 1 */
    int shards;
    int threads; /* changes only the speed */
    bool force;  /* replace existing shards */
} cmd_fields_config_t;

typedef struct cmd_fields_report {
    /* accuracy on valid of always guessing the most frequent kind of cell */
    double web_guess;
    int train_shards, valid_shards;
    int64_t bytes;
} cmd_fields_report_t;

/* Write the files. ERR_USAGE if shards exist already and config->force is not
 * set. */
err_code_t cmd_make_fields(const cmd_fields_config_t *config,
                           cmd_fields_report_t *report, err_t *err);

#endif
