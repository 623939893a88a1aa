/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Log lines of the library. They report what is not an error of a call, such as
 * a damaged checkpoint (the previous one is read) or slow storage. The library
 * writes nothing to standard output or standard error: without a log function
 * these lines are dropped. (UCX and PMIx print their own lines: see
 * UCX_LOG_LEVEL.)
 *
 * Numbers in texts that the library reads or writes (run files, manifests,
 * messages) have a decimal point, whatever locale the program has set.
 */
#ifndef CDDP_LOG_H
#define CDDP_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cddp_level {
    CDDP_LOG_ERROR,
    CDDP_LOG_WARN, /* the program continues, but somebody should check */
    CDDP_LOG_INFO, /* a few lines per run */
    CDDP_LOG_DEBUG,
    CDDP_LOG_TRACE
} cddp_level_t;

/* Function that receives a log line. [text] is one sentence without a newline,
 * [module] the part of the library that logs it ("hdf5io"); both are valid
 * during the call. [rank] is -1 if the calling thread belongs to no rank. */
typedef void (*cddp_log_t)(void *context, cddp_level_t level, int rank,
                           const char *module, const char *text);

/* From now on [log] receives the lines of levels up to [level], for the whole
 * process. NULL: drop all lines, as at the start. Any thread of the library may
 * call [log], one line at a time; [log] must not call the library. After this
 * returns, the previous function is no longer called. */
void cddp_log_set(cddp_level_t level, cddp_log_t log, void *context);

#ifdef __cplusplus
}
#endif
#endif
