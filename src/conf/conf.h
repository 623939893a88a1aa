/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conf: from a run file to a tree; base/opt.h goes on from there with the
 * option tables that the caller has. Knows YAML; knows no option.
 */
#ifndef CDDP_CONF_CONF_H
#define CDDP_CONF_CONF_H

#include "base/err.h"
#include "base/opt.h"
#include "base/tree.h"

/* Parse the YAML file [path] (one document, a map). ERR_CONFIG: not there, or,
 * with file:line:column, syntax, duplicate key, not a map; anchors, aliases and
 * tags are refused. Scalars keep their text; a plain `null`, `~` or nothing is
 * TREE_NULL. The caller frees with tree_free. */
err_code_t conf_read(const char *path, tree_t **out, err_t *err);

/* The same from memory, called [name] in errors. */
err_code_t conf_parse(const char *name, const char *text, tree_t **out,
                      err_t *err);

/* Apply one `--set key.path=value` to [root], a map; the value is parsed as
 * YAML, and nothing at all gives the key's default back. ERR_USAGE. */
err_code_t conf_set(tree_t *root, const char *assignment, err_t *err);

#endif
