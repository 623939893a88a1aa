/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/file.h"
#include "base/str.h"
#include "cmd/bench_io_ckpt.h"
#include "cmd/bench_io_read.h"
#include "cmd/bench_io_row.h"

/* Make a new directory below that of the command line, or below $TMPDIR. The
 * caller frees *out, also after an error. */
static err_code_t directory_make(const bench_io_args_t *args, char **out,
                                 err_t *err)
{
    const char *base = args->directory;

    if (base == NULL)
        base = getenv("TMPDIR");
    if (base == NULL || base[0] == '\0')
        base = "/tmp";
    *out = str_printf("%s/cddp-bench-XXXXXX", base);
    if (mkdtemp(*out) != NULL)
        return ERR_OK;
    return err_set(err, ERR_IO, "%s: cannot make a directory there: %s", base,
                   strerror(errno));
}

static err_code_t rows_run(const bench_io_args_t *args, const char *directory,
                           crew_t *crew, err_t *err)
{
    err_code_t rc = ERR_OK;

    bench_io_header_print(args->csv);
    if (args->what != BENCH_IO_READ)
        return bench_io_ckpt(args, directory, crew, err);
    for (int i = 0; rc == ERR_OK && i < BENCH_IO_LAYOUTS; i++)
        if (args->layout == BENCH_IO_LAYOUTS || (int)args->layout == i)
            rc =
                bench_io_read(args, (bench_io_layout_t)i, directory, crew, err);
    return rc;
}

err_code_t bench_io(const bench_io_args_t *args, err_t *err)
{
    char *directory = NULL;
    crew_t *crew = NULL;
    err_t second = ERR_INIT;
    err_code_t rc = directory_make(args, &directory, err);

    if (rc != ERR_OK)
        goto out;
    rc = crew_open(args->threads, "cddp-io", &crew, err);
    if (rc == ERR_OK)
        rc = rows_run(args, directory, crew, err);
    crew_close(crew);
    if (file_remove_tree(directory, &second) != ERR_OK && rc == ERR_OK)
        rc = err_copy(err, &second);
out:
    free(directory);
    return rc;
}
