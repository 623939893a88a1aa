/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conf: parses a run file to a tree; base/opt.h then reads the tree with the
 * caller's option tables. conf knows YAML, but no options.
 */
#ifndef CDDP_CONF_CONF_H
#define CDDP_CONF_CONF_H

#include "base/err.h"
#include "base/opt.h"
#include "base/tree.h"

/* Parse the YAML file [path] (one document, a map). ERR_CONFIG: the file does
 * not exist, or, with file:line:column, a syntax error, a duplicate key, or not
 * a map. Anchors, aliases and tags are refused. Scalars keep their text; a
 * plain `null`, `~` or an empty value is TREE_NULL. The caller frees with
 * tree_free. */
err_code_t conf_read(const char *path, tree_t **out, err_t *err);

/* conf_read for a text in memory, called [name] in errors. */
err_code_t conf_parse(const char *name, const char *text, tree_t **out,
                      err_t *err);

/* Apply one `--set key.path=value` to the map [root]. The value is parsed as
 * YAML; an empty value restores the default. ERR_USAGE. */
err_code_t conf_set(tree_t *root, const char *assignment, err_t *err);

#endif
