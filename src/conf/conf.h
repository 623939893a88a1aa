/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conf: parses a run file to a tree; base/opt.h then reads the tree with the
 * caller's option tables. conf handles YAML; it does not know which options
 * exist.
 */
#ifndef CDDP_CONF_CONF_H
#define CDDP_CONF_CONF_H

#include "base/err.h"
#include "base/opt.h"
#include "base/tree.h"

/* Parse the YAML file [path] (one document, a map). ERR_CONFIG if the file does
 * not exist, is no regular file or has more than 16 MiB; and, with
 * file:line:column, for a syntax error, a duplicate key, or a document that is
 * not a map. Anchors, aliases and tags are refused. Scalars
 * keep their text; a plain `null` or `~`, or an empty value, becomes TREE_NULL.
 * The caller frees the tree with tree_free. */
err_code_t conf_read(const char *path, tree_t **out, err_t *err);

/* Like conf_read, for a text in memory, which errors call [name]. */
err_code_t conf_parse(const char *name, const char *text, tree_t **out,
                      err_t *err);

/* Apply one `--set key.path=value` to the map [root]. The value is parsed as
 * YAML; an empty value restores the default. ERR_USAGE, and the value of that
 * key is unchanged. */
err_code_t conf_set(tree_t *root, const char *assignment, err_t *err);

#endif
