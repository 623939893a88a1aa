/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The plugin libcddp_cuda.so, which has all code for GPUs. It is a library of
 * its own because CUDA's libraries take 0.1 s and 200 MB to load, which a run
 * on CPUs should not pay, and because one build of cddp has to work on nodes
 * without GPUs, too. It exports one constant, cddp_cuda.
 *
 * Folders that have a backend in it take their table from there when somebody
 * asks for the backend "cuda".
 */
#ifndef CDDP_DEV_DEV_PLUGIN_H
#define CDDP_DEV_DEV_PLUGIN_H

#include "base/err.h"

/* Increase it if struct cddp_cuda changes. */
#define CDDP_CUDA_INTERFACE 2

typedef struct cddp_cuda {
    int interface; /* CDDP_CUDA_INTERFACE; it stays the first field */
    const char *build_id;
    const char *built_for; /* versions of libraries, and archs */
    /* The tables, each declared in its folder; NULL: there is none. */
    const struct dev_ops *dev;
    const struct op_backend_ops *op;
    const struct optim_place_ops *optim;
    const struct comm_ops *comm;
    /* Load NCCL, unless it is loaded, and give its version: 22809 for 2.28.9.
     * ERR_UNAVAILABLE says why NCCL cannot be loaded. This member may be NULL:
     * the version is not known. */
    err_code_t (*nccl_version)(int *out, err_t *err);
} cddp_cuda_t;

/*
 * Load the plugin: the file that the environment's CDDP_CUDA_PLUGIN names, else
 * the installed one. It stays loaded; so does the constant. The first call can
 * take 0.2 s, later ones are cheap. ERR_UNAVAILABLE says why there is none: no
 * such file, not a plugin of this build, or a library that it needs is missing.
 *
 * Thread rule: any thread.
 */
err_code_t dev_plugin_get(const cddp_cuda_t **out, err_t *err);

#endif
