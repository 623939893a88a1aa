/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/train_args.h"

#include <stdlib.h>
#include <string.h>

const char train_args_help[] =
    "usage: cddp-train [options] [RUN.yaml]\n"
    "       srun --mpi=pmix cddp-train [options] [RUN.yaml]\n"
    "\n"
    "Train the model that RUN.yaml describes; without it $CDDP_RUN, then\n"
    "./run.yaml. Under srun every task is a rank; otherwise there is one\n"
    "rank, or N with --local N. An interrupted run is resumed when the same\n"
    "command is started again.\n"
    "\n"
    "      --check           check everything, train nothing: print layers,\n"
    "                        data, memory per rank and steps per epoch\n"
    "      --local N         N ranks on this machine: threads, or processes\n"
    "                        on GPUs\n"
    "      --resume WHAT     auto: the newest intact checkpoint, if any;\n"
    "                        never; or the PATH of a checkpoint [auto]\n"
    "      --fresh           rename the checkpoints and metrics in the run\n"
    "                        directory and start from the beginning\n"
    "      --set KEY=VALUE   override a key of the run file, for example\n"
    "                        train.epochs=1; may be repeated\n"
    "      --pick FILE       a sweep: take the words KEY=VALUE of one line of\n"
    "                        FILE as --set; the line is the number of this\n"
    "                        task of a job array (sbatch --array=1-N)\n"
    "      --predict OUT.h5  train nothing: write what the newest checkpoint\n"
    "                        says of every sample of data.valid\n"
    "      --print-rundir    print the run directory and exit\n"
    "  -h, --help            print this text\n"
    "      --version         print version, features and libraries\n"
    "\n"
    "Signals: USR1 or TERM ends the run after a checkpoint, with status 75.\n"
    "Exit status: 0 done, 64 wrong command line, 65 bad data, 69 device or\n"
    "library unavailable, 70 diverged, 71 out of memory, 73 run directory in\n"
    "use, 74 input or output failed, 75 checkpointed and to be requeued, 76\n"
    "another rank failed, 78 bad configuration.\n";

enum {
    OPT_CHECK = 256,
    OPT_LOCAL,
    OPT_RESUME,
    OPT_FRESH,
    OPT_SET,
    OPT_PICK,
    OPT_PREDICT,
    OPT_PRINT_RUNDIR,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"check", no_argument, NULL, OPT_CHECK},
    {"local", required_argument, NULL, OPT_LOCAL},
    {"resume", required_argument, NULL, OPT_RESUME},
    {"fresh", no_argument, NULL, OPT_FRESH},
    {"set", required_argument, NULL, OPT_SET},
    {"pick", required_argument, NULL, OPT_PICK},
    {"predict", required_argument, NULL, OPT_PREDICT},
    {"print-rundir", no_argument, NULL, OPT_PRINT_RUNDIR},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0}};

static void resume_take(train_args_t *args, const char *what)
{
    args->resumes = true;
    if (strcmp(what, "auto") == 0) {
        args->resume = TRAIN_RESUME_AUTO;
    } else if (strcmp(what, "never") == 0) {
        args->resume = TRAIN_RESUME_NEVER;
    } else {
        args->resume = TRAIN_RESUME_PATH;
        args->resume_path = what;
    }
}

static err_code_t option_take(void *context, int option, err_t *err)
{
    train_args_t *args = context;

    switch (option) {
    case OPT_CHECK:
        args->check = true;
        return ERR_OK;
    case OPT_LOCAL:
        return cmd_number_take(
            &(cmd_number_t){"--local", "ranks", 1, CMD_LOCAL_MAX}, optarg,
            &args->local, err);
    case OPT_RESUME:
        resume_take(args, optarg);
        return ERR_OK;
    case OPT_FRESH:
        args->resume = TRAIN_RESUME_FRESH;
        args->fresh = true;
        return ERR_OK;
    case OPT_SET:
        return cmd_sets_take(&args->sets, optarg, err);
    case OPT_PICK:
        args->pick = optarg;
        return ERR_OK;
    case OPT_PREDICT:
        args->predict = optarg;
        return ERR_OK;
    case OPT_PRINT_RUNDIR:
        args->print_rundir = true;
        return ERR_OK;
    case 'h':
        args->help = true;
        return ERR_OK;
    default: /* OPT_VERSION */
        args->version = true;
        return ERR_OK;
    }
}

err_code_t train_args_parse(int argc, char **argv, train_args_t *out,
                            err_t *err)
{
    static const cmd_options_t options = {"cddp-train", ":h", long_options,
                                          option_take};
    train_args_t args = {.resume = TRAIN_RESUME_AUTO};
    const char *environment = getenv("CDDP_RUN");
    err_code_t rc = cmd_options_take(&options, argc, argv, &args, err);

    if (rc != ERR_OK)
        return rc;
    if (args.fresh && args.resumes)
        return err_set(err, ERR_USAGE,
                       "--fresh and --resume exclude each other: say which one "
                       "you mean");
    if (args.fresh && args.predict != NULL)
        return err_set(err, ERR_USAGE,
                       "--fresh and --predict exclude each other: predictions "
                       "are made with the weights that --fresh would set "
                       "aside");
    if (argc - optind > 1)
        return err_set(err, ERR_USAGE,
                       "one run file is expected, found \"%s\" "
                       "and \"%s\"; try cddp-train --help",
                       argv[optind], argv[optind + 1]);
    args.run_file = optind < argc ? argv[optind]
                    : environment != NULL && environment[0] != '\0'
                        ? environment
                        : "run.yaml";
    *out = args;
    return ERR_OK;
}
