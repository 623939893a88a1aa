/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * csv_cells: a CSV file cell by cell, as in RFC 4180: cells are divided by
 * commas, lines end with LF or CR LF, a cell in "..." may contain both, and ""
 * for a quote. Empty lines, blanks around a cell, and a byte-order mark at the
 * beginning are left out.
 */
#ifndef CDDP_IMPORT_CSV_CELLS_H
#define CDDP_IMPORT_CSV_CELLS_H

#include <stdbool.h>

#include "import/stream.h"

enum { CSV_CELL_MOST = 256, CSV_BUFFER = 65536 };

typedef struct csv_cells {
    import_stream_t *stream;
    int64_t line;             /* of the last cell, from 1 */
    char cell[CSV_CELL_MOST]; /* its text */
    bool last;                /* it is the last one of its line */
    /* Used by csv_cells.c: */
    int64_t next_line;
    size_t at, end; /* unread bytes of [buffer] */
    char buffer[CSV_BUFFER];
} csv_cells_t;

/* Open the file [path], which may be packed by gzip. The caller frees *out by
 * csv_cells_close, also after an error. */
err_code_t csv_cells_open(const char *path, csv_cells_t **out, err_t *err);
void csv_cells_close(csv_cells_t *cells); /* NULL allowed */

/* Read the next cell into cells->cell. *more is false, if instead the file has
 * ended; it ends only behind a whole line. ERR_DATA with the line: a cell that
 * is too long, text behind a quote, a quote that is not closed, a zero byte. */
err_code_t csv_cells_next(csv_cells_t *cells, bool *more, err_t *err);

/* A place between two lines. */
typedef struct csv_place {
    int64_t byte, line;
} csv_place_t;

/* The place behind the last cell, which ends its line. */
csv_place_t csv_cells_place(const csv_cells_t *cells);

/* Set [err] to the message that the file was changed while it was read.
 * Returns ERR_DATA. */
err_code_t csv_cells_changed(const csv_cells_t *cells, err_t *err);

/* Go on at [place], which an earlier reading of the same file found behind the
 * last cell. Bytes between both are not read, unless the file is packed.
 * ERR_DATA: the file was changed, so [place] is before the end of the last
 * cell, within a line, or behind the end of the file. ERR_IO. */
err_code_t csv_cells_seek(csv_cells_t *cells, const csv_place_t *place,
                          err_t *err);

#endif
