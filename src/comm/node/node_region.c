/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A region is a memfd, so no name is left behind in /dev/shm. Other ranks open
 * it through /proc, as they did when they verified that its process is on their
 * node. A nonce after the data shows that it is the right region. Its pages are
 * allocated before it is used: if there is too little memory, that is an error,
 * and not a signal at the first access.
 *
 * A large region uses huge pages if the site reserves some (vm.nr_hugepages).
 * Otherwise it asks for transparent huge pages, which the kernel provides if it
 * is allowed to (/sys/kernel/mm/transparent_hugepage/shmem_enabled: advise).
 * Both may fail silently: huge pages only save address translations.
 */
#include "comm/node/node_region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

/* Since Linux 5.14; older kernels return EINVAL. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE_PAGE ((size_t)2 << 20)
/* Minimum bytes for huge pages, so that rounding up wastes at most a quarter.
 */
#define HUGE_LEAST ((size_t)8 << 20)

static bool is_large(size_t bytes)
{
    return bytes >= HUGE_LEAST;
}

/* Bytes with the nonce; independent of the page size of the region. */
static size_t whole_bytes(size_t bytes)
{
    size_t whole = mem_round(bytes) + MEM_ALIGN;

    return is_large(bytes) ? (whole + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE
                           : whole;
}

static void *nonce_of(void *map, size_t bytes)
{
    return (char *)map + mem_round(bytes);
}

static int fd_map(int fd, size_t bytes, void **map)
{
    void *found = mmap(NULL, whole_bytes(bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED, fd, 0);

    if (found == MAP_FAILED)
        return errno;
    *map = found;
    return 0;
}

void node_region_unmap(void **map, size_t bytes)
{
    if (*map != NULL)
        munmap(*map, whole_bytes(bytes));
    *map = NULL;
}

/* Return whether the machine has [bytes] bytes of free memory. The kernel would
 * first allocate all memory, and then kill processes. */
static bool memory_has(size_t bytes)
{
    return bytes / (size_t)sysconf(_SC_PAGESIZE) <
           (size_t)sysconf(_SC_PHYS_PAGES);
}

/* Allocate the region in huge pages that the site reserves; false: there are
 * too few. */
static bool make_huge(size_t bytes, int *fd, void **map)
{
    if (!is_large(bytes))
        return false;
    *fd = memfd_create("cddp-arena", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
    if (*fd >= 0 && posix_fallocate(*fd, 0, (off_t)whole_bytes(bytes)) == 0 &&
        fd_map(*fd, bytes, map) == 0) {
        log_debug("comm", "%zu bytes in huge pages", bytes);
        return true;
    }
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    log_debug("comm", "%zu bytes in ordinary pages: no huge ones are free",
              bytes);
    return false;
}

/* Return whether the kernel makes pages of shared memory huge on request. */
static bool kernel_advises(void)
{
    char text[128] = "";
    int fd = open("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
                  O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    return got > 0 && strstr(text, "[advise]") != NULL;
}

/* Fill the page tables now rather than in the first step. */
static void pages_touch(void *map, size_t bytes)
{
    size_t whole = whole_bytes(bytes), page = (size_t)sysconf(_SC_PAGESIZE);
    const volatile char *at = map;

    if (madvise(map, whole, MADV_POPULATE_WRITE) == 0)
        return;
    for (size_t i = 0; i < whole; i += page)
        (void)at[i];
}

/* Ask for transparent huge pages first, as only a page fault makes them.
 * posix_fallocate then reports pages that could not be allocated. */
static int make_ordinary(size_t bytes, int *fd, void **map)
{
    size_t whole = whole_bytes(bytes);
    int failure;

    *fd = memfd_create("cddp-arena", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)whole) != 0)
        return errno;
    failure = fd_map(*fd, bytes, map);
    if (failure == 0 && is_large(bytes) && kernel_advises() &&
        madvise(*map, whole, MADV_HUGEPAGE) == 0)
        (void)!madvise(*map, whole, MADV_POPULATE_WRITE);
    return failure == 0 ? posix_fallocate(*fd, 0, (off_t)whole) : failure;
}

err_code_t node_region_make(size_t bytes, node_region_t *region, void **map,
                            err_t *err)
{
    int fd = -1, failure = 0;

    if (!memory_has(bytes))
        failure = ENOMEM;
    else if (!make_huge(bytes, &fd, map))
        failure = make_ordinary(bytes, &fd, map);
    if (failure == 0 && getrandom(&region->nonce, sizeof region->nonce, 0) !=
                            (ssize_t)sizeof region->nonce)
        failure = EIO;
    if (failure == 0) {
        pages_touch(*map, bytes);
        memcpy(nonce_of(*map, bytes), &region->nonce, sizeof region->nonce);
        region->pid = getpid();
        region->fd = fd;
        return ERR_OK;
    }
    node_region_unmap(map, bytes);
    if (fd >= 0)
        close(fd);
    return err_set(err, ERR_MEMORY,
                   "cannot get %zu bytes of memory that the ranks of this node "
                   "share: %s (ask for more memory per node, or start fewer "
                   "ranks on it)",
                   bytes, strerror(failure));
}

bool node_region_map(const node_region_t *region, size_t bytes, void **map)
{
    struct stat status;
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)region->pid,
             (long long)region->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 &&
        status.st_size == (off_t)whole_bytes(bytes) &&
        fd_map(fd, bytes, map) == 0)
        pages_touch(*map, bytes);
    close(fd);
    return *map != NULL && memcmp(nonce_of(*map, bytes), &region->nonce,
                                  sizeof region->nonce) == 0;
}
