/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_source: the samples of HDF5 files, for copying. */
#ifndef CDDP_CMD_DATA_SOURCE_H
#define CDDP_CMD_DATA_SOURCE_H

#include "import/source.h"

typedef struct cmd_source_config {
    char *const *paths; /* [count] files, whose samples follow each other */
    int count;          /* at least 1 */
    const char *only;   /* "/a,/b": these datasets; NULL: all */
} cmd_source_config_t;

/*
 * Open the files: every dataset of the first one is a field, of type
 * IMPORT_STORED, so its values are copied as they are. The attributes of the
 * datasets, of their groups and of the root group of the first file are written
 * to every shard, except those with references. ERR_USAGE: only has an unknown
 * name. ERR_DATA names the file and the dataset: it has no samples or another
 * number than others, values of variable length or references, or differs
 * between the files; or there are more than IMPORT_FIELDS_MAX. [config] must
 * outlive the source, which the caller ends by its kind's close.
 */
err_code_t cmd_source_open(const cmd_source_config_t *config,
                           import_source_t **out, err_t *err);

#endif
