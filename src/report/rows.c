/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define BUFFER ((size_t)1 << 20) /* the longest line, in bytes */

struct report_rows {
    int fd;
    bool skips; /* the rest of a line that is too long */
    int64_t bad;
    uint64_t taken; /* bytes read from the file */
    size_t begin, end;
    char *path;
    char buffer[BUFFER + 1]; /* one byte behind each line may be read */
};

err_code_t report_rows_open(const char *run_dir, report_rows_t **out,
                            bool *missing, err_t *err)
{
    char *path = str_printf("%s/metrics.jsonl", run_dir);
    report_rows_t *rows = NULL;
    int fd = -1;
    err_code_t rc;

    rc = file_open_regular(path, O_RDONLY, FILE_OWN, &fd, err);
    if (missing != NULL)
        *missing = rc == ERR_IO && errno == ENOENT;
    if (rc == ERR_OK)
        rc = mem_new(report_rows_t, 1, "reading metrics.jsonl", &rows, err);
    if (rc == ERR_OK) {
        rows->fd = fd;
        rows->path = path;
        *out = rows;
        return ERR_OK;
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* Read more of the file behind what is in the buffer. *more false: there is
 * nothing now. */
static err_code_t more_read(report_rows_t *rows, bool *more, err_t *err)
{
    ssize_t got;

    if (rows->begin > 0) {
        memmove(rows->buffer, rows->buffer + rows->begin,
                rows->end - rows->begin);
        rows->end -= rows->begin;
        rows->begin = 0;
    }
    if (rows->end == BUFFER) {
        rows->bad += !rows->skips;
        rows->skips = true;
        rows->end = 0;
    }
    do
        got = read(rows->fd, rows->buffer + rows->end, BUFFER - rows->end);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set(err, ERR_IO, "cannot read %s: %s", rows->path,
                       strerror(errno));
    rows->end += (size_t)got;
    rows->taken += (uint64_t)got;
    *more = got > 0;
    return ERR_OK;
}

/* The next whole line. *line NULL: there is none now. */
static err_code_t line_next(report_rows_t *rows, const char **line,
                            size_t *length, err_t *err)
{
    bool more = true, skipped;
    err_code_t rc = ERR_OK;

    *line = NULL;
    while (rc == ERR_OK && more && *line == NULL) {
        char *begin = rows->buffer + rows->begin;
        const char *end = memchr(begin, '\n', rows->end - rows->begin);

        if (end == NULL) {
            rc = more_read(rows, &more, err);
            continue;
        }
        skipped = rows->skips;
        rows->skips = false;
        rows->begin += (size_t)(end - begin) + 1;
        if (skipped)
            continue;
        *line = begin;
        *length = (size_t)(end - begin);
    }
    return rc;
}

/* Is [line] the row of a step with another line behind it in the buffer? */
static bool may_skip(const report_rows_t *rows, const char *line, size_t length)
{
    static const char event[] = "{\"event\"";

    return (length < sizeof event - 1 ||
            memcmp(line, event, sizeof event - 1) != 0) &&
           memchr(rows->buffer + rows->begin, '\n', rows->end - rows->begin) !=
               NULL;
}

static err_code_t row_next(report_rows_t *rows, bool events, report_row_t *row,
                           bool *got, err_t *err)
{
    const char *line = NULL;
    size_t length = 0;
    err_code_t rc;

    *got = false;
    do {
        rc = line_next(rows, &line, &length, err);
        if (rc != ERR_OK || line == NULL)
            return rc;
        if (length == 0 || (events && may_skip(rows, line, length)))
            continue;
        *got = report_row_parse(line, length, row);
        rows->bad += !*got;
    } while (!*got);
    return ERR_OK;
}

err_code_t report_rows_next(report_rows_t *rows, report_row_t *row, bool *got,
                            err_t *err)
{
    return row_next(rows, false, row, got, err);
}

err_code_t report_rows_next_event(report_rows_t *rows, report_row_t *row,
                                  bool *got, err_t *err)
{
    return row_next(rows, true, row, got, err);
}

bool report_rows_stale(const report_rows_t *rows)
{
    struct stat open, named;

    if (fstat(rows->fd, &open) != 0 || stat(rows->path, &named) != 0)
        return false; /* removed, or storage that answers later */
    return open.st_ino != named.st_ino || open.st_dev != named.st_dev ||
           (uint64_t)open.st_size < rows->taken;
}

int64_t report_rows_bad(const report_rows_t *rows)
{
    return rows->bad;
}

bool report_rows_torn(const report_rows_t *rows)
{
    return rows->end > rows->begin || rows->skips;
}

void report_rows_close(report_rows_t *rows)
{
    if (rows == NULL)
        return;
    close(rows->fd);
    free(rows->path);
    mem_free(rows);
}
