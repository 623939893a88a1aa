/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to the files config*.c: the tables of the run file. The offsets in
 * all of them count from the start of train_config_t. */
#ifndef CDDP_TRAIN_CONFIG_ROWS_H
#define CDDP_TRAIN_CONFIG_ROWS_H

#include <stddef.h>

#include "train/config.h"

#define ROW(struct_, field, key, kind, value, ...)                         \
    {                                                                      \
        .name = (key), .type = (kind), .offset = offsetof(struct_, field), \
        .fallback = (value), __VA_ARGS__                                   \
    }
#define CONFIG(field, key, kind, value, ...) \
    ROW(train_config_t, field, key, kind, value, __VA_ARGS__)

/* The table of the section data. */
extern const opt_row_t train_data_options[];

/* For each of [fields] that names a file of statistics: take mean and std from
 * this file. [key] is "input" or "target". ERR_CONFIG: there is no such file,
 * or it has no numbers for the dataset. */
err_code_t train_config_stats(const opt_map_t *fields, const char *key,
                              err_t *err);

/* Those names of train_io_t that checkpoint.io accepts. */
extern const char *const train_config_ios[];

#endif
