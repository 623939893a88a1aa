/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Clocks and speeds are compared with the median of the hosts. With two hosts
 * nobody can tell which of them is the slow one, so their speeds are printed
 * and not judged, and their clocks are compared with that of rank 0.
 *
 * There are a few thousand hosts at most. So medians are found by counting, and
 * nothing is allocated.
 */
#include "cmd/info_judge.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* Findings of one kind that are printed; further ones are only counted. */
#define SHOWN_MOST 8

typedef struct judge {
    const info_record_t *hosts;
    int count;
    const char *dir;
    str_buf_t *out;
    int findings; /* of all kinds */
    int shown;    /* findings of this kind, printed or not */
} judge_t;

__attribute__((format(printf, 3, 4))) static void
finding(judge_t *judge, const char *host, const char *format, ...)
{
    va_list args;

    judge->findings++;
    if (judge->shown++ >= SHOWN_MOST)
        return;
    str_buf_add(judge->out, "finding: %s: ", host);
    va_start(args, format);
    str_buf_vadd(judge->out, format, args);
    va_end(args);
    str_buf_add(judge->out, "\n");
}

/* The findings of one kind are complete. */
static void kind_end(judge_t *judge)
{
    if (judge->shown > SHOWN_MOST)
        str_buf_add(judge->out, "finding: and %d more hosts like these\n",
                    judge->shown - SHOWN_MOST);
    judge->shown = 0;
}

/* ---- pairs --------------------------------------------------------------- */

int info_partner(int host, int hosts, int round)
{
    /* The last pair of a ring with an odd number of hosts has a round of its
     * own. */
    if (round == 2)
        return host == 0 ? hosts - 1 : host == hosts - 1 ? 0 : host;
    if (round == 0)
        return (host ^ 1) < hosts ? host ^ 1 : host;
    if (hosts % 2 != 0)
        return host == 0 ? host : ((host - 1) ^ 1) + 1;
    return ((((host + hosts - 1) % hosts) ^ 1) + 1) % hosts;
}

int info_rounds(int hosts)
{
    return hosts < 2 ? 0 : hosts == 2 ? 1 : hosts % 2 == 0 ? 2 : 3;
}

/* ---- builds -------------------------------------------------------------- */

static int same_builds(const info_hello_t *hellos, int size, int rank)
{
    int same = 0;

    for (int r = 0; r < size; r++)
        same += strcmp(hellos[r].build, hellos[rank].build) == 0;
    return same;
}

int info_judge_builds(const info_hello_t *hellos, int size, str_buf_t *out)
{
    judge_t judge = {.out = out};
    int most = 0, usual = 0;

    for (int rank = 0; rank < size; rank++) {
        const int same = same_builds(hellos, size, rank);

        if (same > most) {
            most = same;
            usual = rank;
        }
    }
    for (int rank = 0; rank < size; rank++)
        if (strcmp(hellos[rank].build, hellos[usual].build) != 0)
            finding(&judge, hellos[rank].host,
                    "rank %d has build %s of cddp, rank %d on %s has %s: all "
                    "ranks need the same installation",
                    rank, hellos[rank].build, usual, hellos[usual].host,
                    hellos[usual].build);
    kind_end(&judge);
    return judge.findings;
}

/* ---- values -------------------------------------------------------------- */

typedef double (*value_t)(const info_record_t *host);

static double clock_of(const info_record_t *host)
{
    return host->clock;
}

static double fsync_of(const info_record_t *host)
{
    return host->fsync;
}

static double sum_of(const info_record_t *host)
{
    return host->sum;
}

static double shm_of(const info_record_t *host)
{
    return (double)host->shm;
}

/* The hosts with the least and the largest value that was measured. Returns the
 * number of hosts with a value. */
static int range_of(const judge_t *judge, value_t value, int *least, int *most)
{
    int have = 0;

    for (int i = 0; i < judge->count; i++) {
        const double it = value(&judge->hosts[i]);

        if (it < 0)
            continue;
        if (have == 0 || it < value(&judge->hosts[*least]))
            *least = i;
        if (have == 0 || it > value(&judge->hosts[*most]))
            *most = i;
        have++;
    }
    return have;
}

/* Number of hosts whose value is below [bound], or with [also] equal to it. */
static int below(const judge_t *judge, value_t value, double bound, bool also)
{
    int count = 0;

    for (int i = 0; i < judge->count; i++) {
        const double it = value(&judge->hosts[i]);

        count += it < bound || (also && it <= bound);
    }
    return count;
}

/* The lower median of all hosts. */
static double median_of(const judge_t *judge, value_t value)
{
    const int middle = (judge->count - 1) / 2;

    for (int i = 0; i < judge->count; i++) {
        const double it = value(&judge->hosts[i]);

        if (below(judge, value, it, false) <= middle &&
            below(judge, value, it, true) > middle)
            return it;
    }
    return 0; /* only if there is a NaN */
}

/* ---- kinds --------------------------------------------------------------- */

static void clocks_judge(judge_t *judge)
{
    const double usual = judge->count > 2 ? median_of(judge, clock_of) : 0;
    double apart = 0;

    for (int i = 0; i < judge->count; i++) {
        const double ahead = judge->hosts[i].clock - usual;

        apart = fmax(apart, fabs(ahead));
        if (fabs(ahead) <= INFO_CLOCK_MOST)
            continue;
        finding(judge, judge->hosts[i].host,
                "its clock is %.1f s %s that of %s: times of files and logs "
                "are wrong, and Slurm refuses hosts that are minutes off; "
                "start chrony or ntpd there",
                fabs(ahead), ahead > 0 ? "ahead of" : "behind",
                judge->count > 2 ? "most hosts" : judge->hosts[0].host);
    }
    kind_end(judge);
    if (judge->count > 1)
        str_buf_add(judge->out, "clocks: at most %.3g s off\n", apart);
}

