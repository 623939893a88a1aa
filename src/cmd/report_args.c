/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/report_args.h"

#include <stddef.h>

#include "cmd/args.h"

const char report_args_help[] =
    "usage: cddp-report [-o FILE] RUNDIR...\n"
    "       cddp-report --list DIR...\n"
    "       cddp-report --watch [--every SECONDS] RUNDIR\n"
    "       cddp-report --csv [-o FILE] RUNDIR...\n"
    "\n"
    "Write a report on runs to one HTML file, which needs no network:\n"
    "learning curves, throughput, the time of a step, what happened to each\n"
    "run, its run file. Several runs are drawn into the same plots. A run\n"
    "that is still training may be read at any time.\n"
    "\n"
    "  -o, --output FILE     write to FILE; \"-\" is standard output\n"
    "                        [report.html; with --csv: -]\n"
    "      --list            print a table of the run directories DIR and of\n"
    "                        those directly below: state, step, best\n"
    "                        evaluation, last sign of life\n"
    "      --watch           show a run in the terminal until it has ended\n"
    "      --every SECONDS   how often --watch looks at the files [5]\n"
    "      --csv             write the rows of metrics.jsonl as CSV\n"
    "  -h, --help            print this text\n"
    "      --version         print the versions of cddp and dygraphs\n"
    "\n"
    "Exit status: 0 done, 64 wrong command line, 65 no run directory, or a\n"
    "file in it is no regular file, 71 out of memory, 74 input or output\n"
    "failed.\n";

enum { OPT_LIST = 256, OPT_WATCH, OPT_EVERY, OPT_CSV, OPT_VERSION };

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"list", no_argument, NULL, OPT_LIST},
    {"watch", no_argument, NULL, OPT_WATCH},
    {"every", required_argument, NULL, OPT_EVERY},
    {"csv", no_argument, NULL, OPT_CSV},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0}};

static err_code_t mode_take(report_args_t *args, report_mode_t mode)
{
    args->mode = mode;
    args->mode_count++;
    return ERR_OK;
}

static err_code_t option_take(void *context, int option, err_t *err)
{
    report_args_t *args = context;

    switch (option) {
    case 'o':
        args->output = optarg;
        return ERR_OK;
    case OPT_LIST:
        return mode_take(args, REPORT_MODE_LIST);
    case OPT_WATCH:
        return mode_take(args, REPORT_MODE_WATCH);
    case OPT_EVERY:
        return cmd_number_take(&(cmd_number_t){"--every", "seconds", 1, 3600},
                               optarg, &args->every, err);
    case OPT_CSV:
        return mode_take(args, REPORT_MODE_CSV);
    case 'h':
        args->help = true;
        return ERR_OK;
    default: /* OPT_VERSION */
        args->version = true;
        return ERR_OK;
    }
}

/* Do the options and words go together? */
static err_code_t args_check(const report_args_t *args, err_t *err)
{
    const bool writes =
        args->mode == REPORT_MODE_PAGE || args->mode == REPORT_MODE_CSV;

    if (args->mode_count > 1)
        return err_set(err, ERR_USAGE,
                       "--list, --watch and --csv exclude each other: say "
                       "which one you mean");
    if (args->count == 0)
        return err_set(err, ERR_USAGE,
                       "name at least one directory; try cddp-report --help");
    if (args->count > 1 && args->mode == REPORT_MODE_WATCH)
        return err_set(err, ERR_USAGE,
                       "--watch shows one run, found \"%s\" and \"%s\"",
                       args->dirs[0], args->dirs[1]);
    if (args->count > REPORT_RUNS_MAX && args->mode == REPORT_MODE_PAGE)
        return err_set(err, ERR_USAGE,
                       "a report has at most %d runs, found %d directories",
                       REPORT_RUNS_MAX, args->count);
    if (args->output != NULL && !writes)
        return err_set(err, ERR_USAGE,
                       "-o is for reports and --csv; --list and --watch print");
    if (args->every != 0 && args->mode != REPORT_MODE_WATCH)
        return err_set(err, ERR_USAGE, "--every is for --watch only");
    return ERR_OK;
}

err_code_t report_args_parse(int argc, char **argv, report_args_t *out,
                             err_t *err)
{
    static const cmd_options_t options = {"cddp-report", ":ho:", long_options,
                                          option_take};
    report_args_t args = {.mode = REPORT_MODE_PAGE};
    err_code_t rc = cmd_options_take(&options, argc, argv, &args, err);

    if (rc != ERR_OK)
        return rc;
    args.dirs = argv + optind;
    args.count = argc - optind;
    if (!args.help && !args.version)
        rc = args_check(&args, err);
    if (rc == ERR_OK)
        *out = args;
    return rc;
}
