/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Names of checkpoints in their directory, see checkpoint_dir.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/str.h"
#include "hdf5io/checkpoint_dir.h"

#define STEP_PREFIX "step-"
#define STEP_DIGITS 10

bool hdf5io_dir_step(const char *name, int64_t *step)
{
    size_t prefix = strlen(STEP_PREFIX), digits;

    if (strncmp(name, STEP_PREFIX, prefix) != 0)
        return false;
    name += prefix;
    digits = strspn(name, "0123456789");
    if (digits < STEP_DIGITS || name[digits] != '\0' ||
        (digits > STEP_DIGITS && name[0] == '0'))
        return false;
    errno = 0;
    *step = strtoll(name, NULL, 10);
    return errno == 0;
}

char *hdf5io_dir_path(const char *directory, const char *prefix, int64_t step,
                      uint64_t nonce)
{
    if (nonce == 0)
        return str_printf("%s/%s" STEP_PREFIX "%010" PRId64, directory, prefix,
                          step);
    return str_printf("%s/%s" STEP_PREFIX "%010" PRId64 "-%016" PRIx64,
                      directory, prefix, step, nonce);
}

uint64_t hdf5io_dir_nonce(void)
{
    uint64_t nonce = 0;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        nonce = (uint64_t)(uintptr_t)&nonce;
    return nonce | 1;
}
