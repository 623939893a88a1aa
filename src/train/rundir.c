/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The lock is an open-file-description lock on RUNDIR/lock. It works between
 * threads of one process, and between nodes if the file system supports POSIX
 * locks. If the file system does not (ENOLCK, ENOTSUP), the owner that the file
 * names is looked for. If it is gone or cannot be found, a warning is logged
 * and the run goes on without a lock: an error would make such a file system
 * unusable.
 */
#include "train/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/owner.h"
#include "train/settings.h"

#define OWNER_MAX 4096 /* maximum bytes of a lock file */
/* Attempts to lock a directory that other starts remove. */
#define ATTEMPTS 16

struct train_rundir {
    int lock;
    /* This start has made the directory, the lock file. */
    bool made_dir, made_lock;
    size_t owner_bytes;
    char *path, *lock_path;
    /* Content of the lock file before this start. */
    char owner_before[OWNER_MAX];
};

/* Read who has the directory, according to its lock file. */
static void owner_get(const train_rundir_t *rundir, char *out, size_t room)
{
    const ssize_t got = pread(rundir->lock, out, room - 1, 0);

    out[got > 0 ? got : 0] = '\0';
}

static err_code_t busy(const train_rundir_t *rundir, err_t *err)
{
    char owner[256];

    owner_get(rundir, owner, sizeof owner);
    owner[strcspn(owner, "\n")] = '\0';
    return err_set(err, ERR_BUSY,
                   "run directory %s is in use by %s: wait for it, end it, or "
                   "choose another with --set run.dir=DIR",
                   rundir->path, owner[0] != '\0' ? owner : "another run");
}

/* Locking failed with errno [number], because the file system has no locks. */
static err_code_t without_lock(const train_rundir_t *rundir, const char *owner,
                               int number, err_t *err)
{
    char before[512];

    owner_get(rundir, before, sizeof before);
    if (!rundir->made_lock &&
        train_owner_look(before, owner) == TRAIN_OWNER_ALIVE)
        return busy(rundir, err);
    log_warn("train",
             "run directory %s cannot be locked (%s): a second run that starts "
             "at the same moment would not notice this one",
             rundir->path, strerror(number));
    return ERR_OK;
}

static err_code_t take_lock(const train_rundir_t *rundir, const char *owner,
                            err_t *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(rundir->lock, F_OFD_SETLK, &whole) == 0)
        return ERR_OK;
    if (errno == EAGAIN || errno == EACCES)
        return busy(rundir, err);
    return without_lock(rundir, owner, errno, err);
}

/* Write [text] over the content of the lock file. The file is not truncated
 * first, so that a full disk does not leave it empty. */
static bool owner_put(const train_rundir_t *rundir, const char *text,
                      size_t bytes)
{
    return pwrite(rundir->lock, text, bytes, 0) == (ssize_t)bytes &&
           ftruncate(rundir->lock, (off_t)bytes) == 0;
}

static err_code_t owner_set(train_rundir_t *rundir, const char *owner,
                            err_t *err)
{
    ssize_t got = pread(rundir->lock, rundir->owner_before,
                        sizeof rundir->owner_before, 0);
    char *line = str_printf("%s\n", owner);
    err_code_t rc = ERR_OK;

    if (got < 0 || !owner_put(rundir, line, strlen(line)))
        rc = err_set(err, ERR_IO, "cannot write %s: %s", rundir->lock_path,
                     strerror(errno));
    else
        rundir->owner_bytes = (size_t)got;
    free(line);
    return rc;
}

/* Return whether the path of the lock file still is the file that this run has
 * open. */
