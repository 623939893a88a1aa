/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/numeric.h"
#include "comm/comm_split.h"

/* The median of so many broadcasts counts: a link may take the first ones in a
 * burst, and others may meet a busy core. */
#define TRIES 5

/* Measure this rank's turn, or take part in that of [root]. */
static err_code_t turn_make(comm_group_t *across, int root, double *seconds,
                            err_t *err)
{
    char message[TRAIN_LINKS_BYTES] = {0};
    double tries[TRIES] = {0};
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < TRIES; i++) {
        const double begin = clock_now();

        rc = comm_broadcast(across, message, sizeof message, root, err);
        tries[i] = clock_now() - begin;
    }
    qsort(tries, TRIES, sizeof *tries, numeric_compare);
    *seconds = tries[TRIES / 2];
    return rc;
}

static err_code_t turns_make(comm_group_t *across, double *seconds, err_t *err)
{
    double mine = 0, found;
    err_code_t rc = ERR_OK;

    for (int h = 0; rc == ERR_OK && h < comm_group_size(across); h++) {
        rc = turn_make(across, h, &found, err);
        if (h == comm_group_rank(across))
            mine = found;
    }
    if (rc == ERR_OK)
        rc = comm_allgather(across, &mine, sizeof mine, seconds, err);
    for (int h = 0; rc == ERR_OK && h < comm_group_size(across); h++)
        if (comm_group_rank(across) == 0)
            log_debug("train", "messages from %s take %.3f ms",
                      comm_group_host(across, h), 1e3 * seconds[h]);
    return rc;
}

err_code_t train_links_measure(comm_group_t *group, const int *leads, int count,
                               double *seconds, err_t *err)
{
    comm_group_t *across = NULL;
    const double begin = clock_now();
    bool lead = false;
    err_code_t rc;

    for (int h = 0; h < count; h++)
        lead = lead || leads[h] == comm_group_rank(group);
    memset(seconds, 0, (size_t)count * sizeof *seconds);
    rc = comm_split_open(group, leads, lead ? count : 0, &across, err);
    if (rc != ERR_OK && rc != ERR_PEER) {
        log_warn("train", "links between hosts are not measured: %s",
                 err->text);
        *err = (err_t)ERR_INIT;
        rc = ERR_OK;
    } else if (rc == ERR_OK && across != NULL) {
        rc = turns_make(across, seconds, err);
    }
    comm_group_close(across);
    log_debug("train", "links were measured in %.1f ms",
              1e3 * (clock_now() - begin));
    return rc;
}
