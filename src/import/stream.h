/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* stream: the bytes of a file from its beginning to its end. A file that begins
 * with the two bytes of gzip is unpacked (by zlib), if that is allowed. */
#ifndef CDDP_IMPORT_STREAM_H
#define CDDP_IMPORT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct import_stream import_stream_t;

/* Open the file [path]. [unpack]: it may be a gzip file. ERR_DATA: no regular
 * file. ERR_IO. All messages name the file. */
err_code_t import_stream_open(const char *path, bool unpack,
                              import_stream_t **out, err_t *err);

/* Where the bytes of a stream come from instead of a file. */
typedef struct import_tap {
    /* Read [bytes] bytes, fewer only at the end; *got is their number. The
     * message names the file. */
    err_code_t (*read)(void *state, void *out, size_t bytes, size_t *got,
                       err_t *err);
    void (*close)(void *state);
} import_tap_t;

/* A stream called [path] of [size] bytes that come from [tap] with [state],
 * which is closed with the stream, or here after an error. ERR_MEMORY. */
err_code_t import_stream_wrap(const char *path, int64_t size,
                              const import_tap_t *tap, void *state,
                              import_stream_t **out, err_t *err);

/* Read [bytes] bytes, fewer only at the end; *got is their number. ERR_DATA:
 * a damaged gzip file, or one that is cut. ERR_IO. */
err_code_t import_stream_read(import_stream_t *stream, void *out, size_t bytes,
                              size_t *got, err_t *err);

/* Read exactly [bytes] bytes of [what]; ERR_DATA also if the file ends
 * before. */
err_code_t import_stream_exact(import_stream_t *stream, void *out, size_t bytes,
                               const char *what, err_t *err);

/* Pass over [bytes] bytes, of a plain file without reading them; ERR_DATA if
 * the file ends before. */
err_code_t import_stream_skip(import_stream_t *stream, int64_t bytes,
                              err_t *err);

/* ERR_DATA if anything follows: the file is longer than its header says. */
err_code_t import_stream_end(import_stream_t *stream, err_t *err);

/* Bytes that have been read, after unpacking. */
int64_t import_stream_place(const import_stream_t *stream);

/* Bytes of the file as it is stored. */
int64_t import_stream_size(const import_stream_t *stream);

/* Is it a gzip file that is unpacked? */
bool import_stream_packed(const import_stream_t *stream);

const char *import_stream_path(const import_stream_t *stream);

void import_stream_close(import_stream_t *stream); /* NULL allowed */

#endif
