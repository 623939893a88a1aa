/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The lock is an open-file-description lock on RUNDIR/lock: it works between
 * the threads of one process and, where the file system carries POSIX locks,
 * between nodes. Where it does not (ENOLCK, ENOTSUP), we say so and go on:
 * refusing would make such file systems useless.
 */
#include "train/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

struct train_rundir {
    int lock;
};

static err_code_t busy(int lock, const char *path, err_t *err)
{
    char owner[256];
    ssize_t got = pread(lock, owner, sizeof owner - 1, 0);

    owner[got > 0 ? got : 0] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    return err_set(err, ERR_BUSY,
                   "run directory %s is in use by %s: wait for it, end it, or "
                   "choose another with --set run.dir=DIR",
                   path, owner[0] != '\0' ? owner : "another run");
}

static err_code_t take_lock(int lock, const char *path, const char *owner,
                            err_t *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *line = NULL;
    err_code_t rc = ERR_OK;
    size_t length;

    if (fcntl(lock, F_OFD_SETLK, &whole) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return busy(lock, path, err);
        log_warn("train",
                 "run directory %s cannot be locked (%s): nothing "
                 "keeps a second run out of it",
                 path, strerror(errno));
    }
    line = str_printf("%s\n", owner);
    length = strlen(line);
    if (ftruncate(lock, 0) != 0 ||
        pwrite(lock, line, length, 0) != (ssize_t)length)
        rc = err_set(err, ERR_IO, "cannot write %s/lock: %s", path,
                     strerror(errno));
    free(line);
    return rc;
}

err_code_t train_rundir_open(const char *path, const char *owner,
                             train_rundir_t **out, err_t *err)
{
    char *checkpoints = str_printf("%s/checkpoints", path);
    char *lock_path = str_printf("%s/lock", path);
    train_rundir_t *rundir = NULL;
    err_code_t rc;

    rc = file_make_dirs(checkpoints, err);
    if (rc != ERR_OK)
        goto free;
    rc = mem_alloc(sizeof *rundir, "run directory", (void **)&rundir, err);
    if (rc != ERR_OK)
        goto free;
    rundir->lock = -1;
    rc = file_open_regular(lock_path, O_RDWR | O_CREAT, FILE_OWN, &rundir->lock,
                           err);
    if (rc == ERR_IO)
        rc = err_set(err, ERR_IO,
                     "run directory %s is not writable (%s): mend its "
                     "permissions or choose another with --set run.dir=DIR",
                     path, strerror(errno));
    if (rc != ERR_OK)
        goto close;
    rc = take_lock(rundir->lock, path, owner, err);
    if (rc != ERR_OK)
        goto close;
    *out = rundir;
    goto free;

close:
    train_rundir_close(rundir);
free:
    free(lock_path);
    free(checkpoints);
    return rc;
}

err_code_t train_rundir_check(const train_rundir_t *rundir, const char *path,
                              err_t *err)
{
    char *lock_path = str_printf("%s/lock", path);
    struct stat mine, there;
    err_code_t rc = ERR_OK;

    if (fstat(rundir->lock, &mine) != 0 || lstat(lock_path, &there) != 0 ||
        mine.st_dev != there.st_dev || mine.st_ino != there.st_ino)
        rc = err_set(err, ERR_IO,
                     "run directory %s was removed, renamed or replaced while "
                     "the run was using it (its file lock is not the one that "
                     "this run holds): nothing more can be kept there; put it "
                     "back and start the run again",
                     path);
    free(lock_path);
    return rc;
}

void train_rundir_close(train_rundir_t *rundir)
{
    if (rundir == NULL)
        return;
    if (rundir->lock >= 0)
        close(rundir->lock);
    mem_free(rundir);
}

err_code_t train_rundir_config(const char *path, const train_config_t *config,
                               err_t *err)
{
    char *file = str_printf("%s/config.yaml", path);
    str_buf_t text = {0};
    err_code_t rc;

    opt_print(train_options, config, 0, &text);
    rc = file_publish(file, text.text, text.length, err);
    str_buf_free(&text);
    free(file);
    return rc;
}
