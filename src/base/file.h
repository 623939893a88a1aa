/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files: opening, reading and durable publishing. Unless stated otherwise,
 * errors are ERR_IO and name the path and the system's reason. */
#ifndef CDDP_BASE_FILE_H
#define CDDP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* May the last component of a path be a symbolic link? */
typedef enum file_links {
    FILE_LINKS, /* yes: files that the user names */
    FILE_OWN    /* no: files of a run directory, which cddp makes itself */
} file_links_t;

/*
 * open(2) of a regular file with [flags]; O_CLOEXEC is added, and new files get
 * mode 0666. Anything else at [path] (a FIFO, device, socket or directory; with
 * FILE_OWN also a symbolic link) is ERR_DATA: a FIFO without a peer does not
 * block, and nothing is truncated before it was checked. System errors are
 * ERR_IO. errno holds the reason (ELOOP: a link, EINVAL: not a regular file).
 * The caller closes *fd.
 */
err_code_t file_open_regular(const char *path, int flags, file_links_t links,
                             int *fd, err_t *err);

/* Read a whole regular file. *out is NUL-terminated, and the caller frees it
 * with free(); *bytes is its length ([bytes] may be NULL). file_read_own is for
 * files of a run directory (FILE_OWN). ERR_DATA as above. */
err_code_t file_read(const char *path, char **out, size_t *bytes, err_t *err);
err_code_t file_read_own(const char *path, char **out, size_t *bytes,
                         err_t *err);

/* Write a temporary file (draft) with [bytes] bytes next to [path], fsync it,
 * rename it to [path] and fsync the directory: the file appears complete or not
 * at all. A killed process leaves a draft only if the file system has no files
 * without a name (O_TMPFILE), or between the two calls that name the file. */
err_code_t file_publish(const char *path, const void *data, size_t bytes,
                        err_t *err);

/* May a file that exists be replaced? */
typedef enum file_replace { FILE_REPLACE, FILE_NEW } file_replace_t;

/* Writes the bytes of a file to [fd], by file_write_all. */
typedef err_code_t file_fill_t(void *context, int fd, err_t *err);

/* As file_publish, with the bytes that [fill] writes: for files that do not fit
 * in memory. [fill] may be called twice, for two drafts; its error is returned.
 * FILE_NEW: a file that exists is ERR_IO, and is not changed. */
err_code_t file_publish_fill(const char *path, file_replace_t replace,
                             file_fill_t *fill, void *context, err_t *err);

/* write(2) until all bytes are written. False: errno holds the reason. */
bool file_write_all(int fd, const void *data, size_t bytes);

/* Remove drafts of killed processes in [directory]. Only for the one process
 * that publishes there. */
err_code_t file_sweep(const char *directory, err_t *err);

/* fsync a file or directory by path. */
err_code_t file_sync(const char *path, err_t *err);

/* Make a directory and its parents; it may exist already. */
err_code_t file_make_dirs(const char *path, err_t *err);

/* Remove a file, which need not exist. A directory is an error. Of a symbolic
 * link only the link is removed. */
err_code_t file_remove(const char *path, err_t *err);

/* Remove a file or a directory tree; it need not exist. Links are not
 * followed. */
err_code_t file_remove_tree(const char *path, err_t *err);

/* Can a line of text be written to [fd]? Waits at most [seconds] for its reader
 * (a stopped terminal, a full pipe). True if [fd] is closed or broken: then the
 * write reports the error. */
bool file_takes(int fd, double seconds);

/* file_takes for a log line, of which a run prints many: waits at most one
 * second; all such waits of the process together last at most one second plus 1
 * % of the time since the first wait. */
bool file_takes_line(int fd);

/* To be called first in main(): opens descriptors 0 to 2 if the caller closed
 * them, so that the next opened file does not receive messages for people.
 * Writing to them still fails. */
void file_standard_open(void);

#endif
