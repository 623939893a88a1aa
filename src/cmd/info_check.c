/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The ranks first compare their builds through boot, since ranks of different
 * builds cannot open a group. All else is done within a group: its ranks notice
 * within INFO_CHECK_PATIENCE seconds that one of them has died or hangs. So
 * nothing that may hang is done before.
 *
 * An all-reduce over all hosts is as slow as the slowest one and does not tell
 * which one that is. So neighbours (hosts k and k + 1, in a ring) reduce in
 * pairs, several pairs at a time, and each host gets the better one of its two
 * times: next to a slow host there is a fast one.
 */
#include "config.h"

#include "cmd/info_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/info_guard.h"
#include "cmd/info_probe.h"
#include "cmd/version.h"
#include "comm/comm.h"
#include "comm/comm_split.h"

#define CLOCK_ROUNDS 10
#define FSYNC_ROUNDS 5
#define SUM_ROUNDS 10
#define SUM_COUNT 250000 /* floats: 1 MB */
#define GUARD_SECONDS (1.5 * INFO_CHECK_PATIENCE)

typedef struct check {
    const char *dir;
    int rank, size;
    comm_group_t *group;
    info_guard_t *guard;
    int *host_of;    /* [size]: the host of each rank, from 0 on */
    int host, hosts; /* the host of this rank; number of hosts */
    bool leads;      /* this is the first rank on its host */
    info_folder_t folder;
    int lock;    /* of rank 0; -1: none */
    bool judged; /* all ranks know all findings */
    info_record_t mine;
} check_t;

/* Both the other ranks and the guard of this rank are told. */
static void begin(check_t *check, const char *phase)
{
    comm_group_report(check->group, 0, phase);
    info_guard_report(check->guard, phase);
}

/* ---- hosts --------------------------------------------------------------- */

/* Number the hosts in the order of their first ranks. */
static void hosts_find(check_t *check, const info_hello_t *hellos)
{
    for (int rank = 0; rank < check->size; rank++) {
        int first = 0;

        while (strcmp(hellos[first].host, hellos[rank].host) != 0)
            first++;
        check->host_of[rank] =
            first < rank ? check->host_of[first] : check->hosts++;
        if (rank == check->rank)
            check->leads = first == rank;
    }
    check->host = check->host_of[check->rank];
    for (int rank = 0; rank < check->size; rank++)
        check->mine.ranks += check->host_of[rank] == check->host;
}

/* Exchange hosts and builds. ERR_UNAVAILABLE if builds differ. */
static err_code_t builds_check(check_t *check, boot_t *boot, err_t *err)
{
    info_hello_t mine, *hellos = NULL;
    str_buf_t out = {0};
    int findings;
    err_code_t rc =
        mem_new(info_hello_t, (size_t)check->size, "ranks", &hellos, err);

    memset(&mine, 0, sizeof mine);
    (void)gethostname(mine.host, sizeof mine.host - 1);
    snprintf(mine.build, sizeof mine.build, "%s", cmd_version_build());
    memcpy(check->mine.host, mine.host, sizeof mine.host);
    if (rc == ERR_OK)
        rc = boot_exchange(boot, &mine, sizeof mine, hellos, err);
    if (rc != ERR_OK)
        goto free_hellos;
    findings = info_judge_builds(hellos, check->size, &out);
    if (findings > 0 && check->rank == 0)
        str_print("%s", out.text);
    if (findings > 0)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "%d finding%s on the builds of cddp; the rest was not "
                     "checked",
                     findings, findings == 1 ? "" : "s");
    else
        hosts_find(check, hellos);
    check->judged = findings > 0;
    str_buf_free(&out);
free_hellos:
    mem_free(hellos);
    return rc;
}

/* ---- clocks -------------------------------------------------------------- */

/* All ranks leave a barrier at nearly the same time. If a rank leaves it late,
 * its clock seems to be ahead, so the smallest of several differences counts.
 */
static err_code_t clocks_measure(check_t *check, err_t *err)
{
    err_code_t rc = ERR_OK;

    begin(check, "clocks");
    for (int i = 0; rc == ERR_OK && i < CLOCK_ROUNDS; i++) {
        double mine, first;

        rc = comm_barrier(check->group, err);
        mine = first = clock_wall();
        if (rc == ERR_OK)
            rc = comm_broadcast(check->group, &first, sizeof first, 0, err);
        if (i == 0 || fabs(mine - first) < fabs(check->mine.clock))
            check->mine.clock = mine - first;
    }
    return rc;
}

/* ---- directory ----------------------------------------------------------- */

static void dir_probe(check_t *check)
{
    info_record_t *mine = &check->mine;

    info_probe_file(check->dir, &check->folder, check->host == 0, mine);
    for (int i = 0;
         i < FSYNC_ROUNDS && mine->seen == INFO_SEEN_YES && mine->write == 0;
         i++) {
        begin(check, "fsync");
        info_probe_write(check->dir, &check->folder, check->rank, mine);
    }
}

static err_code_t dir_measure(check_t *check, err_t *err)
{
    err_code_t rc;

    begin(check, "directory");
    if (check->rank == 0)
        info_folder_make(check->dir, &check->folder, &check->lock);
    rc = comm_broadcast(check->group, &check->folder, sizeof check->folder, 0,
                        err);
    if (rc != ERR_OK)
        return rc;
    if (check->rank == 0)
        check->mine.write = check->folder.error;
    begin(check, "directory");
    if (check->leads)
        dir_probe(check);
    begin(check, "directory");
    return comm_barrier(check->group, err);
}

/* ---- all-reduce ---------------------------------------------------------- */

