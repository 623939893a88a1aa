/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What cddp-info --check makes of the measurements, and how its guard ends a
 * process. tests/slurm/info.t runs it on several hosts. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/info_guard.h"
#include "cmd/info_judge.h"
#include "cmd/info_probe.h"

#define HOSTS 5
#define GIB ((uint64_t)1 << 30)

/* Five hosts, with nothing to be found. */
static void hosts_fill(info_record_t *hosts)
{
    memset(hosts, 0, HOSTS * sizeof *hosts);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(hosts[i].host, sizeof hosts[i].host, "n%d", i + 1);
        hosts[i].clock = 1e-4 * i;
        hosts[i].fsync = 1e-3;
        hosts[i].sum = 1e-3 + 1e-5 * i;
        hosts[i].shm = GIB;
        hosts[i].ranks = 4;
        hosts[i].seen = INFO_SEEN_YES;
        hosts[i].lock = INFO_LOCK_WORKS;
    }
}

/* Is there a finding on [host] that has [words]? */
static bool found(const char *text, const char *host, const char *words)
{
    char begin[64];
    const char *line;

    snprintf(begin, sizeof begin, "finding: %s: ", host);
    line = strstr(text, begin);
    return line != NULL &&
           memmem(line, strcspn(line, "\n"), words, strlen(words)) != NULL;
}

typedef enum field {
    NOTHING,
    CLOCK,
    SHM,
    SEEN,
    LOCK,
    WRITE,
    FSYNC,
    SUM
} field_t;

typedef struct row {
    const char *name;
    int hosts;     /* that take part */
    int host;      /* that is changed: */
    field_t field; /* this value */
    double value;
    const char *named; /* host in the finding; NULL: there must be none */
    const char *words; /* in the finding */
} row_t;

#define MIB (1 << 20)

static const row_t rows[] = {
    {"nothing", 5, 2, NOTHING, 0, NULL, NULL},
    {"one host", 1, 0, NOTHING, 0, NULL, NULL},
    {"a clock ahead", 5, 2, CLOCK, 3600, "n3",
     "3600.0 s ahead of that of most hosts"},
    {"a clock behind", 5, 4, CLOCK, -1.5, "n5", "1.5 s behind that of"},
    {"a clock within the bound", 5, 4, CLOCK, -0.9, NULL, NULL},
    {"a clock, two hosts", 2, 1, CLOCK, 3600, "n2", "ahead of that of n1"},
    {"/dev/shm", 5, 1, SHM, 64 * MIB - 1, "n2",
     "expected 64.0 MiB for its 4 ranks"},
    {"/dev/shm, just enough", 5, 1, SHM, 64 * MIB, NULL, NULL},
    {"/dev/shm, one host", 1, 0, SHM, MIB, "n1", "1.0 MiB free"},
    {"no file", 5, 3, SEEN, INFO_SEEN_NO, "n4",
     "does not find the file that n1 made in /dir"},
    {"another file", 2, 1, SEEN, INFO_SEEN_OTHER, "n2", "other bytes"},
    {"a read-only directory", 5, 3, WRITE, EROFS, "n4",
     "cannot write in /dir: Read-only file system"},
    {"a directory that is not there", 1, 0, WRITE, ENOENT, "n1",
     "No such file"},
    {"locks of one host only", 5, 3, LOCK, INFO_LOCK_LOCAL, "n4",
     "a lock that another host holds"},
    {"no locks", 5, 0, LOCK, INFO_LOCK_NONE, "n1", "cannot be locked"},
    {"a lock that could not be tried", 5, 3, LOCK, INFO_LOCK_UNKNOWN, NULL,
     NULL},
    {"fsync", 2, 1, FSYNC, 2.5, "n2", "takes 2.5 s"},
    {"fsync not measured", 2, 1, FSYNC, -1, NULL, NULL},
    {"a slow network", 5, 3, SUM, 5e-3, "n4", "times the median"},
    {"a slow first host", 3, 0, SUM, 5e-3, "n1", "times the median"},
    {"two hosts are not compared", 2, 1, SUM, 1, NULL, NULL},
};

static void row_apply(const row_t *row, info_record_t *host)
{
    switch (row->field) {
    case NOTHING:
        break;
    case CLOCK:
        host->clock = row->value;
        break;
    case SHM:
        host->shm = (uint64_t)row->value;
        break;
    case SEEN:
        host->seen = (int32_t)row->value;
        break;
    case LOCK:
        host->lock = (int32_t)row->value;
        break;
    case WRITE:
        host->write = (int32_t)row->value;
        break;
    case FSYNC:
        host->fsync = row->value;
        break;
    case SUM:
        host->sum = row->value;
        break;
    }
}

Test(info_check, findings)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row_t *row = &rows[i];
        info_record_t hosts[HOSTS];
        str_buf_t out = {0};
        int count;

        hosts_fill(hosts);
        row_apply(row, &hosts[row->host]);
        count = info_judge(hosts, row->hosts, "/dir", &out);
        cr_expect_eq(count, row->named != NULL, "%s: %d findings:\n%s",
                     row->name, count, out.text);
        if (row->named != NULL)
            cr_expect(found(out.text, row->named, row->words), "%s:\n%s",
                      row->name, out.text);
        str_buf_free(&out);
    }
}

/* If rank 0 is the only one that sees its file, it is the odd one. */
Test(info_check, the_host_of_rank_0_is_the_odd_one)
{
    info_record_t hosts[HOSTS];
    str_buf_t out = {0};

    hosts_fill(hosts);
    for (int i = 1; i < HOSTS; i++)
        hosts[i].seen = INFO_SEEN_NO;
    cr_expect_eq(info_judge(hosts, HOSTS, "/dir", &out), 1);
    cr_expect(found(out.text, "n1", "no other host finds"), "%s", out.text);
    str_buf_free(&out);
}

