/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files to convert, and what became of them. */
#ifndef CDDP_TESTS_IMPORT_FIXTURE_H
#define CDDP_TESTS_IMPORT_FIXTURE_H

#include "base/err.h"
#include "import/sink.h"
#include "import/source.h"

/* Make and remove the directory of a test; for TestSuite. */
void fixture_make(void);
void fixture_remove(void);

/* DIR/name. The caller frees it. */
char *fixture_path(const char *name);

/* Write the file DIR/name. fixture_gzip packs it. */
void fixture_write(const char *name, const void *data, size_t bytes);
void fixture_gzip(const char *name, const void *data, size_t bytes);

/* Write a .npy file with a [header] and [bytes] bytes of numbers. */
void fixture_npy(const char *name, const char *header, const void *data,
                 size_t bytes);

/* Convert [words] (ends with NULL; FILE of NAME=FILE, or FILE itself, is in
 * DIR) to DIR/train-NN.h5. [with]: of fields, words and rows nothing is used.
 */
err_code_t fixture_convert(const char *kind, const char *const *words,
                           const import_config_t *config,
                           const import_sink_config_t *with,
                           import_sink_report_t *report, err_t *err);

/* fixture_convert must fail with [code] and these parts in the message; no file
 * is left that it began. */
void fixture_refused(const char *kind, const char *const *words,
                     const import_config_t *config, err_code_t code,
                     const char *part, const char *other);

/* Read dataset [set] of DIR/[name] as float64 to [out], which has room for
 * [room]; returns how many numbers there are. */
int fixture_read(const char *name, const char *set, double *out, int room);

#endif
