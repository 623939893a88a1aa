/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * `cddp-data make bytes`: text files as streams of tokens, one a byte, for
 * data.sequence: DIR/train-NN.h5 and DIR/valid-00.h5 with /tokens uint8 [n].
 */
#ifndef CDDP_CMD_MAKE_BYTES_H
#define CDDP_CMD_MAKE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cmd_bytes_config {
    const char *directory;
    const char *const *paths; /* files, and folders with all below; a link that
                                 is found in a folder is not followed */
    int path_count;
    int shards;         /* of train; valid has one */
    int valid_percent;  /* of the documents, 1 to 99 */
    int64_t bytes_most; /* of all documents together */
    bool force;         /* replace shards that are there */
} cmd_bytes_config_t;

typedef struct cmd_bytes_report {
    int64_t documents, train, valid; /* used; bytes of each split */
    int64_t skipped;                 /* not text, empty, or unreadable */
    int64_t repeated;                /* same content as another file */
} cmd_bytes_report_t;

/*
 * Write the files. A document is a file without control characters other than
 * tabs, escapes, and ends of lines and pages; a 0 byte follows each document. A
 * hash of the content decides the order of documents, and which are for
 * validation: so the same texts give the same files, in whatever folders they
 * are. ERR_DATA: no text was found, or too little; ERR_USAGE: there are shards
 * already.
 */
err_code_t cmd_make_bytes(const cmd_bytes_config_t *config,
                          cmd_bytes_report_t *report, err_t *err);

#endif
