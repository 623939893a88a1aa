/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * posix_memalign gets the exact size, so that a sanitizer detects an access to
 * the first byte after a block. Large blocks start at a huge page and ask for
 * huge pages, since a page fault costs microseconds and arenas are walked from
 * end to end. Pages are allocated on first use.
 */
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"

#define HUGE_PAGE ((size_t)2 << 20)
/* Blocks of at least this size use huge pages. The rest after the last whole
 * huge page stays in small pages, so smaller blocks gain little. */
#define LARGE (4 * HUGE_PAGE)

/* Zero [bytes] bytes at [block]. Pages of a large block are returned to the
 * kernel, which zeroes them on first use: that saves a pass over the memory,
 * and places pages near the core that uses them first. */
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

err_code_t mem_alloc_any(size_t bytes, const char *what, void **out, err_t *err)
{
    const size_t align = bytes >= LARGE ? HUGE_PAGE : MEM_ALIGN;
    char amount[32];
    void *block;

    if (posix_memalign(&block, align, bytes == 0 ? 1 : bytes) != 0)
        return err_set(err, ERR_MEMORY, "no memory left: %s for %s refused",
                       str_bytes(bytes, amount, sizeof amount), what);
    /* Only a hint: small pages work as well. */
    if (bytes >= LARGE)
        (void)madvise(block, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    *out = block;
    return ERR_OK;
}

err_code_t mem_alloc(size_t bytes, const char *what, void **out, err_t *err)
{
    err_code_t rc = mem_alloc_any(bytes, what, out, err);

    if (rc == ERR_OK)
        mem_clear(*out, bytes == 0 ? 1 : bytes);
    return rc;
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
    /* memcpy, since a pointer may only be stored through its own type; all
     * object pointers have the same size here. */
    if (rc == ERR_OK)
        memcpy(out, &block, sizeof block);
    return rc;
}

/* Not getrusage, which includes the memory of the parent process before
 * exec. */
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
