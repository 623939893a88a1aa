/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/run_file.h"

#include <stdlib.h>

#include "cmd/pick.h"
#include "conf/conf.h"

err_code_t run_file_read(const run_file_t *file, tree_t **tree,
                         train_config_t *config, err_t *err)
{
    tree_t *root = NULL;
    err_code_t rc;

    rc = conf_read(file->path, &root, err);
    if (rc == ERR_OK && file->pick != NULL)
        rc = pick_apply(file->pick, getenv("SLURM_ARRAY_TASK_ID"), root, err);
    for (int i = 0; rc == ERR_OK && i < file->sets->count; i++)
        rc = conf_set(root, file->sets->items[i], err);
    if (rc == ERR_OK)
        rc = train_config_read(root, file->job, config, err);
    if (rc != ERR_OK) {
        tree_free(root);
        return rc;
    }
    *tree = root;
    return ERR_OK;
}
