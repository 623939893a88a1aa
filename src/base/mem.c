/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * posix_memalign with the exact size, so that a sanitizer sees the first byte
 * behind a block. Large blocks begin at a huge page and ask for such pages: a
 * page fault costs microseconds, and arenas are walked from end to end. Their
 * pages come when they are first used.
 */
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"

#define HUGE_PAGE ((size_t)2 << 20)
/* What lies behind the last whole huge page would be small pages: blocks are
 * worth it from here. */
#define LARGE (4 * HUGE_PAGE)

/* Zeros for [bytes] at [block]. The pages of a large one are handed back, as
 * they come zeroed when they are used first: a pass over memory less, and that
 * use puts them near to the core that works on them. */
static void mem_clear(void *block, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t done = bytes >= LARGE ? bytes / page * page : 0;

    if (done > 0 && madvise(block, done, MADV_DONTNEED) != 0)
        done = 0; /* locked pages stay */
    memset((char *)block + done, 0, bytes - done);
}

size_t mem_round(size_t bytes)
{
    return (bytes + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;
}

err_code_t mem_alloc(size_t bytes, const char *what, void **out, err_t *err)
{
    const size_t align = bytes >= LARGE ? HUGE_PAGE : MEM_ALIGN;
    char amount[32];
    void *block;

    if (posix_memalign(&block, align, bytes == 0 ? 1 : bytes) != 0)
        return err_set(err, ERR_MEMORY, "no memory left: %s for %s refused",
                       str_bytes(bytes, amount, sizeof amount), what);
    /* A hint: without huge pages small ones do as well. */
    if (bytes >= LARGE)
        (void)madvise(block, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    mem_clear(block, bytes == 0 ? 1 : bytes);
    *out = block;
    return ERR_OK;
}

err_code_t mem_new_array(size_t size, size_t count, const char *what, void *out,
                         err_t *err)
{
    return mem_new_struct(0, size, count, what, out, err);
}

err_code_t mem_new_struct(size_t size, size_t each, size_t count,
                          const char *what, void *out, err_t *err)
{
    size_t bytes;
    void *block = NULL;
    err_code_t rc;

    if (__builtin_mul_overflow(each, count, &bytes) ||
        __builtin_add_overflow(bytes, size, &bytes))
        return err_set(err, ERR_MEMORY,
                       "no memory left: %zu times %zu bytes for %s refused",
                       count, each, what);
    rc = mem_alloc(bytes, what, &block, err);
    /* Pointers of all object types have one size here, but only their own type
     * may be stored to them. */
    if (rc == ERR_OK)
        memcpy(out, &block, sizeof block);
    return rc;
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
