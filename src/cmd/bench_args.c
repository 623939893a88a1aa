/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_args.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/args.h"
#include "dev/dev.h"

#define SMALLEST 4
#define LARGEST ((size_t)256 << 20)
#define TUNE_SMALLEST 64
#define TUNE_LARGEST ((size_t)16 << 20)
#define LIMIT ((size_t)64 << 30)
#define ROUNDS_MIN 15
#define ROUNDS_BYTES ((size_t)512 << 20) /* approximate bytes per size */

const char bench_args_help[] =
    "usage: cddp-bench allreduce [options]\n"
    "       cddp-bench step [options] RUN.yaml     (cddp-bench step --help)\n"
    "       cddp-bench io read [options] [DIR]     (cddp-bench io --help)\n"
    "       cddp-bench io write [options] [DIR]\n"
    "       cddp-bench io load [options] [DIR]\n"
    "       srun --mpi=pmix cddp-bench allreduce [options]\n"
    "\n"
    "Time the all-reduce (sum of float32) between all ranks: the tasks of\n"
    "the Slurm step, or the threads of --local N. Every result is checked\n"
    "first. Every rank writes its buffer before each call. A time is that\n"
    "of the slowest rank. bound_us is a lower bound: the time in which the\n"
    "same threads read and write as many bytes of memory once or, on\n"
    "several nodes, move between them the bytes that must be moved;\n"
    "bound_by tells which. With --device cuda each rank sums memory of its\n"
    "GPU. Then the bound is the time of a copy on the GPU, or to the host\n"
    "and back; overlap (0 to 1) says how much of the time copies on the GPU\n"
    "can run beside a sum.\n"
    "\n"
    "      --sizes A:B       sizes from A to B bytes, each 4 times the last;\n"
    "                        K, M, G are powers of 1024 [4:256M]\n"
    "      --csv             comma-separated values with a header\n"
    "      --plain           buffers in ordinary memory, not in an arena\n"
    "                        like that of gradients\n"
    "      --local N         N ranks as threads of this process, on GPUs as\n"
    "                        processes\n"
    "      --device NAME     cpu, cuda or auto: the memory that is summed "
    "[cpu]\n"
    "      --rounds N        calls timed for each size [15 to 2000, by size]\n"
    "      --backend NAME    auto, self, threads, ucx or, on GPUs, nccl "
    "[auto:\n"
    "                        threads with --local, else ucx; on GPUs nccl]\n"
    "      --table FILE      table that chooses algorithms (docs/COMM.md)\n"
    "      --tune FILE       measure every algorithm of every collective for\n"
    "                        all sizes [64:16M], and write such a table\n"
    "  -h, --help            print this text\n"
    "      --version         print version, features and libraries\n";

enum {
    OPT_SIZES = 256,
    OPT_CSV,
    OPT_PLAIN,
    OPT_LOCAL,
    OPT_BACKEND,
    OPT_DEVICE,
    OPT_ROUNDS,
    OPT_TABLE,
    OPT_TUNE,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"csv", no_argument, NULL, OPT_CSV},
    {"plain", no_argument, NULL, OPT_PLAIN},
    {"local", required_argument, NULL, OPT_LOCAL},
    {"backend", required_argument, NULL, OPT_BACKEND},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"table", required_argument, NULL, OPT_TABLE},
    {"tune", required_argument, NULL, OPT_TUNE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0}};

bool bench_size_take(const char **text, size_t *out)
{
    unsigned long long value;
    char *end;
    int shift = 0;

    if (!isdigit((unsigned char)**text))
        return false;
    value = strtoull(*text, &end, 10);
    if (*end == 'K' || *end == 'M' || *end == 'G')
        shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
    if (value > LIMIT >> shift)
        return false;
    *text = end + (shift > 0);
    *out = (size_t)value << shift;
    return *out > 0 && *out % sizeof(float) == 0;
}

