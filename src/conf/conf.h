/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * conf: from a run file to a tree, and from the tree to checked structs through
 * the option tables that the caller hands in. Knows YAML; knows no option.
 */
#ifndef CDDP_CONF_CONF_H
#define CDDP_CONF_CONF_H

#include "base/err.h"
#include "base/opt.h"
#include "base/tree.h"

/* Parse the YAML file [path] (one document, a map). ERR_CONFIG with
 * file:line:column: not there, syntax, duplicate key, not a map; anchors,
 * aliases and tags are refused. The caller frees with tree_free. */
err_code_t conf_read(const char *path, tree_t **out, err_t *err);

/* The same from memory, called [name] in errors. */
err_code_t conf_parse(const char *name, const char *text, tree_t **out,
                      err_t *err);

/* Apply one `--set key.path=value`; the value is parsed as YAML. ERR_USAGE. */
err_code_t conf_set(tree_t *root, const char *assignment, err_t *err);

#endif
