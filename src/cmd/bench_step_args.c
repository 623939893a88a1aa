/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_step_args.h"

#include <stdio.h>
#include <string.h>

#define STEPS 30
#define WARM_UP 5

const char bench_step_args_help[] =
    "usage: cddp-bench step [options] RUN.yaml\n"
    "       srun --mpi=pmix cddp-bench step [options] RUN.yaml\n"
    "\n"
    "Time whole training steps (forward, backward, reduction, update) on\n"
    "generated samples. A time is that of the slowest rank. bound_ms is a\n"
    "lower bound: the sum over all operations of max(FLOPs / peak, bytes /\n"
    "bandwidth), with both rates measured in the same run.\n"
    "\n"
    "      --steps N         steps that are timed [30]\n"
    "      --warm-up N       steps before these [5]\n"
    "      --device NAME     cpu, cuda or auto, as --set train.device=NAME\n"
    "      --set KEY=VALUE   override a key of the run file\n"
    "      --local N         N ranks as threads of this process\n"
    "      --scaling WHAT    a row for 1, 2, 4, ... N ranks of --local N;\n"
    "                        weak: the batch of the run file for each rank,\n"
    "                        strong: that batch shared by all ranks\n"
    "      --csv             comma-separated values with a header\n"
    "      --record FILE     one rank: write initial parameters, samples and\n"
    "                        the losses of the first steps (safetensors)\n"
    "      --paced           one rank: for each line on standard input run a\n"
    "                        round of steps, and print the seconds per step\n"
    "  -h, --help            print this text\n";

enum {
    OPT_STEPS = 256,
    OPT_WARM_UP,
    OPT_DEVICE,
    OPT_SET,
    OPT_LOCAL,
    OPT_SCALING,
    OPT_CSV,
    OPT_RECORD,
    OPT_PACED
};

static const struct option long_options[] = {
    {"steps", required_argument, NULL, OPT_STEPS},
    {"warm-up", required_argument, NULL, OPT_WARM_UP},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"set", required_argument, NULL, OPT_SET},
    {"local", required_argument, NULL, OPT_LOCAL},
    {"scaling", required_argument, NULL, OPT_SCALING},
    {"csv", no_argument, NULL, OPT_CSV},
    {"record", required_argument, NULL, OPT_RECORD},
    {"paced", no_argument, NULL, OPT_PACED},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static err_code_t scaling_take(bench_step_args_t *args, const char *text,
                               err_t *err)
{
    if (strcmp(text, "weak") == 0)
        args->scaling = BENCH_SCALING_WEAK;
    else if (strcmp(text, "strong") == 0)
        args->scaling = BENCH_SCALING_STRONG;
    else
        return err_set(err, ERR_USAGE,
                       "--scaling: expected weak or strong, found \"%s\"",
                       text);
    return ERR_OK;
}

/* The setting that --device NAME stands for. */
static err_code_t device_take(bench_step_args_t *args, const char *name,
                              err_t *err)
{
    static const char *const settings[] = {
        "train.device=cpu", "train.device=cuda", "train.device=auto"};

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strcmp(strchr(settings[i], '=') + 1, name) == 0)
            return cmd_sets_take(&args->sets, settings[i], err);
    return err_set(err, ERR_USAGE,
                   "--device: expected cpu, cuda or auto, found \"%s\"", name);
}

static err_code_t option_take(void *context, int option, err_t *err)
{
    bench_step_args_t *args = context;

    switch (option) {
    case OPT_STEPS:
        return cmd_number_take(&(cmd_number_t){"--steps", "steps", 1, 1000000},
                               optarg, &args->steps, err);
    case OPT_WARM_UP:
        return cmd_number_take(
            &(cmd_number_t){"--warm-up", "steps", 0, 1000000}, optarg,
            &args->warm_up, err);
    case OPT_DEVICE:
        return device_take(args, optarg, err);
    case OPT_SET:
        return cmd_sets_take(&args->sets, optarg, err);
    case OPT_LOCAL:
        return cmd_number_take(
            &(cmd_number_t){"--local", "ranks", 1, CMD_LOCAL_MAX}, optarg,
            &args->local, err);
    case OPT_SCALING:
        return scaling_take(args, optarg, err);
    case OPT_CSV:
        args->csv = true;
        return ERR_OK;
    case OPT_RECORD:
        args->record = optarg;
        return ERR_OK;
    case OPT_PACED:
        args->paced = true;
        return ERR_OK;
    default: /* 'h' */
        args->help = true;
        return ERR_OK;
    }
}

/* Check that the options can be combined. */
static err_code_t args_check(const bench_step_args_t *args, err_t *err)
{
    if (args->scaling != BENCH_SCALING_NONE && args->local == 0)
        return err_set(err, ERR_USAGE,
                       "--scaling needs --local N; in a Slurm step, start one "
                       "step for each number of tasks");
    if ((args->paced || args->record != NULL) && args->local > 1)
        return err_set(err, ERR_USAGE,
                       "--paced and --record are for one rank, not for "
                       "--local %d",
                       args->local);
    return ERR_OK;
}

err_code_t bench_step_args_parse(int argc, char **argv, bench_step_args_t *out,
                                 err_t *err)
{
    static const cmd_options_t options = {"cddp-bench step", ":h", long_options,
                                          option_take};
    bench_step_args_t args = {.steps = STEPS, .warm_up = WARM_UP};
    err_code_t rc = cmd_options_take(&options, argc, argv, &args, err);

    if (rc != ERR_OK)
        return rc;
    if (!args.help && argc - optind != 1)
        return err_set(err, ERR_USAGE,
                       "expected one run file, found %s%s; try cddp-bench step "
                       "--help",
                       argc > optind ? argv[optind] : "nothing",
                       argc - optind > 1 ? " and more" : "");
    if (!args.help)
        args.run_file = argv[optind];
    *out = args;
    return args_check(out, err);
}

int bench_step_args_next(const bench_step_args_t *args, int ranks)
{
    if (args->scaling == BENCH_SCALING_NONE || ranks >= args->local)
        return 0;
    return ranks > args->local / 2 ? args->local : ranks * 2;
}
