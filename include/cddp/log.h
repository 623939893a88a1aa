/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Log lines of the library, besides errors: that a checkpoint is damaged and
 * the previous one is read, that storage is slow. The library writes nothing to
 * standard output or standard error: without a log function these lines are
 * dropped. (UCX and PMIx print their own lines: see UCX_LOG_LEVEL.)
 *
 * Numbers in texts that the library reads or writes (run files, manifests,
 * sentences) have a point, whatever locale the program has set.
 */
#ifndef CDDP_LOG_H
#define CDDP_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cddp_level {
    CDDP_LOG_ERROR,
    CDDP_LOG_WARN, /* the program goes on, but check this */
    CDDP_LOG_INFO, /* a few lines */
    CDDP_LOG_DEBUG,
    CDDP_LOG_TRACE
} cddp_level_t;

/* [text] is one sentence without a newline, [module] the part of the library
 * that it comes from ("hdf5io"), both valid during the call; [rank] is -1 if
 * the calling thread belongs to no rank. */
typedef void (*cddp_log_t)(void *context, cddp_level_t level, int rank,
                           const char *module, const char *text);

/* From now on lines up to [level] go to [log]; NULL: nowhere, as at the start.
 * For the whole process. Called from any thread of the library, one line at a
 * time; it must not call the library. When this returns, the function before is
 * called no more. */
void cddp_log_set(cddp_level_t level, cddp_log_t log, void *context);

#ifdef __cplusplus
}
#endif
#endif
