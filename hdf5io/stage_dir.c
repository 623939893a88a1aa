/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The directory that contains this one may be writable by everybody (/dev/shm).
 * So this one belongs to its user alone, whatever the umask is; a directory
 * with its name is used only if it belongs to this user; links are not
 * followed; and everything in it is reached through the descriptor.
 *
 * A new directory gets a table and a lock, and then its name, by a rename. A
 * rename cannot replace a directory that holds a table. So if several ranks
 * make the directory at the same time, the first succeeds, and the others join
 * it.
 *
 * Locks are those of flock and not of fcntl, since ranks that are threads of
 * one process must not share a lock. The directory that contains this one may
 * be on a file system that hosts share, where a host may not see the locks of
 * another host. So the name says which host has made a directory, and no other
 * host touches it.
 */
#include "hdf5io/stage_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

/* A name is this prefix with the user and the host, followed by [STAGE_DIGITS]
 * digits of the key. The name of a draft has a dot and more letters after that.
 */
#define STAGE_PREFIX "cddp-stage-%u-%s-"
#define STAGE_DIGITS 16
/* How often a rank tries to join or to make the directory. A try may fail
 * because other ranks make or remove the directory at the same time. */
#define STAGE_TRIES 64

/* The prefix of this user and host. The caller frees it. */
static char *prefix_make(void)
{
    char host[256] = "";

    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    return str_printf(STAGE_PREFIX, (unsigned)geteuid(), host);
}

