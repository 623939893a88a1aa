/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cddp-info --check: what the measurements of all hosts mean. A finding is one
 * line, "finding: HOST: what is wrong, and what follows". The functions are
 * pure, so all ranks come to the same result.
 */
#ifndef CDDP_CMD_INFO_JUDGE_H
#define CDDP_CMD_INFO_JUDGE_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Bounds: a value beyond its bound is a finding. Seconds between two clocks;
 * seconds for the fastest of several fsyncs; free bytes in /dev/shm for each
 * rank of a host; times the median of the hosts. */
#define INFO_CLOCK_MOST 1.0
#define INFO_FSYNC_MOST 1.0
#define INFO_SHM_LEAST ((uint64_t)16 << 20)
#define INFO_SUM_RATIO 3.0

/* What a rank tells first. Ranks of different builds exchange it, so its layout
 * must stay as it is. */
typedef struct info_hello {
    char host[ERR_HOST_MAX];
    char build[64];
} info_hello_t;

/* Did a host find the file that rank 0 made? */
typedef enum info_seen {
    INFO_SEEN_UNKNOWN, /* rank 0 could not make it */
    INFO_SEEN_YES,
    INFO_SEEN_NO,   /* there is no such file */
    INFO_SEEN_OTHER /* it has other bytes */
} info_seen_t;

/* What became of the lock of rank 0 on that file? */
typedef enum info_lock {
    INFO_LOCK_UNKNOWN, /* it could not be tried */
    INFO_LOCK_WORKS,   /* rank 0 got it, other hosts did not */
    INFO_LOCK_LOCAL,   /* this host got it, too */
    INFO_LOCK_NONE     /* the file system has no locks */
} info_lock_t;

/* What the first rank on a host has measured. Negative seconds: not measured.
 */
typedef struct info_record {
    char host[ERR_HOST_MAX];
    double clock;  /* seconds that its clock is ahead of that of rank 0 */
    double fsync;  /* seconds for one fsync in the directory */
    double sum;    /* seconds for an all-reduce of 1 MB with another host */
    uint64_t shm;  /* free bytes in /dev/shm */
    int32_t ranks; /* number of ranks on this host */
    int32_t seen;  /* info_seen_t */
    int32_t lock;  /* info_lock_t */
    int32_t write; /* errno of writing in the directory; 0: it works */
} info_record_t;

/* Each host reduces with both of its neighbours in a ring of [hosts] hosts, in
 * info_rounds rounds of pairs. info_partner is the other host of the pair of
 * [host] in [round], counted from 0; [host] itself if it has none. */
int info_rounds(int hosts);
int info_partner(int host, int hosts, int round);

/* Append a finding for each build that is not that of most of the [size] ranks
 * to [out]. Returns the number of findings. */
int info_judge_builds(const info_hello_t *hellos, int size, str_buf_t *out);

/* Append one line for each kind of measurement and one for each finding to
 * [out]. [hosts] has [count] different hosts, that of rank 0 first; [dir] is
 * the directory that was tried. Returns the number of findings. */
int info_judge(const info_record_t *hosts, int count, const char *dir,
               str_buf_t *out);

#endif
