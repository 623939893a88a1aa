/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-info: what is built in, and every option of the run file (the source of
 * docs/CONFIG.md). */
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
    "Without options: version, features and libraries, as --version of every\n"
    "command.\n"
    "\n"
    "      --config     every option of the run file, as Markdown\n"
    "      --topology   hosts, their ranks, CPUs and NUMA nodes; and the table "
    "of\n"
    "                   algorithms built in, or that in the file TABLE\n"
    "  -h, --help       this text\n"
    "      --version    version, features, libraries\n";

static const char config_text[] =
    "# The run file\n"
    "\n"
    "<!-- made by `cddp-info --config`; edit the option tables instead -->\n"
    "\n"
    "One YAML document. Every key has its type, its default and its bounds "
    "here;\n"
    "`--set KEY=VALUE` overrides any of them from the command line\n"
    "(`--set train.epochs=1`). Unknown and duplicate keys are errors, with "
    "line,\n"
    "column and the nearest known name. Durations are written `90 s`, `10 "
    "min`,\n"
    "`2 h`; intervals `1 epoch`, `100 steps`, `10 min` or `never`. The "
    "resolved\n"
    "form of a run is kept in RUNDIR/config.yaml. A run that goes on with "
    "other "
    "values\n"
    "says so, and one that is complete is not begun again with them, but for "
    "keys\n"
    "marked with +: resources, files, what is shown.\n"
    "\n";

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
