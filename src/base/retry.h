/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * retry: repeated reading from storage that may fail temporarily (EIO, ESTALE,
 * ETIMEDOUT, EMFILE, ...). Such a failure says nothing about the content of a
 * file, so it is not damage: the file is opened and read again a few times
 * before the reader fails.
 *
 * Thread rule: a retry_t is only read; any thread may use it.
 */
#ifndef CDDP_BASE_RETRY_H
#define CDDP_BASE_RETRY_H

#include "base/err.h"

/* Default number of tries after the first one. */
#define RETRY_TRIES 3
#define RETRY_TRIES_MOST 20

/* Maximum total wait between tries, as a part of fault.io_timeout: the other
 * ranks give up on this rank only after the whole timeout. */
#define RETRY_SHARE 0.25

/* What errno of open, stat or read says about a file. */
typedef enum retry_cause {
    RETRY_ABSENT, /* the file does not exist (ENOENT, a directory in its place,
                     ...); also errno 0 */
    RETRY_FORBIDDEN, /* EACCES, EPERM */
    RETRY_STORAGE    /* any other errno: the file may be intact */
} retry_cause_t;

/* The cause for errno [number]. */
retry_cause_t retry_cause(int number);

typedef struct retry {
    /* Tries after the first one, at most RETRY_TRIES_MOST; 0: RETRY_TRIES. */
    int tries;
    /* Total seconds of all waits, which double from try to try. 0: repeat at
     * once. At most 3 seconds for missing permissions, which seldom change. */
    double seconds;
    /* (optional) Called at least once per second during a wait, so that other
     * ranks do not take this rank for hanging. Default: nothing. */
    void (*alive)(void *context);
    /* (optional) Called instead of sleeping, for tests. Default: sleep. */
    void (*wait)(void *context, double seconds);
    void *context; /* for both callbacks */
} retry_t;

/*
 * One try: open, read, close. On failure it fills [err], returns its code, and
 * closes everything. If a system call failed, it sets *number to errno; *number
 * is 0 before the call.
 */
typedef err_code_t (*retry_attempt_t)(void *context, int *number, err_t *err);

/*
 * Call [attempt] with [context]; repeat it up to retry->tries times while it
 * fails with a cause other than RETRY_ABSENT. Each repetition is logged as a
 * warning. [path] is the file to read. Blocks during the waits.
 *
 * Returns the result of the last try, with two exceptions: a failure of storage
 * becomes ERR_IO with a sentence about the tries, and a missing permission
 * becomes ERR_DATA that names the owner of the file, or of the directory that
 * hides it. [cause] (may be NULL) receives the cause of a failure, so that
 * callers can distinguish damage (RETRY_ABSENT); it is unchanged on success.
 */
err_code_t retry_run(const retry_t *retry, const char *path,
                     retry_attempt_t attempt, void *context,
                     retry_cause_t *cause, err_t *err);

#endif
