/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt: lists, prints, checks and compares checkpoints, and brings models
 * to other programs and back. */
#include "config.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/ckpt_diff.h"
#include "cmd/ckpt_move.h"
#include "cmd/ckpt_prune.h"
#include "cmd/ckpt_repair.h"
#include "cmd/ckpt_show.h"
#include "cmd/output.h"
#include "hdf5io/checkpoint_find.h"

/* Exit status of diff if it found differences, like that of diff(1). */
#define STATUS_DIFFERS 1

static const char help_text[] =
    "usage: cddp-ckpt list RUNDIR\n"
    "       cddp-ckpt show CKPT\n"
    "       cddp-ckpt verify CKPT...\n"
    "       cddp-ckpt diff A B\n"
    "       cddp-ckpt prune RUNDIR [--dry-run]\n"
    "       cddp-ckpt repair RUNDIR [NAME...] [--dry-run]\n"
    "       cddp-ckpt export CKPT OUT.safetensors [--map MAP] [--average]\n"
    "       cddp-ckpt import IN.safetensors OUT.safetensors --map MAP\n"
    "\n"
    "list     list the checkpoints of a run, newest first\n"
    "show     print step, files, tensors and run file of a checkpoint\n"
    "verify   compare the hash of every file with the checkpoint's record\n"
    "diff     name the tensors that differ in shape or in any bit\n"
    "prune    remove superseded checkpoints, and what interrupted saves left\n"
    "repair   make checkpoints of what interrupted saves left, if it is "
    "intact;\n"
    "         with NAMEs: only of these, which may be superseded ones\n"
    "export   write parameters and running statistics for other programs\n"
    "import   give the tensors of another program the names of a run, for\n"
    "         checkpoint.init\n"
    "\n"
    "CKPT, A and B are directories such as\n"
    "RUNDIR/checkpoints/step-0000000100; a RUNDIR stands for its newest\n"
    "checkpoint.\n"
    "\n"
    "      --dry-run         prune, repair: only say what would be done\n"
    "      --map MAP         names here and there: a file, or gpt2,\n"
    "                        gpt2-dropout, resnet18, resnet34, resnet50,\n"
    "                        vit\n"
    "      --average         export: the moving average of the parameters\n"
    "      --force           replace OUT if it exists\n"
    "  -h, --help          print this text\n"
    "      --version       print the versions of cddp and of HDF5\n"
    "\n"
    "Exit status: 0 done (diff: no difference), 1 diff: they differ, 64\n"
    "wrong command line, 65 damaged or no checkpoint, 71 out of memory, 73\n"
    "repair: a run is using the directory, 74 input or output failed, 78\n"
    "the map does not fit, or a later version of cddp wrote the checkpoint.\n";

static err_code_t usage(err_t *err, const char *sentence)
{
    return err_set(err, ERR_USAGE, "%s; try cddp-ckpt --help", sentence);
}

static err_code_t list_run(int argc, char **argv, str_buf_t *out, int *status,
                           err_t *err)
{
    (void)status;
    if (argc != 1)
        return usage(err, "list: name one run directory");
    return cmd_ckpt_list(argv[0], out, err);
}

static err_code_t show_run(int argc, char **argv, str_buf_t *out, int *status,
                           err_t *err)
{
    char *path;
    err_code_t rc;

    (void)status;
    if (argc != 1)
        return usage(err, "show: name one checkpoint");
    rc = hdf5io_checkpoint_find(argv[0], &path, err);
    if (rc != ERR_OK)
        return rc;
    rc = cmd_ckpt_show(path, out, err);
    free(path);
    return rc;
}

/* Verify all checkpoints, even after a damaged one. The message about each is
 * printed here; [err] only counts the bad ones. */
