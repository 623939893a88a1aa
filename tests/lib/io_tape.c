/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The symbols of a program come before those of its libraries, so libhdf5 calls
 * these functions, too. fcntl.h is not included: its declarations do not suit
 * functions that are defined here.
 */
#include "lib/io_tape.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/opens.h"

#define PATH_ROOM 4608

int rename(const char *from, const char *to);
int renameat2(int from_at, const char *from, int to_at, const char *to,
              unsigned flags);
int fallocate(int fd, int mode, off_t offset, off_t count);
int posix_fallocate(int fd, off_t offset, off_t count);

/* global: replaced functions have no argument for it */
static struct tape {
    pthread_mutex_t lock; /* held during each call that counts */
    const io_tape_plan_t *plan;
    atomic_bool on;
    long calls;
    bool counts; /* the call in progress has the number [calls] */
} tape = {.lock = PTHREAD_MUTEX_INITIALIZER};

void io_tape_begin(const io_tape_plan_t *plan)
{
    pthread_mutex_lock(&tape.lock);
    tape.plan = plan;
    tape.calls = 0;
    atomic_store(&tape.on, true);
    pthread_mutex_unlock(&tape.lock);
}

long io_tape_end(void)
{
    pthread_mutex_lock(&tape.lock);
    atomic_store(&tape.on, false);
    pthread_mutex_unlock(&tape.lock);
    return tape.calls;
}

/* ---- paths --------------------------------------------------------------- */

/* The path of the open file [fd]; "" if it has none. */
static const char *path_of(int fd, char out[PATH_ROOM])
{
    char entry[64];
    ssize_t length;

    snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd);
    length = readlink(entry, out, PATH_ROOM - 1);
    out[length < 0 ? 0 : length] = '\0';
    return out;
}

/* The absolute path of [path], which begins at the directory [at]. */
static const char *path_at(int at, const char *path, char out[PATH_ROOM])
{
    char base[PATH_ROOM] = "";
    int length;

    if (path[0] != '/' && at != HERE)
        path_of(at, base);
    else if (path[0] != '/' && getcwd(base, sizeof base) == NULL)
        base[0] = '\0';
    length = snprintf(out, PATH_ROOM, "%s%s%s", base, path[0] == '/' ? "" : "/",
                      path);
    if (length >= PATH_ROOM)
        out[0] = '\0';
    return out;
}

static ino_t inode_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* ---- what happens to a call ---------------------------------------------- */

/* Is [path] below the directory? Then the lock is held until call_leave. */
static bool call_enter(io_tape_kind_t kind, const char *path)
{
    const int reason = errno;
    size_t length;
    bool below;

    if (!atomic_load(&tape.on))
        return false;
    pthread_mutex_lock(&tape.lock);
    length = strlen(tape.plan->root);
    below = atomic_load(&tape.on) &&
            strncmp(path, tape.plan->root, length) == 0 &&
            (path[length] == '/' || path[length] == '\0');
    tape.counts = below && (tape.plan->kinds & 1u << kind) != 0;
    tape.calls += tape.counts;
    if (!below)
        pthread_mutex_unlock(&tape.lock);
    errno = reason;
    return below;
}

/* call_enter for an open file. */
static bool file_enter(io_tape_kind_t kind, int fd, char path[PATH_ROOM])
{
    return atomic_load(&tape.on) && call_enter(kind, path_of(fd, path));
}

static bool call_hit(io_tape_act_t act)
{
    return tape.counts && tape.calls == tape.plan->at && tape.plan->act == act;
}

/* Must the call in progress fail? If so, errno is set. [space]: the call needs
 * space. */
static bool call_fails(bool space)
{
    const io_tape_plan_t *plan = tape.plan;
    const bool stays = plan->act == IO_TAPE_STAY && plan->at > 0 &&
                       tape.calls >= plan->at && space;

    if (call_hit(IO_TAPE_STOP))
        _exit(IO_TAPE_STOPPED);
    if (!stays && !call_hit(IO_TAPE_FAIL))
        return false;
    errno = plan->error;
    return true;
}