static void shm_judge(judge_t *judge)
{
    char room[32], need[32];
    int least = 0, most = 0;

    for (int i = 0; i < judge->count; i++) {
        const info_record_t *host = &judge->hosts[i];
        const uint64_t bytes = INFO_SHM_LEAST * (uint64_t)host->ranks;

        if (host->shm >= bytes)
            continue;
        finding(judge, host->host,
                "/dev/shm has %s free, expected %s for its %d rank%s: UCX "
                "takes slower memory instead, and MPI-IO and NCCL may not "
                "start; mount it larger, or remove old files there",
                str_bytes(host->shm, room, sizeof room),
                str_bytes(bytes, need, sizeof need), (int)host->ranks,
                host->ranks == 1 ? "" : "s");
    }
    kind_end(judge);
    (void)range_of(judge, shm_of, &least, &most);
    str_buf_add(judge->out, "/dev/shm: at least %s free (%s)\n",
                str_bytes(judge->hosts[least].shm, room, sizeof room),
                judge->hosts[least].host);
}

/* Does only the host of rank 0 see its file? Then it is probably the odd one.
 */
static bool only_first_sees(const judge_t *judge)
{
    for (int i = 1; i < judge->count; i++)
        if (judge->hosts[i].seen == INFO_SEEN_YES)
            return false;
    return judge->count > 2;
}

static void shared_judge(judge_t *judge)
{
    const char *first = judge->hosts[0].host;

    if (only_first_sees(judge)) {
        if (judge->hosts[0].seen == INFO_SEEN_YES)
            finding(judge, first,
                    "no other host finds the file that this one made in %s: "
                    "this host has another file system there, or the "
                    "directory is not shared",
                    judge->dir);
        kind_end(judge);
        return;
    }
    for (int i = 0; i < judge->count; i++) {
        const info_record_t *host = &judge->hosts[i];

        if (host->seen == INFO_SEEN_NO || host->seen == INFO_SEEN_OTHER)
            finding(judge, host->host,
                    "%s the file that %s made in %s: there must be one shared "
                    "file system on all hosts",
                    host->seen == INFO_SEEN_NO ? "it does not find"
                                               : "it finds other bytes in",
                    first, judge->dir);
    }
    kind_end(judge);
}

static void writes_judge(judge_t *judge)
{
    for (int i = 0; i < judge->count; i++)
        if (judge->hosts[i].write != 0)
            finding(judge, judge->hosts[i].host,
                    "it cannot write in %s: %s; all hosts write checkpoints "
                    "to the run directory",
                    judge->dir, strerror(judge->hosts[i].write));
    kind_end(judge);
}

static void locks_judge(judge_t *judge)
{
    for (int i = 0; i < judge->count; i++) {
        const info_record_t *host = &judge->hosts[i];

        if (host->lock != INFO_LOCK_LOCAL && host->lock != INFO_LOCK_NONE)
            continue;
        finding(judge, host->host,
                "%s in %s: two runs could use one run directory; mount the "
                "file system with locks (Lustre: flock, not localflock; NFS: "
                "not nolock or local_lock)",
                host->lock == INFO_LOCK_NONE
                    ? "files cannot be locked"
                    : "it gets a lock that another host holds",
                judge->dir);
    }
    kind_end(judge);
}

static void fsyncs_judge(judge_t *judge)
{
    int least = 0, most = 0;

    for (int i = 0; i < judge->count; i++)
        if (judge->hosts[i].fsync > INFO_FSYNC_MOST)
            finding(judge, judge->hosts[i].host,
                    "fsync in %s takes %.1f s: checkpoints will be slow",
                    judge->dir, judge->hosts[i].fsync);
    kind_end(judge);
    if (range_of(judge, fsync_of, &least, &most) > 0)
        str_buf_add(judge->out, "fsync: %.3g ms (%s) to %.3g ms (%s) in %s\n",
                    judge->hosts[least].fsync * 1e3, judge->hosts[least].host,
                    judge->hosts[most].fsync * 1e3, judge->hosts[most].host,
                    judge->dir);
}

static void sums_judge(judge_t *judge)
{
    const double usual = median_of(judge, sum_of);
    int least = 0, most = 0;

    for (int i = 0; judge->count > 2 && i < judge->count; i++)
        if (usual > 0 && judge->hosts[i].sum > INFO_SUM_RATIO * usual)
            finding(judge, judge->hosts[i].host,
                    "an all-reduce of 1 MB with its neighbours takes %.3g ms, "
                    "%.1f times the median of all hosts: look at its network "
                    "card, link and load",
                    judge->hosts[i].sum * 1e3, judge->hosts[i].sum / usual);
    kind_end(judge);
    if (range_of(judge, sum_of, &least, &most) > 0)
        str_buf_add(judge->out,
                    "all-reduce of 1 MB by two hosts: %.3g ms (%s) to %.3g ms "
                    "(%s)\n",
                    judge->hosts[least].sum * 1e3, judge->hosts[least].host,
                    judge->hosts[most].sum * 1e3, judge->hosts[most].host);
}

int info_judge(const info_record_t *hosts, int count, const char *dir,
               str_buf_t *out)
{
    judge_t judge = {.hosts = hosts, .count = count, .dir = dir, .out = out};

    clocks_judge(&judge);
    shm_judge(&judge);
    writes_judge(&judge);
    shared_judge(&judge);
    locks_judge(&judge);
    fsyncs_judge(&judge);
    sums_judge(&judge);
    return judge.findings;
}
