/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-data: make example data, look into data files. */
#include "config.h"

#include <getopt.h>
#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/thread.h"
#include "cmd/data_info.h"
#include "cmd/make_ising.h"

static const char help_text[] =
    "usage: cddp-data make ising -o DIR [options]\n"
    "       cddp-data info FILE...\n"
    "       cddp-data verify FILE...\n"
    "\n"
    "make ising   simulate the two-dimensional Ising model (32x32, periodic) "
    "at\n"
    "             temperatures between 1.0 and 3.54; write DIR/train-NN.h5 "
    "and\n"
    "             DIR/valid-NN.h5 with /spins, /phase and /temperature\n"
    "  -o, --output DIR    where to write (made if absent)\n"
    "      --seed S        the same seed gives the same files [1]\n"
    "      --train N       training samples [20000]\n"
    "      --valid N       validation samples [6000]\n"
    "      --shards K      training files; half as many for validation [4]\n"
    "      --threads T     simulate on T threads [the cores]\n"
    "      --force         replace shards that are in DIR\n"
    "\n"
    "info         name the datasets of each file, their types and shapes\n"
    "verify       read every byte of each file; print its XXH3 hash\n"
    "\n"
    "  -h, --help          this text\n"
    "      --version       version of cddp and of HDF5\n"
    "\n"
    "Exit status: 0 done, 64 wrong command line, 65 bad data, 71 out of "
    "memory,\n"
    "74 input or output failed.\n";

static err_code_t usage(err_t *err, const char *sentence)
{
    return err_set(err, ERR_USAGE, "%s; try cddp-data --help", sentence);
}

/* Parse option [name]'s [text] as an integer of [min, max]. */
static err_code_t number(const char *name, const char *text, int64_t min,
                         int64_t max, int64_t *out, err_t *err)
{
    int64_t value;

    if (!str_to_int(text, &value) || value < min || value > max)
        return err_set(err, ERR_USAGE,
                       "--%s: expected an integer from %" PRId64 " to %" PRId64
                       ", found \"%s\"",
                       name, min, max, text);
    *out = value;
    return ERR_OK;
}

typedef struct make_options {
    const char *directory;
    int64_t seed, train, valid, shards, threads;
    bool force;
} make_options_t;

static err_code_t make_parse(int argc, char **argv, make_options_t *out,
                             err_t *err)
{
    enum { SEED = 256, TRAIN, VALID, SHARDS, THREADS, FORCE };
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"seed", required_argument, NULL, SEED},
        {"train", required_argument, NULL, TRAIN},
        {"valid", required_argument, NULL, VALID},
        {"shards", required_argument, NULL, SHARDS},
        {"threads", required_argument, NULL, THREADS},
        {"force", no_argument, NULL, FORCE},
        {NULL, 0, NULL, 0},
    };
    const int64_t most = INT64_C(1) << 40;
    err_code_t code = ERR_OK;
    int letter;

    while (code == ERR_OK &&
           (letter = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
        if (letter == 'o')
            out->directory = optarg;
        else if (letter == SEED)
            code = number("seed", optarg, 0, INT64_MAX, &out->seed, err);
        else if (letter == TRAIN)
            code = number("train", optarg, 1, most, &out->train, err);
        else if (letter == VALID)
            code = number("valid", optarg, 1, most, &out->valid, err);
        else if (letter == SHARDS)
            code = number("shards", optarg, 1, 1000, &out->shards, err);
        else if (letter == THREADS)
            code = number("threads", optarg, 1, 1024, &out->threads, err);
        else if (letter == FORCE)
            out->force = true;
        else
            code = usage(err, "make: unknown option, or its value is missing");
    }
    return code;
}

static err_code_t make_check(const make_options_t *options, err_t *err)
{
    if (options->directory == NULL)
        return usage(err, "make ising: -o DIR is missing");
    if (options->shards > options->train ||
        (options->shards > 1 && options->shards / 2 > options->valid))
        return err_set(err, ERR_USAGE,
                       "--shards: %" PRId64
                       " shards would leave some without a sample",
                       options->shards);
    return ERR_OK;
}

static void make_print(const make_options_t *options,
                       const cmd_ising_report_t *report, double seconds)
{
    char train[32], valid[32], bytes[32];

    str_count((uint64_t)options->train, train, sizeof train);
    str_count((uint64_t)options->valid, valid, sizeof valid);
    str_bytes((uint64_t)report->bytes, bytes, sizeof bytes);
    printf("%s: %s training samples in %d shards, %s validation samples in "
           "%d (%s, %.1f s)\n",
           options->directory, train, report->train_shards, valid,
           report->valid_shards, bytes, seconds);
    printf("best energy threshold on valid: accuracy %.2f %% "
           "(no classifier can do better on average)\n",
           100.0 * report->energy_bound);
    printf("best |magnetisation| threshold on valid: accuracy %.2f %%\n",
           100.0 * report->magnet_bound);
}

