/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An error has two parts: a code for the program, and one sentence for a human.
 * The code is also the exit status of the commands, so one table defines how a
 * job behaves under Slurm.
 *
 * Convention of the whole project: a function that can fail returns err_code_t
 * and has `err_t *err` as its last parameter. On success it returns ERR_OK and
 * does not touch *err. On failure it fills *err and returns the same code;
 * outputs are written only on success. The sentence is composed where the fault
 * is detected (what failed, which object, expected, found, how to mend it) and
 * printed once, by main.
 */
#ifndef CDDP_BASE_ERR_H
#define CDDP_BASE_ERR_H

#include <stdbool.h>

/* Maximum length of a sentence in bytes with NUL; longer ones are cut. */
#define ERR_TEXT_MAX 1024
#define ERR_HOST_MAX 64

/* name, exit status, requeue the job?, text for a human */
#define ERR_MAP(X)                                                  \
    X(OK, 0, false, "done")                                         \
    X(USAGE, 64, false, "wrong command line")                       \
    X(DATA, 65, false, "bad data")                                  \
    X(UNAVAILABLE, 69, false, "a device or library is unavailable") \
    X(DIVERGED, 70, false, "no progress or divergence")             \
    X(MEMORY, 71, false, "out of memory")                           \
    X(BUSY, 73, false, "the run directory is in use")               \
    X(IO, 74, true, "input or output failed")                       \
    X(REQUEUE, 75, true, "checkpointed, requeue me")                \
    X(PEER, 76, true, "a peer failed")                              \
    X(CONFIG, 78, false, "bad configuration")

typedef enum err_code {
#define ERR_ENUM(name, status, requeue, text) ERR_##name = (status),
    ERR_MAP(ERR_ENUM)
#undef ERR_ENUM
} err_code_t;

typedef struct err {
    err_code_t code;
    int culprit;             /* rank that failed (ERR_PEER), else -1 */
    char host[ERR_HOST_MAX]; /* its host, "" if unknown */
    char text[ERR_TEXT_MAX]; /* one sentence, no newline */
} err_t;

/* An err_t that holds no error. */
#define ERR_INIT                      \
    {                                 \
        .code = ERR_OK, .culprit = -1 \
    }

/*
 * Fill [err] (NULL: discard the sentence) with [code] and the formatted
 * sentence; the culprit becomes -1. Returns [code], for `return err_set(err,
 * ERR_DATA, "...")`.
 */
err_code_t err_set(err_t *err, err_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* err_set for ERR_PEER that names the rank [culprit] (-1: unknown) and its
 * [host] (may be NULL). Returns ERR_PEER. */
err_code_t err_set_peer(err_t *err, int culprit, const char *host,
                        const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Copy the error [from] to [err] (NULL: discard it). Returns its code. */
err_code_t err_copy(err_t *err, const err_t *from);

/* clang's analyzer sees one file at a time. Without these macros it would
 * assume that err_set may return ERR_OK. */
#ifdef __clang_analyzer__
#define err_set(err, code, ...) ((void)err_set(err, code, __VA_ARGS__), (code))
#define err_set_peer(...) ((void)err_set_peer(__VA_ARGS__), ERR_PEER)
#endif

/* Put "context: " before the sentence in [err], for a caller that knows the
 * object (a file, a layer). Returns err->code. */
err_code_t err_prefix(err_t *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append "; more" to the sentence, for a caller that knows the purpose of the
 * failed call. Returns err->code. */
err_code_t err_suffix(err_t *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text of [code] ("bad data"); never NULL. */
const char *err_code_text(err_code_t code);

/* Symbolic name of [code] ("DATA"); never NULL. */
const char *err_code_name(err_code_t code);

/* Should a job that ended with [code] be requeued? */
bool err_code_requeue(err_code_t code);

#endif