/* The call has ended. [good]: it succeeded. */
static void call_leave(const io_tape_call_t *call, bool good)
{
    const int reason = errno;

    if (good && tape.plan->note != NULL)
        tape.plan->note(tape.plan->context, call);
    if (call_hit(IO_TAPE_TEAR))
        _exit(IO_TAPE_STOPPED);
    pthread_mutex_unlock(&tape.lock);
    errno = reason;
}

/* ---- opening ------------------------------------------------------------- */

static int file_open(int at, const char *path, int flags, unsigned mode)
{
    const bool makes =
        (flags & O_CREAT) != 0 || (flags & __O_TMPFILE) == __O_TMPFILE;
    char full[PATH_ROOM] = "";
    io_tape_call_t call = {
        .kind = IO_TAPE_OPEN, .path = full, .flags = (unsigned)flags};
    struct stat st;
    int fd = -1;

    if (!atomic_load(&tape.on) ||
        !call_enter(call.kind, path_at(at, path, full)))
        return (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);
    call.made = makes &&
                ((flags & __O_TMPFILE) == __O_TMPFILE || lstat(full, &st) != 0);
    if (!call_fails(call.made))
        fd = (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);
    if (fd >= 0)
        call.inode = inode_of(fd);
    call_leave(&call, fd >= 0);
    return fd;
}

/* ---- content ------------------------------------------------------------- */