static err_code_t verify_run(int argc, char **argv, str_buf_t *out, int *status,
                             err_t *err)
{
    err_code_t rc = ERR_OK;
    int bad = 0;

    (void)status;
    if (argc < 1)
        return usage(err, "verify: name at least one checkpoint");
    for (int i = 0; i < argc; i++) {
        err_t fault = ERR_INIT;
        char *path = NULL;

        if (hdf5io_checkpoint_find(argv[i], &path, &fault) != ERR_OK ||
            cmd_ckpt_verify(path, out, &fault) != ERR_OK) {
            str_buf_add(out, "BAD  %s\n", fault.text);
            rc = fault.code;
            bad++;
        }
        free(path);
    }
    if (bad > 0)
        err_set(err, rc, "%d of %d checkpoints are bad", bad, argc);
    return rc;
}

static err_code_t diff_run(int argc, char **argv, str_buf_t *out, int *status,
                           err_t *err)
{
    char *a = NULL, *b = NULL;
    int differences = 0;
    err_code_t rc;

    if (argc != 2)
        return usage(err, "diff: name two checkpoints");
    rc = hdf5io_checkpoint_find(argv[0], &a, err);
    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_find(argv[1], &b, err);
    if (rc == ERR_OK)
        rc = cmd_ckpt_diff(a, b, out, &differences, err);
    if (rc == ERR_OK && differences > 0)
        *status = STATUS_DIFFERS;
    free(b);
    free(a);
    return rc;
}

/* ---- prune and repair ---------------------------------------------------- */

enum { OPT_DRY_RUN = 256 };

static const struct option prune_options[] = {
    {"dry-run", no_argument, NULL, OPT_DRY_RUN}, {NULL, 0, NULL, 0}};

static err_code_t dry_take(void *context, int option, err_t *err)
{
    (void)option;
    (void)err;
    *(bool *)context = true;
    return ERR_OK;
}

static err_code_t prune_run(int argc, char **argv, str_buf_t *out, int *status,
                            err_t *err)
{
    const cmd_options_t options = {"cddp-ckpt prune", ":", prune_options,
                                   dry_take};
    bool dry = false;
    err_code_t rc = cmd_options_take(&options, argc + 1, argv - 1, &dry, err);

    (void)status;
    if (rc == ERR_OK && argc + 1 - optind != 1)
        rc = usage(err, "prune: name one run directory");
    return rc == ERR_OK ? cmd_ckpt_prune(argv[optind - 1], dry, out, err) : rc;
}

static err_code_t repair_run(int argc, char **argv, str_buf_t *out, int *status,
                             err_t *err)
{
    const cmd_options_t options = {"cddp-ckpt repair", ":", prune_options,
                                   dry_take};
    cmd_ckpt_repair_t repair = {0};
    err_code_t rc =
        cmd_options_take(&options, argc + 1, argv - 1, &repair.dry, err);

    (void)status;
    if (rc == ERR_OK && argc + 1 - optind < 1)
        rc = usage(err, "repair: name a run directory");
    if (rc != ERR_OK)
        return rc;
    repair.run = argv[optind - 1];
    repair.names = argv + optind;
    repair.count = argc - optind;
    return cmd_ckpt_repair(&repair, out, err);
}

/* ---- export and import --------------------------------------------------- */

enum { OPT_MAP = 256, OPT_AVERAGE, OPT_FORCE };

static const struct option move_options[] = {
    {"map", required_argument, NULL, OPT_MAP},
    {"average", no_argument, NULL, OPT_AVERAGE},
    {"force", no_argument, NULL, OPT_FORCE},
    {NULL, 0, NULL, 0}};

static err_code_t move_take(void *context, int option, err_t *err)
{
    cmd_ckpt_move_t *move = context;

    (void)err;
    if (option == OPT_MAP)
        move->map = optarg;
    else if (option == OPT_AVERAGE)
        move->average = true;
    else
        move->replace = true;
    return ERR_OK;
}

/* Read the words after the command, which is argv[-1]. */
static err_code_t move_parse(const char *command, int argc, char **argv,
                             cmd_ckpt_move_t *out, err_t *err)
{
    const cmd_options_t options = {command, ":", move_options, move_take};
    err_code_t rc = cmd_options_take(&options, argc + 1, argv - 1, out, err);

    if (rc == ERR_OK && argc + 1 - optind != 2)
        rc = usage(err, "name two: what is read and the file that is written");
    if (rc != ERR_OK)
        return rc;
    out->from = argv[optind - 1];
    out->to = argv[optind];
    return ERR_OK;
}

