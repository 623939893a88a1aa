/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_target: where commands of cddp-data write shards, and how. */
#ifndef CDDP_CMD_DATA_TARGET_H
#define CDDP_CMD_DATA_TARGET_H

#include <getopt.h>
#include <stdbool.h>

#include "cmd/data_progress.h"
#include "import/sink.h"
#include "import/source.h"

typedef struct cmd_target {
    const char *directory; /* NULL: not given */
    const char *name;      /* "train" */
    int shards, gzip;      /* as in import_sink_config_t */
    int chunk;             /* KiB; 0: not given */
    bool force;
    int part, parts;         /* as in import_sink_config_t; the task with part 0
                                prepares the directory for all tasks */
    cmd_progress_t progress; /* of the open sink */
} cmd_target_t;

/* The options, for getopt_long. Commands number others from CMD_TARGET_END. */
enum {
    CMD_TARGET_OUTPUT = 'o',
    CMD_TARGET_NAME = 256,
    CMD_TARGET_SHARDS,
    CMD_TARGET_GZIP,
    CMD_TARGET_CHUNK,
    CMD_TARGET_FORCE,
    CMD_TARGET_END
};

#define CMD_TARGET_OPTIONS                                      \
    {"output", required_argument, NULL, CMD_TARGET_OUTPUT},     \
        {"shards", required_argument, NULL, CMD_TARGET_SHARDS}, \
        {"gzip", required_argument, NULL, CMD_TARGET_GZIP},     \
        {"chunk", required_argument, NULL, CMD_TARGET_CHUNK},   \
    {                                                           \
        "force", no_argument, NULL, CMD_TARGET_FORCE            \
    }
#define CMD_TARGET_OPTION_NAME                           \
    {                                                    \
        "name", required_argument, NULL, CMD_TARGET_NAME \
    }

/* Store [option], whose value is [text]. ERR_USAGE. */
err_code_t cmd_target_take(cmd_target_t *target, int option, const char *text,
                           err_t *err);

/* ERR_USAGE: -o is missing, or the name unsuitable. [command]: "convert". */
err_code_t cmd_target_check(const cmd_target_t *target, const char *command,
                            err_t *err);

/* Check that [target] suits [rows] samples of [source], and prepare its
 * directory: shards with the same names are removed if target->force, else they
 * are ERR_USAGE. Lines of
 * progress are printed. The caller frees *out by import_sink_close, before
 * [target] ends. */
err_code_t cmd_target_open(cmd_target_t *target, import_source_t *source,
                           int64_t rows, import_sink_t **out, err_t *err);

/* ERR_USAGE: one of [count] files that are read is among those that would be
 * written or removed. */
err_code_t cmd_target_apart(const cmd_target_t *target, char *const *paths,
                            int count, err_t *err);

/* Print "DIR: 1,000 samples of train in 2 shards (3 MiB, 0.1 s)". */
void cmd_target_print(const cmd_target_t *target, int64_t rows,
                      const import_sink_report_t *report, double seconds);

/* Print a line for each dataset: name, type and shape of a sample. */
void cmd_target_fields(const import_source_t *source);

#endif
