/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* opens: the functions that open files; each calls file_open. They replace
 * those of the system in a program, or in a preloaded module. Only one source
 * file of this program or module may include this file. That source file must
 * not include fcntl.h, whose declarations do not suit functions that are
 * defined here. */
#ifndef CDDP_TESTS_LIB_OPENS_H
#define CDDP_TESTS_LIB_OPENS_H

#include <asm/fcntl.h>
#include <stdarg.h>

#define HERE (-100) /* AT_FDCWD */

/* Opens [path], which begins at the directory [at]. The including file defines
 * this function. */
static int file_open(int at, const char *path, int flags, unsigned mode);

int open(const char *path, int flags, ...);
int openat(int at, const char *path, int flags, ...);
int __open_2(const char *path, int flags);

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
    fd = file_open(HERE, path, flags, mode_of(flags, args));
    va_end(args);
    return fd;
}

int openat(int at, const char *path, int flags, ...)
{
    va_list args;
    int fd;

    va_start(args, flags);
    fd = file_open(at, path, flags, mode_of(flags, args));
    va_end(args);
    return fd;
}

/* Callers with _FORTIFY_SOURCE use this if there is no mode. */
int __open_2(const char *path, int flags)
{
    return file_open(HERE, path, flags, 0);
}

/* Programs that are built for 64-bit sizes of files call these names. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int at, const char *path, int flags, ...)
    __attribute__((alias("openat")));
int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));

#endif
