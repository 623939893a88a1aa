/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * posix_memalign with the exact size, so that a sanitizer sees the first byte
 * behind a block.
 */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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

double mem_peak(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
    return 1024.0 * (double)usage.ru_maxrss;
}

void mem_free(void *block)
{
    free(block);
}
