/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The first word between ranks, while boot is open: has everybody read the same
 * run file with the same build, and who shares cores with whom?
 */
#ifndef CDDP_TRAIN_HELLO_H
#define CDDP_TRAIN_HELLO_H

#include <stdint.h>

#include "boot/boot.h"
#include "train/config.h"

typedef struct train_hello {
    int cores;   /* in this rank's affinity mask */
    int sharers; /* ranks on the same host with the same mask, this one too */
} train_hello_t;

/*
 * Agree on build and configuration: ERR_CONFIG naming the ranks that differ.
 * Collective over [boot].
 */
err_code_t train_hello(boot_t *boot, uint64_t config_hash, uint64_t build_hash,
                       train_hello_t *out, err_t *err);

#endif
