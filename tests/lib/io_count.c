/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Replaces the functions that open files, and pread. The symbols of a program
 * come before those of its libraries, so libhdf5 calls these, too. fopen of
 * glibc does not. The declarations of fcntl.h do not suit functions that are
 * defined here.
 */
#include "lib/io_count.h"

#include <asm/fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IO_COUNT_HERE (-100) /* AT_FDCWD */

int open(const char *path, int flags, ...);
int openat(int at, const char *path, int flags, ...);
int __open_2(const char *path, int flags);
ssize_t pread(int fd, void *bytes, size_t count, off_t offset);

/* global: replaced functions have no argument for it */
static _Atomic(const char *) counted_suffix;
static atomic_long counted, counted_bytes;
/* [fd]: does its file count? Larger numbers do not. */
static atomic_bool counted_files[4096];

void io_count_begin(const char *suffix)
{
    atomic_store(&counted, 0);
    atomic_store(&counted_bytes, 0);
    atomic_store(&counted_suffix, suffix);
}

long io_count_opens(void)
{
    return atomic_load(&counted);
}

long io_count_bytes(void)
{
    return atomic_load(&counted_bytes);
}

static bool counts(int fd)
{
    return fd >= 0 && (size_t)fd < sizeof counted_files / sizeof *counted_files;
}

static int open_file(int at, const char *path, int flags, unsigned mode)
{
    const char *suffix = atomic_load(&counted_suffix);
    const bool ours = suffix != NULL && strlen(path) >= strlen(suffix) &&
                      strcmp(path + strlen(path) - strlen(suffix), suffix) == 0;
    const int fd =
        (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);

    if (ours)
        atomic_fetch_add(&counted, 1);
    if (counts(fd))
        atomic_store(&counted_files[fd], ours);
    return fd;
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    const ssize_t got = syscall(SYS_pread64, fd, bytes, count, offset);

    if (got > 0 && counts(fd) && atomic_load(&counted_files[fd]))
        atomic_fetch_add(&counted_bytes, got);
    return got;
}

/* The mode that follows [flags], if there is one. */
static unsigned mode_of(int flags, va_list args)
{
    return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(args, unsigned) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    int fd;

    va_start(args, flags);
    fd = open_file(IO_COUNT_HERE, path, flags, mode_of(flags, args));
    va_end(args);
    return fd;
}

int openat(int at, const char *path, int flags, ...)
{
    va_list args;
    int fd;

    va_start(args, flags);
    fd = open_file(at, path, flags, mode_of(flags, args));
    va_end(args);
    return fd;
}

/* What fortified callers use when there is no mode. */
int __open_2(const char *path, int flags)
{
    return open_file(IO_COUNT_HERE, path, flags, 0);
}

/* Where sizes of files have 64 bits, these do the same. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
ssize_t pread64(int fd, void *bytes, size_t count, off_t offset)
    __attribute__((alias("pread")));
int openat64(int at, const char *path, int flags, ...)
    __attribute__((alias("openat")));
int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));
