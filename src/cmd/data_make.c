/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* One option table for all data sets; a row says which of them take it. */
#include "cmd/data_make.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "cmd/make_bytes.h"
#include "cmd/make_ising.h"

enum { ISING = 1, BYTES = 2 }; /* a bit each */

/* What was given; -1: not. */
typedef struct make_options {
    const char *directory;
    int64_t seed, train, valid, shards, threads, bytes;
    bool force;
} make_options_t;

typedef struct make_row {
    const char *name;
    int sets; /* that take it */
    int64_t min, max;
    size_t offset; /* in make_options_t */
} make_row_t;

#define MOST (INT64_C(1) << 40)

static const make_row_t rows[] = {
    {"seed", ISING, 0, INT64_MAX, offsetof(make_options_t, seed)},
    {"train", ISING, 1, MOST, offsetof(make_options_t, train)},
    {"valid", ISING | BYTES, 1, MOST, offsetof(make_options_t, valid)},
    {"shards", ISING | BYTES, 1, 1000, offsetof(make_options_t, shards)},
    {"threads", ISING, 1, 1024, offsetof(make_options_t, threads)},
    {"bytes", BYTES, 1, MOST, offsetof(make_options_t, bytes)},
};

enum { ROWS = sizeof rows / sizeof rows[0], FORCE = 'f', FIRST_ROW = 256 };

static err_code_t usage(err_t *err, const char *sentence)
{
    return err_set(err, ERR_USAGE, "%s; try cddp-data --help", sentence);
}

static int64_t *row_value(make_options_t *options, int row)
{
    return (int64_t *)((char *)options + rows[row].offset);
}

/* Parse [text], the value of option [row]. */
static err_code_t row_parse(int row, const char *text, make_options_t *out,
                            err_t *err)
{
    int64_t value;

    if (!str_to_int(text, &value) || value < rows[row].min ||
        value > rows[row].max)
        return err_set(err, ERR_USAGE,
                       "--%s: expected an integer from %" PRId64 " to %" PRId64
                       ", found \"%s\"",
                       rows[row].name, rows[row].min, rows[row].max, text);
    *row_value(out, row) = value;
    return ERR_OK;
}

