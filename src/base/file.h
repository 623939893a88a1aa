/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files: reading and durable publishing. All errors are ERR_IO and name the
 * path and the system's reason. */
#ifndef CDDP_BASE_FILE_H
#define CDDP_BASE_FILE_H

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

#endif
