/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * numeric: numbers in text have a decimal point in every locale. cddp's own
 * programs stay in the "C" locale, but a program that uses libcddp may not:
 * then "0,25" in a manifest could not be read elsewhere, and parsing "0.25" in
 * a run file would stop at the point.
 *
 * Thread rule: any thread; the locale of other threads does not change.
 */
#ifndef CDDP_BASE_NUMERIC_H
#define CDDP_BASE_NUMERIC_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* numeric_begin puts the calling thread into the "C" locale, for calls of other
 * libraries that parse or print numbers. It returns the thread's locale, which
 * numeric_end restores. */
locale_t numeric_begin(void);
void numeric_end(locale_t before);

/* strtod, vsnprintf and snprintf in the "C" locale. */
double numeric_parse(const char *text, char **end);
int numeric_vprint(char *out, size_t room, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
int numeric_print(char *out, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For qsort: compare two doubles, so that the smallest number comes first. No
 * number may be NAN. */
int numeric_compare(const void *one, const void *two);

#endif
