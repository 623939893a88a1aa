/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The limits of a job, read from the output of scontrol of Slurm 22.05
 * (shortened), and the thread that asks for them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "slurm/ask.h"
#include "slurm/watch.h"

#define JOB                                                          \
    "JobId=12 JobName=wrap JobState=RUNNING RunTime=00:00:00 "       \
    "TimeLimit=00:05:00 SubmitTime=1795820782 StartTime=1795820783 " \
    "EndTime=1795821083 Deadline=N/A SuspendTime=None "
#define CONFIG                               \
    "Configuration data as of 1795820793\n"  \
    "AccountingStorageBackupHost = (null)\n" \
    "KillOnBadExit           = 0\n"          \
    "KillWait                = 30 sec\n"     \
    "LaunchParameters        = (null)\n"

Test(slurm_limits, parse)
{
    slurm_limits_t limits;

    cr_assert(slurm_limits_parse(JOB, CONFIG, 1000.0, &limits));
    cr_assert_eq(limits.end, 1290.0);
    cr_assert_eq(limits.kill_wait, 30.0);
}

Test(slurm_limits, no_time_limit)
{
    slurm_limits_t limits;

    cr_assert(slurm_limits_parse(
        "JobId=12 TimeLimit=UNLIMITED EndTime=Unknown Deadline=N/A", CONFIG,
        1000.0, &limits));
    cr_assert(isinf(limits.end));
    cr_assert_eq(limits.kill_wait, 30.0);
}

Test(slurm_limits, other_words)
{
    slurm_limits_t limits;

    cr_assert(!slurm_limits_parse("", CONFIG, 0, &limits));
    cr_assert(!slurm_limits_parse("JobId=12 EndTime= ", CONFIG, 0, &limits));
    cr_assert(!slurm_limits_parse(JOB, "", 0, &limits));
    cr_assert(slurm_limits_parse(JOB, "Configuration data as of 1795820793\n",
                                 1000.0, &limits));
    cr_assert(isnan(limits.kill_wait));
}

/* ---- a stand-in for scontrol --------------------------------------------- */

static const slurm_job_t job = {.id = "12"};
static char dir[] = "/tmp/cddp-test-XXXXXX";

/* Make a directory with a script named scontrol, and put it first in PATH. */
static void fake_scontrol(const char *body)
{
    char path[128], search[4096];
    FILE *file;

    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/scontrol", dir);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    cr_assert_eq(chmod(path, 0755), 0);
    snprintf(search, sizeof search, "%s:%s", dir, getenv("PATH"));
    setenv("PATH", search, 1);
}

static void fake_remove(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/scontrol", dir);
    unlink(path);
    rmdir(dir);
}

static const char answers[] =
    "test \"$SLURM_TIME_FORMAT\" = %s || exit 1\n"
    "case $* in\n"
    "'--oneliner show job 12') echo 'JobId=12 EndTime=5300 X=1' ;;\n"
    "'--oneliner show config') echo 'Configuration data as of 5000' ;;\n"
    "*) exit 1 ;;\n"
    "esac";

Test(slurm_limits, asked)
{
    slurm_limits_t limits;
    err_t err = ERR_INIT;
    double left;

    fake_scontrol(answers);
    cr_assert_eq(slurm_limits_ask(&job, NULL, &limits, &err), ERR_OK, "%s",
                 err.text);
    left = limits.end - clock_now();
    cr_assert(left > 0 && left <= 300, "%g s left", left);
    fake_remove();
}

Test(slurm_limits, no_job)
{
    const slurm_job_t none = {.id = ""};
    slurm_limits_t limits;

    setenv("PATH", "/nonexistent", 1);
    cr_assert_eq(slurm_limits_ask(&none, NULL, &limits, NULL), ERR_OK);
    cr_assert(isinf(limits.end));
}

Test(slurm_limits, scontrol_fails)
{
    slurm_limits_t limits;
    err_t err = ERR_INIT;

    fake_scontrol("echo 'JobId=12 EndTime=5300 X=1'; exit 1");
    cr_assert_eq(slurm_limits_ask(&job, NULL, &limits, &err), ERR_UNAVAILABLE);
    cr_assert_not_null(strstr(err.text, "scontrol"));
    cr_assert(isinf(limits.end));
    fake_remove();
}

Test(slurm_limits, scontrol_missing)
{
    slurm_limits_t limits;
    err_t err = ERR_INIT;

    setenv("PATH", "/nonexistent", 1);
    cr_assert_eq(slurm_limits_ask(&job, NULL, &limits, &err), ERR_UNAVAILABLE);
}

/* ---- the watch ------------------------------------------------------------
 */

Test(slurm_watch, has_the_answer, .timeout = 60)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    slurm_watch_t *watch = NULL;
    slurm_limits_t limits;
    err_t err = ERR_INIT;

    fake_scontrol(answers);
    cr_assert_eq(slurm_watch_open(&job, &watch, &err), ERR_OK, "%s", err.text);
    while (!slurm_watch_limits(watch, &limits))
        nanosleep(&moment, NULL);
    cr_assert(limits.end > clock_now() && limits.end <= clock_now() + 300);
    slurm_watch_close(watch);
    fake_remove();
}

/* Libraries may change the environment while a run starts, so the watch has its
 * own copy. */
Test(slurm_watch, has_its_own_environment, .timeout = 60)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    slurm_watch_t *watch = NULL;
    slurm_limits_t limits;
    err_t err = ERR_INIT;

    fake_scontrol(answers);
    cr_assert_eq(slurm_watch_open(&job, &watch, &err), ERR_OK, "%s", err.text);
    setenv("PATH", "/nonexistent", 1);
    while (!slurm_watch_limits(watch, &limits))
        nanosleep(&moment, NULL);
    cr_assert(isfinite(limits.end));
    slurm_watch_close(watch);
    fake_remove();
}

/* The end of a run does not wait for a controller that does not answer. */
Test(slurm_watch, closes_while_it_asks, .timeout = 60)
{
    slurm_watch_t *watch = NULL;
    slurm_limits_t limits;
    double begin;

    fake_scontrol("exec sleep 1000");
    cr_assert_eq(slurm_watch_open(&job, &watch, NULL), ERR_OK);
    cr_assert(!slurm_watch_limits(watch, &limits));
    begin = clock_now();
    slurm_watch_close(watch);
    cr_assert_lt(clock_now() - begin, SLURM_ASK_TIMEOUT);
    fake_remove();
}

Test(slurm_watch, closes_between_two_tries, .timeout = 60)
{
    slurm_watch_t *watch = NULL;

    setenv("PATH", "/nonexistent", 1);
    cr_assert_eq(slurm_watch_open(&job, &watch, NULL), ERR_OK);
    slurm_watch_close(watch);
    slurm_watch_close(NULL);
    cr_assert(!slurm_watch_limits(NULL, NULL));
}