/* pwrite, or write if [offset] is negative. */
static ssize_t bytes_write(int fd, const void *bytes, size_t count,
                           off_t offset)
{
    if (offset < 0)
        return syscall(SYS_write, fd, bytes, count);
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

static ssize_t file_write(int fd, const void *bytes, size_t count, off_t offset)
{
    char path[PATH_ROOM];
    io_tape_call_t call = {
        .kind = IO_TAPE_WRITE, .path = path, .bytes = bytes, .offset = offset};
    ssize_t done = -1;

    if (!file_enter(call.kind, fd, path))
        return bytes_write(fd, bytes, count, offset);
    if (offset < 0)
        call.offset = (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
    call.inode = inode_of(fd);
    if ((call_hit(IO_TAPE_TEAR) || call_hit(IO_TAPE_SHORT)) && count > 1)
        count /= 2;
    if (!call_fails(true))
        done = bytes_write(fd, bytes, count, offset);
    call.count = done > 0 ? (size_t)done : 0;
    call_leave(&call, done > 0);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    return file_write(fd, bytes, count, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    return file_write(fd, bytes, count, offset);
}

int ftruncate(int fd, off_t size)
{
    char path[PATH_ROOM];
    io_tape_call_t call = {.kind = IO_TAPE_SIZE, .path = path, .offset = size};
    int status = -1;

    if (!file_enter(call.kind, fd, path))
        return (int)syscall(SYS_ftruncate, fd, size);
    call.inode = inode_of(fd);
    if (!call_fails(size > 0))
        status = (int)syscall(SYS_ftruncate, fd, size);
    call_leave(&call, status == 0);
    return status;
}

int truncate(const char *path, off_t size)
{
    char full[PATH_ROOM];
    io_tape_call_t call = {.kind = IO_TAPE_SIZE, .path = full, .offset = size};
    struct stat st = {0};
    int status = -1;

    if (!atomic_load(&tape.on) ||
        !call_enter(call.kind, path_at(HERE, path, full)))
        return (int)syscall(SYS_truncate, path, size);
    if (!call_fails(false))
        status = (int)syscall(SYS_truncate, path, size);
    if (status == 0 && stat(full, &st) == 0)
        call.inode = st.st_ino;
    call_leave(&call, status == 0);
    return status;
}

int fallocate(int fd, int mode, off_t offset, off_t count)
{
    char path[PATH_ROOM];
    io_tape_call_t call = {.kind = IO_TAPE_SIZE, .path = path};
    struct stat st = {0};
    int status = -1;

    if (!file_enter(call.kind, fd, path))
        return (int)syscall(SYS_fallocate, fd, mode, offset, count);
    if (!call_fails(true))
        status = (int)syscall(SYS_fallocate, fd, mode, offset, count);
    if (fstat(fd, &st) == 0) {
        call.inode = st.st_ino;
        call.offset = st.st_size;
    }
    call_leave(&call, status == 0);
    return status;
}

int posix_fallocate(int fd, off_t offset, off_t count)
{
    return fallocate(fd, 0, offset, count) == 0 ? 0 : errno;
}

static int file_sync(int fd, long number)
{
    char path[PATH_ROOM];
    io_tape_call_t call = {.kind = IO_TAPE_SYNC, .path = path};
    int status = -1;

    if (!file_enter(call.kind, fd, path))
        return (int)syscall(number, fd);
    call.inode = inode_of(fd);
    if (!call_fails(false))
        status = (int)syscall(number, fd);
    call_leave(&call, status == 0);
    return status;
}

int fsync(int fd)
{
    return file_sync(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return file_sync(fd, SYS_fdatasync);
}

/* ---- names --------------------------------------------------------------- */

int renameat2(int from_at, const char *from, int to_at, const char *to,
              unsigned flags)
{
    char one[PATH_ROOM], other[PATH_ROOM];
    io_tape_call_t call = {
        .kind = IO_TAPE_RENAME, .path = one, .to = other, .flags = flags};
    int status = -1;

    if (!atomic_load(&tape.on) ||
        !call_enter(call.kind, path_at(from_at, from, one)))
        return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    path_at(to_at, to, other);
    if (call_fails(false))
        status = -1;
    else if (tape.plan->no_exchange && flags != 0)
        errno = EINVAL;
    else
        status = (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    call_leave(&call, status == 0);
    return status;
}

int rename(const char *from, const char *to)
{
    return renameat2(HERE, from, HERE, to, 0);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    char one[PATH_ROOM], other[PATH_ROOM];
    io_tape_call_t call = {.kind = IO_TAPE_LINK, .path = one, .to = other};
    struct stat st = {0};
    int status = -1;

    if (!atomic_load(&tape.on) ||
        !call_enter(call.kind, path_at(to_at, to, other)))
        return (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    path_at(from_at, from, one);
    if (!call_fails(true))
        status = (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    if (status == 0 && lstat(other, &st) == 0)
        call.inode = st.st_ino;
    call_leave(&call, status == 0);
    return status;
}

int link(const char *from, const char *to)
{
    return linkat(HERE, from, HERE, to, 0);
}

int unlinkat(int at, const char *path, int flags)
{
    char full[PATH_ROOM];
    io_tape_call_t call = {.kind = IO_TAPE_UNLINK, .path = full};
    int status = -1;

    if (!atomic_load(&tape.on) ||
        !call_enter(call.kind, path_at(at, path, full)))
        return (int)syscall(SYS_unlinkat, at, path, flags);
    if (!call_fails(false))
        status = (int)syscall(SYS_unlinkat, at, path, flags);
    call_leave(&call, status == 0);
    return status;
}

int unlink(const char *path)
{
    return unlinkat(HERE, path, 0);
}

int rmdir(const char *path)
{
    return unlinkat(HERE, path, 0x200 /* AT_REMOVEDIR */);
}

int mkdir(const char *path, mode_t mode)
{
    char full[PATH_ROOM];
    io_tape_call_t call = {.kind = IO_TAPE_MKDIR, .path = full};
    struct stat st = {0};
    int status = -1;

    if (!atomic_load(&tape.on) ||
        !call_enter(call.kind, path_at(HERE, path, full)))
        return (int)syscall(SYS_mkdirat, HERE, path, mode);
    if (!call_fails(true))
        status = (int)syscall(SYS_mkdirat, HERE, path, mode);
    if (status == 0 && stat(full, &st) == 0)
        call.inode = st.st_ino;
    call_leave(&call, status == 0);
    return status;
}

/* Where sizes of files have 64 bits, these do the same. */
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset)
    __attribute__((alias("pwrite")));
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));
int truncate64(const char *path, off_t size) __attribute__((alias("truncate")));
int fallocate64(int fd, int mode, off_t offset, off_t count)
    __attribute__((alias("fallocate")));
