/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * columns: sources whose files hold nothing but a header and one array of
 * numbers, dimension 0 of which counts samples. The words are NAME=FILE; files
 * with the same name follow each other, in the given order.
 */
#ifndef CDDP_IMPORT_COLUMNS_H
#define CDDP_IMPORT_COLUMNS_H

#include <stdbool.h>

#include "import/source.h"
#include "import/stream.h"

/* What the header of a file says. */
typedef struct import_header {
    import_field_t field; /* without a name */
    int64_t rows;
    bool swapped; /* the numbers have the other byte order */
} import_header_t;

/* Read the header of a file, up to its first number. */
typedef err_code_t import_header_read_t(const import_config_t *config,
                                        import_stream_t *stream,
                                        import_header_t *out, err_t *err);

/* Takes over [word], of free(). */
typedef err_code_t import_word_take_t(void *context, char *word, err_t *err);

/* How the files of a kind are read. */
typedef struct import_columns_how {
    import_header_read_t *header;
    bool unpack; /* they may be gzip files */
    /* Open one; NULL: by import_stream_open. */
    err_code_t (*open)(const char *path, import_stream_t **out, err_t *err);
    /* Call [take] for each word NAME=FILE that [word], which has no '=', stands
     * for; NULL: it is an error. */
    err_code_t (*expand)(const char *word, import_word_take_t *take,
                         void *context, err_t *err);
} import_columns_how_t;

typedef struct import_columns import_columns_t;

/* For the open of a kind. [how] and [config] must outlive the source. */
err_code_t import_columns_open(const import_kind_t *kind,
                               const import_columns_how_t *how,
                               const import_config_t *config,
                               import_source_t **out, err_t *err);

/* The read, skip and close of such kinds. */
err_code_t import_columns_read(import_source_t *source, int64_t rows,
                               void *const *out, err_t *err);
err_code_t import_columns_skip(import_source_t *source, int64_t rows,
                               err_t *err);
void import_columns_close(import_source_t *source);

import_header_read_t import_npy_header, import_idx_header, import_raw_header;

#endif
