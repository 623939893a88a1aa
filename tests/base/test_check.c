/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A failed check ends the process and prints where and why. Without checks the
 * condition is not evaluated. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int calls;

static int count_call(int value)
{
    calls++;
    return value;
}

/* Compile a function with checks, whatever the build's setting. */
#undef CDDP_CHECKS
#define CDDP_CHECKS 1
#include "base/check.h"

static void on(int value)
{
    check(count_call(value) < 7, "value is %d", value);
}

/* Compile a function without checks. */
#undef CDDP_BASE_CHECK_H
#undef CDDP_CHECKS
#undef check
#undef CHECK_ON
#include "base/check.h"

static void off(void)
{
    check(count_call(9) < 7, "value is %d", count_call(1));
}

/* Run a check in a child process; returns its status and its standard error. */
static int run(int value, char *text, size_t room)
{
    int ends[2], status = 0;
    ssize_t got;
    size_t used = 0;
    pid_t child;

    cr_assert_eq(pipe(ends), 0);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        on(value);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + used, room - used - 1)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

Test(check, what_holds_is_passed_over)
{
    char text[512];
    const int status = run(6, text, sizeof text);

    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    cr_assert_str_empty(text);
}

Test(check, what_does_not_hold_ends_the_process_and_is_told)
{
    char text[512];
    const int status = run(8, text, sizeof text);

    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%d", status);
    cr_assert(strstr(text, "test_check.c:"), "%s", text);
    cr_assert(strstr(text, "check failed: count_call(value) < 7: value is 8\n"),
              "%s", text);
}

Test(check, without_checks_nothing_is_evaluated)
{
    calls = 0;
    off();
    cr_assert_eq(calls, 0);
}
