/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_layout: how a dataset is stored, and how cddp-train reads it. */
#ifndef CDDP_CMD_DATA_LAYOUT_H
#define CDDP_CMD_DATA_LAYOUT_H

#include <hdf5.h>
#include <stdint.h>

#include "base/str.h"

/* Bytes of samples (as they are in memory) by the way that they are read. */
typedef struct cmd_layout_ways {
    uint64_t located; /* by pread, at a known place */
    uint64_t chunks;  /* chunk by chunk, decoded without HDF5's lock */
    uint64_t library; /* by HDF5: virtual, compact, other filters, ... */
    uint64_t none;    /* not at all */
} cmd_layout_ways_t;

/* Append "contiguous", "chunked, filtered", ... to [text]. HDF5 lock held, as
 * below. */
void cmd_layout_name(hid_t set, str_buf_t *text);

/* Append lines on the dataset [path] of the open [file] called [name]: chunks,
 * filters, stored bytes, place in the file, and how it is read, or why not;
 * and add its bytes to [ways]. */
void cmd_layout_describe(hid_t file, const char *name, hid_t set,
                         const char *path, cmd_layout_ways_t *ways,
                         str_buf_t *text);

/* Append a line with the bytes of each way. */
void cmd_layout_sum(const cmd_layout_ways_t *ways, str_buf_t *text);

#endif
