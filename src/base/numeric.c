/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/numeric.h"

#include <stdio.h>
#include <stdlib.h>

/* The C library keeps this locale ready: nothing is allocated, and nothing must
 * be freed. */
locale_t numeric_begin(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void numeric_end(locale_t before)
{
    uselocale(before);
}

double numeric_parse(const char *text, char **end)
{
    const locale_t before = numeric_begin();
    const double value = strtod(text, end);

    numeric_end(before);
    return value;
}

int numeric_vprint(char *out, size_t room, const char *format, va_list args)
{
    const locale_t before = numeric_begin();
    const int length = vsnprintf(out, room, format, args);

    numeric_end(before);
    return length;
}

int numeric_print(char *out, size_t room, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = numeric_vprint(out, room, format, args);
    va_end(args);
    return length;
}

int numeric_compare(const void *one, const void *two)
{
    const double x = *(const double *)one, y = *(const double *)two;

    return (x > y) - (x < y);
}
