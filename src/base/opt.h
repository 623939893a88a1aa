/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Option tables. One row describes an option completely: it is used to read the
 * run file and `--set`, and to print the resolved configuration, the help and
 * docs/CONFIG.md. Unknown or duplicate keys are errors that give the place and
 * the nearest known name. A table ends with a row whose name is NULL.
 */
#ifndef CDDP_BASE_OPT_H
#define CDDP_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/tree.h"

typedef enum opt_type {
    OPT_BOOL,    /* bool */
    OPT_INT,     /* int64_t */
    OPT_REAL,    /* double */
    OPT_TEXT,    /* char *, owned by the target */
    OPT_CHOICE,  /* int: index into choices */
    OPT_SECONDS, /* double: "60 s", "10 min", "2 h"; a bare number is seconds */
    OPT_EVERY,   /* opt_every_t: "1 epoch", "100 steps", "10 min", "never" */
    /* opt_ints_t: a list of integers, or a single one; if the row has choices,
     * also one of these words */
    OPT_INTS,
    OPT_REALS, /* opt_reals_t: a list of numbers, or a single one */
    OPT_TEXTS, /* opt_texts_t: a list of texts, or a single one */
    OPT_TREE, /* const tree_t *: the sub-tree itself (not owned), of any kind */
    /* a struct inside the target, described by [rows]; if absent, its defaults
     * (fallback is not used) */
    OPT_SECTION,
    OPT_MAP /* opt_map_t: one section, or a map from names to sections */
} opt_type_t;

typedef enum opt_unit { OPT_NEVER, OPT_STEPS, OPT_EPOCHS, OPT_TIME } opt_unit_t;

typedef struct opt_every {
    opt_unit_t unit;
    double value; /* steps, epochs, or seconds */
} opt_every_t;

#define OPT_LIST_MAX 16

typedef struct opt_ints {
    int count; /* < 0: the word choices[-1 - count] instead of numbers */
    int64_t items[OPT_LIST_MAX];
} opt_ints_t;

typedef struct opt_reals {
    int count;
    double *items; /* owned by the target */
} opt_reals_t;

typedef struct opt_texts {
    int count;
    char **items; /* owned by the target */
} opt_texts_t;

#define OPT_MAP_MAX 8

/* Sections with names, written as a map of maps; otherwise a single section
 * without a name. */
typedef struct opt_map {
    int count;                /* at least 1 */
    char *names[OPT_MAP_MAX]; /* owned by the target; NULL: without name */
    tree_place_t places[OPT_MAP_MAX]; /* of the names, or of the single section;
                                         file NULL: absent */
    void *items; /* [count] structs of the row's size; owned by the target */
} opt_map_t;

typedef struct opt_row {
    const char *name;
    opt_type_t type;
    size_t offset; /* of the field in the target struct, in bytes */
    /* Default as written in a run file, where flow lists are allowed: "[1, 2]".
     * NULL: the option is required. An optional OPT_TREE has "": its field is
     * NULL without it. In a run file `key:` (null) counts as absent. */
    const char *fallback;
    /* bounds of INT, REAL, SECONDS, each of INTS and of REALS; both 0: none */
    double min, max;
    const char *unit; /* "samples", "MiB", NULL */
    /* for OPT_CHOICE; optional for OPT_INTS; ends with NULL */
    const char *const *choices;
    const struct opt_row *rows; /* OPT_SECTION, OPT_MAP */
    size_t size;                /* OPT_MAP: bytes of a section's struct */
    bool free; /* may differ after a resume: resources, files, output */
    const char *former; /* the default of earlier versions, NULL: the same */
    const char *help;   /* one sentence without full stop */
} opt_row_t;

/*
 * Fill [target] from the map [tree] (NULL: all defaults) by [rows]. Errors are
 * ERR_CONFIG and start with file:line:column and the dotted key under [path]
 * (such as "train" or "model.layers[3].conv"; "" at the root). On failure
 * nothing stays allocated in [target], and its fields are unspecified.
 */
err_code_t opt_fill(const opt_row_t *rows, const tree_t *tree, const char *path,
                    void *target, err_t *err);

/* Free what opt_fill allocated in [target]. */
void opt_free(const opt_row_t *rows, void *target);

/* Print the values in [target] as YAML, indented by [indent] spaces: the
 * resolved configuration. Reading it gives the same values. */
void opt_print(const opt_row_t *rows, const void *target, int indent,
               str_buf_t *out);

/* Is [value], of an OPT_MAP, a map of names to sections? Otherwise it is one
 * section without a name. NULL is allowed. */
bool opt_map_is_named(const tree_t *value);

/* Does the field of [row] in [target] have its default value? Always false for
 * sections, maps and required options. */
bool opt_is_default(const opt_row_t *row, const void *target);

/* Print [rows] as a Markdown table (name, type, default, bounds, unit, help),
 * followed by a table for each section with the heading [title].name (name if
 * [title] is "", the root). */
void opt_document(const opt_row_t *rows, const char *title, str_buf_t *out);

#endif
