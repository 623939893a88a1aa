/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * row: one line of metrics.jsonl, a JSON object whose values are numbers or
 * texts. jansson, which builds a tree of each line, takes 7 s for 10^6 lines;
 * this reader allocates nothing and takes less than 1 s
 * (docs/benchmarks/libraries.md).
 */
#ifndef CDDP_REPORT_ROW_H
#define CDDP_REPORT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the line; no NUL at their end. Text of a JSON string stays as it is
 * written, with its backslashes. */
typedef struct report_text {
    const char *at;
    size_t length;
} report_text_t;

typedef enum report_kind {
    REPORT_NUMBER, /* finite */
    REPORT_TEXT,   /* [text] has no quotes */
    REPORT_OTHER   /* null, a truth value, a list, an object */
} report_kind_t;

typedef struct report_field {
    report_text_t key, text;
    report_kind_t kind;
    double number; /* REPORT_NUMBER; at most 2 units of the last place from the
                      nearest double */
} report_field_t;

/* Further fields of a row are left out. */
#define REPORT_FIELDS_MAX 192
typedef struct report_row {
    int count;
    report_field_t fields[REPORT_FIELDS_MAX];
} report_row_t;

/* Read the JSON object [line] of [length] bytes, behind which there is one more
 * byte that may be read. False: it is no object, or not valid JSON up to its
 * end (but the content of lists, objects and texts is not checked). Texts of
 * [out] point into [line]. A field that is an object is read by a further call.
 */
bool report_row_parse(const char *line, size_t length, report_row_t *out);

/* The field called [key]; NULL: there is none. */
const report_field_t *report_row_find(const report_row_t *row, const char *key);

/* The number called [key]; [missing] if there is none. */
double report_row_number(const report_row_t *row, const char *key,
                         double missing);

/* The step of the row; -1: it has none, or one that no run reaches (above
 * 10^12). */
int64_t report_row_step(const report_row_t *row);

/* A JSON list whose elements are read one by one. */
typedef struct report_list {
    const char *at, *end; /* what is still to be read */
    bool bad;             /* it is no list, or not valid JSON */
} report_list_t;

/* Begin to read the list [text], which is the text of a field of a row. */
report_list_t report_list_of(report_text_t text);

/* Read the next element to [out]; the key of [out] stays as it is. False: there
 * is no further element, or the list is bad. */
bool report_list_next(report_list_t *list, report_field_t *out);

/* Is [text] the [word], which is not empty? */
bool report_text_is(report_text_t text, const char *word);

#endif