/* argv[0] is "make". */
static err_code_t make_run(int argc, char **argv, err_t *err)
{
    make_options_t options = {.seed = 1,
                              .train = 20000,
                              .valid = 6000,
                              .shards = 4,
                              .threads = thread_cores()};
    cmd_ising_report_t report;
    cmd_ising_config_t config;
    double start = clock_now();
    err_code_t code = make_parse(argc, argv, &options, err);

    if (code != ERR_OK)
        return code;
    if (argc - optind != 1 || strcmp(argv[optind], "ising") != 0)
        return usage(err, "make: name one data set to make; there is: ising");
    code = make_check(&options, err);
    if (code != ERR_OK)
        return code;
    config = (cmd_ising_config_t){
        .directory = options.directory,
        .seed = (uint64_t)options.seed,
        .train = options.train,
        .valid = options.valid,
        .shards = (int)options.shards,
        .threads = (int)options.threads,
        .force = options.force,
    };
    code = cmd_make_ising(&config, &report, err);
    if (code == ERR_OK)
        make_print(&options, &report, clock_now() - start);
    return code;
}

/* argv[0] is "info" or "verify"; no options, files only. */
static err_code_t files_check(int argc, char **argv, err_t *err)
{
    if (argc < 2)
        return err_set(err, ERR_USAGE,
                       "%s: name at least one file; try cddp-data --help",
                       argv[0]);
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-')
            return err_set(err, ERR_USAGE, "%s: unknown option %s", argv[0],
                           argv[i]);
    return ERR_OK;
}

static err_code_t info_run(int argc, char **argv, err_t *err)
{
    err_code_t code = files_check(argc, argv, err);

    for (int i = 1; i < argc && code == ERR_OK; i++) {
        str_buf_t text = {0};

        code = cmd_data_info(argv[i], &text, err);
        if (code == ERR_OK)
            fputs(text.text, stdout);
        str_buf_free(&text);
    }
    return code;
}

/* All files are looked at, also after a bad one; the last sentence is left to
 * main, the others are printed here. */
static err_code_t verify_run(int argc, char **argv, err_t *err)
{
    err_code_t code = files_check(argc, argv, err);
    int bad = 0;

    if (code != ERR_OK)
        return code;
    for (int i = 1; i < argc; i++) {
        cmd_verify_report_t report;
        err_t fault = ERR_INIT;
        char bytes[32], hash[HASH_TEXT_MAX];

        if (cmd_data_verify(argv[i], &report, &fault) != ERR_OK) {
            printf("BAD  %s\n", fault.text);
            code = fault.code;
            bad++;
            continue;
        }
        printf("ok   %s: %d datasets, %s, xxh3 %s\n", argv[i], report.datasets,
               str_bytes((uint64_t)report.bytes, bytes, sizeof bytes),
               hash_format(report.hash, hash));
    }
    if (bad > 0)
        err_set(err, code, "%d of %d files are bad", bad, argc - 1);
    return code;
}

static err_code_t version_print(err_t *err)
{
    unsigned major, minor, release;

    if (H5get_libversion(&major, &minor, &release) < 0)
        return err_set(err, ERR_UNAVAILABLE, "HDF5 does not say its version");
    printf("cddp-data %s\nHDF5 %u.%u.%u\n", PACKAGE_VERSION, major, minor,
           release);
    return ERR_OK;
}

static err_code_t command_run(int argc, char **argv, err_t *err)
{
    static const struct {
        const char *name;
        err_code_t (*run)(int argc, char **argv, err_t *err);
    } commands[] = {
        {"make", make_run}, {"info", info_run}, {"verify", verify_run}};
    static const char *const names[] = {"make", "info", "verify", NULL};
    const char *name = argc > 1 ? argv[1] : NULL;
    const char *near;

    if (name == NULL)
        return usage(err, "a command is missing");
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return fputs(help_text, stdout) < 0
                       ? err_set(err, ERR_IO, "cannot print the help")
                       : ERR_OK;
    if (strcmp(name, "--version") == 0)
        return version_print(err);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1, err);
    near = str_nearest(name, names);
    return err_set(err, ERR_USAGE,
                   "unknown command %s%s%s%s; try cddp-data "
                   "--help",
                   name, near ? " (did you mean " : "", near ? near : "",
                   near ? "?)" : "");
}

int main(int argc, char **argv)
{
    err_t err = ERR_INIT;
    err_code_t code;

    opterr = 0; /* main prints the one sentence */
    code = command_run(argc, argv, &err);
    if (fflush(stdout) != 0 && code == ERR_OK)
        code = err_set(&err, ERR_IO, "cannot write to standard output");
    if (code != ERR_OK)
        fprintf(stderr, "cddp-data: %s\n", err.text);
    return code;
}