static bool lock_is_there(const train_rundir_t *rundir)
{
    struct stat mine, there;

    return fstat(rundir->lock, &mine) == 0 &&
           lstat(rundir->lock_path, &there) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* Open the lock file; make its directory if necessary. ERR_OK without an open
 * file if another start removes the directory or the file meanwhile. */
static err_code_t lock_open(train_rundir_t *rundir, err_t *err)
{
    struct stat info;
    err_code_t rc;

    rundir->made_dir |= lstat(rundir->path, &info) != 0 && errno == ENOENT;
    rc = file_make_dirs(rundir->path, err);
    if (rc != ERR_OK)
        return rc;
    rc = file_open_regular(rundir->lock_path, O_RDWR | O_CREAT | O_EXCL,
                           FILE_OWN, &rundir->lock, err);
    rundir->made_lock = rc == ERR_OK;
    if (rc == ERR_IO && errno == EEXIST)
        rc = file_open_regular(rundir->lock_path, O_RDWR, FILE_OWN,
                               &rundir->lock, err);
    if (rc == ERR_IO && errno == ENOENT)
        return ERR_OK;
    if (rc != ERR_IO)
        return rc;
    return err_set(err, ERR_IO,
                   "run directory %s is not writable (%s): mend its "
                   "permissions or choose another with --set run.dir=DIR",
                   rundir->path, strerror(errno));
}

/* Open the lock file and lock it. A start that was refused removes the files
 * that it made, perhaps just after this start has opened them: then try
 * again. */
static err_code_t lock_take(train_rundir_t *rundir, const char *owner,
                            err_t *err)
{
    err_code_t rc;

    for (int i = 0; i < ATTEMPTS; i++) {
        rc = lock_open(rundir, err);
        if (rc == ERR_OK && rundir->lock >= 0)
            rc = take_lock(rundir, owner, err);
        if (rc != ERR_OK || (rundir->lock >= 0 && lock_is_there(rundir)))
            return rc;
        if (rundir->lock >= 0)
            close(rundir->lock);
        rundir->lock = -1;
    }
    return err_set(err, ERR_IO,
                   "run directory %s is made and removed again and again by "
                   "something else; choose another with --set run.dir=DIR",
                   rundir->path);
}

err_code_t train_rundir_open(const char *path, const char *owner,
                             train_rundir_t **out, err_t *err)
{
    train_rundir_t *rundir = NULL;
    err_code_t rc = mem_new(train_rundir_t, 1, "run directory", &rundir, err);

    if (rc != ERR_OK)
        return rc;
    rundir->lock = -1;
    rundir->path = str_dup(path);
    rundir->lock_path = str_printf("%s/lock", path);
    rc = lock_take(rundir, owner, err);
    if (rc == ERR_OK)
        rc = owner_set(rundir, owner, err);
    if (rc == ERR_OK)
        *out = rundir;
    else
        train_rundir_close(rundir);
    return rc;
}

err_code_t train_rundir_accept(train_rundir_t *rundir,
                               const train_config_t *config, int64_t step,
                               err_t *err)
{
    char *checkpoints = str_printf("%s/checkpoints", rundir->path);
    err_code_t rc = file_make_dirs(checkpoints, err);
    err_t trouble = ERR_INIT;

    if (rc == ERR_OK && (file_sweep(rundir->path, &trouble) != ERR_OK ||
                         file_sweep(checkpoints, &trouble) != ERR_OK))
        log_warn("train", "%s", trouble.text);
    if (rc == ERR_OK)
        rc = train_settings_keep(rundir->path, config, step, err);
    free(checkpoints);
    return rc;
}

void train_rundir_refuse(train_rundir_t *rundir)
{
    if (rundir == NULL || !lock_is_there(rundir))
        return;
    if (!rundir->made_lock) {
        if (!owner_put(rundir, rundir->owner_before, rundir->owner_bytes))
            log_warn("train", "cannot write back what %s held: %s",
                     rundir->lock_path, strerror(errno));
        return;
    }
    /* Another start that opens the lock file before this call will notice that
     * the file has no name any more. */
    unlink(rundir->lock_path);
    if (rundir->made_dir)
        rmdir(rundir->path);
}

err_code_t train_rundir_check(const train_rundir_t *rundir, err_t *err)
{
    if (lock_is_there(rundir))
        return ERR_OK;
    return err_set(err, ERR_IO,
                   "run directory %s was removed, renamed or replaced while "
                   "the run was using it (its file lock is not the one that "
                   "this run holds): nothing more can be kept there; put it "
                   "back and start the run again",
                   rundir->path);
}

void train_rundir_close(train_rundir_t *rundir)
{
    if (rundir == NULL)
        return;
    if (rundir->lock >= 0)
        close(rundir->lock);
    free(rundir->lock_path);
    free(rundir->path);
    mem_free(rundir);
}
