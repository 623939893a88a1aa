/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Errors have two halves: a code that the program acts on, and one sentence for
 * a human. The code is also the exit status of the commands, so one table says
 * how a job behaves under Slurm.
 *
 * Convention for the whole project: a function that can fail returns
 * err_code_t and takes `err_t *err` as its last parameter. It returns ERR_OK
 * and leaves *err untouched, or it fills *err and returns the same code.
 * Outputs are written only on success. The sentence is composed where the fault
 * is detected (what, which object, expected, found, how to mend) and printed
 * once, by main.
 */
#ifndef CDDP_BASE_ERR_H
#define CDDP_BASE_ERR_H

#include <stdbool.h>

/* Longest sentence kept, in bytes with the NUL; longer ones are cut. */
#define ERR_TEXT_MAX 1024
#define ERR_HOST_MAX 64

/* name, exit status, should the job be requeued?, text for a human */
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
 * Fill [err] (may be NULL: the sentence is dropped) with [code] and the
 * formatted sentence; the culprit becomes -1. Returns [code], so that
 * `return err_set(err, ERR_DATA, "...")` reads naturally.
 */
err_code_t err_set(err_t *err, err_code_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for ERR_PEER, naming the [culprit] rank (-1: unknown) and its
 * [host] (may be NULL). Returns ERR_PEER. */
err_code_t err_set_peer(err_t *err, int culprit, const char *host,
                        const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The analyzer of clang sees one file at a time and would follow the path on
 * which an error is no error. */
#ifdef __clang_analyzer__
#define err_set(err, code, ...) ((void)err_set(err, code, __VA_ARGS__), (code))
#define err_set_peer(...) ((void)err_set_peer(__VA_ARGS__), ERR_PEER)
#endif

/* Put "context: " in front of the sentence that [err] holds; for a caller that
 * knows the object (a file, a layer). Returns err->code. */
err_code_t err_prefix(err_t *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Put "; more" behind it; for a caller that knows what it was in aid of.
 * Returns err->code. */
err_code_t err_suffix(err_t *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text of [code] ("bad data"); never NULL. */
const char *err_code_text(err_code_t code);

/* Symbolic name of [code] ("DATA"); never NULL. */
const char *err_code_name(err_code_t code);

/* Should a job that ended with [code] be requeued? */
bool err_code_requeue(err_code_t code);

#endif
