/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* copy: all samples of a source to a sink, or to two of them. */
#ifndef CDDP_IMPORT_COPY_H
#define CDDP_IMPORT_COPY_H

#include "import/sink.h"
#include "import/source.h"

/* How many samples are read at a time. */
int64_t import_copy_rows(const import_source_t *source);

/* Copy all samples of [source] to [sink], which was opened for as many. Needs
 * memory for 16 MiB of samples, at least one. Messages as of the source and the
 * sink. */
err_code_t import_copy(import_source_t *source, import_sink_t *sink,
                       err_t *err);

#endif
