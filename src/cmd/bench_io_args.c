/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_io_args.h"

#include <string.h>

#include "cmd/args.h"
#include "cmd/bench_args.h"

#define BYTES ((size_t)256 << 20)
#define BYTES_LEAST ((size_t)1 << 20)
#define ROUNDS 7

const char bench_io_args_help[] =
    "usage: cddp-bench io read [options] [DIR]\n"
    "       cddp-bench io write [options] [DIR]\n"
    "       cddp-bench io load [options] [DIR]\n"
    "\n"
    "read: make an HDF5 file, and time the reading of its samples in the\n"
    "order of data.shuffle chunk, by the threads that read ahead for a rank.\n"
    "write, load: time the writing and reading of a checkpoint by ranks that\n"
    "are threads, each of which holds the whole state. Results are checked\n"
    "first.\n"
    "\n"
    "limit_MBps is what as many threads reach in the same run without\n"
    "cddp: pread of the same bytes from the first to the last one, or pwrite\n"
    "and fsync; for gzip, zlib in one thread times the threads. For float16 "
    "it\n"
    "is what cddp reaches with float32 (layout contiguous). ratio is the\n"
    "median of rounds that alternate between the two; ratio_low and\n"
    "ratio_high are the extremes. cache: warm, or cold where the page cache\n"
    "can be dropped. All files are below DIR, and are removed in the end; an\n"
    "interrupted program leaves DIR/cddp-bench-*.\n"
    "\n"
    "      --layout NAME     read: contiguous, ordered, float16, chunked or\n"
    "                        gzip [all of them]\n"
    "      --threads N       threads that read, or ranks [1]\n"
    "      --bytes SIZE      of the samples or of the checkpoint, from 1M; K,\n"
    "                        M, G are powers of 1024 [256M]\n"
    "      --rounds N        rounds of each row [7]\n"
    "      --csv             comma-separated values with a header\n"
    "  -h, --help            print this text\n";

enum { OPT_LAYOUT = 256, OPT_THREADS, OPT_BYTES, OPT_ROUNDS, OPT_CSV };

static const struct option long_options[] = {
    {"layout", required_argument, NULL, OPT_LAYOUT},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"bytes", required_argument, NULL, OPT_BYTES},
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"csv", no_argument, NULL, OPT_CSV},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static const char *const whats[] = {
    [BENCH_IO_READ] = "read",
    [BENCH_IO_WRITE] = "write",
    [BENCH_IO_LOAD] = "load",
    [BENCH_IO_WHATS] = NULL,
};

static const char *const layouts[] = {
    [BENCH_IO_CONTIGUOUS] = "contiguous",
    [BENCH_IO_ORDERED] = "ordered",
    [BENCH_IO_FLOAT16] = "float16",
    [BENCH_IO_CHUNKED] = "chunked",
    [BENCH_IO_GZIP] = "gzip",
    [BENCH_IO_LAYOUTS] = NULL,
};

const char *bench_io_what_name(bench_io_what_t what)
{
    return whats[what];
}

const char *bench_io_layout_name(bench_io_layout_t layout)
{
    return layouts[layout];
}

/* The index of [name] in [names], which ends with NULL; that of NULL if it is
 * not there. */
static int name_find(const char *const *names, const char *name)
{
    int i = 0;

    while (names[i] != NULL && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static err_code_t layout_take(bench_io_args_t *args, const char *text,
                              err_t *err)
{
    args->layout = (bench_io_layout_t)name_find(layouts, text);
    if (args->layout < BENCH_IO_LAYOUTS)
        return ERR_OK;
    return err_set(err, ERR_USAGE,
                   "--layout: expected contiguous, ordered, float16, chunked "
                   "or gzip, found \"%s\"",
                   text);
}

static err_code_t bytes_take(bench_io_args_t *args, const char *text,
                             err_t *err)
{
    const char *at = text;

    if (bench_size_take(&at, &args->bytes) && *at == '\0' &&
        args->bytes >= BYTES_LEAST)
        return ERR_OK;
    return err_set(err, ERR_USAGE,
                   "--bytes: expected a multiple of 4 from 1M to 64G (256M), "
                   "found \"%s\"",
                   text);
}

static err_code_t option_take(void *context, int option, err_t *err)
{
    bench_io_args_t *args = context;

    switch (option) {
    case OPT_LAYOUT:
        return layout_take(args, optarg, err);
    case OPT_THREADS:
        return cmd_number_take(
            &(cmd_number_t){"--threads", "threads", 1, BENCH_IO_THREADS_MAX},
            optarg, &args->threads, err);
    case OPT_BYTES:
        return bytes_take(args, optarg, err);
    case OPT_ROUNDS:
        return cmd_number_take(
            &(cmd_number_t){"--rounds", "rounds", 1, BENCH_IO_ROUNDS_MAX},
            optarg, &args->rounds, err);
    case OPT_CSV:
        args->csv = true;
        return ERR_OK;
    default: /* 'h' */
        args->help = true;
        return ERR_OK;
    }
}

/* Take the words after the options: what to measure, and where. */
static err_code_t words_take(bench_io_args_t *args, int count, char **words,
                             err_t *err)
{
    if (count == 0)
        return err_set(err, ERR_USAGE,
                       "expected what to measure (read, write or load), found "
                       "nothing; try cddp-bench io --help");
    args->what = (bench_io_what_t)name_find(whats, words[0]);
    if (args->what == BENCH_IO_WHATS)
        return cmd_command_refuse("cddp-bench io", words[0], whats, err);
    if (count > 2)
        return err_set(err, ERR_USAGE,
                       "expected one directory, found %s and more; try "
                       "cddp-bench io --help",
                       words[1]);
    if (count == 2)
        args->directory = words[1];
    if (args->layout != BENCH_IO_LAYOUTS && args->what != BENCH_IO_READ)
        return err_set(err, ERR_USAGE,
                       "--layout is for cddp-bench io read: a checkpoint has "
                       "one layout");
    return ERR_OK;
}

err_code_t bench_io_args_parse(int argc, char **argv, bench_io_args_t *out,
                               err_t *err)
{
    static const cmd_options_t options = {"cddp-bench io", ":h", long_options,
                                          option_take};
    bench_io_args_t args = {.layout = BENCH_IO_LAYOUTS,
                            .threads = 1,
                            .rounds = ROUNDS,
                            .bytes = BYTES};
    err_code_t rc = cmd_options_take(&options, argc, argv, &args, err);

    if (rc == ERR_OK && !args.help)
        rc = words_take(&args, argc - optind, argv + optind, err);
    if (rc == ERR_OK)
        *out = args;
    return rc;
}
