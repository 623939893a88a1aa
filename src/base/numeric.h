/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * numeric: numbers in texts have a point, whatever the locale of the program.
 * cddp's own programs never leave the "C" locale, but a program that uses
 * libcddp may: "0,25" in a manifest is read nowhere else, and "0.25" in a run
 * file would end at the point.
 *
 * Thread rule: any thread; the locale of others does not change.
 */
#ifndef CDDP_BASE_NUMERIC_H
#define CDDP_BASE_NUMERIC_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* From here to end the calling thread is in the "C" locale: around calls of
 * other libraries that read or print numbers. */
locale_t numeric_begin(void);
void numeric_end(locale_t before);

/* strtod, vsnprintf and snprintf in the "C" locale. */
double numeric_parse(const char *text, char **end);
int numeric_vprint(char *out, size_t room, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
int numeric_print(char *out, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
