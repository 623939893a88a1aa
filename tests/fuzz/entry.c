/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* libFuzzer's entry points for the target FUZZ_TARGET (a macro from the command
 * line). */
#include <stdlib.h>

#include "base/log.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    log_level_set(LOG_ERROR);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    FUZZ_TARGET(data, bytes);
    return 0;
}
