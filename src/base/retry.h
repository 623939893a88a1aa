/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * retry: reading from storage that may be ill for a while (EIO, ESTALE,
 * ETIMEDOUT, EMFILE, ...). What the system refuses says nothing about the
 * content of a file, so it is no damage: the file is opened and read again, a
 * few times, and only then the reader gives up.
 *
 * Thread rule: a retry_t is read only; any thread may use it.
 */
#ifndef CDDP_BASE_RETRY_H
#define CDDP_BASE_RETRY_H

#include "base/err.h"

/* Tries after the first one. */
#define RETRY_TRIES 3

/* Part of fault.io_timeout that all waits between tries may take together: the
 * others lose patience with this rank only after the whole of it. */
#define RETRY_SHARE 0.25

/* What an error number of open, stat or read says about a file. */
typedef enum retry_cause {
    RETRY_ABSENT,    /* there is no such file: ENOENT, a directory in its place;
                        also 0 */
    RETRY_FORBIDDEN, /* EACCES, EPERM */
    RETRY_STORAGE    /* all else: the file may be good */
} retry_cause_t;

/* The cause of the system's error [number] (errno). */
retry_cause_t retry_cause(int number);

typedef struct retry {
    /* Seconds that all waits together take; they double from try to try. 0: try
     * again at once. Permissions seldom come back: for those at most 3. */
    double seconds;
    /* (optional) Called at least once a second during a wait, so that the
     * others do not take this rank for stuck. Default: nothing. */
    void (*alive)(void *context);
    /* (optional) Called instead of sleeping, for tests. Default: sleep. */
    void (*wait)(void *context, double seconds);
    void *context; /* of both */
} retry_t;

/*
 * One try: open, read, close. On failure it fills [err] and returns its code;
 * and where a system call failed, *number is the errno of that call. *number is
 * 0 when it is called. What it holds open from a try that failed it has closed.
 */
typedef err_code_t (*retry_attempt_t)(void *context, int *number, err_t *err);

/*
 * Call [attempt] with [context], and again up to RETRY_TRIES times after a
 * failure whose number is not RETRY_ABSENT; each of these is logged as a
 * warning. [path] is the file that is read. Blocks for the waits.
 *
 * Returns what the last try returned, but in the place of a failure of storage
 * ERR_IO with a sentence that says what was tried; of a refused permission
 * ERR_DATA that names the owner of the file or of the directory that hides it.
 * [cause] (NULL allowed) becomes the cause of the failure, so that a caller
 * tells damage (RETRY_ABSENT) from what is no damage; untouched on success.
 */
err_code_t retry_run(const retry_t *retry, const char *path,
                     retry_attempt_t attempt, void *context,
                     retry_cause_t *cause, err_t *err);

#endif
