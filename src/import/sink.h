/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * sink: writes samples as shards DIR/NAME-00.h5, DIR/NAME-01.h5, ..., each with
 * an equal part of them. A shard is written under a temporary name that no
 * other process uses, and fsynced. After the last shard is written, all shards
 * get their names. So a shard that has its name is complete. The same samples
 * give the same bytes (no time stamps).
 *
 * Several processes may write the shards of one set of samples, each a part of
 * the shards.
 */
#ifndef CDDP_IMPORT_SINK_H
#define CDDP_IMPORT_SINK_H

#include "import/source.h"

enum { IMPORT_GZIP_MAX = 9, IMPORT_SHARDS_MAX = 100000 };

typedef struct import_sink_config {
    const char *directory;        /* exists */
    const char *name;             /* "train" */
    const import_field_t *fields; /* [field_count]; copied */
    int field_count;
    int64_t rows;    /* that will be written; at least 1 */
    int shards;      /* at most rows; 0: as many as give files of 256 MiB */
    int part, parts; /* write only this part of the shards; parts 0: all */
    int gzip;        /* level of compression; 0: none */
    /* Bytes of samples in a chunk. 0: 1 MiB if compressed; otherwise datasets
     * are contiguous, which cddp reads fastest. */
    int64_t chunk;
    import_source_t *source; /* whose annotate is called; NULL: none */
    /* Called after each write: [done] samples were written so far; NULL: not
     * needed. */
    void (*tell)(void *context, int64_t done);
    void *context;
} import_sink_config_t;

typedef struct import_sink_report {
    int shards;
    int64_t bytes; /* of the files */
} import_sink_report_t;

typedef struct import_sink import_sink_t;

/* [config]'s texts must outlive the sink. ERR_USAGE: more shards than samples,
 * or samples above 1 GiB with chunks. ERR_MEMORY. */
err_code_t import_sink_open(const import_sink_config_t *config,
                            import_sink_t **out, err_t *err);

/* The samples that this sink takes: [*first, *end). The second function gives
 * the largest number of samples that the sink of any part takes. */
void import_sink_range(const import_sink_t *sink, int64_t *first, int64_t *end);
int64_t import_sink_most(const import_sink_t *sink);

/* Write the next [rows] samples; data[f] are those of field f. ERR_IO. */
err_code_t import_sink_write(import_sink_t *sink, int64_t rows,
                             void *const *data, err_t *err);

/* After all samples were written: give the shards their names, and fsync the
 * directory. A file that has got one of the names meanwhile is not replaced:
 * ERR_IO. */
err_code_t import_sink_finish(import_sink_t *sink, import_sink_report_t *out,
                              err_t *err);

/* Another part has failed: import_sink_close shall remove all shards, although
 * import_sink_finish has succeeded. */
void import_sink_revoke(import_sink_t *sink);

/* Free [sink]. Unless import_sink_finish has succeeded, all of its shards are
 * removed: a part of the samples must not be taken for all of them. NULL is
 * allowed. */
void import_sink_close(import_sink_t *sink);

#endif