/* Thousands of hosts with one fault do not print thousands of lines. */
Test(info_check, many_findings_are_counted)
{
    info_record_t hosts[100];
    str_buf_t out = {0};
    int lines = 0;

    memset(hosts, 0, sizeof hosts);
    for (int i = 0; i < 100; i++) {
        snprintf(hosts[i].host, sizeof hosts[i].host, "n%d", i);
        hosts[i].ranks = 1;
        hosts[i].fsync = hosts[i].sum = -1;
    }
    cr_expect_eq(info_judge(hosts, 100, "/dir", &out), 100);
    cr_expect_not_null(strstr(out.text, "finding: and 92 more hosts"));
    for (const char *at = out.text; (at = strstr(at, "finding: ")) != NULL;
         at++)
        lines++;
    cr_expect_eq(lines, 9);
    str_buf_free(&out);
}

Test(info_check, builds)
{
    info_hello_t hellos[4] = {
        {"n1", "1-a"}, {"n1", "1-b"}, {"n2", "1-a"}, {"n2", "1-a"}};
    str_buf_t out = {0};

    cr_expect_eq(info_judge_builds(hellos, 4, &out), 1);
    cr_expect(found(out.text, "n1", "rank 1 has build 1-b"), "%s", out.text);
    str_buf_free(&out);
    cr_expect_eq(info_judge_builds(&hellos[2], 2, &out), 0);
    cr_expect_null(out.text);
}

/* In its rounds each host meets both neighbours in the ring once, and partners
 * agree. */
Test(info_check, pairs)
{
    cr_expect_eq(info_rounds(1), 0);
    cr_expect_eq(info_rounds(2), 1);
    for (int hosts = 2; hosts < 12; hosts++)
        for (int host = 0; host < hosts; host++) {
            const int next = (host + 1) % hosts;
            int met = 0;

            for (int round = 0; round < info_rounds(hosts); round++) {
                const int other = info_partner(host, hosts, round);

                cr_assert(other >= 0 && other < hosts);
                cr_expect_eq(info_partner(other, hosts, round), host);
                met += other == next;
            }
            cr_expect_eq(met, 1, "%d of %d meets %d %d times", host, hosts,
                         next, met);
        }
}

/* ---- probes -------------------------------------------------------------- */

Test(info_check, the_folder_is_seen_locked_written_and_removed)
{
    char dir[] = "info-check-XXXXXX";
    info_folder_t folder;
    info_record_t first = {.fsync = -1}, other = {.fsync = -1};
    int fd = -1;

    cr_assert_not_null(mkdtemp(dir));
    info_folder_make(dir, &folder, &fd);
    cr_assert_eq(folder.error, 0);
    cr_assert(fd >= 0);
    info_probe_file(dir, &folder, true, &first);
    info_probe_file(dir, &folder, false, &other);
    cr_expect_eq(first.seen, INFO_SEEN_YES);
    cr_expect_eq(other.seen, INFO_SEEN_YES);
    cr_expect_eq(other.lock, first.lock);
    info_probe_write(dir, &folder, 7, &other);
    cr_expect_eq(other.write, 0);
    cr_expect(other.fsync >= 0);
    close(fd);
    /* Without the lock of rank 0 the second one is granted. */
    if (first.lock == INFO_LOCK_WORKS) {
        info_probe_file(dir, &folder, false, &other);
        cr_expect_eq(other.lock, INFO_LOCK_LOCAL);
    }
    folder.content[0] ^= 1;
    info_probe_file(dir, &folder, false, &other);
    cr_expect_eq(other.seen, INFO_SEEN_OTHER);
    info_folder_remove(dir, &folder);
    cr_expect_eq(rmdir(dir), 0, "%s is not empty", dir);
}

Test(info_check, a_directory_that_is_not_there)
{
    info_folder_t folder;
    info_record_t record = {.fsync = -1};
    int fd = 0;

    info_folder_make("info-check-none/x", &folder, &fd);
    cr_expect_eq(folder.error, ENOENT);
    cr_expect_eq(fd, -1);
    info_probe_file("info-check-none/x", &folder, true, &record);
    cr_expect_eq(record.seen, INFO_SEEN_UNKNOWN);
    info_folder_remove("info-check-none/x", &folder);
}

/* ---- guard --------------------------------------------------------------- */

/* The child hangs in a read that never returns; its guard ends it. */
Test(info_check, the_guard_ends_a_process_that_hangs)
{
    int never[2], said[2], how = 0;
    char text[512] = "";
    pid_t child;

    cr_assert_eq(pipe(never), 0);
    cr_assert_eq(pipe(said), 0);
    child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        info_guard_t *guard = NULL;
        char byte;

        dup2(said[1], STDERR_FILENO);
        if (info_guard_open(3, 0.2, &guard, NULL) != ERR_OK)
            _exit(1);
        info_guard_report(guard, "fsync");
        (void)!read(never[0], &byte, 1);
        _exit(2);
    }
    close(said[1]);
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == ERR_PEER, "%d", how);
    cr_expect(read(said[0], text, sizeof text - 1) > 0);
    cr_expect_not_null(strstr(text, "rank 3 on "), "%s", text);
    cr_expect_not_null(strstr(text, "\"fsync\""), "%s", text);
    close(said[0]);
    close(never[0]);
    close(never[1]);
}

Test(info_check, a_guard_that_is_closed_in_time)
{
    info_guard_t *guard = NULL;

    cr_assert_eq(info_guard_open(0, 1000, &guard, NULL), ERR_OK);
    info_guard_report(guard, "all-reduce");
    info_guard_close(guard);
    info_guard_close(NULL);
}
