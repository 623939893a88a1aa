/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static bool same_shape(const hdf5io_tensor_t *want,
                       const hdf5io_manifest_tensor_t *have)
{
    return want->ndim == have->ndim &&
           memcmp(want->dims, have->dims,
                  (size_t)want->ndim * sizeof *want->dims) == 0;
}

/* Index of the tensor called [name]; usually it is [guess]. -1: none. */
static int tensor_find(const hdf5io_manifest_t *m, const char *name, int guess)
{
    if (guess < m->tensor_count && strcmp(m->tensors[guess].name, name) == 0)
        return guess;
    for (int i = 0; i < m->tensor_count; i++)
        if (strcmp(m->tensors[i].name, name) == 0)
            return i;
    return -1;
}

/* Is any wanted tensor in the same group ("model/") as [name]? A reader that
 * wants nothing of a group (such as the optimizer's state during evaluation)
 * may ignore it. */
static bool group_wanted(const hdf5io_tensor_t *tensors, int count,
                         const char *name)
{
    size_t length = strcspn(name, "/");

    for (int i = 0; i < count; i++)
        if (strncmp(tensors[i].name, name, length + 1) == 0)
            return true;
    return false;
}

/* Check that all wanted tensors exist with their shapes, each once, and that
 * their groups contain no others. */
static err_code_t tensors_compare(const hdf5io_manifest_t *m, const char *path,
                                  const hdf5io_tensor_t *tensors, int count,
                                  int *wanted, err_t *err)
{
    char expected[160], found[160];

    for (int i = 0; i < count; i++) {
        int j = tensor_find(m, tensors[i].name, i);

        hdf5io_shape_format(tensors[i].ndim, tensors[i].dims, expected,
                            sizeof expected);
        if (j < 0)
            return err_set(err, ERR_CONFIG,
                           "%s is of another model or optimizer: it has no "
                           "tensor %s, expected with shape %s; restore the "
                           "run file it was made with, or say --fresh",
                           path, tensors[i].name, expected);
        if (!same_shape(&tensors[i], &m->tensors[j]))
            return err_set(err, ERR_CONFIG,
                           "%s is of another model: tensor %s has shape %s, "
                           "expected %s; restore the run file it was made "
                           "with, or say --fresh",
                           path, tensors[i].name,
                           hdf5io_shape_format(m->tensors[j].ndim,
                                               m->tensors[j].dims, found,
                                               sizeof found),
                           expected);
        if (wanted[j] >= 0)
            return err_set(err, ERR_CONFIG,
                           "tensor %s is wanted twice: give each tensor its "
                           "own name",
                           tensors[i].name);
        wanted[j] = i;
    }
    for (int i = 0; i < m->tensor_count; i++) {
        if (wanted[i] < 0 && group_wanted(tensors, count, m->tensors[i].name))
            return err_set(err, ERR_CONFIG,
                           "%s is of another model or optimizer: it has a "
                           "tensor %s that this run does not have; restore "
                           "the run file it was made with, or say --fresh",
                           path, m->tensors[i].name);
    }
    return ERR_OK;
}

/* With model_strict: does the checkpoint belong to the caller's model? */
static err_code_t hash_compare(const hdf5io_checkpoint_config_t *config,
                               uint64_t have, const char *path, err_t *err)
{
    const uint64_t want = config->model_hash;

    if (!config->model_strict || want == have)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s is of another model: it was written for model 0x%llx, "
                   "expected 0x%llx",
                   path, (unsigned long long)have, (unsigned long long)want);
}

err_code_t hdf5io_model_compare(const hdf5io_checkpoint_config_t *config,
                                const hdf5io_manifest_t *manifest,
                                const char *path,
                                const hdf5io_tensor_t *tensors, int count,
                                int *wanted, err_t *err)
{
    for (int i = 0; i < manifest->tensor_count; i++)
        wanted[i] = -1;
    if (hash_compare(config, manifest->model_hash, path, err) != ERR_OK)
        return err->code;
    return tensors_compare(manifest, path, tensors, count, wanted, err);
}

/* Warn about other versions, since the last bits of results depend on
 * libraries, CPU and instruction set. */
static void versions_compare(const hdf5io_checkpoint_config_t *config,
                             const hdf5io_manifest_t *m, const char *path)
{
    char *here = hdf5io_manifest_versions(config->versions);

    if (strcmp(here, m->versions) != 0)
        log_warn("hdf5io",
                 "%s was made with %s; this is %s: results may differ in "
                 "their last bits from here on",
                 path, m->versions, here);
    free(here);
}

void hdf5io_model_warn(const hdf5io_checkpoint_config_t *config,
                       const hdf5io_manifest_t *manifest, const char *path)
{
    if (config->versions != NULL)
        versions_compare(config, manifest, path);
    if (config->model_hash != manifest->model_hash)
        log_warn("hdf5io",
                 "%s: its tensors fit, but the model section of the run file "
                 "is not the one it was made with",
                 path);
}
