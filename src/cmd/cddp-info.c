/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-info: prints what is built in, all options of the run file (this makes
 * docs/CONFIG.md) and the topology, and checks the hosts of a step. */
#include "config.h"

#include <stdio.h>

#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/info_build.h"
#include "cmd/info_check.h"
#include "cmd/info_topology.h"
#include "cmd/output.h"
#include "cmd/version.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/config.h"

#define BOOT_TIMEOUT 120.0 /* seconds */

static const char help_text[] =
    "usage: cddp-info [--config]\n"
    "       srun --mpi=pmix cddp-info --topology [TABLE]\n"
    "       srun --mpi=pmix cddp-info --check [--dir DIR]\n"
    "\n"
    "Without options: print version, features and libraries, as --version\n"
    "of every command does; and how this build was configured, and which\n"
    "plugins Slurm has for --mpi.\n"
    "\n"
    "      --config     print every option of the run file, as Markdown\n"
    "      --topology   print hosts, what they offer, their ranks, CPUs,\n"
    "                   NUMA nodes and GPUs, how ranks send to other hosts,\n"
    "                   and the table of algorithms: the built-in one, or\n"
    "                   that in the file TABLE\n"
    "      --check      look for what would disturb a run, on every host of\n"
    "                   the step: builds, clocks, the shared directory, its\n"
    "                   locks and fsync, /dev/shm, the network\n"
    "      --dir DIR    the directory that --check tries [.]\n"
    "  -h, --help       print this text\n"
    "      --version    print version, features and libraries\n"
    "\n"
    "Exit status: 0 done, and --check found nothing; 64 wrong command line;\n"
    "69 --check found something; 74 the output could not be written; 76 a\n"
    "rank died or hung.\n";

static const char config_text[] =
    "# The run file\n"
    "\n"
    "<!-- made by `cddp-info --config`; edit the option tables instead -->\n"
    "\n"
    "One YAML document. The tables list every key with its type, default\n"
    "and bounds. `--set KEY=VALUE` overrides a key from the command line\n"
    "(`--set train.epochs=1`). An unknown or duplicate key is an error,\n"
    "which names line, column and the nearest known key. Durations are\n"
    "written `90 s`, `10 min`, `2 h`; intervals `1 epoch`, `100 steps`,\n"
    "`10 min` or `never`. RUNDIR/config.yaml keeps the resolved form of a\n"
    "run. If a run is resumed with other values, each change is logged; a\n"
    "complete run is not resumed with other values. Keys marked with + may\n"
    "change freely: they concern resources, files, and what is shown.\n";

static void config_print(void)
{
    str_buf_t text = {0};

    str_buf_add(&text, "%s", config_text);
    opt_document(train_options, "", &text);
    nn_graph_document(&text);
    optim_document(&text);
    ddp_hook_document(&text);
    fputs(text.text, stdout);
    str_buf_free(&text);
}

/* ---- the command line ---------------------------------------------------- */

enum { OPT_VERSION = 256, OPT_CONFIG, OPT_TOPOLOGY, OPT_CHECK, OPT_DIR };

static const struct option long_options[] = {
    {"version", no_argument, NULL, OPT_VERSION},
    {"config", no_argument, NULL, OPT_CONFIG},
    {"topology", no_argument, NULL, OPT_TOPOLOGY},
    {"check", no_argument, NULL, OPT_CHECK},
    {"dir", required_argument, NULL, OPT_DIR},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

typedef struct args {
    int what;          /* one of the options that say what to do; 0: none */
    const char *dir;   /* NULL: not given */
    const char *table; /* NULL: not given */
} args_t;

static err_code_t option_take(void *context, int option, err_t *err)
{
    args_t *args = context;

    if (option == OPT_DIR)
        args->dir = optarg;
    else if (args->what != 0 && args->what != option)
        return err_set(err, ERR_USAGE,
                       "one of --version, --config, --topology, --check is "
                       "expected, found two; try cddp-info --help");
    else
        args->what = option;
    return ERR_OK;
}

static err_code_t args_parse(int argc, char **argv, args_t *out, err_t *err)
{
    static const cmd_options_t options = {"cddp-info", ":h", long_options,
                                          option_take};
    args_t args = {0};
    err_code_t rc = cmd_options_take(&options, argc, argv, &args, err);
    int words = argc - optind;

    if (rc != ERR_OK)
        return rc;
    if (words > 0 && args.what == OPT_TOPOLOGY) {
        args.table = argv[optind++];
        words--;
    }
    if (words > 0)
        return err_set(err, ERR_USAGE,
                       "unknown word \"%s\"; try cddp-info --help",
                       argv[optind]);
    if (args.dir != NULL && args.what != OPT_CHECK)
        return err_set(err, ERR_USAGE, "--dir belongs to --check");
    *out = args;
    return ERR_OK;
}

/* ---- what it does -------------------------------------------------------- */

/* Print the topology, or with --check, check the hosts. */
static err_code_t step_main(const args_t *args, bool *speaker, err_t *err)
{
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    boot_t *boot = NULL;
    err_code_t rc = boot_open(&config, &boot, err);

    if (rc != ERR_OK)
        return rc;
    if (args->what == OPT_TOPOLOGY)
        return info_topology(boot, args->table, speaker, err);
    return info_check(boot, args->dir == NULL ? "." : args->dir, speaker, err);
}

static int finish(err_code_t rc, err_t *err, bool speaker)
{
    rc = cmd_output_finish(rc, err);
    if (rc != ERR_OK && speaker)
        fprintf(stderr, "cddp-info: %s\n", err->text);
    return (int)rc;
}

int main(int argc, char **argv)
{
    bool speaker = true;
    err_t err = ERR_INIT;
    args_t args = {0};
    err_code_t rc;

    file_standard_open();
    rc = args_parse(argc, argv, &args, &err);
    if (rc != ERR_OK)
        return finish(rc, &err, speaker);
    switch (args.what) {
    case 'h':
        fputs(help_text, stdout);
        break;
    case OPT_CONFIG:
        config_print();
        break;
    case OPT_TOPOLOGY:
    case OPT_CHECK:
        rc = step_main(&args, &speaker, &err);
        break;
    default:
        cmd_version_print("cddp-info");
        if (args.what == 0)
            info_build_print();
        break;
    }
    return finish(rc, &err, speaker);
}
