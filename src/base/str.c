/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/numeric.h"

/* Longest name that str_nearest compares; option names are shorter. */
#define STR_NAME_MAX 63

static void str_buf_reserve(str_buf_t *buf, size_t more)
{
    size_t room = buf->room == 0 ? 64 : buf->room;

    while (room - buf->length <= more) {
        if (room > SIZE_MAX / 2)
            abort();
        room *= 2;
    }
    if (room == buf->room)
        return;
    buf->text = realloc(buf->text, room);
    if (buf->text == NULL)
        abort();
    buf->room = room;
}

void str_buf_vadd(str_buf_t *buf, const char *format, va_list args)
{
    va_list again;
    int length;

    va_copy(again, args);
    length = numeric_vprint(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        abort();
    str_buf_reserve(buf, (size_t)length);
    numeric_vprint(buf->text + buf->length, buf->room - buf->length, format,
                   args);
    buf->length += (size_t)length;
    check(buf->length < buf->room, "%zu bytes in a buffer of %zu", buf->length,
          buf->room);
}

void str_buf_add(str_buf_t *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    str_buf_vadd(buf, format, args);
    va_end(args);
}

void str_buf_free(str_buf_t *buf)
{
    free(buf->text);
    *buf = (str_buf_t){0};
}

char *str_dup(const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL)
        abort();
    return copy;
}

char *str_printf(const char *format, ...)
{
    str_buf_t buf = {0};
    va_list args;

    va_start(args, format);
    str_buf_vadd(&buf, format, args);
    va_end(args);
    return buf.text;
}

bool str_to_int(const char *text, int64_t *out)
{
    long long value;
    char *end;

    if (text[0] == '\0' || isspace((unsigned char)text[0]))
        return false;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return false;
    *out = value;
    return true;
}

bool str_to_real(const char *text, double *out)
{
    double value;
    char *end;

    /* Only decimal digits: strtod would accept "inf", "nan" and hexadecimal
     * numbers, too. */
    if (text[strspn(text, "+-.0123456789eE")] != '\0')
        return false;
    value = numeric_parse(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return false;
    *out = value;
    return true;
}

static size_t str_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance: insert, delete, replace, swap
 * neighbours. */
static size_t str_distance(const char *a, const char *b)
{
    size_t rows[3][STR_NAME_MAX + 1];
    size_t m = strlen(a), n = strlen(b), i, j, best;
    size_t *before = rows[0], *above = rows[1], *row = rows[2], *spare;

    for (j = 0; j <= n; j++)
        row[j] = j;
    for (i = 1; i <= m; i++) {
        spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = i;
        for (j = 1; j <= n; j++) {
            best = str_min(above[j], row[j - 1]) + 1;
            best = str_min(best, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = str_min(best, before[j - 2] + 1);
            row[j] = best;
        }
    }
    return row[n];
}

const char *str_nearest(const char *name, const char *const *names)
{
    size_t length = strlen(name), least = length / 4 + 2, distance;
    const char *found = NULL;

    if (length > STR_NAME_MAX)
        return NULL;
    for (; *names != NULL; names++) {
        if (strlen(*names) > STR_NAME_MAX)
            continue;
        distance = str_distance(name, *names);
        if (distance < least) {
            least = distance;
            found = *names;
        }
    }
    return found;
}

char *str_bytes(uint64_t bytes, char *out, size_t room)
{
    static const char *const units[] = {"KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
    double value = (double)bytes / 1024.0;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(out, room, "%" PRIu64 " B", bytes);
        return out;
    }
    /* 1023.95 would print as 1024.0 */
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit++;
    }
    numeric_print(out, room, "%.1f %s", value, units[unit]);
    return out;
}

char *str_count(uint64_t count, char *out, size_t room)
{
    char digits[24], text[32];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    int from, to = 0;

    for (from = 0; from < length; from++) {
        if (from > 0 && (length - from) % 3 == 0)
            text[to++] = ',';
        text[to++] = digits[from];
    }
    text[to] = '\0';
    snprintf(out, room, "%s", text);
    return out;
}
