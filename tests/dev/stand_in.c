/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A plugin of this build without any table (dev/dev_plugin.h). */
#include <stdlib.h>

#include "build_id.h"
#include "dev/dev_plugin.h"

#ifndef STAND_IN_INTERFACE
#define STAND_IN_INTERFACE CDDP_CUDA_INTERFACE
#endif

extern const cddp_cuda_t cddp_cuda;
const char *stand_in_home(void);

/* So that it needs a library. */
const char *stand_in_home(void)
{
    return getenv("HOME");
}

const cddp_cuda_t cddp_cuda = {
    .interface = STAND_IN_INTERFACE,
    .build_id = BUILD_ID,
    .built_for = "tests",
};
