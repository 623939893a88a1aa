/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * `cddp-data make ising`: simulates the Ising model and writes shards
 * DIR/train-NN.h5 and DIR/valid-NN.h5 with /spins int8 [n, 32, 32] (+1, -1),
 * /phase int8 [n] (1: ordered), /temperature float32 [n], and /energy float32
 * [n] (per site).
 */
#ifndef CDDP_CMD_MAKE_ISING_H
#define CDDP_CMD_MAKE_ISING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cmd_ising_config {
    const char *directory;
    uint64_t seed;
    int64_t train, valid; /* number of samples of each split, > 0 */
    /* number of shards of train; valid has half as many, at least 1 */
    int shards;
    int threads; /* changes only the speed */
    bool force;  /* replace existing shards */
} cmd_ising_config_t;

typedef struct cmd_ising_report {
    /* accuracy of the best energy threshold on valid; on average no classifier
     * of this data is better */
    double energy_bound;
    /* accuracy of the best |magnetisation| threshold on valid */
    double magnet_bound;
    int train_shards, valid_shards;
    int64_t bytes;
} cmd_ising_report_t;

/* Write the files. ERR_USAGE if shards exist already and config->force is not
 * set: old and new shards together would count as one data set. */
err_code_t cmd_make_ising(const cmd_ising_config_t *config,
                          cmd_ising_report_t *report, err_t *err);

#endif
