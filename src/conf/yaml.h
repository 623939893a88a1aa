/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to conf: parses one YAML document to a tree. */
#ifndef CDDP_CONF_YAML_H
#define CDDP_CONF_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/tree.h"

typedef struct yaml_source {
    const char *name; /* file name in places and errors */
    const char *text;
    size_t bytes;
    /* true: places have no line and column, as the text is only a few words */
    bool bare;
    err_code_t code; /* code of all errors */
} yaml_source_t;

/* Parse [source]: exactly one document of any kind (empty text: TREE_NULL). The
 * caller frees with tree_free. */
err_code_t yaml_parse(const yaml_source_t *source, tree_t **out, err_t *err);

#endif
