/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* copy: all samples of a source to a sink, or to two of them. */
#ifndef CDDP_IMPORT_COPY_H
#define CDDP_IMPORT_COPY_H

#include "import/sink.h"
#include "import/source.h"

/* How many samples are read at a time. */
int64_t import_copy_rows(const import_source_t *source);

/* Copy to [sink] the samples of [source] that it takes. Needs memory for 16 MiB
 * of samples, at least one. Messages as of the source and the sink. If [sink]
 * takes a part that does not begin with sample 0, the kind of the source has a
 * function skip. */
err_code_t import_copy(import_source_t *source, import_sink_t *sink,
                       err_t *err);

/* If several processes copy one part each, they tell each other from time to
 * time how far they are. */
typedef struct import_round {
    /* Called the same number of times in all processes. [done] samples of this
     * part were copied, with the outcome [rc] (message in [err]). Returns the
     * outcome of all processes: an error ends all of them. */
    err_code_t (*meet)(void *context, int64_t done, err_code_t rc, err_t *err);
    void *context;
} import_round_t;

/* As import_copy, for one of several processes. All processes have equal
 * sources, and each has the sink of another part. Returns the outcome of the
 * last round. */
err_code_t import_copy_part(import_source_t *source, import_sink_t *sink,
                            const import_round_t *round, err_t *err);

#endif
