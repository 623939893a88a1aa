/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/opt_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"

/* Larger bounds only protect a cast, so they are not shown. */
#define OPT_BOUND_FAR 1e9

typedef struct opt_suffix {
    const char *name;
    opt_unit_t unit;
    double factor;
} opt_suffix_t;

static const opt_suffix_t opt_suffixes[] = {
    {"ms", OPT_TIME, 1e-3},    {"s", OPT_TIME, 1},
    {"min", OPT_TIME, 60},     {"h", OPT_TIME, 3600},
    {"d", OPT_TIME, 86400},    {"step", OPT_STEPS, 1},
    {"steps", OPT_STEPS, 1},   {"epoch", OPT_EPOCHS, 1},
    {"epochs", OPT_EPOCHS, 1},
};

bool opt_value_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"true", "yes", "on"};
    static const char *const no[] = {"false", "no", "off"};
    int i;

    for (i = 0; i < 3; i++) {
        if (strcmp(text, yes[i]) != 0 && strcmp(text, no[i]) != 0)
            continue;
        *out = strcmp(text, yes[i]) == 0;
        return true;
    }
    return false;
}

/* Split "10 min" or "10min" into number and suffix. */
static bool opt_value_split(const char *text, double *number,
                            const char **suffix)
{
    double value;
    char *end;

    value = numeric_parse(text, &end);
    /* Refuse "inf", "nan", hexadecimal numbers and leading spaces, as in
     * str_to_real. */
    if (end == text || !isfinite(value) ||
        strspn(text, "+-.0123456789eE") < (size_t)(end - text))
        return false;
    *number = value;
    *suffix = end + strspn(end, " ");
    return true;
}

static const opt_suffix_t *opt_value_suffix(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof opt_suffixes / sizeof opt_suffixes[0]; i++)
        if (strcmp(opt_suffixes[i].name, name) == 0)
            return &opt_suffixes[i];
    return NULL;
}

bool opt_value_seconds(const char *text, double *out)
{
    const opt_suffix_t *suffix;
    const char *name;
    double number;

    if (str_to_real(text, out))
        return true;
    if (!opt_value_split(text, &number, &name))
        return false;
    suffix = opt_value_suffix(name);
    if (suffix == NULL || suffix->unit != OPT_TIME)
        return false;
    *out = number * suffix->factor;
    return true;
}

bool opt_value_every(const char *text, opt_every_t *out)
{
    const opt_suffix_t *suffix;
    const char *name;
    double number;

    if (strcmp(text, "never") == 0) {
        *out = (opt_every_t){.unit = OPT_NEVER};
        return true;
    }
    if (!opt_value_split(text, &number, &name) || !(number > 0))
        return false;
    suffix = opt_value_suffix(name);
    if (suffix == NULL)
        return false;
    /* Fractions of a step do not exist, and evaluation needs the end of an
     * epoch. */
    if (suffix->unit != OPT_TIME && number != floor(number))
        return false;
    *out = (opt_every_t){suffix->unit, number * suffix->factor};
    return true;
}

void opt_value_print_real(double value, str_buf_t *out)
{
    char text[40];
    int digits;

    for (digits = 15; digits <= 17; digits++) { /* 600, not 6e+02 */
        numeric_print(text, sizeof text, "%.*g", digits, value);
        if (numeric_parse(text, NULL) == value)
            break;
    }
    str_buf_add(out, "%s%s", text,
                text[strcspn(text, ".en")] == '\0' ? ".0" : "");
}

void opt_value_print_every(opt_every_t every, str_buf_t *out)
{
    switch (every.unit) {
    case OPT_NEVER:
        str_buf_add(out, "never");
        break;
    case OPT_STEPS:
        str_buf_add(out, "%.0f step%s", every.value,
                    every.value == 1 ? "" : "s");
        break;
    case OPT_EPOCHS:
        str_buf_add(out, "%.0f epoch%s", every.value,
                    every.value == 1 ? "" : "s");
        break;
    case OPT_TIME:
        opt_value_print_real(every.value, out);
        str_buf_add(out, " s");
        break;
    }
}

void opt_value_describe(const opt_row_t *row, str_buf_t *out)
{
    static const char *const words[] = {
        [OPT_BOOL] = "true or false",
        [OPT_INT] = "an integer",
        [OPT_REAL] = "a number",
        [OPT_TEXT] = "a text",
        [OPT_CHOICE] = "one of",
        [OPT_SECONDS] = "a time such as '60 s', '10 min' or '2 h'",
        [OPT_EVERY] = ("an interval such as '1 epoch', '100 steps', "
                       "'10 min' or 'never'"),
        [OPT_INTS] = "an integer or a list of integers",
        [OPT_REALS] = "a number or a list of numbers",
        [OPT_TEXTS] = "a text or a list of texts",
        [OPT_TREE] = "a value",
        [OPT_SECTION] = "a map",
        [OPT_MAP] = "a map, or a map of names to such",
    };
    const char *const *choice;

    if (row->type == OPT_INTS && row->choices != NULL)
        for (choice = row->choices; *choice != NULL; choice++)
            str_buf_add(out, "%s, ", *choice);
    str_buf_add(out, "%s", words[row->type]);
    if (row->type == OPT_CHOICE)
        for (choice = row->choices; *choice != NULL; choice++)
            str_buf_add(out, "%s %s", choice == row->choices ? "" : ",",
                        *choice);
}

bool opt_value_bounded(const opt_row_t *row)
{
    return row->min != 0 || row->max != 0;
}

bool opt_value_inside(const opt_row_t *row, double value)
{
    return !opt_value_bounded(row) || (value >= row->min && value <= row->max);
}

void opt_value_describe_bounds(const opt_row_t *row, double found,
                               str_buf_t *out)
{
    const bool max_far = row->max >= OPT_BOUND_FAR && !(found > row->max);
    const bool min_far = row->min <= -OPT_BOUND_FAR && !(found < row->min);

    if (max_far && !min_far)
        str_buf_add(out, "at least %.15g", row->min);
    else if (min_far && !max_far)
        str_buf_add(out, "at most %.15g", row->max);
    else
        str_buf_add(out, "%.15g to %.15g", row->min, row->max);
    if (row->type == OPT_SECONDS)
        str_buf_add(out, " s");
    else if (row->unit != NULL)
        str_buf_add(out, " %s", row->unit);
}
