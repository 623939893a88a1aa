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
 * With FAULT_AFTER=/path only calls count that come after that file exists;
 * with FAULT_TEXT=TEXT the file must also have that text. With FAULT_TIMES=N
 * later starts of the program have the fault again, until FAULT_HIT has N
 * lines. FAULT_CALL is fsync, H5Fopen, ucp_tag_send_nbx, rename:NAME (to a path
 * that ends in NAME) or pread:NAME (of such a file). FAULT_SIGNAL is KILL,
 * STOP, SEGV or ABRT.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
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

/* Number of lines in the file [path]; 0 if there is none. */
static int hits(const char *path)
{
    FILE *file = fopen(path, "re");
    int count = 0, c;

    if (file == NULL)
        return 0;
    while ((c = getc(file)) != EOF)
        count += c == '\n';
    fclose(file);
    return count;
}

static int signal_named(const char *name)
{
    if (strcmp(name, "STOP") == 0)
        return SIGSTOP;
    if (strcmp(name, "SEGV") == 0)
        return SIGSEGV;
    if (strcmp(name, "ABRT") == 0)
        return SIGABRT;
    return SIGKILL;
}

static void hit(void)
{
    const char *signal_name = getenv("FAULT_SIGNAL"),
               *path = getenv("FAULT_HIT"), *times = getenv("FAULT_TIMES");
    int fd, length;
    char text[32];

    if (signal_name == NULL || path == NULL)
        fail("fault_point: FAULT_SIGNAL and FAULT_HIT");
    if (times != NULL && hits(path) >= atoi(times))
        return;
    length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    fd = open(path, O_WRONLY | O_CREAT | (times == NULL ? O_EXCL : O_APPEND),
              0644);
    if (fd < 0 || write(fd, text, (size_t)length) != length || close(fd) != 0)
        fail(path);
    kill(getpid(), signal_named(signal_name));
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* Does the file [path] contain [text]? */
static bool file_has(const char *path, const char *text)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool has = false;

    while (file != NULL && !has && getline(&line, &room, file) > 0)
        has = strstr(line, text) != NULL;
    free(line);
    if (file != NULL)
        fclose(file);
    return has;
}

static bool is_early(void)
{
    static _Atomic bool late;
    const char *path = getenv("FAULT_AFTER"), *text = getenv("FAULT_TEXT");

    if (path == NULL || late)
        return false;
    late = access(path, F_OK) == 0 && (text == NULL || file_has(path, text));
    return !late;
}

static void point(const char *call)
{
    const char *rank = getenv("FAULT_RANK"), *mine = getenv("SLURM_PROCID");
    const char *wanted = getenv("FAULT_CALL"), *count = getenv("FAULT_COUNT");

    if (rank == NULL || mine == NULL || wanted == NULL || count == NULL ||
        strcmp(rank, mine) != 0 || strcmp(wanted, call) != 0)
        return;
    if (is_early())
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
    char call[64];

    snprintf(call, sizeof call, "rename:%s", name_of(to));
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

/* Reads are many, so get the file's name only if FAULT_CALL is a pread. */
static void point_read(int fd)
{
    const char *wanted = getenv("FAULT_CALL");
    char entry[64], path[4096], call[4200];
    ssize_t length;

    if (wanted == NULL || strncmp(wanted, "pread:", 6) != 0)
        return;
    snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd);
    length = readlink(entry, path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = '\0';
    snprintf(call, sizeof call, "pread:%s", name_of(path));
    point(call);
}

ssize_t pread(int fd, void *out, size_t count, off_t offset)
{
    ssize_t (*function)(int, void *, size_t, off_t) =
        (ssize_t(*)(int, void *, size_t, off_t))real("pread");

    point_read(fd);
    return function(fd, out, count, offset);
}

ssize_t pread64(int fd, void *out, size_t count, off_t offset)
{
    return pread(fd, out, count, offset);
}