static err_code_t export_run(int argc, char **argv, str_buf_t *out, int *status,
                             err_t *err)
{
    cmd_ckpt_move_t move = {0};
    char *path = NULL;
    err_code_t rc = move_parse("cddp-ckpt export", argc, argv, &move, err);

    (void)status;
    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_find(move.from, &path, err);
    if (rc == ERR_OK) {
        move.from = path;
        rc = cmd_ckpt_export(&move, out, err);
    }
    free(path);
    return rc;
}

static err_code_t import_run(int argc, char **argv, str_buf_t *out, int *status,
                             err_t *err)
{
    cmd_ckpt_move_t move = {0};
    err_code_t rc = move_parse("cddp-ckpt import", argc, argv, &move, err);

    (void)status;
    if (rc == ERR_OK && move.map == NULL)
        rc = usage(err, "import: --map MAP is missing; a file with the names "
                        "of the run needs no import");
    if (rc == ERR_OK && move.average)
        rc = usage(err, "--average is for export");
    return rc == ERR_OK ? cmd_ckpt_import(&move, out, err) : rc;
}

typedef struct command {
    const char *name;
    err_code_t (*run)(int argc, char **argv, str_buf_t *out, int *status,
                      err_t *err);
    bool options; /* it reads options itself */
} command_t;

static const command_t commands[] = {{"list", list_run, false},
                                     {"show", show_run, false},
                                     {"verify", verify_run, false},
                                     {"diff", diff_run, false},
                                     {"prune", prune_run, true},
                                     {"repair", repair_run, true},
                                     {"export", export_run, true},
                                     {"import", import_run, true},
                                     {NULL, NULL, false}};

/* The command called [name]; NULL, with *err set, if there is none. */
static const command_t *command_find(const char *name, err_t *err)
{
    static const char *const names[] = {"list",   "show",   "verify",
                                        "diff",   "prune",  "repair",
                                        "export", "import", NULL};

    for (const command_t *c = commands; c->name != NULL; c++)
        if (strcmp(name, c->name) == 0)
            return c;
    cmd_command_refuse("cddp-ckpt", name, names, err);
    return NULL;
}

static err_code_t arguments_run(int argc, char **argv, str_buf_t *out,
                                int *status, err_t *err)
{
    const command_t *command;

    if (argc < 2)
        return usage(err, "a command is missing");
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            str_buf_add(out, "%s", help_text);
            return ERR_OK;
        }
    if (strcmp(argv[1], "--version") == 0) {
        unsigned major = 0, minor = 0, release = 0;

        H5get_libversion(&major, &minor, &release);
        str_buf_add(out, "cddp-ckpt %s\nHDF5 %u.%u.%u\n", PACKAGE_VERSION,
                    major, minor, release);
        return ERR_OK;
    }
    command = command_find(argv[1], err);
    if (command == NULL)
        return err->code;
    for (int i = 2; i < argc && !command->options; i++)
        if (argv[i][0] == '-')
            return err_set(err, ERR_USAGE,
                           "%s: unknown option %s; try cddp-ckpt --help",
                           argv[1], argv[i]);
    return command->run(argc - 2, argv + 2, out, status, err);
}

int main(int argc, char **argv)
{
    str_buf_t out = {0};
    err_t err = ERR_INIT;
    int status = 0;
    err_code_t rc;

    file_standard_open();
    rc = arguments_run(argc, argv, &out, &status, &err);
    if (out.text != NULL)
        str_print("%s", out.text);
    rc = cmd_output_finish(rc, &err);
    if (rc != ERR_OK) {
        fprintf(stderr, "cddp-ckpt: %s\n", err.text);
        status = (int)rc;
    }
    str_buf_free(&out);
    return status;
}
