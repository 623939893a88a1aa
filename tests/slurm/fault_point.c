/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A preloaded library that ends or stops one rank at an exact point, for
 * fault.t: before a given call of a library function. First it writes the
 * process id to the file FAULT_HIT.
 *
 *     FAULT_RANK=3 FAULT_CALL=fsync FAULT_COUNT=2 FAULT_SIGNAL=KILL
 *     FAULT_HIT=/path LD_PRELOAD=.../fault_point.so
 *
 * With FAULT_AFTER=/path calls count only once that file exists.
 * FAULT_CALL: fsync, H5Fopen, ucp_tag_send_nbx, or rename:NAME (to a path that
 * ends in NAME).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The functions as the dynamic linker sees them: only the number of arguments
 * matters, not their types. */
int fsync(int fd);
int rename(const char *from, const char *to);
int64_t H5Fopen(const char *name, unsigned flags, int64_t access);
void *ucp_tag_send_nbx(void *endpoint, const void *data, size_t count,
                       uint64_t tag, const void *how);

static _Atomic int calls;

static void fail(const char *what)
{
    perror(what);
    _exit(99);
}

/* The real function [name]. If there is none, the test is broken and ends. */
static void *real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) {
        fprintf(stderr, "fault_point: no %s\n", name);
        _exit(99);
    }
    return function;
}

static void hit(void)
{
    const char *signal_name = getenv("FAULT_SIGNAL"),
               *path = getenv("FAULT_HIT");
    int fd, length;
    char text[32];

    if (signal_name == NULL || path == NULL)
        fail("fault_point: FAULT_SIGNAL and FAULT_HIT");
    length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0 || write(fd, text, (size_t)length) != length || close(fd) != 0)
        fail(path);
    kill(getpid(), strcmp(signal_name, "KILL") == 0 ? SIGKILL : SIGSTOP);
}

static void point(const char *call)
{
    const char *rank = getenv("FAULT_RANK"), *mine = getenv("SLURM_PROCID");
    const char *wanted = getenv("FAULT_CALL"), *count = getenv("FAULT_COUNT");
    const char *after = getenv("FAULT_AFTER");

    if (rank == NULL || mine == NULL || wanted == NULL || count == NULL ||
        strcmp(rank, mine) != 0 || strcmp(wanted, call) != 0)
        return;
    if (after != NULL && access(after, F_OK) != 0)
        return;
    if (atomic_fetch_add(&calls, 1) + 1 == atoi(count))
        hit();
}

int fsync(int fd)
{
    int (*function)(int) = (int (*)(int))real("fsync");

    point("fsync");
    return function(fd);
}

int rename(const char *from, const char *to)
{
    int (*function)(const char *, const char *) =
        (int (*)(const char *, const char *))real("rename");
    const char *slash = strrchr(to, '/');
    char call[64];

    snprintf(call, sizeof call, "rename:%s", slash == NULL ? to : slash + 1);
    point(call);
    return function(from, to);
}

int64_t H5Fopen(const char *name, unsigned flags, int64_t access)
{
    int64_t (*function)(const char *, unsigned, int64_t) =
        (int64_t(*)(const char *, unsigned, int64_t))real("H5Fopen");

    point("H5Fopen");
    return function(name, flags, access);
}

void *ucp_tag_send_nbx(void *endpoint, const void *data, size_t count,
                       uint64_t tag, const void *how)
{
    void *(*function)(void *, const void *, size_t, uint64_t, const void *) =
        (void *(*)(void *, const void *, size_t, uint64_t, const void *))real(
            "ucp_tag_send_nbx");

    point("ucp_tag_send_nbx");
    return function(endpoint, data, count, tag, how);
}
