/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/dev_cuda_arch.h"

#include <stdlib.h>

bool dev_cuda_arch_fits(const char *archs, int arch)
{
    int last = 0; /* the last one without a letter */
    char *end;

    for (const char *at = archs;; at = end) {
        const int built = (int)strtol(at, &end, 10);
        const bool exact = *end == 'a';

        if (end == at)
            break;
        end += exact;
        if (exact ? built == arch : built / 10 == arch / 10 && built <= arch)
            return true;
        if (!exact)
            last = built;
    }
    return last > 0 && last <= arch;
}
