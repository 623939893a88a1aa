/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command lines of all data sets share one table of options. A row says
 * which data sets have the option. */
#include "cmd/data_make.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "cmd/args.h"
#include "cmd/data_fft.h"
#include "cmd/make_bytes.h"
#include "cmd/make_fields.h"
#include "cmd/make_ising.h"

enum { ISING = 1, BYTES = 2, FIELDS = 4 }; /* one bit for each data set */

/* Values of the options on the command line; -1: the option was not given. */
typedef struct make_options {
    const char *directory;
    int64_t seed, train, valid, shards, threads, bytes, edge;
    bool force;
} make_options_t;

typedef struct make_row {
    const char *name;
    int sets; /* bits of the data sets that have the option */
    int64_t min, max;
    size_t offset; /* offset of the value in make_options_t */
} make_row_t;

#define MOST (INT64_C(1) << 40)

static const make_row_t rows[] = {
    {"seed", ISING | FIELDS, 0, INT64_MAX, offsetof(make_options_t, seed)},
    {"train", ISING | FIELDS, 1, MOST, offsetof(make_options_t, train)},
    {"valid", ISING | FIELDS | BYTES, 1, MOST, offsetof(make_options_t, valid)},
    {"shards", ISING | FIELDS | BYTES, 1, 1000,
     offsetof(make_options_t, shards)},
    {"threads", ISING | FIELDS, 1, 1024, offsetof(make_options_t, threads)},
    {"bytes", BYTES, 1, MOST, offsetof(make_options_t, bytes)},
    {"edge", FIELDS, 4, CMD_FFT_EDGE_MAX, offsetof(make_options_t, edge)},
};

enum { ROWS = sizeof rows / sizeof rows[0], FORCE = 256, FIRST_ROW };

static err_code_t usage(err_t *err, const char *sentence)
{
    return err_set(err, ERR_USAGE, "%s; try cddp-data --help", sentence);
}

static int64_t *row_value(make_options_t *options, int row)
{
    return (int64_t *)((char *)options + rows[row].offset);
}

/* Parse [text], the value of the option in row [row]. */
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

static err_code_t option_take(void *context, int option, err_t *err)
{
    make_options_t *out = context;

    if (option >= FIRST_ROW)
        return row_parse(option - FIRST_ROW, optarg, out, err);
    if (option == 'o')
        out->directory = optarg;
    else
        out->force = true;
    return ERR_OK;
}

static err_code_t make_parse(int argc, char **argv, make_options_t *out,
                             err_t *err)
{
    struct option table[ROWS + 3] = {{"output", required_argument, NULL, 'o'},
                                     {"force", no_argument, NULL, FORCE}};
    const cmd_options_t options = {"cddp-data", ":o:", table, option_take};

    for (int i = 0; i < ROWS; i++)
        table[i + 2] = (struct option){rows[i].name, required_argument, NULL,
                                       FIRST_ROW + i};
    return cmd_options_take(&options, argc, argv, out, err);
}

/* Check that -o was given, and no option that the data set [set] does not have.
 */
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

/* Check that every shard gets a sample. */
static err_code_t shards_check(int shards, int64_t train, int64_t valid,
                               err_t *err)
{
    if (shards <= train && (shards == 1 || shards / 2 <= valid))
        return ERR_OK;
    return err_set(err, ERR_USAGE,
                   "--shards: %d shards would leave some without a sample",
                   shards);
}

/* Print how much was written. */
static void split_print(const char *directory, const int64_t samples[2],
                        const int shards[2], int64_t bytes, double seconds)
{
    char train[32], valid[32], size[32];

    str_count((uint64_t)samples[0], train, sizeof train);
    str_count((uint64_t)samples[1], valid, sizeof valid);
    str_bytes((uint64_t)bytes, size, sizeof size);
    str_print("%s: %s training samples in %d shards, %s validation samples in "
              "%d (%s, %.1f s)\n",
              directory, train, shards[0], valid, shards[1], size, seconds);
}

/* ---- ising --------------------------------------------------------------- */

static void ising_print(const cmd_ising_config_t *config,
                        const cmd_ising_report_t *report, double seconds)
{
    split_print(config->directory,
                (const int64_t[]){config->train, config->valid},
                (const int[]){report->train_shards, report->valid_shards},
                report->bytes, seconds);
    str_print("best energy threshold on valid: accuracy %.2f %% "
              "(no classifier can do better on average)\n",
              100.0 * report->energy_bound);
    str_print("best |magnetisation| threshold on valid: accuracy %.2f %%\n",
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
    err_code_t rc;

    rc = shards_check(config.shards, config.train, config.valid, err);
    if (rc != ERR_OK)
        return rc;
    rc = cmd_make_ising(&config, &report, err);
    if (rc == ERR_OK)
        ising_print(&config, &report, clock_now() - start);
    return rc;
}

/* ---- fields -------------------------------------------------------------- */

static err_code_t fields_run(const make_options_t *options, err_t *err)
{
    const cmd_fields_config_t config = {
        .directory = options->directory,
        .seed = (uint64_t)or_else(options->seed, 1),
        .train = or_else(options->train, 2000),
        .valid = or_else(options->valid, 500),
        .edge = (int)or_else(options->edge, 16),
        .shards = (int)or_else(options->shards, 4),
        .threads = (int)or_else(options->threads, thread_cores()),
        .force = options->force,
    };
    double start = clock_now();
    cmd_fields_report_t report;
    err_code_t rc =
        shards_check(config.shards, config.train, config.valid, err);

    if (rc != ERR_OK)
        return rc;
    if ((config.edge & (config.edge - 1)) != 0)
        return err_set(err, ERR_USAGE,
                       "--edge: expected a power of two, found %d",
                       config.edge);
    rc = cmd_make_fields(&config, &report, err);
    if (rc != ERR_OK)
        return rc;
    split_print(config.directory, (const int64_t[]){config.train, config.valid},
                (const int[]){report.train_shards, report.valid_shards},
                report.bytes, clock_now() - start);
    str_print(
        "best constant guess: accuracy %.2f %% for /web, mean squared error "
        "0.333 for /scaled\n",
        100.0 * report.web_guess);
    return ERR_OK;
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
    err_code_t rc;

    if (or_else(options->valid, 10) > 99)
        return usage(err, "make bytes: --valid is a part in per cent, 1 to 99");
    rc = cmd_make_bytes(&config, &report, err);
    if (rc != ERR_OK)
        return rc;
    str_print(
        "%s: %s for training, %s for validation, of %lld texts (%lld were "
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
    err_code_t rc;
    int set = 0;

    for (int i = 0; i < ROWS; i++)
        *row_value(&options, i) = -1;
    rc = make_parse(argc, argv, &options, err);
    if (rc != ERR_OK)
        return rc;
    name = optind < argc ? argv[optind++] : "";
    if (strcmp(name, "ising") == 0 && optind == argc)
        set = ISING;
    else if (strcmp(name, "fields") == 0 && optind == argc)
        set = FIELDS;
    else if (strcmp(name, "bytes") == 0)
        set = BYTES;
    else
        return usage(err, "make: name one data set to make; there are: ising, "
                          "fields, bytes");
    rc = make_check(&options, set, name, err);
    if (rc != ERR_OK)
        return rc;
    if (set == ISING)
        return ising_run(&options, err);
    if (set == FIELDS)
        return fields_run(&options, err);
    return bytes_run(&options, (const char *const *)argv + optind,
                     argc - optind, err);
}
