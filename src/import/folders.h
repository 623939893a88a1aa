/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* folders: the files of a folder in which each class has a folder of its own,
 * ROOT/CLASS/.../FILE. */
#ifndef CDDP_IMPORT_FOLDERS_H
#define CDDP_IMPORT_FOLDERS_H

#include <stdint.h>

#include "base/err.h"

typedef struct import_folders {
    char **classes; /* names of the folders in the order of their bytes */
    int class_count;
    char **files;    /* paths below the root: by class, then in the order of
                        their bytes, a folder where its name stands */
    int32_t *labels; /* of each file */
    int64_t count;
    int64_t other; /* files with other endings, which were left out */
} import_folders_t;

/* List the files below [root] whose names end with one of [endings] (each with
 * its dot; ends with NULL), whatever the case of the letters. Names that begin
 * with a dot are left out; links are followed. ERR_DATA: there is no folder, or
 * a class has no file, or folders are nested more than 32 deep. ERR_IO. The
 * caller frees *out by import_folders_free. */
err_code_t import_folders_list(const char *root, const char *const *endings,
                               import_folders_t *out, err_t *err);

void import_folders_free(import_folders_t *folders);

#endif
