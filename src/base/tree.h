/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A tree of named values with the place where each was written: a parsed YAML
 * file. Only conf knows YAML; everybody can read a tree. A node is a scalar
 * (text, or null), a list, or a map with ordered keys.
 */
#ifndef CDDP_BASE_TREE_H
#define CDDP_BASE_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

typedef struct tree tree_t;

typedef enum tree_kind {
    TREE_NULL,
    TREE_SCALAR,
    TREE_LIST,
    TREE_MAP
} tree_kind_t;

/* Place of a node in its file. Lines and columns count from 1; 0: unknown. */
typedef struct tree_place {
    const char *file; /* never NULL; "--set" for command-line values */
    int line;
    int column;
} tree_place_t;

/* Make a node at [place]. [text] is that of a scalar; text and file name are
 * copied. */
tree_t *tree_new(tree_kind_t kind, const char *text, tree_place_t place);

/* Append [child], which [list] or [map] then owns. [place] is that of the key.
 * [map] must not have the key yet (tree_key_find). */
void tree_add(tree_t *list, tree_t *child);
void tree_put(tree_t *map, const char *key, tree_place_t place, tree_t *child);

/* Free a whole tree (NULL allowed), or copy it. */
void tree_free(tree_t *tree);
tree_t *tree_clone(const tree_t *tree);

/* What a node holds; all texts and children live as long as the tree. An index
 * beyond the children gives NULL. */
tree_kind_t tree_kind(const tree_t *tree);
const char *tree_text(const tree_t *tree); /* text of a scalar, else NULL */
size_t tree_count(const tree_t *tree);     /* number of children */
const tree_t *tree_at(const tree_t *tree, size_t index);
const char *tree_key(const tree_t *map, size_t index);      /* NULL in a list */
const tree_t *tree_get(const tree_t *map, const char *key); /* NULL: absent */

/* Place of a node, and of a key. */
tree_place_t tree_place(const tree_t *tree);
tree_place_t tree_key_place(const tree_t *map, size_t index);

/* Is there a child called [key]? If so, *place becomes the place of its key.
 * Takes constant time, as tree_get does. */
bool tree_key_find(const tree_t *map, const char *key, tree_place_t *place);

/* Write "file:line:column" (without unknown parts) to [out], which is
 * returned. */
char *tree_place_format(tree_place_t place, char *out, size_t room);

/* Set the value at the dotted [path] ("train.epochs") below the map [root].
 * Replaces an existing value, and makes missing maps on the way (also in place
 * of null). Takes ownership of [child]. False, and [child] is freed, if a step
 * on the way is not a map or is empty ("a..b"). */
bool tree_set(tree_t *root, const char *path, tree_t *child);

/* Print one scalar as YAML: plain if that is safe, else double-quoted. */
void tree_print_text(const char *text, str_buf_t *out);

/* Print as YAML (block style), indented by [indent] spaces. */
void tree_print(const tree_t *tree, int indent, str_buf_t *out);

#endif
