/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * `cddp-data make ising`: simulate the Ising model, write shards
 * DIR/train-NN.h5 and DIR/valid-NN.h5 with /spins int8 [n,32,32] (+1, -1),
 * /phase int8 [n] (1: ordered), /temperature float32 [n].
 */
#ifndef CDDP_CMD_MAKE_ISING_H
#define CDDP_CMD_MAKE_ISING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cmd_ising_config {
    const char *directory;
    uint64_t seed;
    int64_t train, valid; /* samples, > 0 */
    int shards;           /* of train; valid has half as many, at least 1 */
    int threads;          /* changes nothing but the speed */
    bool force;           /* replace shards that are there */
} cmd_ising_config_t;

typedef struct cmd_ising_report {
    double energy_bound; /* accuracy of the best energy threshold on valid: no
                            classifier of this data can do better on average */
    double magnet_bound; /* accuracy of the best |magnetisation| threshold */
    int train_shards, valid_shards;
    int64_t bytes;
} cmd_ising_report_t;

/* Write the files. Shards that are there already are refused (ERR_USAGE), as a
 * mixture of old and new would be taken for one data set. */
err_code_t cmd_make_ising(const cmd_ising_config_t *config,
                          cmd_ising_report_t *report, err_t *err);

#endif
