/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Replaces the functions that open and read files. The symbols of a program, or
 * of a preloaded library, come before those of its libraries, so libhdf5 calls
 * these, too. fopen of glibc does not.
 */
#include "lib/io_count.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/opens.h"

struct stat;

ssize_t pread(int fd, void *out, size_t bytes, off_t offset);
ssize_t __pread_chk(int fd, void *out, size_t bytes, off_t offset, size_t room);
int stat(const char *path, struct stat *out);

/* globals: replaced functions have no argument for them */
static _Atomic(const char *) counted_suffix;
static atomic_long opens, reads, bytes_read, stats;
static atomic_long slow_open, slow_read; /* microseconds */
static atomic_long slept_most;           /* of a thread, in microseconds */
static _Thread_local long slept;

void io_count_begin(const char *suffix)
{
    atomic_store(&opens, 0);
    atomic_store(&reads, 0);
    atomic_store(&bytes_read, 0);
    atomic_store(&stats, 0);
    atomic_store(&counted_suffix, suffix);
}

long io_count_opens(void)
{
    return atomic_load(&opens);
}

long io_count_reads(void)
{
    return atomic_load(&reads);
}

long io_count_bytes(void)
{
    return atomic_load(&bytes_read);
}

long io_count_stats(void)
{
    return atomic_load(&stats);
}

static int counts(const char *path)
{
    const char *suffix = atomic_load(&counted_suffix);

    return suffix != NULL && strlen(path) >= strlen(suffix) &&
           strcmp(path + strlen(path) - strlen(suffix), suffix) == 0;
}

/* Is [fd], or what it was duplicated from, a file that counts? */
static int fd_counts(int fd)
{
    char link[32], path[4096];
    ssize_t length;

    if (atomic_load(&counted_suffix) == NULL)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    return counts(path);
}

static void slow(atomic_long *microseconds)
{
    const long wanted = atomic_load(microseconds);
    struct timespec left = {wanted / 1000000, wanted % 1000000 * 1000};
    long most = atomic_load(&slept_most);

    if (wanted == 0)
        return;
    while (nanosleep(&left, &left) != 0)
        ;
    slept += wanted;
    while (slept > most &&
           !atomic_compare_exchange_weak(&slept_most, &most, slept))
        ;
}

static int file_open(int at, const char *path, int flags, unsigned mode)
{
    if (counts(path)) {
        atomic_fetch_add(&opens, 1);
        slow(&slow_open);
    }
    return (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);
}

ssize_t pread(int fd, void *out, size_t bytes, off_t offset)
{
    ssize_t found;

    if (!fd_counts(fd))
        return syscall(SYS_pread64, fd, out, bytes, offset);
    atomic_fetch_add(&reads, 1);
    slow(&slow_read);
    found = syscall(SYS_pread64, fd, out, bytes, offset);
    atomic_fetch_add(&bytes_read, found > 0 ? found : 0);
    return found;
}

/* The same for fortified callers. */
ssize_t __pread_chk(int fd, void *out, size_t bytes, off_t offset, size_t room)
{
    if (bytes > room)
        abort();
    return pread(fd, out, bytes, offset);
}

int stat(const char *path, struct stat *out)
{
    if (counts(path))
        atomic_fetch_add(&stats, 1);
    return (int)syscall(SYS_newfstatat, HERE, path, out, 0);
}

/* Where sizes of files have 64 bits, these do the same. */
ssize_t pread64(int fd, void *out, size_t bytes, off_t offset)
    __attribute__((alias("pread")));
ssize_t __pread64_chk(int fd, void *out, size_t bytes, off_t offset,
                      size_t room) __attribute__((alias("__pread_chk")));
int stat64(const char *path, struct stat *out) __attribute__((alias("stat")));

/* ---- as a preloaded library ---------------------------------------------- */

static long number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text == NULL ? 0 : atol(text);
}

__attribute__((constructor)) static void watch_begin(void)
{
    if (getenv("IO_COUNT_FILE") == NULL)
        return;
    atomic_store(&slow_open, number_of("IO_SLOW_OPEN"));
    atomic_store(&slow_read, number_of("IO_SLOW_READ"));
    io_count_begin(getenv("IO_COUNT_SUFFIX"));
}

__attribute__((destructor)) static void watch_end(void)
{
    const char *name = getenv("IO_COUNT_FILE");
    FILE *file = name == NULL ? NULL : fopen(name, "ae");

    if (file == NULL)
        return;
    fprintf(file, "opens %ld reads %ld bytes %ld stats %ld slept %ld\n",
            io_count_opens(), io_count_reads(), io_count_bytes(),
            io_count_stats(), atomic_load(&slept_most));
    fclose(file);
}
