/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Ranks that are processes (boot_spawn_run), as a program sees them:
 * spawn_probe runs with its output in a pipe. The pipe ends when all its
 * processes have ended, so each test shows that no rank remains.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

typedef struct probe {
    pid_t pid;
    int out;
    int status; /* as waitpid gives it */
    char text[200000];
    size_t used;
} probe_t;

static probe_t probe; /* too large for a stack */

/* Start the probe with these arguments. */
static void start(const char *ranks, const char *timeout, const char *patience,
                  const char *mode, const char *arg)
{
    const char *const args[] = {PROBE, ranks, timeout, patience,
                                mode,  arg,   NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];

    probe.used = 0;
    probe.text[0] = '\0';
    cr_assert_eq(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    /* posix_spawn changes no argument. */
    cr_assert_eq(posix_spawn(&probe.pid, PROBE, &actions, NULL,
                             (char *const *)(uintptr_t)args, environ),
                 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    probe.out = ends[0];
}

/* Read more of the output; false at its end. */
static bool more(void)
{
    const ssize_t got = read(probe.out, probe.text + probe.used,
                             sizeof probe.text - 1 - probe.used);

    cr_assert_geq(got, 0);
    probe.used += (size_t)got;
    probe.text[probe.used] = '\0';
    return got > 0;
}

/* Wait until the probe and all its ranks have ended. */
static void finish(void)
{
    while (more()) {
    }
    close(probe.out);
    cr_assert_eq(waitpid(probe.pid, &probe.status, 0), probe.pid);
}

static void ended_with(int status)
{
    cr_assert(WIFEXITED(probe.status), "%d: %s", probe.status, probe.text);
    cr_assert_eq(WEXITSTATUS(probe.status), status, "status %d: %s",
                 WEXITSTATUS(probe.status), probe.text);
}

static void run(const char *ranks, const char *mode, const char *arg,
                int status)
{
    start(ranks, "60", "60", mode, arg);
    finish();
    ended_with(status);
}

static int count_of(const char *words)
{
    int count = 0;

    for (const char *at = probe.text; (at = strstr(at, words)) != NULL;
         at += strlen(words))
        count++;
    return count;
}

static void said(const char *words)
{
    cr_assert_gt(count_of(words), 0, "no \"%s\" in: %s", words, probe.text);
}

/* ---- exchanges ----------------------------------------------------------- */

Test(spawn, exchange, .timeout = 300)
{
    static const char *const sizes[] = {"1", "2", "3", "8"};

    for (size_t i = 0; i < 4; i++)
        run(sizes[i], "rounds", NULL, 0);
}

Test(spawn, agree_names_the_odd_rank_on_every_rank, .timeout = 300)
{
    run("4", "agree", NULL, ERR_CONFIG);
    cr_assert_eq(count_of("the configuration of rank 1 "), 4, "%s", probe.text);
}

Test(spawn, lengths_must_agree, .timeout = 300)
{
    run("3", "lengths", NULL, ERR_CONFIG);
    cr_assert_eq(count_of("do all ranks run the same build"), 3, "%s",
                 probe.text);
}

/* ---- ends ---------------------------------------------------------------- */

Test(spawn, the_highest_status_counts, .timeout = 300)
{
    run("3", "status", "0,75,3", 75);
    run("3", "status", "0,0,0", 0);
}

Test(spawn, a_rank_that_is_killed_is_named, .timeout = 300)
{
    run("3", "die", NULL, ERR_PEER);
    said("was killed by signal 9 (Killed)");
    said("rank 0: start-up exchange 1: rank 1 (process ");
    said("rank 2: start-up exchange 1: rank 1 (process ");
}

Test(spawn, a_rank_that_ends_is_named, .timeout = 300)
{
    run("3", "quit", NULL, ERR_PEER);
    said("rank 0: start-up exchange 1: rank 1 (process ");
    said("has ended with status 70");
}

Test(spawn, a_rank_that_leaves_is_named, .timeout = 300)
{
    run("3", "leave", NULL, ERR_PEER);
    cr_assert_eq(count_of("start-up exchange 1: rank 1 left before it"), 2,
                 "%s", probe.text);
}

/* The deadlines are many times longer than the ranks need here. */
Test(spawn, late_ranks_are_named_and_end, .timeout = 300)
{
    const double begin = clock_now();
    char seconds[32];

    run("3", "rounds", NULL, 0);
    snprintf(seconds, sizeof seconds, "%.3f", 0.5 + 8 * (clock_now() - begin));
    start("3", seconds, seconds, "late", NULL);
    finish();
    ended_with(ERR_PEER);
    cr_assert_eq(count_of("start-up exchange 1: rank 1 did not come in time"),
                 2, "%s", probe.text);
    said("1 of 3 ranks still run ");
}

Test(spawn, ranks_that_outlive_a_failure_are_killed, .timeout = 300)
{
    start("3", "60", "0.1", "hang", NULL);
    finish();
    ended_with(ERR_PEER);
    said("rank 0: as asked for");
    said("2 of 3 ranks still run 0.1 s");
}

/* ---- signals and processes ----------------------------------------------- */

/* Start 3 ranks that wait. Returns the process of rank 1. */
static pid_t three_waiting(void)
{
    start("3", "60", "60", "wait", NULL);
    while (count_of(" is ") < 3)
        cr_assert(more(), "%s", probe.text);
    return (pid_t)atoi(strstr(probe.text, "rank 1 is ") + strlen("rank 1 is "));
}

Test(spawn, signals_are_passed_on, .timeout = 300)
{
    static const int numbers[] = {SIGUSR1, SIGTERM};

    for (size_t i = 0; i < 2; i++) {
        char words[32];

        three_waiting();
        kill(probe.pid, numbers[i]);
        finish();
        ended_with(ERR_REQUEUE);
        snprintf(words, sizeof words, ": signal %d\n", numbers[i]);
        cr_assert_eq(count_of(words), 3, "%s", probe.text);
    }
}

Test(spawn, a_signal_waits_for_its_handler, .timeout = 300)
{
    run("2", "early", NULL, 0);
}

Test(spawn, a_signal_from_before_is_passed_on, .timeout = 300)
{
    run("2", "wait", "before", ERR_REQUEUE);
    cr_assert_eq(count_of(": signal "), 2, "%s", probe.text);
}

Test(spawn, ranks_end_with_their_parent, .timeout = 300)
{
    three_waiting();
    kill(probe.pid, SIGKILL);
    finish();
    cr_assert(WIFSIGNALED(probe.status));
    cr_assert_eq(count_of("signal"), 0, "%s", probe.text);
}

Test(spawn, the_others_go_on_when_one_is_killed, .timeout = 300)
{
    const pid_t one = three_waiting();

    kill(one, SIGKILL);
    while (count_of("rank 1 (process ") < 1)
        cr_assert(more(), "%s", probe.text);
    kill(probe.pid, SIGUSR1);
    finish();
    ended_with(ERR_PEER);
    said("rank 0: signal ");
    said("rank 2: signal ");
}

Test(spawn, a_rank_without_its_parent_does_not_start, .timeout = 300)
{
    char text[64];
    int ends[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(text, sizeof text, "0 2 %d 1", ends[0]);
    setenv("CDDP_SPAWN", text, 1);
    run("2", "rounds", NULL, ERR_UNAVAILABLE);
    said("the process that has started the ranks has ended");
    probe.used = 0;
    setenv("CDDP_SPAWN", "nonsense", 1);
    run("2", "rounds", NULL, ERR_CONFIG);
    said("CDDP_SPAWN is \"nonsense\"");
}

Test(spawn, programs_of_a_rank_are_no_ranks, .timeout = 300)
{
    run("2", "child", NULL, 0);
}

Test(spawn, lines_stay_whole, .timeout = 300)
{
    char last = '\n';

    run("4", "lines", NULL, 0);
    cr_assert_eq(probe.used, 4u * 300 * 101);
    for (size_t i = 0; i < probe.used; i++) {
        const char now = probe.text[i];

        cr_assert((now == '\n') == (i % 101 == 100), "byte %zu", i);
        cr_assert(last == '\n' || now == '\n' || now == last, "byte %zu", i);
        last = now;
    }
}
