/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Durable publishing: a file is written as a draft beside its name, synced, and
 * then gets its name. The draft has no name where the file system allows that
 * (O_TMPFILE), so that a killed process leaves nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

#define DRAFT_END ".tmp"

/* What to publish. */
typedef struct publish {
    const char *path;
    file_fill_t *fill;
    void *context;
} publish_t;

static err_code_t publish_fail(const char *what, const char *path, err_t *err)
{
    return err_set(err, ERR_IO, "cannot %s %s: %s", what, path,
                   strerror(errno));
}

bool file_write_all(int fd, const void *data, size_t bytes)
{
    const char *next = data;
    ssize_t put;

    while (bytes > 0) {
        put = write(fd, next, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        next += put;
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

/* ---- drafts ------------------------------------------------------------- */

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

/* Fill and sync a file without a name, then name it [draft]. *made is false,
 * without an error, if the file system cannot do that. */
static err_code_t draft_nameless(const publish_t *publish, const char *draft,
                                 bool *made, err_t *err)
{
    int fd = file_nameless(draft);
    err_code_t rc;

    *made = false;
    if (fd < 0)
        return ERR_OK;
    rc = publish->fill(publish->context, fd, err);
    if (rc == ERR_OK && fsync(fd) != 0)
        rc = publish_fail("write", publish->path, err);
    if (rc == ERR_OK)
        *made = file_name(fd, draft);
    if (close(fd) == 0 || !*made)
        return rc;
    *made = false;
    unlink(draft);
    return ERR_OK;
}

/* Create the draft with its name, then fill and sync it. */
static err_code_t draft_named(const publish_t *publish, const char *draft,
                              err_t *err)
{
    err_code_t rc;
    /* O_EXCL refuses a name that another process uses. */
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return publish_fail("create", draft, err);
    rc = publish->fill(publish->context, fd, err);
    if (rc == ERR_OK && fsync(fd) != 0)
        rc = publish_fail("write", draft, err);
    if (close(fd) != 0 && rc == ERR_OK)
        rc = publish_fail("write", draft, err);
    if (rc != ERR_OK)
        unlink(draft);
    return rc;
}

/* Rename the draft to [path], which must not exist. */
static bool draft_rename_new(const char *draft, const char *path)
{
    if (renameat2(AT_FDCWD, draft, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    /* NFS has no such rename. */
    return link(draft, path) == 0 && unlink(draft) == 0;
}

/* ---- publishing --------------------------------------------------------- */

err_code_t file_publish_fill(const char *path, file_replace_t replace,
                             file_fill_t *fill, void *context, err_t *err)
{
    const publish_t publish = {path, fill, context};
    const double now = clock_now();
    char *draft = str_printf("%s.%ld-%09.0f" DRAFT_END, path, (long)getpid(),
                             1e9 * (now - floor(now)));
    bool made, named;
    err_code_t rc = draft_nameless(&publish, draft, &made, err);

    if (rc == ERR_OK && !made)
        rc = draft_named(&publish, draft, err);
    if (rc != ERR_OK)
        goto free;
    named = replace == FILE_REPLACE ? rename(draft, path) == 0
                                    : draft_rename_new(draft, path);
    if (!named) {
        rc = publish_fail("publish", path, err);
        unlink(draft);
    }
    if (rc == ERR_OK)
        rc = file_sync_parent(path, err);
free:
    free(draft);
    return rc;
}

/* Bytes in memory, which go to [path]. */
typedef struct bytes {
    const char *path;
    const void *data;
    size_t bytes;
} bytes_t;

static err_code_t bytes_fill(void *context, int fd, err_t *err)
{
    const bytes_t *from = context;

    return file_write_all(fd, from->data, from->bytes)
               ? ERR_OK
               : publish_fail("write", from->path, err);
}

err_code_t file_publish(const char *path, const void *data, size_t bytes,
                        err_t *err)
{
    bytes_t from = {path, data, bytes};

    return file_publish_fill(path, FILE_REPLACE, bytes_fill, &from, err);
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
        return publish_fail("list", directory, err);
    while (rc == ERR_OK && (entry = readdir(list)) != NULL)
        if (file_is_draft(entry->d_name) &&
            unlinkat(dirfd(list), entry->d_name, 0) != 0 && errno != ENOENT)
            rc = err_set(err, ERR_IO, "cannot remove %s/%s: %s", directory,
                         entry->d_name, strerror(errno));
    closedir(list);
    return rc;
}
