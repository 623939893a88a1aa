/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A preloaded library that makes parts of a program slow, for time.t, seen.t,
 * straggler.t and info.t. Each variable is a number of seconds; if it is not
 * set, that part is not slow.
 * - SLOW_STEP: sleep in each step, when rank 0 writes the step's row to
 *   metrics.jsonl; so train.log_every must be 1.
 * - SLOW_SAVE: sleep in each checkpoint, before its first file is made durable,
 *   so before there is a manifest. If SLOW_HIT is set, the file of that name is
 *   made before the sleep.
 * - SLOW_FSYNC: sleep in each fsync.
 * - SLOW_START: sleep before each HDF5 file is opened. Training opens its data
 *   files in start-up.
 * - SLOW_READ: sleep before each pread of at least SLOW_READ_BYTES, as those of
 *   samples are.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOW_READ_BYTES 8192

/* As the dynamic linker sees it: only the number of arguments matters. */
int64_t H5Fopen(const char *name, unsigned flags, int64_t access);

/* The real function [name]. If there is none, the test is broken and ends. */
static void *real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) {
        fprintf(stderr, "slow_point: no %s\n", name);
        _exit(99);
    }
    return function;
}

/* Sleep for the seconds in [variable], whatever signals come. */
static void slow(const char *variable)
{
    const char *text = getenv(variable);
    const double seconds = text == NULL ? 0 : atof(text);
    struct timespec left = {.tv_sec = (time_t)seconds};

    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (seconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Write the part of the path of the open file [fd] that begins with [part] to
 * [out]. Returns whether the path has [part]. */
static int path_from(int fd, const char *part, char *out, size_t room)
{
    char link[64], path[4096];
    const char *found;
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    found = strstr(path, part);
    if (found != NULL)
        snprintf(out, room, "%s", found);
    return found != NULL;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    ssize_t (*function)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))real("write");

    char path[64];

    if (getenv("SLOW_STEP") != NULL && bytes > 8 &&
        memcmp(data, "{\"step\":", 8) == 0 &&
        path_from(fd, "/metrics.jsonl", path, sizeof path))
        slow("SLOW_STEP");
    return function(fd, data, bytes);
}

int fsync(int fd)
{
    int (*function)(int) = (int (*)(int))real("fsync");
    static char last[512]; /* name of the last checkpoint that was slow */
    const char *hit = getenv("SLOW_HIT");
    char name[512];

    slow("SLOW_FSYNC");
    if (getenv("SLOW_SAVE") != NULL &&
        path_from(fd, "/.tmp-step-", name, sizeof name)) {
        name[1 + strcspn(name + 1, "/")] = '\0';
        if (strcmp(name, last) == 0)
            return function(fd);
        snprintf(last, sizeof last, "%s", name);
        if (hit != NULL)
            close(open(hit, O_WRONLY | O_CREAT, 0644));
        slow("SLOW_SAVE");
    }
    return function(fd);
}

int64_t H5Fopen(const char *name, unsigned flags, int64_t access)
{
    int64_t (*function)(const char *, unsigned, int64_t) =
        (int64_t(*)(const char *, unsigned, int64_t))real("H5Fopen");

    slow("SLOW_START");
    return function(name, flags, access);
}

ssize_t pread(int fd, void *out, size_t bytes, off_t offset)
{
    ssize_t (*function)(int, void *, size_t, off_t) =
        (ssize_t(*)(int, void *, size_t, off_t))real("pread");

    if (bytes >= SLOW_READ_BYTES)
        slow("SLOW_READ");
    return function(fd, out, bytes, offset);
}

ssize_t pread64(int fd, void *out, size_t bytes, off_t offset)
{
    return pread(fd, out, bytes, offset);
}
