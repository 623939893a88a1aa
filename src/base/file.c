/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

static err_code_t file_fail(const char *what, const char *path, err_t *err)
{
    return err_set(err, ERR_IO, "cannot %s %s: %s", what, path,
                   strerror(errno));
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

err_code_t file_remove(const char *path, err_t *err)
{
    return unlink(path) == 0 || errno == ENOENT
               ? ERR_OK
               : file_fail("remove", path, err);
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
