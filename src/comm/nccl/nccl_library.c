/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>
#include <pthread.h>

#define NAME "libnccl.so.2"
#define OLDEST 22000 /* 2.20.0 */

/* global: the library is loaded once for the process. */
static nccl_library_t library;
/* global: why the library could not be loaded. */
static err_t problem;
/* global: loading is tried once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static err_code_t version_check(void)
{
    int version = 0;

    if (library.GetVersion(&version) != ncclSuccess || version < OLDEST)
        return err_set(&problem, ERR_UNAVAILABLE,
                       "%s has version %d.%d.%d, and this build needs 2.20 or "
                       "later: install a newer one",
                       NAME, version / 10000, version / 100 % 100,
                       version % 100);
    return ERR_OK;
}

static void library_load(void)
{
    void *module = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);

    problem = (err_t)ERR_INIT;
    if (module == NULL) {
        err_set(&problem, ERR_UNAVAILABLE,
                "%s was not found (%s): install NCCL on this node, or add its "
                "folder to LD_LIBRARY_PATH",
                NAME, dlerror());
        return;
    }
#define LOAD(name)                                                         \
    library.name = (__typeof__(library.name))dlsym(module, "nccl" #name);  \
    if (library.name == NULL)                                              \
        err_set(&problem, ERR_UNAVAILABLE,                                 \
                "%s has no function %s: it must be version 2.20 or later", \
                NAME, "nccl" #name);
    NCCL_FUNCTIONS(LOAD)
    library.CommInitRankScalable =
        (__typeof__(library.CommInitRankScalable))dlsym(
            module, "ncclCommInitRankScalable");
    library.CommWindowDeregister =
        (__typeof__(library.CommWindowDeregister))dlsym(
            module, "ncclCommWindowDeregister");
    if (library.CommWindowDeregister != NULL)
        library.CommWindowRegister =
            (__typeof__(library.CommWindowRegister))dlsym(
                module, "ncclCommWindowRegister");
    if (problem.code == ERR_OK)
        version_check();
}

err_code_t nccl_library_get(const nccl_library_t **out, err_t *err)
{
    pthread_once(&once, library_load);
    if (problem.code != ERR_OK)
        return err_copy(err, &problem);
    *out = &library;
    return ERR_OK;
}
