/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Strings: a growing buffer, and the few helpers that everybody needs. Running
 * out of memory in these small allocations ends the process (abort), as every
 * caller would otherwise only do the same. */
#ifndef CDDP_BASE_STR_H
#define CDDP_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing string; zero-initialise ({0}) before use, str_buf_free after. */
typedef struct str_buf {
    char *text; /* NUL-terminated once anything was added, else NULL */
    size_t length;
    size_t room;
} str_buf_t;

void str_buf_add(str_buf_t *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void str_buf_vadd(str_buf_t *buf, const char *format, va_list args);
void str_buf_free(str_buf_t *buf);

/* Copies, to be freed with free(). */
char *str_dup(const char *text);
char *str_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parse the whole of [text] as a number; false if it is not one. */
bool str_to_int(const char *text, int64_t *out);
bool str_to_real(const char *text, double *out);

/* The member of [names] (a NULL-terminated list) nearest to [name] by edit
 * distance (Damerau-Levenshtein, optimal string alignment), or NULL if none is
 * near enough to be a likely typo (distance <= 1 + length / 4). */
const char *str_nearest(const char *name, const char *const *names);

/* "1.5 MiB" from bytes, "1,234,567" from a count; written to [out] of [room]
 * bytes, which is returned. */
char *str_bytes(uint64_t bytes, char *out, size_t room);
char *str_count(uint64_t count, char *out, size_t room);

/*
 * [text] for a terminal, which is to act on nothing that a file's author wrote:
 * control characters (C0, DEL, C1), marks that turn the direction of writing
 * and bytes that are no UTF-8 are shown as \x1b; with [lines], \n and \t stay.
 * Shown once, a text is not changed by being shown again. Written to [out] of
 * [room] bytes, cut where it does not fit; the result is [out]. The second form
 * keeps \n and \t and allocates; free() it.
 */
char *str_visible(const char *text, char *out, size_t room, bool lines);
char *str_visible_dup(const char *text);

/* printf on standard output of text in which a name may stand that a file or a
 * run file brought: shown as by str_visible_dup. */
void str_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
