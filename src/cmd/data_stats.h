/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data stats`: mean, deviation and range of the channels, and how many
 * samples each class has. */
#ifndef CDDP_CMD_DATA_STATS_H
#define CDDP_CMD_DATA_STATS_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "import/source.h"

enum { CMD_STATS_CHANNELS = 4096 };

/* The finite numbers of a channel, and how many others there are. */
typedef struct cmd_stats_channel {
    int64_t count, nan, inf;
    double mean, squares; /* squares: sum of squared differences to the mean */
    double min, max;
} cmd_stats_channel_t;

/* A dataset. */
typedef struct cmd_stats {
    int channels;            /* 0: it holds no numbers */
    int64_t inner;           /* numbers of a channel that follow each other */
    cmd_stats_channel_t *of; /* [channels] */
    int64_t *classes;        /* samples of each class; NULL: no classes */
    int class_count;         /* the largest class plus 1 */
} cmd_stats_t;

/* Append the table that people read, and the YAML file, for the
 * source->field_count datasets of [source]. */
void cmd_stats_print(const import_source_t *source, const cmd_stats_t *stats,
                     str_buf_t *out);
void cmd_stats_yaml(const import_source_t *source, const cmd_stats_t *stats,
                    str_buf_t *out);

/* Run "stats [options] FILE..." (argv[0] is "stats"). */
err_code_t cmd_data_stats(int argc, char **argv, err_t *err);

#endif
