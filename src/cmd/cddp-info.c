/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-info: what is built in, and every option of the run file (the source of
 * docs/CONFIG.md). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cmd/version.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/config.h"

static const char help_text[] =
    "usage: cddp-info [--config]\n"
    "\n"
    "Without options: version, features and libraries, as --version of every\n"
    "command.\n"
    "\n"
    "      --config     every option of the run file, as Markdown\n"
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
    "form of a run is kept in RUNDIR/config.yaml.\n"
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

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "--version";

    if (argc > 2) {
        fprintf(stderr,
                "cddp-info: one option is expected, found \"%s\" and "
                "\"%s\"; try cddp-info --help\n",
                argv[1], argv[2]);
        return ERR_USAGE;
    }
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
        fputs(help_text, stdout);
    } else if (strcmp(what, "--version") == 0) {
        cmd_version_print("cddp-info");
    } else if (strcmp(what, "--config") == 0) {
        config_print();
    } else {
        fprintf(stderr,
                "cddp-info: unknown option \"%s\"; try cddp-info "
                "--help\n",
                what);
        return ERR_USAGE;
    }
    return fflush(stdout) == 0 ? ERR_OK : ERR_IO;
}
