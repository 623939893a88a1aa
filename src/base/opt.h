/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Option tables. One row says everything about an option; the same rows read
 * the run file and `--set`, print the resolved configuration, the help and
 * docs/CONFIG.md. Unknown or duplicate keys are errors with place and nearest
 * known name. Rows end with an entry whose name is NULL.
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
    OPT_INTS,    /* opt_ints_t: a list of integers, or one integer; with choices
                    also one of these, see opt_ints_t */
    OPT_TEXTS,   /* opt_texts_t: a list of texts, or one text */
    OPT_TREE,    /* const tree_t *: the sub-tree itself (not owned), any form */
    OPT_SECTION, /* a struct inside the target, described by rows; absent: its
                    defaults (fallback is not read) */
    OPT_MAP      /* opt_map_t: such a section, or a map of names to several */
} opt_type_t;

typedef enum opt_unit { OPT_NEVER, OPT_STEPS, OPT_EPOCHS, OPT_TIME } opt_unit_t;

typedef struct opt_every {
    opt_unit_t unit;
    double value; /* steps, epochs, or seconds */
} opt_every_t;

#define OPT_LIST_MAX 16

typedef struct opt_ints {
    int count; /* below 0: the word choices[-1 - count] instead */
    int64_t items[OPT_LIST_MAX];
} opt_ints_t;

typedef struct opt_texts {
    int count;
    char **items; /* owned by the target */
} opt_texts_t;

#define OPT_MAP_MAX 8

/* Sections with names. Written as a map of maps, each under its name; else it
 * is one section without a name. */
typedef struct opt_map {
    int count;                /* at least 1 */
    char *names[OPT_MAP_MAX]; /* owned by the target; NULL: it has none */
    tree_place_t places[OPT_MAP_MAX]; /* of the names; of the section; file
                                         NULL: it is not there */
    void *items; /* [count] of the row's size; owned as well */
} opt_map_t;

typedef struct opt_row {
    const char *name;
    opt_type_t type;
    size_t offset;        /* of the field in the target struct */
    const char *fallback; /* default as it would be written; NULL: required.
                             `key:` (null) counts as absent.
                             OPT_TREE: "" absent is allowed (field NULL).
                             Flow lists allowed: "[1, 2]". */
    double min, max;      /* for INT, REAL, SECONDS and each of INTS; both 0:
                             no bounds */
    const char *unit;     /* "samples", "MiB", NULL */
    const char *const *choices; /* OPT_CHOICE; (optional) OPT_INTS; ended by
                                   NULL */
    const struct opt_row *rows; /* OPT_SECTION, OPT_MAP */
    size_t size;                /* OPT_MAP: bytes of a section's struct */
    bool free;                  /* may differ between the lives of a run:
                                   resources, files, what is shown */
    const char *help;           /* one sentence, no full stop */
} opt_row_t;

/*
 * Fill [target] from the map [tree] (NULL: all defaults) by [rows]. Errors are
 * ERR_CONFIG and begin with file:line:column and the dotted key below [path]
 * (such as "train" or "model.layers[3].conv"; "" at the root). On failure
 * nothing is left allocated in [target], whose fields are then unspecified.
 */
err_code_t opt_fill(const opt_row_t *rows, const tree_t *tree, const char *path,
                    void *target, err_t *err);

/* Free what opt_fill allocated inside [target]. */
void opt_free(const opt_row_t *rows, void *target);

/* Print the values in [target] as YAML at [indent] spaces: the resolved
 * configuration. Reading it back gives the same values. */
void opt_print(const opt_row_t *rows, const void *target, int indent,
               str_buf_t *out);

/* Has the field of [row] in [target] its default value? Never true of a
 * section, a map, or an option that must be written. */
bool opt_is_default(const opt_row_t *row, const void *target);

/* Print a Markdown table of [rows] (name, type, default, bounds, unit, help),
 * sections after it as sub-tables headed [title].name (just name under the
 * empty title, which is the root). */
void opt_document(const opt_row_t *rows, const char *title, str_buf_t *out);

#endif
