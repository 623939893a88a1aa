/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/row.h"

#include <math.h>
#include <string.h>

#include "base/numeric.h"

#define STEP_MAX 1e12

/* Of a number: digits that 64 bits hold, and powers of ten that a double holds
 * exactly. */
#define DIGITS_MAX 18
#define POWER_MAX 22

/* What is still to be read. */
typedef struct scan {
    const char *at, *end;
} scan_t;

static void blanks_skip(scan_t *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t'))
        scan->at++;
}

/* Take [byte], after blanks. */
static bool byte_take(scan_t *scan, char byte)
{
    blanks_skip(scan);
    if (scan->at == scan->end || *scan->at != byte)
        return false;
    scan->at++;
    return true;
}

/* Take a string; [out] is what is between its quotes. */
static bool string_take(scan_t *scan, report_text_t *out)
{
    if (!byte_take(scan, '"'))
        return false;
    out->at = scan->at;
    for (; scan->at < scan->end; scan->at++) {
        if (*scan->at == '"') {
            out->length = (size_t)(scan->at++ - out->at);
            return true;
        }
        if ((unsigned char)*scan->at < ' ')
            return false;
        if (*scan->at == '\\')
            scan->at++;
    }
    return false;
}

static bool is_digit(const scan_t *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

/* The digits of a number, as one whole number times a power of ten. */
typedef struct decimal {
    uint64_t whole;
    int digits; /* without leading zeros */
    int power;
} decimal_t;

/* Take digits, of which each one shifts the point by [shift]. False: there is
 * none. */
static bool digits_take(scan_t *scan, decimal_t *out, int shift)
{
    const char *begin = scan->at;

    for (; is_digit(scan); scan->at++) {
        if (out->digits < DIGITS_MAX)
            out->whole = 10 * out->whole + (uint64_t)(*scan->at - '0');
        out->digits += out->whole != 0;
        out->power += shift;
    }
    return scan->at > begin;
}

static bool exponent_take(scan_t *scan, decimal_t *out)
{
    decimal_t power = {0};
    bool minus;

    if (scan->at == scan->end || (*scan->at != 'e' && *scan->at != 'E'))
        return true;
    scan->at++;
    minus = scan->at < scan->end && *scan->at == '-';
    if (scan->at < scan->end && (*scan->at == '-' || *scan->at == '+'))
        scan->at++;
    if (!digits_take(scan, &power, 0))
        return false;
    /* Larger ones are left to strtod; this one is large enough for that. */
    const int size = power.whole < 1000 ? (int)power.whole : 1000;

    out->power += minus ? -size : size;
    return true;
}

static double power_of_ten(int power)
{
    static const double powers[POWER_MAX + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    return powers[power];
}

/* The number of [text], which [decimal] describes. */
static double decimal_value(const char *text, const decimal_t *decimal)
{
    double value = (double)decimal->whole;

    if (decimal->digits > DIGITS_MAX || decimal->power > POWER_MAX ||
        decimal->power < -POWER_MAX)
        return numeric_parse(text, NULL);
    value = decimal->power < 0 ? value / power_of_ten(-decimal->power)
                               : value * power_of_ten(decimal->power);
    return *text == '-' ? -value : value;
}

/* Take a number as JSON allows it. */
static bool number_take(scan_t *scan, report_field_t *out)
{
    decimal_t decimal = {0};

    out->text.at = scan->at;
    if (*scan->at == '-')
        scan->at++;
    if (scan->end - scan->at > 1 && scan->at[0] == '0' && scan->at[1] >= '0' &&
        scan->at[1] <= '9')
        return false;
    if (!digits_take(scan, &decimal, 0))
        return false;
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        if (!digits_take(scan, &decimal, -1))
            return false;
    }
    if (!exponent_take(scan, &decimal))
        return false;
    out->text.length = (size_t)(scan->at - out->text.at);
    out->number = decimal_value(out->text.at, &decimal);
    out->kind = isfinite(out->number) ? REPORT_NUMBER : REPORT_OTHER;
    return true;
}

/* Take a list or an object, whose content is not looked at here. */
static bool nested_take(scan_t *scan)
{
    report_text_t text;
    int depth = 0;

    while (scan->at < scan->end) {
        if (*scan->at == '"') {
            if (!string_take(scan, &text))
                return false;
            continue;
        }
        depth += *scan->at == '{' || *scan->at == '[';
        depth -= *scan->at == '}' || *scan->at == ']';
        scan->at++;
        if (depth == 0)
            return true;
    }
    return false;
}

static bool word_take(scan_t *scan, const char *word)
{
    const size_t length = strlen(word);

    if ((size_t)(scan->end - scan->at) < length ||
        memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

static bool value_take(scan_t *scan, report_field_t *out)
{
    bool good;

    blanks_skip(scan);
    if (scan->at == scan->end)
        return false;
    out->kind = REPORT_OTHER;
    out->text.at = scan->at;
    switch (*scan->at) {
    case '"':
        out->kind = REPORT_TEXT;
        return string_take(scan, &out->text);
    case '{':
    case '[':
        good = nested_take(scan);
        break;
    case 'n':
        good = word_take(scan, "null");
        break;
    case 't':
        good = word_take(scan, "true");
        break;
    case 'f':
        good = word_take(scan, "false");
        break;
    default:
        return number_take(scan, out);
    }
    out->text.length = (size_t)(scan->at - out->text.at);
    return good;
}

bool report_row_parse(const char *line, size_t length, report_row_t *out)
{
    scan_t scan = {line, line + length};
    report_field_t spare;

    out->count = 0;
    if (!byte_take(&scan, '{'))
        return false;
    if (!byte_take(&scan, '}')) {
        do {
            const bool room = out->count < REPORT_FIELDS_MAX;
            report_field_t *field = room ? &out->fields[out->count] : &spare;

            if (!string_take(&scan, &field->key) || !byte_take(&scan, ':') ||
                !value_take(&scan, field))
                return false;
            out->count += room;
        } while (byte_take(&scan, ','));
        if (!byte_take(&scan, '}'))
            return false;
    }
    blanks_skip(&scan);
    return scan.at == scan.end;
}

/* ---- lists --------------------------------------------------------------- */

report_list_t report_list_of(report_text_t text)
{
    report_list_t list = {text.at, text.at + text.length, true};

    if (text.length >= 2 && text.at[0] == '[' && list.end[-1] == ']') {
        list.at++;
        list.end--;
        list.bad = false;
    }
    return list;
}

bool report_list_next(report_list_t *list, report_field_t *out)
{
    scan_t scan = {list->at, list->end};

    blanks_skip(&scan);
    if (list->bad || scan.at == scan.end)
        return false;
    list->bad = !value_take(&scan, out);
    blanks_skip(&scan);
    /* A comma must be followed by another element. */
    if (!list->bad && scan.at < scan.end) {
        list->bad = !byte_take(&scan, ',');
        blanks_skip(&scan);
        list->bad |= scan.at == scan.end;
    }
    list->at = scan.at;
    return !list->bad;
}

bool report_text_is(report_text_t text, const char *word)
{
    /* Most texts differ in their first byte. No text has a NUL. */
    return text.length > 0 && text.at[0] == word[0] &&
           strncmp(text.at, word, text.length) == 0 &&
           word[text.length] == '\0';
}

const report_field_t *report_row_find(const report_row_t *row, const char *key)
{
    for (int i = 0; i < row->count; i++)
        if (report_text_is(row->fields[i].key, key))
            return &row->fields[i];
    return NULL;
}

double report_row_number(const report_row_t *row, const char *key,
                         double missing)
{
    const report_field_t *field = report_row_find(row, key);

    return field != NULL && field->kind == REPORT_NUMBER ? field->number
                                                         : missing;
}

int64_t report_row_step(const report_row_t *row)
{
    const double step = report_row_number(row, "step", -1);

    return step >= 0 && step <= STEP_MAX ? (int64_t)step : -1;
}