static err_code_t make_parse(int argc, char **argv, make_options_t *out,
                             err_t *err)
{
    struct option options[ROWS + 3] = {{"output", required_argument, NULL, 'o'},
                                       {"force", no_argument, NULL, FORCE}};
    err_code_t code = ERR_OK;
    int letter;

    for (int i = 0; i < ROWS; i++)
        options[i + 2] = (struct option){rows[i].name, required_argument, NULL,
                                         FIRST_ROW + i};
    while (code == ERR_OK &&
           (letter = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
        if (letter == 'o')
            out->directory = optarg;
        else if (letter == FORCE)
            out->force = true;
        else if (letter >= FIRST_ROW)
            code = row_parse(letter - FIRST_ROW, optarg, out, err);
        else
            code = usage(err, "make: unknown option, or its value is missing");
    }
    return code;
}

/* -o must be there, and nothing that the data set [set] does not take. */
static err_code_t make_check(make_options_t *options, int set, const char *name,
                             err_t *err)
{
    if (options->directory == NULL)
        return err_set(err, ERR_USAGE,
                       "make %s: -o DIR is missing; try cddp-data --help",
                       name);
    for (int i = 0; i < ROWS; i++)
        if (*row_value(options, i) >= 0 && (rows[i].sets & set) == 0)
            return err_set(err, ERR_USAGE, "make %s: there is no option --%s",
                           name, rows[i].name);
    return ERR_OK;
}

static int64_t or_else(int64_t given, int64_t fallback)
{
    return given >= 0 ? given : fallback;
}

/* ---- ising --------------------------------------------------------------- */

static void ising_print(const cmd_ising_config_t *config,
                        const cmd_ising_report_t *report, double seconds)
{
    char train[32], valid[32], bytes[32];

    str_count((uint64_t)config->train, train, sizeof train);
    str_count((uint64_t)config->valid, valid, sizeof valid);
    str_bytes((uint64_t)report->bytes, bytes, sizeof bytes);
    printf("%s: %s training samples in %d shards, %s validation samples in "
           "%d (%s, %.1f s)\n",
           config->directory, train, report->train_shards, valid,
           report->valid_shards, bytes, seconds);
    printf("best energy threshold on valid: accuracy %.2f %% "
           "(no classifier can do better on average)\n",
           100.0 * report->energy_bound);
    printf("best |magnetisation| threshold on valid: accuracy %.2f %%\n",
           100.0 * report->magnet_bound);
}

static err_code_t ising_run(const make_options_t *options, err_t *err)
{
    const cmd_ising_config_t config = {
        .directory = options->directory,
        .seed = (uint64_t)or_else(options->seed, 1),
        .train = or_else(options->train, 20000),
        .valid = or_else(options->valid, 6000),
        .shards = (int)or_else(options->shards, 4),
        .threads = (int)or_else(options->threads, thread_cores()),
        .force = options->force,
    };
    double start = clock_now();
    cmd_ising_report_t report;
    err_code_t code;

    if (config.shards > config.train ||
        (config.shards > 1 && config.shards / 2 > config.valid))
        return err_set(err, ERR_USAGE,
                       "--shards: %d shards would leave some without a sample",
                       config.shards);
    code = cmd_make_ising(&config, &report, err);
    if (code == ERR_OK)
        ising_print(&config, &report, clock_now() - start);
    return code;
}

/* ---- bytes --------------------------------------------------------------- */

static err_code_t bytes_run(const make_options_t *options,
                            const char *const *paths, int count, err_t *err)
{
    static const char *const everywhere[] = {"/usr/share/common-licenses",
                                             "/usr/share/doc"};
    cmd_bytes_config_t config = {
        .directory = options->directory,
        .paths = count > 0 ? paths : everywhere,
        .path_count = count > 0 ? count : 2,
        .shards = (int)or_else(options->shards, 1),
        .valid_percent = (int)or_else(options->valid, 10),
        .bytes_most = or_else(options->bytes, INT64_C(32) << 20),
        .force = options->force,
    };
    char train[32], valid[32];
    cmd_bytes_report_t report;
    err_code_t code;

    if (or_else(options->valid, 10) > 99)
        return usage(err, "make bytes: --valid is a part in per cent, 1 to 99");
    code = cmd_make_bytes(&config, &report, err);
    if (code != ERR_OK)
        return code;
    printf("%s: %s for training, %s for validation, of %lld texts (%lld were "
           "there twice, %lld files are no text)\n",
           config.directory,
           str_bytes((uint64_t)report.train, train, sizeof train),
           str_bytes((uint64_t)report.valid, valid, sizeof valid),
           (long long)report.documents, (long long)report.repeated,
           (long long)report.skipped);
    return ERR_OK;
}

/* ---- the command --------------------------------------------------------- */

err_code_t cmd_data_make(int argc, char **argv, err_t *err)
{
    make_options_t options = {.directory = NULL};
    const char *name;
    err_code_t code;
    int set = 0;

    for (int i = 0; i < ROWS; i++)
        *row_value(&options, i) = -1;
    code = make_parse(argc, argv, &options, err);
    if (code != ERR_OK)
        return code;
    name = optind < argc ? argv[optind++] : "";
    if (strcmp(name, "ising") == 0 && optind == argc)
        set = ISING;
    else if (strcmp(name, "bytes") == 0)
        set = BYTES;
    else
        return usage(err, "make: name one data set to make; there are: ising, "
                          "bytes");
    code = make_check(&options, set, name, err);
    if (code != ERR_OK)
        return code;
    return set == ISING
               ? ising_run(&options, err)
               : bytes_run(&options, (const char *const *)argv + optind,
                           argc - optind, err);
}
