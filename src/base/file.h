/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files: opening, reading and durable publishing. If not said otherwise, errors
 * are ERR_IO and name the path and the system's reason. */
#ifndef CDDP_BASE_FILE_H
#define CDDP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Is a symbolic link as the last step of a path accepted? */
typedef enum file_links {
    FILE_LINKS, /* yes: the user named the file, and may link to it */
    FILE_OWN    /* no: a file of a run directory, which cddp itself makes */
} file_links_t;

/*
 * open(2) with [flags] (O_CLOEXEC is added, new files get mode 0666) of a
 * regular file. Anything else at [path] (a fifo, a device, a socket, a
 * directory, with FILE_OWN a symbolic link) is ERR_DATA at once: a fifo without
 * a peer is not waited for, and nothing is truncated before it has been
 * checked. What the system refuses is ERR_IO. errno keeps the reason (ELOOP: a
 * link, EINVAL: no regular file). The caller closes *fd.
 */
err_code_t file_open_regular(const char *path, int flags, file_links_t links,
                             int *fd, err_t *err);

/* Read a whole regular text file; *out is NUL-terminated, freed with free().
 * The second form is for files of a run directory (FILE_OWN). */
err_code_t file_read(const char *path, char **out, size_t *bytes, err_t *err);
err_code_t file_read_own(const char *path, char **out, size_t *bytes,
                         err_t *err);

/* Write [bytes] bytes beside [path], fsync, rename over [path], fsync the
 * directory: the file is there whole or not at all. Who is killed meanwhile
 * leaves a draft only where the file system has no files without a name
 * (O_TMPFILE), or between the two calls that give it its name. */
err_code_t file_publish(const char *path, const void *data, size_t bytes,
                        err_t *err);

/* Remove the drafts that such kills have left in [directory]. To be called by
 * who alone publishes there. */
err_code_t file_sweep(const char *directory, err_t *err);

/* fsync a file or directory by path. */
err_code_t file_sync(const char *path, err_t *err);

/* Make a directory and its parents; an existing one is fine. */
err_code_t file_make_dirs(const char *path, err_t *err);

/* Remove a file or a directory tree; absent is fine. Never follows links. */
err_code_t file_remove_tree(const char *path, err_t *err);

/* Does [fd] take a line of text now? Waits for its reader, a stopped terminal
 * or a full pipe, at most [seconds]. What is closed or broken takes it, too:
 * the write then says why not. */
bool file_takes(int fd, double seconds);

/* The same for a line of a log, of which a run has many: waits at most a
 * second, and all such waits of the process together at most a second and a
 * hundredth of the time since the first. */
bool file_takes_line(int fd);

/* First thing in main(): descriptors 0 to 2 that the caller has closed are put
 * in use, lest the next file that is opened gets what is meant for people.
 * Writing to them goes on to fail. */
void file_standard_open(void);

#endif
