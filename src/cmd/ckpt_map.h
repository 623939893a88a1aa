/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* map: how tensors are called here and in another program (docs/FORMATS.md,
 * "Maps of names"). */
#ifndef CDDP_CMD_CKPT_MAP_H
#define CDDP_CMD_CKPT_MAP_H

#include <stdbool.h>

#include "base/err.h"

typedef struct cmd_map cmd_map_t;

/* From our names to theirs, or back. */
typedef enum cmd_map_way { CMD_MAP_OUT, CMD_MAP_IN } cmd_map_way_t;

/* Read the map in file [name]; if there is no such file and [name] is a plain
 * name, that map of those that come with cddp ("gpt2"; in $CDDP_MAPS or in
 * maps/ of the installed data). ERR_CONFIG names the line that is wrong;
 * ERR_IO, ERR_DATA: not a readable file. */
err_code_t cmd_map_read(const char *name, cmd_map_t **out, err_t *err);
void cmd_map_free(cmd_map_t *map);

/* What a line says of a tensor. */
typedef struct cmd_map_hit {
    char *name; /* of the tensor on the other side; NULL: it is left out */
    bool transposed;
    bool leading; /* there it has a further first dimension, of size 1 */
} cmd_map_hit_t;

/* Find the first line from line [*at] on that has the tensor [name]; *at
 * becomes the one after it. False: there is none. The caller frees out->name.
 */
bool cmd_map_find(const cmd_map_t *map, cmd_map_way_t way, const char *name,
                  int *at, cmd_map_hit_t *out);

#endif
