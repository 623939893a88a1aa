/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A preloaded library, for hurt.t, that makes calls of one rank fail:
 *
 *     FAULT_RANK=3 FAULT_CALL=pread:train-00.h5 FAULT_COUNT=5 FAULT_TIMES=2
 *     FAULT_ERRNO=116 LD_PRELOAD=.../fault_errno.so
 *
 * Here calls 5 and 6 fail. With FAULT_TIMES=0, call 5 and all later calls fail.
 * FAULT_CALL is fsync:NAME, pread:NAME or write:NAME (on a file of that name),
 * or lock (of an open file description). FAULT_ERRNO is an errno value, or
 * "eat": then the process takes memory until it is killed. With FAULT_HIT=/path
 * the first fault makes that file; processes that start later find the file,
 * and have no fault.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fcntls.h"

static _Atomic int calls, reads;
static _Atomic int state; /* 0: not looked yet, 1: armed, 2: off */

/* The real function [name]. If there is none, the test is broken and ends. */
static void *real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL)
        _exit(99);
    return function;
}

static int number_of(const char *name, int fallback)
{
    const char *text = getenv(name);

    return text == NULL ? fallback : atoi(text);
}

static bool armed(void)
{
    const char *rank = getenv("FAULT_RANK"), *mine = getenv("SLURM_PROCID");
    const char *hit = getenv("FAULT_HIT");

    if (atomic_load(&state) == 0)
        atomic_store(&state, rank != NULL && mine != NULL &&
                                     getenv("FAULT_CALL") != NULL &&
                                     strcmp(rank, mine) == 0 &&
                                     (hit == NULL || access(hit, F_OK) != 0)
                                 ? 1
                                 : 2);
    return atomic_load(&state) == 1;
}

/* Take memory until the kernel ends this process. */
static void eat(void)
{
    const size_t piece = (size_t)16 << 20;

    for (;;) {
        void *memory = malloc(piece);

        if (memory == NULL)
            _exit(98);
        memset(memory, 1, piece);
    }
}

/* Must the call with the name [call] fail? If so, errno is set. */
static bool fails(const char *call)
{
    const char *wanted = getenv("FAULT_CALL"), *what = getenv("FAULT_ERRNO");
    const char *hit = getenv("FAULT_HIT");
    const int first = number_of("FAULT_COUNT", 1);
    const int times = number_of("FAULT_TIMES", 1);
    int number;

    if (wanted == NULL || strcmp(wanted, call) != 0 || what == NULL)
        return false;
    number = atomic_fetch_add(&calls, 1) + 1;
    if (number < first || (times > 0 && number >= first + times))
        return false;
    if (hit != NULL)
        close(open(hit, O_WRONLY | O_CREAT, 0644));
    if (strcmp(what, "eat") == 0)
        eat();
    errno = atoi(what);
    return true;
}

/* Like fails, for a call of [kind] on the open file [fd]. */
static bool fails_on(const char *kind, int fd)
{
    char entry[64], path[4096], call[4200];
    const char *wanted = getenv("FAULT_CALL"), *slash;
    ssize_t length;

    if (!armed() || wanted == NULL || strncmp(wanted, kind, strlen(kind)) != 0)
        return false;
    snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd);
    length = readlink(entry, path, sizeof path - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    slash = strrchr(path, '/');
    snprintf(call, sizeof call, "%s:%s", kind,
             slash == NULL ? path : slash + 1);
    return fails(call);
}

/* Stop once, before pread number FAULT_STOP; make the file FAULT_STOPPED. */
static void stop_at(void)
{
    const int number = armed() ? number_of("FAULT_STOP", 0) : 0;
    const char *stopped = getenv("FAULT_STOPPED");

    if (number == 0 || stopped == NULL ||
        atomic_fetch_add(&reads, 1) + 1 != number)
        return;
    if (access(stopped, F_OK) == 0)
        return;
    close(open(stopped, O_WRONLY | O_CREAT, 0644));
    raise(SIGSTOP);
}

int fsync(int fd)
{
    int (*function)(int) = (int (*)(int))real("fsync");

    return fails_on("fsync", fd) ? -1 : function(fd);
}

ssize_t write(int fd, const void *data, size_t count)
{
    ssize_t (*function)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))real("write");

    return fails_on("write", fd) ? -1 : function(fd, data, count);
}

ssize_t pread(int fd, void *out, size_t count, off_t offset)
{
    ssize_t (*function)(int, void *, size_t, off_t) =
        (ssize_t(*)(int, void *, size_t, off_t))real("pread");

    stop_at();
    return fails_on("pread", fd) ? -1 : function(fd, out, count, offset);
}

ssize_t pread64(int fd, void *out, size_t count, off_t offset)
{
    return pread(fd, out, count, offset);
}

static int fcntl_plain(int fd, int cmd, void *argument)
{
    int (*function)(int, int, ...) = (int (*)(int, int, ...))real("fcntl");

    if (cmd == F_OFD_SETLK && armed() && fails("lock"))
        return -1;
    return function(fd, cmd, argument);
}
