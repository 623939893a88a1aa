/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cuda/emu.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The plugin that the caller of this program has named; NULL: none. */
static const char *named(void)
{
    const char *path = getenv("CDDP_CUDA_PLUGIN");

    return path != NULL && path[0] != '\0' ? path : NULL;
}

void emu_or_gpu(void)
{
    if (named() == NULL)
        emu_open();
}

const fake_cuda_t *emu_open(void)
{
    const char *path = getenv("CDDP_EMU_PLUGIN");
    const fake_cuda_t *fake;
    void *module;

    if (path == NULL)
        path = EMU_PLUGIN;
    if (named() != NULL && strcmp(named(), path) != 0)
        cr_skip_test("this test needs the emulated plugin, but "
                     "CDDP_CUDA_PLUGIN names another one");
    if (access(path, R_OK) != 0)
        cr_skip_test("CUDA's headers are missing (see configure's summary): "
                     "there is no emulated plugin");
    setenv("CDDP_CUDA_PLUGIN", path, 1);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    cr_assert_not_null(module, "%s", dlerror());
    fake = dlsym(module, "fake_cuda");
    cr_assert_not_null(fake, "%s", dlerror());
    return fake;
}

void emu_set_at(const fake_cuda_t *fake, size_t offset, int64_t value)
{
    fake_cuda_settings_t settings = fake->get();

    *(int64_t *)((char *)&settings + offset) = value;
    fake->set(&settings);
}

/* ---- a program whose tests were all skipped ------------------------------ */

#define SKIPPED 77 /* the exit status that make check counts as skipped */

static void skipped_exit(void)
{
    fflush(NULL);
    _exit(SKIPPED);
}

/* If all tests are skipped, Criterion would exit with the status of success. */
ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    if (stats->nb_tests > 0 && stats->tests_skipped == stats->nb_tests)
        atexit(skipped_exit);
}
