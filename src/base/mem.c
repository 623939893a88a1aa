/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * posix_memalign with the exact size, so that a sanitizer sees the first byte
 * behind a block.
 */
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

size_t mem_round(size_t bytes)
{
    return (bytes + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;
}

err_code_t mem_alloc(size_t bytes, const char *what, void **out, err_t *err)
{
    char amount[32];
    void *block;

    if (posix_memalign(&block, MEM_ALIGN, bytes == 0 ? 1 : bytes) != 0)
        return err_set(err, ERR_MEMORY, "no memory left: %s for %s refused",
                       str_bytes(bytes, amount, sizeof amount), what);
    memset(block, 0, bytes == 0 ? 1 : bytes);
    *out = block;
    return ERR_OK;
}

/* Not getrusage: that begins with what the parent process held before exec. */
double mem_peak(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    double kilobytes = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %lf", &kilobytes) == 1)
            break;
    fclose(file);
    return 1024.0 * kilobytes;
}

void mem_free(void *block)
{
    free(block);
}