static err_code_t sizes_take(bench_args_t *args, const char *text, err_t *err)
{
    const char *at = text;
    bool good = bench_size_take(&at, &args->smallest);

    args->largest = args->smallest;
    if (good && *at == ':') {
        at++;
        good = bench_size_take(&at, &args->largest);
    }
    if (good && *at == '\0' && args->smallest <= args->largest)
        return ERR_OK;
    return err_set(err, ERR_USAGE,
                   "--sizes: expected bytes as A:B, A not above B, both "
                   "multiples of 4 up to 64G (4:256M), found \"%s\"",
                   text);
}

/* Find [name] in dev_choices. */
static err_code_t device_take(bench_args_t *args, const char *name, err_t *err)
{
    for (int i = 0; dev_choices[i] != NULL; i++)
        if (strcmp(dev_choices[i], name) == 0) {
            args->device = i;
            args->on_device = strcmp(name, DEV_HOST) != 0;
            return ERR_OK;
        }
    return err_set(err, ERR_USAGE,
                   "--device: expected cpu, cuda or auto, found \"%s\"", name);
}

static err_code_t option_take(void *context, int option, err_t *err)
{
    bench_args_t *args = context;

    switch (option) {
    case OPT_SIZES:
        return sizes_take(args, optarg, err);
    case OPT_CSV:
        args->csv = true;
        return ERR_OK;
    case OPT_PLAIN:
        args->plain = true;
        return ERR_OK;
    case OPT_LOCAL:
        return cmd_number_take(
            &(cmd_number_t){"--local", "ranks", 1, CMD_LOCAL_MAX}, optarg,
            &args->local, err);
    case OPT_ROUNDS:
        return cmd_number_take(
            &(cmd_number_t){"--rounds", "calls", 1, BENCH_ROUNDS_MAX}, optarg,
            &args->rounds, err);
    case OPT_BACKEND:
        args->backend = optarg;
        return ERR_OK;
    case OPT_DEVICE:
        return device_take(args, optarg, err);
    case OPT_TABLE:
        args->table = optarg;
        return ERR_OK;
    case OPT_TUNE:
        args->tune = optarg;
        return ERR_OK;
    case 'h':
        args->help = true;
        return ERR_OK;
    default: /* OPT_VERSION */
        args->version = true;
        return ERR_OK;
    }
}

err_code_t bench_args_parse(int argc, char **argv, bench_args_t *out,
                            err_t *err)
{
    static const cmd_options_t options = {"cddp-bench", ":h", long_options,
                                          option_take};
    bench_args_t args = {.help = false};
    err_code_t rc = cmd_options_take(&options, argc, argv, &args, err);

    if (rc != ERR_OK)
        return rc;
    if (args.smallest == 0) {
        args.smallest = args.tune != NULL ? TUNE_SMALLEST : SMALLEST;
        args.largest = args.tune != NULL ? TUNE_LARGEST : LARGEST;
    }
    if (!args.help && !args.version &&
        (argc - optind != 1 || strcmp(argv[optind], "allreduce") != 0))
        return err_set(
            err, ERR_USAGE,
            "expected what to measure (allreduce, step or io), found %s%s; try "
            "cddp-bench --help",
            argc > optind ? argv[optind] : "nothing",
            argc - optind > 1 ? " and more" : "");
    if (args.on_device && args.tune != NULL)
        return err_set(err, ERR_USAGE,
                       "--tune measures sums of the host's memory, as a table "
                       "is used for these only: leave --device %s out",
                       dev_choices[args.device]);
    *out = args;
    return ERR_OK;
}

size_t bench_args_rounds(const bench_args_t *args, size_t bytes)
{
    const size_t rounds = ROUNDS_BYTES / bytes;

    if (args->rounds > 0)
        return (size_t)args->rounds;
    return rounds > BENCH_ROUNDS_MAX ? BENCH_ROUNDS_MAX
           : rounds < ROUNDS_MIN     ? ROUNDS_MIN
                                     : rounds;
}

size_t bench_args_next(const bench_args_t *args, size_t bytes)
{
    if (bytes >= args->largest)
        return 0;
    return bytes > args->largest / 4 ? args->largest : bytes * 4;
}
