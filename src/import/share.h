/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* share: several processes open equal sources, and each counts the samples of
 * some of the files. */
#ifndef CDDP_IMPORT_SHARE_H
#define CDDP_IMPORT_SHARE_H

#include <stdint.h>

#include "base/err.h"

typedef struct import_share {
    int part, parts; /* this process, and how many there are */
    /* All processes call gather the same number of times, with the same
     * [count], at most [parts]. Process p gives its number [mine], or the error
     * [rc] with its message in [err]; out[p] becomes the number of process p,
     * for p < count. Returns the outcome of all processes: if one of them has
     * an error, all get its code, and only one gets its message. */
    err_code_t (*gather)(void *context, int64_t mine, err_code_t rc,
                         int64_t *out, int count, err_t *err);
    void *context;
} import_share_t;

/* Count the samples of file [file] of a source. */
typedef err_code_t import_count_t(void *context, int file, int64_t *out,
                                  err_t *err);

/*
 * Set out[0 .. files - 1] to the numbers of samples of all files, by [count]
 * with [context]. If there are several processes ([share] is not NULL), each
 * counts some of the files, and all get all numbers. [rc]: what this process
 * found before, with its message in [err]. If this is an error, [out] may be
 * NULL, and the call fails in all processes. Returns the outcome of all
 * processes. Blocks until all processes call it.
 */
err_code_t import_share_count(const import_share_t *share, int files,
                              import_count_t *count, void *context,
                              err_code_t rc, int64_t *out, err_t *err);

#endif
