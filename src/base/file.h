/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files: reading and durable publishing. All errors are ERR_IO and name the
 * path and the system's reason. */
#ifndef CDDP_BASE_FILE_H
#define CDDP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Read a whole text file; *out is NUL-terminated, freed with free(). */
err_code_t file_read(const char *path, char **out, size_t *bytes, err_t *err);

/* Write [bytes] bytes under a temporary name beside [path], fsync, rename over
 * [path], fsync the directory: the file is there whole or not at all. */
err_code_t file_publish(const char *path, const void *data, size_t bytes,
                        err_t *err);

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