static int dir_open(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Does the open directory belong to this user alone? */
static bool dir_is_own(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0;
}

static bool dir_lock(int fd, int how)
{
    int rc;

    do
        rc = flock(fd, how | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* Does [name] still lead to the open directory? */
static bool dir_is_named(int at, const char *name, int fd)
{
    struct stat open, named;

    return fstat(fd, &open) == 0 &&
           fstatat(at, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/* Remove the files of the open directory. */
static void dir_empty(int fd)
{
    const int again = dir_open(fd, ".");
    DIR *list = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;

    if (list == NULL) {
        if (again >= 0)
            close(again);
        return;
    }
    while ((entry = readdir(list)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(fd, entry->d_name, 0);
    closedir(list);
}

/* Remove the open directory if no other process has a lock of it. */
static bool dir_remove(int at, const char *name, int fd)
{
    if (!dir_lock(fd, LOCK_EX))
        return false;
    dir_empty(fd);
    return unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* Open and lock the directory if it exists. -1: errno is ENOENT if it does not
 * exist, EAGAIN if it is just being removed. */
static int dir_join(const stage_dir_t *dir)
{
    const int fd = dir_open(dir->base, dir->name);
    int number = 0;

    if (fd < 0)
        return -1;
    if (!dir_is_own(fd))
        number = EPERM;
    else if (!dir_lock(fd, LOCK_SH))
        number = errno;
    else if (!dir_is_named(dir->base, dir->name, fd))
        number = EAGAIN;
    if (number == 0)
        return fd;
    close(fd);
    errno = number;
    return -1;
}

static bool table_make(int fd, size_t bytes)
{
    static const char zeros[4096] = {0};
    const int table =
        openat(fd, STAGE_TABLE,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = table >= 0;

    /* Written zeros have blocks on the disk, so that no later access through a
     * map fails for lack of space. */
    for (size_t done = 0; good && done < bytes; done += sizeof zeros)
        good = file_write_all(table, zeros,
                              bytes - done < sizeof zeros ? bytes - done
                                                          : sizeof zeros);
    if (table >= 0 && close(table) != 0)
        good = false;
    return good;
}

/* Give the new directory [draft] a table, a lock and its name. -1: errno. */
static int draft_name(const stage_dir_t *dir, const char *draft, size_t bytes)
{
    const int fd = dir_open(dir->base, draft);
    int number;

    if (fd < 0)
        return -1;
    errno = EPERM;
    if (dir_is_own(fd) && dir_lock(fd, LOCK_SH) && table_make(fd, bytes) &&
        renameat(dir->base, draft, dir->base, dir->name) == 0)
        return fd;
    number = errno;
    dir_empty(fd);
    close(fd);
    errno = number;
    return -1;
}

/* Make the directory. -1: errno is EEXIST or ENOTEMPTY if another rank was
 * faster, ENOENT or EAGAIN if another process removes the draft, which it takes
 * for one of a killed job. */
static int dir_make(const stage_dir_t *dir, size_t bytes)
{
    char *path = str_printf("%s.XXXXXX", dir->path);
    const char *draft;
    int fd = -1, number;

    if (mkdtemp(path) != NULL) {
        draft = strrchr(path, '/') + 1;
        fd = draft_name(dir, draft, bytes);
        number = errno;
        if (fd < 0)
            unlinkat(dir->base, draft, AT_REMOVEDIR);
        errno = number;
    }
    free(path);
    return fd;
}

/* Join or make the directory. False: errno. */
static bool dir_get(stage_dir_t *dir, size_t bytes)
{
    for (int i = 0; i < STAGE_TRIES; i++) {
        dir->fd = dir_join(dir);
        if (dir->fd >= 0)
            return true;
        if (errno != ENOENT && errno != EAGAIN)
            return false;
        dir->fd = dir_make(dir, bytes);
        dir->made = dir->fd >= 0;
        if (dir->made)
            return true;
        if (errno != ENOENT && errno != EAGAIN && errno != EEXIST &&
            errno != ENOTEMPTY)
            return false;
    }
    return false;
}

err_code_t hdf5io_stage_dir_open(const char *base, uint64_t key, size_t bytes,
                                 stage_dir_t *out, err_t *err)
{
    stage_dir_t dir = {.fd = -1};
    char *prefix = prefix_make();
    err_code_t rc = ERR_OK;

    dir.path = str_printf("%s/%s%0*" PRIx64, base, prefix, STAGE_DIGITS, key);
    free(prefix);
    dir.name = strrchr(dir.path, '/') + 1;
    dir.base = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir.base < 0)
        rc = err_set(err, ERR_IO, "cannot open the directory %s: %s", base,
                     strerror(errno));
    else if (!dir_get(&dir, bytes))
        rc = err_set(err, ERR_IO, "cannot make the directory %s: %s%s",
                     dir.path, strerror(errno),
                     errno == EPERM ? " (it belongs to somebody else)" : "");
    if (rc == ERR_OK)
        *out = dir;
    else
        hdf5io_stage_dir_close(&dir);
    return rc;
}

/* Remove [name], if it is a directory that no process uses. */
static bool dead_remove(int at, const char *name)
{
    const int fd = dir_open(at, name);
    bool gone;

    if (fd < 0)
        return false;
    gone = dir_is_own(fd) && dir_remove(at, name, fd);
    close(fd);
    return gone;
}

/* Is it a name with this prefix? Another host may have a name that begins with
 * the name of this one. */
static bool name_is_own(const char *name, const char *prefix)
{
    const size_t length = strlen(prefix);
    const char *digits = name + length;

    return strncmp(name, prefix, length) == 0 &&
           strspn(digits, "0123456789abcdef") == STAGE_DIGITS &&
           (digits[STAGE_DIGITS] == '\0' || digits[STAGE_DIGITS] == '.');
}

int hdf5io_stage_dir_sweep(const stage_dir_t *dir)
{
    char *prefix = prefix_make();
    const int fd = dir_open(dir->base, ".");
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int removed = 0;

    while (list != NULL && (entry = readdir(list)) != NULL)
        if (name_is_own(entry->d_name, prefix) &&
            strcmp(entry->d_name, dir->name) != 0)
            removed += dead_remove(dir->base, entry->d_name);
    if (list != NULL)
        closedir(list);
    else if (fd >= 0)
        close(fd);
    free(prefix);
    return removed;
}

void hdf5io_stage_dir_close(stage_dir_t *dir)
{
    if (dir->fd >= 0) {
        /* The lock of this rank becomes exclusive, unless other ranks have
         * locks. If two ranks try at the same time, the later one succeeds. */
        dir_remove(dir->base, dir->name, dir->fd);
        close(dir->fd);
    }
    if (dir->base >= 0)
        close(dir->base);
    free(dir->path);
    *dir = (stage_dir_t){.fd = -1, .base = -1};
}
