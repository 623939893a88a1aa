/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Strings: a growing buffer and common helpers. If these small allocations
 * fail, the process aborts, since every caller would have to end it anyway. */
#ifndef CDDP_BASE_STR_H
#define CDDP_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing string. Initialize it with {0}; str_buf_free frees the text and
 * makes it {0} again. */
typedef struct str_buf {
    char *text; /* NULL until the first addition, then NUL-terminated */
    size_t length;
    size_t room;
} str_buf_t;

/* Append formatted text; numbers have a decimal point in every locale. */
void str_buf_add(str_buf_t *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void str_buf_vadd(str_buf_t *buf, const char *format, va_list args);
void str_buf_free(str_buf_t *buf);

/* Return a copy, or formatted text, to be freed with free(). */
char *str_dup(const char *text);
char *str_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parse all of [text] as a decimal number. False, and *out is unchanged, if it
 * is anything else ("nan", "inf" and "0x10" too) or out of range. */
bool str_to_int(const char *text, int64_t *out);
bool str_to_real(const char *text, double *out);

/* The member of [names] (ends with NULL) nearest to [name] by edit distance
 * (Damerau-Levenshtein, optimal string alignment); NULL if none is a likely
 * typo (distance <= 1 + length / 4). */
const char *str_nearest(const char *name, const char *const *names);

/* Write bytes as "1.5 MiB", or a count as "1,234,567", to [out] of [room]
 * bytes; return [out]. */
char *str_bytes(uint64_t bytes, char *out, size_t room);
char *str_count(uint64_t count, char *out, size_t room);

/*
 * Make [text] safe for a terminal: control characters (C0, DEL, C1), marks that
 * change the direction of writing, and bytes that are not UTF-8 are shown as
 * \x1b. With [lines], \n and \t are kept. Applying it again changes nothing.
 * The result is written to [out] of [room] bytes, cut if it does not fit;
 * returns [out]. str_visible_dup keeps \n and \t and allocates; the caller
 * frees.
 */
char *str_visible(const char *text, char *out, size_t room, bool lines);
char *str_visible_dup(const char *text);

/* printf to standard output for text that may contain names from files; made
 * safe as by str_visible_dup. */
void str_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
