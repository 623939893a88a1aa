/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * An error has two parts: a code that a program acts on, and a message for
 * people. Every function that can fail returns the code. Its last argument is a
 * cddp_error_t * (NULL: no message wanted), which is filled on failure and
 * otherwise unchanged. Outputs are written on success only. The codes are exit
 * statuses: a program may return a code from main, and a batch job can decide
 * by it whether to requeue.
 */
#ifndef CDDP_ERROR_H
#define CDDP_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cddp_code {
    CDDP_OK = 0,
    CDDP_USAGE = 64,
    CDDP_DATA = 65,        /* bad data */
    CDDP_UNAVAILABLE = 69, /* a device or library is unavailable */
    CDDP_DIVERGED = 70,    /* no progress or divergence */
    CDDP_MEMORY = 71,
    CDDP_BUSY = 73,
    CDDP_IO = 74,
    CDDP_REQUEUE = 75,
    CDDP_PEER = 76, /* another rank failed */
    CDDP_CONFIG = 78
} cddp_code_t;

#define CDDP_HOST_MAX 64
#define CDDP_TEXT_MAX 1024

typedef struct cddp_error {
    cddp_code_t code;
    int culprit;              /* rank that failed (CDDP_PEER), else -1 */
    char host[CDDP_HOST_MAX]; /* host of that rank, "" if unknown */
    char text[CDDP_TEXT_MAX]; /* one sentence, no newline */
} cddp_error_t;

/* Short text for [code], such as "bad data"; never NULL. */
const char *cddp_code_text(cddp_code_t code);

/* Fill [error] (may be NULL) with [code] and the formatted sentence; returns
 * [code]. For errors of the program itself. */
cddp_code_t cddp_error_set(cddp_error_t *error, cddp_code_t code,
                           const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 3, 4)))
#endif
    ;

#ifdef __cplusplus
}
#endif
#endif
