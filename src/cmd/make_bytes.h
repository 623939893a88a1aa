/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * `cddp-data make bytes`: writes text files as streams of tokens, one per byte,
 * for data.sequence: DIR/train-NN.h5 and DIR/valid-00.h5 with /tokens uint8
 * [n].
 */
#ifndef CDDP_CMD_MAKE_BYTES_H
#define CDDP_CMD_MAKE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cmd_bytes_config {
    const char *directory;
    /* Files, and folders, which are searched with all folders below them.
     * Symbolic links in folders are not followed. */
    const char *const *paths;
    int path_count;
    int shards;        /* number of shards of train; valid has one */
    int valid_percent; /* percentage of the documents for validation, 1 to 99 */
    int64_t bytes_most; /* maximum bytes of all documents together */
    bool force;         /* replace existing shards */
} cmd_bytes_config_t;

typedef struct cmd_bytes_report {
    /* number of documents used; bytes of train and of valid */
    int64_t documents, train, valid;
    /* number of files that are not text, empty, or unreadable */
    int64_t skipped;
    int64_t repeated; /* number of files with the same content as another one */
} cmd_bytes_report_t;

/*
 * Write the files. A document is a file that has no control characters except
 * tab, line feed, vertical tab, form feed, carriage return and escape. A 0 byte
 * follows each document. A hash of its content decides the place of a document,
 * and whether it is for validation, so the same texts give the same files,
 * whatever folders they are in. ERR_DATA: too little text was found. ERR_USAGE:
 * shards exist already.
 */
err_code_t cmd_make_bytes(const cmd_bytes_config_t *config,
                          cmd_bytes_report_t *report, err_t *err);

#endif
