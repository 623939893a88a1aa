/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* files: makes HDF5 files for tests, in a directory of their own. */
#ifndef CDDP_TESTS_HDF5IO_FILES_H
#define CDDP_TESTS_HDF5IO_FILES_H

#include <hdf5.h>
#include <stdint.h>

typedef enum files_layout {
    FILES_CONTIGUOUS,
    FILES_CHUNKED,
    FILES_GZIP,
    FILES_COMPACT,
    FILES_USERBLOCK, /* contiguous, after a user block */
    FILES_LAYOUTS
} files_layout_t;

/* One dataset; its elements are value(row, element within the row). */
typedef struct files_column {
    const char *name;
    int ndim; /* dimensions of a row, at most 3 */
    hsize_t dims[3];
    hid_t type; /* stored type */
    double (*value)(int64_t row, int64_t element);
} files_column_t;

/* Make a directory; files_remove removes it. A failure ends the process. */
char *files_make(void);
void files_remove(char *directory);

/* Path "directory/name"; the caller frees it. */
char *files_path(const char *directory, const char *name);

/* Create the empty HDF5 file "directory/name" and return it open. */
hid_t files_create(const char *directory, const char *name);

/* Write [count] columns of [rows] rows to [path]; the first row has number
 * [first]. */
void files_write(const char *path, files_layout_t layout, int64_t first,
                 int64_t rows, const files_column_t *columns, int count);

/* Overwrite number [at] of the flat dataset [name] in [path]. */
void files_poke(const char *path, const char *name, int64_t at, double value);

/* In turn: write [bytes] bytes of [text] to [path]; truncate [path] to [bytes]
 * bytes; return the size of [path]. */
void files_write_text(const char *path, const char *text, size_t bytes);
void files_truncate(const char *path, int64_t bytes);
int64_t files_bytes(const char *path);

#endif
