/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * hello: the first exchange between ranks, through boot. It checks that all
 * ranks have the same run file and the same build, and finds the ranks that
 * share cores.
 */
#ifndef CDDP_TRAIN_HELLO_H
#define CDDP_TRAIN_HELLO_H

#include <stdint.h>

#include "boot/boot.h"
#include "train/config.h"

typedef struct train_hello {
    int local;   /* this rank's number among the ranks on its host, from 0 */
    int cores;   /* number of cores in this rank's affinity mask */
    int sharers; /* number of ranks on this host with the affinity mask of this
                    rank, this rank included */
} train_hello_t;

/*
 * Agree on build and configuration: ERR_CONFIG naming the ranks that differ.
 * Collective over [boot].
 */
err_code_t train_hello(boot_t *boot, uint64_t config_hash, uint64_t build_hash,
                       train_hello_t *out, err_t *err);

#endif