static err_code_t sum_time(check_t *check, comm_group_t *pair, float *data,
                           err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < SUM_ROUNDS; i++) {
        double begin_at, took;

        memset(data, 0, SUM_COUNT * sizeof *data);
        rc = comm_barrier(pair, err);
        begin_at = clock_now();
        if (rc == ERR_OK)
            rc = comm_allreduce(pair, data, SUM_COUNT, COMM_FLOAT32, COMM_SUM,
                                err);
        took = clock_now() - begin_at;
        if (rc == ERR_OK && (check->mine.sum < 0 || took < check->mine.sum))
            check->mine.sum = took;
    }
    return rc;
}

static err_code_t round_measure(check_t *check, int round, int *ranks,
                                float *data, err_t *err)
{
    const int partner = info_partner(check->host, check->hosts, round);
    comm_group_t *pair = NULL;
    int count = 0;
    err_code_t rc;

    for (int rank = 0; partner != check->host && rank < check->size; rank++)
        if (check->host_of[rank] == check->host ||
            check->host_of[rank] == partner)
            ranks[count++] = rank;
    begin(check, "all-reduce");
    rc = comm_split_open(check->group, ranks, count, &pair, err);
    if (rc == ERR_OK && pair != NULL)
        rc = sum_time(check, pair, data, err);
    comm_group_close(pair);
    return rc == ERR_OK ? comm_barrier(check->group, err) : rc;
}

static err_code_t sums_measure(check_t *check, err_t *err)
{
    float *data = NULL;
    int *ranks = NULL;
    err_code_t rc = mem_new(float, SUM_COUNT, "all-reduce", &data, err);

    if (rc == ERR_OK)
        rc = mem_new(int, (size_t)check->size, "ranks", &ranks, err);
    for (int round = 0; rc == ERR_OK && round < info_rounds(check->hosts);
         round++)
        rc = round_measure(check, round, ranks, data, err);
    mem_free(ranks);
    mem_free(data);
    return rc;
}

/* ---- the end ------------------------------------------------------------- */

/* Keep the record of the first rank on each host. */
static void records_keep(const check_t *check, info_record_t *records)
{
    int kept = 0;

    for (int rank = 0; rank < check->size; rank++)
        if (check->host_of[rank] == kept)
            records[kept++] = records[rank];
}

static err_code_t records_judge(check_t *check, err_t *err)
{
    info_record_t *records = NULL;
    str_buf_t out = {0};
    int findings;
    err_code_t rc =
        mem_new(info_record_t, (size_t)check->size, "records", &records, err);

    if (rc == ERR_OK)
        rc = comm_allgather(check->group, &check->mine, sizeof check->mine,
                            records, err);
    if (rc != ERR_OK)
        goto free_records;
    check->judged = true;
    records_keep(check, records);
    findings = info_judge(records, check->hosts, check->dir, &out);
    if (check->rank == 0)
        str_print("%d rank%s on %d host%s, build %s\n%s%s", check->size,
                  check->size == 1 ? "" : "s", check->hosts,
                  check->hosts == 1 ? "" : "s", cmd_version_build(), out.text,
                  findings == 0 ? "no findings\n" : "");
    if (findings > 0)
        rc = err_set(err, ERR_UNAVAILABLE, "%d finding%s", findings,
                     findings == 1 ? "" : "s");
    str_buf_free(&out);
free_records:
    mem_free(records);
    return rc;
}

static err_code_t check_run(check_t *check, err_t *err)
{
    err_code_t rc = clocks_measure(check, err);

    check->mine.shm = info_probe_shm();
    if (rc == ERR_OK)
        rc = dir_measure(check, err);
    if (check->lock >= 0)
        close(check->lock);
    if (check->rank == 0)
        info_folder_remove(check->dir, &check->folder);
    if (rc == ERR_OK)
        rc = sums_measure(check, err);
    if (rc == ERR_OK)
        rc = records_judge(check, err);
    begin(check, "end");
    return rc;
}

/* Rank 0 speaks of what all ranks know, or if it is the culprit, rank 1. */
static bool speaks(const check_t *check, err_code_t rc, const err_t *err)
{
    if (rc == ERR_PEER && err->culprit >= 0)
        return check->rank == (err->culprit == 0 ? 1 : 0);
    return !check->judged || check->rank == 0;
}

err_code_t info_check(boot_t *boot, const char *dir, bool *speaker, err_t *err)
{
    check_t check = {.dir = dir,
                     .rank = boot_rank(boot),
                     .size = boot_size(boot),
                     .lock = -1,
                     .mine = {.fsync = -1, .sum = -1}};
    const comm_config_t config = {.backend = "auto",
                                  .timeout = INFO_CHECK_PATIENCE};
    const comm_oob_t oob = {.context = boot,
                            .rank = check.rank,
                            .size = check.size,
                            .exchange = boot_exchange_call};
    err_code_t rc;

    log_rank_set(check.rank);
    rc = mem_new(int, (size_t)check.size, "ranks", &check.host_of, err);
    if (rc == ERR_OK)
        rc = builds_check(&check, boot, err);
    if (rc == ERR_OK)
        rc = comm_group_open(&config, &oob, &check.group, err);
    boot_close(boot);
    if (rc == ERR_OK)
        rc = info_guard_open(check.rank, GUARD_SECONDS, &check.guard, err);
    if (rc == ERR_OK)
        rc = check_run(&check, err);
    *speaker = speaks(&check, rc, err);
    comm_group_close(check.group);
    info_guard_close(check.guard);
    mem_free(check.host_of);
    return rc;
}
