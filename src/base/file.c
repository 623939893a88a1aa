/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#define DRAFT_END ".tmp"

static err_code_t file_fail(const char *what, const char *path, err_t *err)
{
    return err_set(err, ERR_IO, "cannot %s %s: %s", what, path,
                   strerror(errno));
}

static bool file_write_all(int fd, const char *data, size_t bytes)
{
    ssize_t put;

    while (bytes > 0) {
        put = write(fd, data, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        data += put;
        bytes -= (size_t)put;
    }
    return true;
}

static err_code_t file_sync_parent(const char *path, err_t *err)
{
    char *copy = str_dup(path);
    err_code_t rc = file_sync(dirname(copy), err);

    free(copy);
    return rc;
}

/* Open a file without a name in the directory of [path]; it disappears with its
 * process. -1 if the file system has no such files, or if they could not be
 * named later. */
static int file_nameless(const char *path)
{
    char *copy = str_dup(path);
    int fd = -1;

    if (access("/proc/self/fd", X_OK) == 0)
        fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(copy);
    return fd;
}

/* Give the file without a name the name [draft]. */
static bool file_name(int fd, const char *draft)
{
    char *self = str_printf("/proc/self/fd/%d", fd);
    const bool named =
        linkat(AT_FDCWD, self, AT_FDCWD, draft, AT_SYMLINK_FOLLOW) == 0;

    free(self);
    return named;
}

/* Write and sync the data, then name the file; false if that is not
 * possible. */
static bool file_draft_nameless(const char *draft, const void *data,
                                size_t bytes)
{
    int fd = file_nameless(draft);
    bool good;

    if (fd < 0)
        return false;
    good = file_write_all(fd, data, bytes) && fsync(fd) == 0 &&
           file_name(fd, draft);
    if (close(fd) == 0 && good)
        return true;
    if (good)
        unlink(draft);
    return false;
}

/* Create the draft with its name, then write and sync it. */
static err_code_t file_draft_named(const char *draft, const void *data,
                                   size_t bytes, err_t *err)
{
    err_code_t rc = ERR_OK;
    /* O_EXCL refuses a name that another process uses. */
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return file_fail("create", draft, err);
    if (!file_write_all(fd, data, bytes) || fsync(fd) != 0)
        rc = file_fail("write", draft, err);
    if (close(fd) != 0 && rc == ERR_OK)
        rc = file_fail("write", draft, err);
    if (rc != ERR_OK)
        unlink(draft);
    return rc;
}

err_code_t file_publish(const char *path, const void *data, size_t bytes,
                        err_t *err)
{
    const double now = clock_now();
    char *draft = str_printf("%s.%ld-%09.0f" DRAFT_END, path, (long)getpid(),
                             1e9 * (now - floor(now)));
    err_code_t rc = ERR_OK;

    if (!file_draft_nameless(draft, data, bytes))
        rc = file_draft_named(draft, data, bytes, err);
    if (rc == ERR_OK && rename(draft, path) != 0) {
        rc = file_fail("publish", path, err);
        unlink(draft);
    }
    if (rc == ERR_OK)
        rc = file_sync_parent(path, err);
    free(draft);
    return rc;
}

/* Is [name] that of a draft of file_publish, NAME.PROCESS-NANOSECONDS.tmp? */
static bool file_is_draft(const char *name)
{
    static const char digits[] = "0123456789";
    const size_t length = strlen(name), end = sizeof DRAFT_END - 1;
    const char *dash = strrchr(name, '-'), *dot = dash;

    if (dash == NULL || length < end ||
        strcmp(name + length - end, DRAFT_END) != 0)
        return false;
    while (dot > name && dot[-1] >= '0' && dot[-1] <= '9')
        dot--;
    return dot < dash && dot > name + 1 && dot[-1] == '.' &&
           strspn(dash + 1, digits) >= 9 &&
           dash + 1 + strspn(dash + 1, digits) == name + length - end;
}

err_code_t file_sweep(const char *directory, err_t *err)
{
    struct dirent *entry;
    DIR *list = opendir(directory);
    err_code_t rc = ERR_OK;

    if (list == NULL)
        return file_fail("list", directory, err);
    while (rc == ERR_OK && (entry = readdir(list)) != NULL)
        if (file_is_draft(entry->d_name) &&
            unlinkat(dirfd(list), entry->d_name, 0) != 0 && errno != ENOENT)
            rc = err_set(err, ERR_IO, "cannot remove %s/%s: %s", directory,
                         entry->d_name, strerror(errno));
    closedir(list);
    return rc;
}

err_code_t file_sync(const char *path, err_t *err)
{
    err_code_t rc = ERR_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return file_fail("open", path, err);
    /* EINVAL: the file system cannot sync directories and needs no sync. */
    if (fsync(fd) != 0 && errno != EINVAL)
        rc = file_fail("sync", path, err);
    close(fd);
    return rc;
}

/* mkdir that accepts an existing directory. */
static bool file_make_dir(const char *path)
{
    struct stat info;

    if (mkdir(path, 0777) == 0)
        return true;
    if (errno != EEXIST)
        return false;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return true;
    errno = ENOTDIR;
    return false;
}

err_code_t file_make_dirs(const char *path, err_t *err)
{
    err_code_t rc = ERR_OK;
    char *copy = str_dup(path);
    char *at;
    struct stat info;

    /* Existing parents may not allow mkdir (read-only mount), so look first. */
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        goto out;
    for (at = copy + 1; copy[0] != '\0' && *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (stat(copy, &info) != 0 && !file_make_dir(copy)) {
            rc = file_fail("make directory", copy, err);
            goto out;
        }
        *at = '/';
    }
    if (!file_make_dir(copy))
        rc = file_fail("make directory", path, err);
out:
    free(copy);
    return rc;
}

static bool file_remove_at(int dir, const char *name);

/* Remove everything in the directory [fd]; closes [fd]. */
static bool file_remove_inside(int fd)
{
    struct dirent *entry;
    DIR *list = fdopendir(fd);
    bool good = true;
    int reason;

    if (list == NULL) {
        reason = errno;
        close(fd);
        errno = reason;
        return false;
    }
    while (good && (errno = 0, entry = readdir(list)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            good = file_remove_at(dirfd(list), entry->d_name);
    reason = errno;
    closedir(list);
    errno = reason;
    return good && reason == 0;
}

/* Remove [name] of any type; it need not exist. */
static bool file_remove_at(int dir, const char *name)
{
    int fd;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) {
        errno = 0;
        return true;
    }
    if (errno != EISDIR && errno != EPERM)
        return false;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !file_remove_inside(fd))
        return false;
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

err_code_t file_remove_tree(const char *path, err_t *err)
{
    if (!file_remove_at(AT_FDCWD, path))
        return file_fail("remove", path, err);
    return ERR_OK;
}

bool file_takes(int fd, double seconds)
{
    const double end = clock_now() + seconds;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    double left;
    int ready;

    do {
        left = end - clock_now();
        ready = poll(&wait, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
}

#define LINE_PATIENCE 1.0 /* seconds */
#define LINE_SHARE 0.01   /* of the time since the first wait */

/* global: log lines of all threads wait for the same reader */
static struct line_waits {
    pthread_mutex_t lock;
    double since;  /* instant of the first wait; 0: none yet */
    double waited; /* seconds waited, or reserved for a current wait */
} line_waits = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Reserve and return the seconds that a wait may take. */
static double line_wait_begin(struct line_waits *waits, double now)
{
    double patience;

    pthread_mutex_lock(&waits->lock);
    if (waits->since == 0)
        waits->since = now;
    patience =
        LINE_PATIENCE + LINE_SHARE * (now - waits->since) - waits->waited;
    patience = patience < 0 ? 0 : patience;
    patience = patience < LINE_PATIENCE ? patience : LINE_PATIENCE;
    waits->waited += patience;
    pthread_mutex_unlock(&waits->lock);
    return patience;
}

bool file_takes_line(int fd)
{
    double begin, patience;
    bool takes;

    if (file_takes(fd, 0))
        return true;
    begin = clock_now();
    patience = line_wait_begin(&line_waits, begin);
    takes = file_takes(fd, patience);
    pthread_mutex_lock(&line_waits.lock);
    line_waits.waited += clock_now() - begin - patience;
    pthread_mutex_unlock(&line_waits.lock);
    return takes;
}

/* Opened for reading only, so that writing to 1 and 2 fails as before. */
void file_standard_open(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}
