/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-info: prints what is built in, all options of the run file (this makes
 * docs/CONFIG.md), and the topology. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
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
    "\n"
    "Without options: print version, features and libraries, as --version\n"
    "of every command does.\n"
    "\n"
    "      --config     print every option of the run file, as Markdown\n"
    "      --topology   print hosts, their ranks, CPUs, NUMA nodes and GPUs,\n"
    "                   and the table of algorithms: the built-in one, or "
    "that\n"
    "                   in the file TABLE\n"
    "  -h, --help       print this text\n"
    "      --version    print version, features and libraries\n";

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

static int finish(err_code_t rc, err_t *err)
{
    rc = cmd_output_finish(rc, err);
    if (rc != ERR_OK)
        fprintf(stderr, "cddp-info: %s\n", err->text);
    return (int)rc;
}

static int topology_main(const char *table)
{
    boot_config_t config = {.timeout = BOOT_TIMEOUT};
    boot_t *boot = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = boot_open(&config, &boot, &err);

    if (rc == ERR_OK)
        rc = info_topology(boot, table, &err);
    return finish(rc, &err);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "--version";
    err_t err = ERR_INIT;

    file_standard_open();
    if (strcmp(what, "--topology") == 0 && argc <= 3)
        return topology_main(argv[2]);
    if (argc > 2) {
        return finish(err_set(&err, ERR_USAGE,
                              "one option is expected, found \"%s\" and "
                              "\"%s\"; try cddp-info --help",
                              argv[1], argv[2]),
                      &err);
    }
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
        fputs(help_text, stdout);
    } else if (strcmp(what, "--version") == 0) {
        cmd_version_print("cddp-info");
    } else if (strcmp(what, "--config") == 0) {
        config_print();
    } else {
        return finish(err_set(&err, ERR_USAGE,
                              "unknown option \"%s\"; try cddp-info --help",
                              what),
                      &err);
    }
    return finish(ERR_OK, &err);
}
