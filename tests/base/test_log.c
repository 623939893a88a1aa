/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/log.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/lib/halted.h"

static int old, catcher;

/* Redirect standard error to a file without a name. */
static void catch_begin(void)
{
    char path[] = "/tmp/cddp-log-XXXXXX";

    catcher = mkstemp(path);
    cr_assert_geq(catcher, 0);
    unlink(path);
    old = dup(STDERR_FILENO);
    dup2(catcher, STDERR_FILENO);
}

/* Return the captured text; the caller frees it. */
static char *catch_end(void)
{
    off_t bytes = lseek(catcher, 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);

    dup2(old, STDERR_FILENO);
    close(old);
    cr_assert_eq(pread(catcher, text, (size_t)bytes, 0), bytes);
    close(catcher);
    return text;
}

/* Compare one line, without its time ("2031-05-04T10:20:30Z "). */
static void expect_line(const char *text, const char *expected)
{
    cr_assert_gt(strlen(text), 21);
    cr_assert_eq(text[19], 'Z');
    cr_assert_eq(text[20], ' ');
    cr_assert_str_eq(text + 21, expected);
}

Test(log, a_line_has_time_rank_module_and_level)
{
    char *text;

    log_level_set(LOG_INFO);
    log_rank_set(3);
    catch_begin();
    log_warn("comm", "%d beats lost", 2);
    text = catch_end();
    expect_line(text, "rank 3 comm: warn: 2 beats lost\n");
    free(text);
}

Test(log, no_rank_and_plain_info_are_not_printed)
{
    char *text;

    log_level_set(LOG_INFO);
    catch_begin();
    log_info("boot", "solo");
    text = catch_end();
    expect_line(text, "boot: solo\n");
    free(text);
}

Test(log, lines_beyond_the_level_are_dropped)
{
    char *text;

    log_level_set(LOG_WARN);
    catch_begin();
    log_info("boot", "no");
    log_debug("boot", "no");
    log_trace("boot", "no");
    log_error("boot", "yes");
    text = catch_end();
    expect_line(text, "boot: error: yes\n");
    free(text);
}

Test(log, a_long_line_is_cut_and_still_ends)
{
    char big[5000], *text;

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    catch_begin();
    log_error("boot", "%s", big);
    text = catch_end();
    cr_assert_eq(strlen(text), 2048);
    cr_assert_eq(text[2047], '\n');
    free(text);
}

Test(log, the_environment_gives_the_first_level)
{
    setenv("CDDP_LOG", "debug", 1);
    cr_assert_eq(log_level_get(), LOG_DEBUG);
    setenv("CDDP_LOG", "error", 1);
    cr_assert_eq(log_level_get(), LOG_DEBUG);
}

Test(log, an_unknown_level_means_info)
{
    setenv("CDDP_LOG", "loud", 1);
    cr_assert_eq(log_level_get(), LOG_INFO);
}

static void *other_thread(void *argument)
{
    *(int *)argument = log_rank_get();
    log_rank_set(7);
    return NULL;
}

Test(log, the_rank_belongs_to_the_thread)
{
    pthread_t thread;
    int seen = 0;

    log_rank_set(2);
    pthread_create(&thread, NULL, other_thread, &seen);
    pthread_join(thread, NULL);
    cr_assert_eq(seen, -1);
    cr_assert_eq(log_rank_get(), 2);
}

static void *many_lines(void *argument)
{
    int i;

    log_rank_set(*(int *)argument);
    for (i = 0; i < 200; i++)
        log_error("boot", "a line of one thread");
    return NULL;
}

Test(log, lines_of_threads_do_not_mix)
{
    int ranks[4] = {0, 1, 2, 3}, lines = 0, i;
    pthread_t threads[4];
    char *text, *line, *rest = NULL;

    catch_begin();
    /* As in a job, where all ranks append to one file. */
    cr_assert_eq(fcntl(STDERR_FILENO, F_SETFL, O_APPEND), 0);
    for (i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, many_lines, &ranks[i]);
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    text = catch_end();
    for (line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest), lines++)
        cr_assert_str_eq(strstr(line, "boot:"),
                         "boot: error: a line of one thread");
    cr_assert_eq(lines, 800);
    free(text);
}

/* A line that blocked would exceed the test's timeout. */
Test(log, a_line_that_nobody_takes_is_lost, .timeout = 20)
{
    int ends[2];

    halted_open(ends);
    old = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_warn("test", "lost");
    dup2(old, STDERR_FILENO);
}

/* A stopped reader delays a run once, not for each line. */
Test(log, lines_that_nobody_reads_do_not_add_up)
{
    const int was = dup(STDERR_FILENO);
    const double begin = clock_now();
    int ends[2];
    double took;

    halted_open(ends);
    dup2(ends[1], STDERR_FILENO);
    for (int i = 0; i < 20; i++)
        log_error("boot", "line %d", i);
    dup2(was, STDERR_FILENO);
    took = clock_now() - begin;
    cr_assert_gt(took, 0.9, "%g s: nothing waits for a slow reader", took);
    cr_assert_lt(took, 10, "20 lines took %g s", took);
}
