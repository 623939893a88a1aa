/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-ckpt: lists, prints, checks and compares checkpoints. */
#include "config.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/ckpt_diff.h"
#include "cmd/ckpt_show.h"
#include "cmd/output.h"

/* Exit status of diff if it found differences, like that of diff(1). */
#define STATUS_DIFFERS 1

static const char help_text[] =
    "usage: cddp-ckpt list RUNDIR\n"
    "       cddp-ckpt show CKPT\n"
    "       cddp-ckpt verify CKPT...\n"
    "       cddp-ckpt diff A B\n"
    "\n"
    "list     list the checkpoints of a run, newest first\n"
    "show     print step, files, tensors and run file of a checkpoint\n"
    "verify   compare the hash of every file with the checkpoint's record\n"
    "diff     name the tensors that differ in shape or in any bit\n"
    "\n"
    "CKPT, A and B are directories such as\n"
    "RUNDIR/checkpoints/step-0000000100; a RUNDIR stands for its newest\n"
    "checkpoint.\n"
    "\n"
    "  -h, --help          print this text\n"
    "      --version       print the versions of cddp and of HDF5\n"
    "\n"
    "Exit status: 0 done (diff: no difference), 1 diff: they differ, 64\n"
    "wrong command line, 65 damaged or no checkpoint, 71 out of memory, 74\n"
    "input or output failed.\n";

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
    rc = cmd_ckpt_find(argv[0], &path, err);
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

        if (cmd_ckpt_find(argv[i], &path, &fault) != ERR_OK ||
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
    rc = cmd_ckpt_find(argv[0], &a, err);
    if (rc == ERR_OK)
        rc = cmd_ckpt_find(argv[1], &b, err);
    if (rc == ERR_OK)
        rc = cmd_ckpt_diff(a, b, out, &differences, err);
    if (rc == ERR_OK && differences > 0)
        *status = STATUS_DIFFERS;
    free(b);
    free(a);
    return rc;
}

typedef struct command {
    const char *name;
    err_code_t (*run)(int argc, char **argv, str_buf_t *out, int *status,
                      err_t *err);
} command_t;

static const command_t commands[] = {{"list", list_run},
                                     {"show", show_run},
                                     {"verify", verify_run},
                                     {"diff", diff_run},
                                     {NULL, NULL}};

/* The command called [name]; NULL, with *err set, if there is none. */
static const command_t *command_find(const char *name, err_t *err)
{
    static const char *const names[] = {"list", "show", "verify", "diff", NULL};

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
    for (int i = 2; i < argc; i++)
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
