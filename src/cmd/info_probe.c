/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/info_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define PATIENCE 1.0 /* seconds until a new file is seen */
#define WRITE_BYTES 4096

/* The path of [name] in the folder, or with NULL of the folder itself. */
static void path_of(const char *dir, const info_folder_t *folder,
                    const char *name, char out[INFO_PATH_MAX])
{
    snprintf(out, INFO_PATH_MAX, "%s/%s%s%s", dir, folder->name,
             name != NULL ? "/" : "", name != NULL ? name : "");
}

/* ---- rank 0 -------------------------------------------------------------- */

static info_lock_t lock_try(int fd, bool first)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return first ? INFO_LOCK_WORKS : INFO_LOCK_LOCAL;
    return errno == EAGAIN || errno == EACCES ? INFO_LOCK_WORKS
                                              : INFO_LOCK_NONE;
}

/* Make the file of rank 0. Returns 0 or an errno value. */
static int file_make(const char *path, const info_folder_t *folder, int *fd)
{
    *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0)
        return errno;
    errno = ENOSPC; /* a short write does not set it */
    if (write(*fd, folder->content, sizeof folder->content) !=
            (ssize_t)sizeof folder->content ||
        fsync(*fd) != 0)
        return errno;
    return 0;
}

void info_folder_make(const char *dir, info_folder_t *folder, int *fd)
{
    char path[INFO_PATH_MAX];

    memset(folder, 0, sizeof *folder);
    *fd = -1;
    if (getrandom(folder->content, sizeof folder->content, 0) < 0 ||
        snprintf(path, sizeof path, "%s/.cddp-check-XXXXXX", dir) >=
            (int)sizeof path - 64 ||
        mkdtemp(path) == NULL) {
        folder->error = errno != 0 ? errno : ENAMETOOLONG;
        return;
    }
    snprintf(folder->name, sizeof folder->name, "%s", path + strlen(dir) + 1);
    path_of(dir, folder, "seen", path);
    folder->error = file_make(path, folder, fd);
    if (*fd >= 0)
        folder->lock = (int32_t)lock_try(*fd, true);
}

void info_folder_remove(const char *dir, const info_folder_t *folder)
{
    char path[INFO_PATH_MAX];

    if (folder->name[0] == '\0')
        return;
    path_of(dir, folder, NULL, path);
    (void)file_remove_tree(path, NULL);
}

/* ---- every host ---------------------------------------------------------- */

/* Open the file of rank 0 once it is there. Returns -1 if it does not come. */
static int file_await(const char *path)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    const double end = clock_now() + PATIENCE;

    for (;;) {
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        const int other =
            fd >= 0 || errno != EROFS ? fd : open(path, O_RDONLY | O_CLOEXEC);

        if (other >= 0 || clock_now() > end)
            return other;
        nanosleep(&pause, NULL);
    }
}

void info_probe_file(const char *dir, const info_folder_t *folder, bool first,
                     info_record_t *record)
{
    char path[INFO_PATH_MAX], found[sizeof folder->content];
    int fd;

    if (folder->error != 0)
        return;
    path_of(dir, folder, "seen", path);
    fd = file_await(path);
    if (fd < 0) {
        record->seen = INFO_SEEN_NO;
        return;
    }
    record->seen = INFO_SEEN_OTHER;
    if (read(fd, found, sizeof found) == (ssize_t)sizeof found &&
        memcmp(found, folder->content, sizeof found) == 0)
        record->seen = INFO_SEEN_YES;
    if (first)
        record->lock = folder->lock;
    else if (record->seen == INFO_SEEN_YES && folder->lock == INFO_LOCK_WORKS &&
             (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
        record->lock = (int32_t)lock_try(fd, false);
    close(fd);
}

/* Write and fsync; returns 0 or an errno value. */
static int write_time(int fd, double *seconds)
{
    static const char bytes[WRITE_BYTES];
    double begin;

    errno = ENOSPC;
    if (pwrite(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return errno;
    begin = clock_now();
    if (fsync(fd) != 0)
        return errno;
    *seconds = clock_now() - begin;
    return 0;
}

void info_probe_write(const char *dir, const info_folder_t *folder, int rank,
                      info_record_t *record)
{
    char path[INFO_PATH_MAX], name[32];
    double seconds = -1;
    int fd;

    snprintf(name, sizeof name, "rank-%d", rank);
    path_of(dir, folder, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        record->write = errno;
        return;
    }
    record->write = write_time(fd, &seconds);
    if (seconds >= 0 && (record->fsync < 0 || seconds < record->fsync))
        record->fsync = seconds;
    if (close(fd) != 0 && record->write == 0)
        record->write = errno;
}

uint64_t info_probe_shm(void)
{
    struct statvfs shm;

    if (statvfs("/dev/shm", &shm) != 0)
        return 0;
    return (uint64_t)shm.f_bavail * shm.f_frsize;
}
