/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/csv_cells.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

enum { END = -1 };

err_code_t csv_cells_open(const char *path, csv_cells_t **out, err_t *err)
{
    csv_cells_t *cells;
    err_code_t rc = mem_new(csv_cells_t, 1, "a file", &cells, err);

    if (rc != ERR_OK)
        return rc;
    cells->next_line = 1;
    cells->last = true;
    rc = import_stream_open(path, true, &cells->stream, err);
    if (rc == ERR_OK)
        *out = cells;
    else
        mem_free(cells);
    return rc;
}

void csv_cells_close(csv_cells_t *cells)
{
    if (cells == NULL)
        return;
    import_stream_close(cells->stream);
    mem_free(cells);
}

/* Set *out to the next byte, which stays unread; END: there is none. */
static err_code_t byte_peek(csv_cells_t *cells, int *out, err_t *err)
{
    const bool first = import_stream_place(cells->stream) == 0;
    err_code_t rc = ERR_OK;

    if (cells->at == cells->end) {
        cells->at = cells->end = 0;
        rc = import_stream_read(cells->stream, cells->buffer, CSV_BUFFER,
                                &cells->end, err);
        if (first && cells->end >= 3 &&
            memcmp(cells->buffer, "\xef\xbb\xbf", 3) == 0)
            cells->at = 3;
    }
    *out =
        cells->at < cells->end ? (unsigned char)cells->buffer[cells->at] : END;
    return rc;
}

static err_code_t cell_fail(const csv_cells_t *cells, const char *what,
                            err_t *err)
{
    return err_set(err, ERR_DATA, "%s:%lld: %s",
                   import_stream_path(cells->stream), (long long)cells->line,
                   what);
}

/* Take the byte that was peeked at into the cell. */
static err_code_t byte_keep(csv_cells_t *cells, int byte, size_t *length,
                            err_t *err)
{
    if (byte == '\0')
        return cell_fail(cells, "a zero byte: this is no text", err);
    if (*length == CSV_CELL_MOST - 1)
        return cell_fail(cells, "a cell has more than 255 bytes", err);
    cells->cell[(*length)++] = (char)byte;
    cells->next_line += byte == '\n';
    cells->at++;
    return ERR_OK;
}

/* Read what stands in quotes; the first one has been taken. */
static err_code_t quoted_take(csv_cells_t *cells, size_t *length, err_t *err)
{
    err_code_t rc = ERR_OK;
    int byte = 0;

    while (rc == ERR_OK) {
        rc = byte_peek(cells, &byte, err);
        if (rc == ERR_OK && byte == END)
            rc = cell_fail(cells, "a quote that is not closed", err);
        if (rc == ERR_OK && byte == '"') {
            cells->at++;
            rc = byte_peek(cells, &byte, err);
            if (rc == ERR_OK && byte != '"')
                return ERR_OK;
        }
        if (rc == ERR_OK)
            rc = byte_keep(cells, byte, length, err);
    }
    return rc;
}

/* Drop CR and blanks at the end of the cell. */
static void cell_finish(csv_cells_t *cells, size_t length)
{
    while (length > 0 && strchr(" \t\r", cells->cell[length - 1]) != NULL)
        length--;
    cells->cell[length] = '\0';
}

/* Read up to a comma or the end of the line, and take that. */
static err_code_t cell_take(csv_cells_t *cells, bool *ended, err_t *err)
{
    size_t length = 0;
    bool quoted = false;
    int byte = 0;
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK) {
        rc = byte_peek(cells, &byte, err);
        if (rc != ERR_OK || byte == ',' || byte == '\n' || byte == END)
            break;
        if (byte == '"' && length == 0 && !quoted) {
            quoted = true;
            cells->at++;
            rc = quoted_take(cells, &length, err);
        } else if (strchr(" \t\r", byte) != NULL && byte != '\0' &&
                   (length == 0 || quoted)) {
            cells->at++;
        } else if (quoted) {
            rc = cell_fail(cells, "text behind a quote", err);
        } else {
            rc = byte_keep(cells, byte, &length, err);
        }
    }
    if (rc != ERR_OK)
        return rc;
    cell_finish(cells, length);
    *ended = byte == END;
    cells->last = byte != ',';
    cells->at += byte != END;
    cells->next_line += byte == '\n';
    return ERR_OK;
}

err_code_t csv_cells_next(csv_cells_t *cells, bool *more, err_t *err)
{
    bool begins, ended = false;
    err_code_t rc;

    do {
        begins = cells->last;
        cells->line = cells->next_line;
        rc = cell_take(cells, &ended, err);
    } while (rc == ERR_OK && begins && cells->last && !ended &&
             cells->cell[0] == '\0');
    if (rc == ERR_OK)
        *more = !(begins && ended && cells->cell[0] == '\0');
    return rc;
}

csv_place_t csv_cells_place(const csv_cells_t *cells)
{
    check(cells->last, "a place within line %lld", (long long)cells->line);
    return (csv_place_t){.byte = import_stream_place(cells->stream) -
                                 (int64_t)(cells->end - cells->at),
                         .line = cells->next_line};
}

err_code_t csv_cells_changed(const csv_cells_t *cells, err_t *err)
{
    return err_set(err, ERR_DATA, "%s: it was changed while it was read",
                   import_stream_path(cells->stream));
}

static err_code_t bytes_skip(csv_cells_t *cells, int64_t bytes, err_t *err)
{
    const int64_t kept = (int64_t)(cells->end - cells->at);

    if (bytes <= kept) {
        cells->at += (size_t)bytes;
        return ERR_OK;
    }
    cells->at = cells->end = 0;
    return import_stream_skip(cells->stream, bytes - kept, err);
}

/* Take the last byte before a place between two lines. It must end a line, or
 * the file. */
static err_code_t line_end_take(csv_cells_t *cells, err_t *err)
{
    int byte = END, next = END;
    err_code_t rc = byte_peek(cells, &byte, err);

    if (rc == ERR_OK && byte != END) {
        cells->at++;
        rc = byte_peek(cells, &next, err);
    }
    if (rc == ERR_OK && byte != '\n' && (byte == END || next != END))
        rc = csv_cells_changed(cells, err);
    return rc;
}

err_code_t csv_cells_seek(csv_cells_t *cells, const csv_place_t *place,
                          err_t *err)
{
    const csv_place_t here = csv_cells_place(cells);
    const int64_t ahead = place->byte - here.byte;
    err_code_t rc;

    if (ahead < 0)
        return csv_cells_changed(cells, err);
    cells->next_line = place->line;
    if (ahead == 0)
        return ERR_OK;
    rc = bytes_skip(cells, ahead - 1, err);
    return rc == ERR_OK ? line_end_take(cells, err) : rc;
}
