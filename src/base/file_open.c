/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opening and reading of regular files only. Anybody who may write to a
 * directory can replace a name that is about to be opened: by a symbolic link
 * to another of our files, a FIFO without a writer, or a device. So files are
 * opened without blocking and, in a run directory, without following a link,
 * and are checked before they are read or truncated.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static err_code_t open_fail(const char *path, err_t *err)
{
    const int reason = errno;

    if (reason == ELOOP)
        (void)err_set(err, ERR_DATA,
                      "%s is a symbolic link, which is followed for no file of "
                      "a run directory: expected a regular file; find out who "
                      "made the link and remove it",
                      path);
    else
        (void)err_set(err, ERR_IO, "cannot open %s: %s", path,
                      strerror(reason));
    errno = reason;
    return reason == ELOOP ? ERR_DATA : ERR_IO;
}

static const char *kind_name(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a fifo";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

static err_code_t kind_fail(const char *path, mode_t mode, err_t *err)
{
    (void)err_set(err, ERR_DATA, "%s is %s: expected a regular file", path,
                  kind_name(mode));
    errno = EINVAL;
    return ERR_DATA;
}

/* Explain why opening [path] failed: perhaps it is not a regular file (ENXIO
 * for a socket or a FIFO without a reader, EISDIR, EACCES). */
static err_code_t open_explain(const char *path, file_links_t links, err_t *err)
{
    const int reason = errno;
    const int how = links == FILE_OWN ? AT_SYMLINK_NOFOLLOW : 0;
    struct stat info;

    if (fstatat(AT_FDCWD, path, &info, how) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISLNK(info.st_mode))
        return kind_fail(path, info.st_mode, err);
    errno = reason;
    return open_fail(path, err);
}

err_code_t file_open_regular(const char *path, int flags, file_links_t links,
                             int *fd, err_t *err)
{
    const int safe = O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                     (links == FILE_OWN ? O_NOFOLLOW : 0);
    struct stat info;
    err_code_t rc = ERR_OK;
    int made, reason;

    made = open(path, (flags & ~O_TRUNC) | safe, 0666);
    if (made < 0)
        return open_explain(path, links, err);
    if (fstat(made, &info) != 0)
        rc = open_fail(path, err);
    else if (!S_ISREG(info.st_mode))
        rc = kind_fail(path, info.st_mode, err);
    else if ((flags & O_TRUNC) != 0 && ftruncate(made, 0) != 0)
        rc = open_fail(path, err);
    if (rc == ERR_OK) {
        *fd = made;
        return ERR_OK;
    }
    reason = errno;
    close(made);
    errno = reason;
    return rc;
}

/* Read all of [fd] into *text, which grows, and append a NUL byte. */
static bool read_all(int fd, char **text, size_t *length)
{
    size_t room = 0;
    ssize_t got = 1;
    char *larger;

    while (got > 0) {
        if (room - *length < 2) {
            room = room == 0 ? 4096 : 2 * room;
            larger = realloc(*text, room);
            if (larger == NULL) {
                errno = ENOMEM;
                return false;
            }
            *text = larger;
        }
        do
            got = read(fd, *text + *length, room - *length - 1);
        while (got < 0 && errno == EINTR);
        *length += got > 0 ? (size_t)got : 0;
    }
    if (got == 0)
        (*text)[*length] = '\0';
    return got == 0;
}

static err_code_t read_whole(const char *path, file_links_t links, char **out,
                             size_t *bytes, err_t *err)
{
    char *text = NULL;
    size_t length = 0;
    int fd;
    err_code_t rc = file_open_regular(path, O_RDONLY, links, &fd, err);

    if (rc != ERR_OK)
        return rc;
    if (read_all(fd, &text, &length)) {
        *out = text;
        text = NULL;
        if (bytes != NULL)
            *bytes = length;
    } else {
        rc = err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    free(text);
    close(fd);
    return rc;
}

err_code_t file_read(const char *path, char **out, size_t *bytes, err_t *err)
{
    return read_whole(path, FILE_LINKS, out, bytes, err);
}

err_code_t file_read_own(const char *path, char **out, size_t *bytes,
                         err_t *err)
{
    return read_whole(path, FILE_OWN, out, bytes, err);
}
