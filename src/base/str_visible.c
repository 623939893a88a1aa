/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Names from files that others wrote are printed in sentences and tables on a
 * user's terminal. There control characters are commands: they may change
 * colours, overwrite text, or answer as if the user had typed. So all text for
 * people passes through here, where such bytes become visible.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define ESCAPED 4 /* length of an escape such as \x1b */

/* Length in bytes of the UTF-8 sequence at the start of [text]; 0: it is not
 * valid. Bytes after a NUL are not read. */
static size_t utf8_length(const unsigned char *text, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    uint32_t point = text[0] & (0xffU >> (length + 1));

    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (text[i] & 0x3fU);
    }
    if (point < least[length] || point > 0x10ffff ||
        (point >= 0xd800 && point < 0xe000))
        return 0;
    *out = point;
    return length;
}

/* Does a terminal act on this code point? These are C1 controls, line
 * separators, and marks that change the direction of writing. */
static bool point_acts(uint32_t point)
{
    return point < 0xa0 || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0x200e ||
           point == 0x200f || point == 0xfeff;
}

/* Number of bytes at [text] that may be shown unchanged; 0: the first byte may
 * not. */
static size_t shown_length(const char *text, bool lines)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t point;
    size_t length;

    if (bytes[0] == '\n' || bytes[0] == '\t')
        return lines ? 1 : 0;
    if (bytes[0] < 0x80)
        return bytes[0] >= 0x20 && bytes[0] != 0x7f ? 1 : 0;
    length = utf8_length(bytes, &point);
    return length > 0 && point_acts(point) ? 0 : length;
}

char *str_visible(const char *text, char *out, size_t room, bool lines)
{
    size_t used = 0;

    while (*text != '\0') {
        const size_t shown = shown_length(text, lines);
        const size_t need = shown > 0 ? shown : ESCAPED;

        if (used + need >= room)
            break;
        if (shown > 0)
            memcpy(out + used, text, shown);
        else
            snprintf(out + used, room - used, "\\x%02x", (unsigned char)*text);
        text += shown > 0 ? shown : 1;
        used += need;
    }
    if (room > 0)
        out[used] = '\0';
    return out;
}

char *str_visible_dup(const char *text)
{
    const size_t room = ESCAPED * strlen(text) + 1;
    char *out = malloc(room);

    if (out == NULL)
        abort();
    return str_visible(text, out, room, true);
}

void str_print(const char *format, ...)
{
    str_buf_t text = {0};
    char *shown;
    va_list args;

    va_start(args, format);
    str_buf_vadd(&text, format, args);
    va_end(args);
    if (text.text != NULL) {
        shown = str_visible_dup(text.text);
        fputs(shown, stdout);
        free(shown);
    }
    str_buf_free(&text);
}
