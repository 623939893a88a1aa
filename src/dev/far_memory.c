/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/far_memory.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"

struct far_block {
    far_block_t *next;
    char *map;    /* [pages] bytes, then one page that is never accessible */
    size_t pages; /* bytes, a multiple of the page size */
    size_t bytes; /* those that were asked for */
    char *data;   /* the caller's memory, at the end of these bytes */
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void block_protect(const far_block_t *block, int access)
{
    const int failed = mprotect(block->map, block->pages, access);

    check(failed == 0, "mprotect of %zu bytes: %s", block->pages,
          strerror(errno));
    (void)failed;
}

err_code_t far_memory_map(far_memory_t *memory, size_t bytes, const char *what,
                          void **out, err_t *err)
{
    const size_t page = page_bytes(), need = mem_round(bytes);
    far_block_t *block = NULL;
    err_code_t rc;

    if (bytes > SIZE_MAX / 2)
        return err_set(err, ERR_MEMORY, "%zu bytes for %s", bytes, what);
    rc = mem_new(far_block_t, 1, what, &block, err);
    if (rc != ERR_OK)
        return rc;
    block->pages = (need + page - 1) / page * page;
    block->map = mmap(NULL, block->pages + page, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->map == MAP_FAILED) {
        mem_free(block);
        return err_set(err, ERR_MEMORY, "%zu bytes for %s: %s", bytes, what,
                       strerror(errno));
    }
    block->data = block->map + block->pages - need;
    block->bytes = bytes;
    block->next = memory->blocks;
    memory->bytes += bytes;
    memory->blocks = block;
    if (memory->shown)
        block_protect(block, PROT_READ | PROT_WRITE);
    *out = block->data;
    return ERR_OK;
}

void far_memory_unmap(far_memory_t *memory, void *data)
{
    far_block_t **at = &memory->blocks, *block;

    while (*at != NULL && (*at)->data != (char *)data)
        at = &(*at)->next;
    block = *at;
    check(block != NULL, "%p is no block of this device", data);
    if (block == NULL)
        return;
    *at = block->next;
    memory->bytes -= block->bytes;
    munmap(block->map, block->pages + page_bytes());
    mem_free(block);
}

static void all_protect(far_memory_t *memory, bool shown)
{
    check(memory->shown != shown, "memory is %s already",
          shown ? "accessible" : "inaccessible");
    for (far_block_t *block = memory->blocks; block != NULL;
         block = block->next)
        block_protect(block, shown ? PROT_READ | PROT_WRITE : PROT_NONE);
    memory->shown = shown;
}

void far_memory_show(far_memory_t *memory)
{
    all_protect(memory, true);
}

void far_memory_hide(far_memory_t *memory)
{
    all_protect(memory, false);
}

bool far_memory_has(const far_memory_t *memory, const void *at, size_t bytes)
{
    const char *from = at;

    for (const far_block_t *block = memory->blocks; block != NULL;
         block = block->next)
        if (from >= block->data && from <= block->map + block->pages &&
            bytes <= (size_t)(block->map + block->pages - from))
            return true;
    return false;
}
