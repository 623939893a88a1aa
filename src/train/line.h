/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* line: reads and writes the file RUNDIR/local, and deletes the local
 * checkpoints of other lines. The first line of the file names the line of the
 * run (nodeset.h). The other lines are the places of local checkpoints
 * (places.h). All calls are local. */
#ifndef CDDP_TRAIN_LINE_H
#define CDDP_TRAIN_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What the file says. */
typedef struct train_line {
    uint64_t run, line; /* 0: there are none */
    uint64_t inode;     /* of the run directory; 0: an older file has none */
    char where[1000];   /* checkpoint.local; "": unknown */
} train_line_t;

/* Read the file in the run directory [dir]. Without a file, or with a file of
 * other content, all is 0. A file that was copied or restored with its
 * directory, or that cannot be read, counts as no file; with [says] this is
 * logged. */
train_line_t train_line_read(const char *dir, bool says);

/* The places in the file; "" if there is no file, or if the file counts as no
 * file. The caller frees the text. */
char *train_line_places(const char *dir);

/* Write the numbers of [line], the directory's inode, [where] and [places].
 * ERR_IO. */
err_code_t train_line_write(const char *dir, const train_line_t *line,
                            const char *where, const char *places, err_t *err);

/* Remove the file: then the next start finds no line. ERR_IO. */
err_code_t train_line_remove(const char *dir, err_t *err);

/* Delete the sets of all other lines of the run on this node. Each line of the
 * text [dirs] is a directory that may have sets. [host] is the node's name.
 * Returns whether none of these sets is left. Failures are logged. */
bool train_line_clean(const train_line_t *line, const char *dirs,
                      const char *host);

#endif
