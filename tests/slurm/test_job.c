/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The job's environment as recorded from Slurm 22.05 (with one variable of
 * 23.02 where noted), remaining time, signals, and the exit record. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "slurm/ask.h"
#include "slurm/job.h"

typedef const char *pair_t[2];

static const char *find(const pair_t *table, const char *name)
{
    for (; (*table)[0] != NULL; table++)
        if (strcmp((*table)[0], name) == 0)
            return (*table)[1];
    return NULL;
}

/* environment of srun -N2 -n4 --mpi=pmix in a job that was requeued once */
static const char *lookup_step(const char *name)
{
    static const pair_t table[] = {
        {"SLURM_JOB_ID", "12"},       {"SLURM_STEP_ID", "1"},
        {"SLURM_NTASKS", "4"},        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_RESTART_COUNT", "1"}, {NULL, NULL},
    };

    return find(table, name);
}

/* environment of sbatch --array=3-5, Slurm 23.02, without srun */
static const char *lookup_array(const char *name)
{
    static const pair_t table[] = {
        {"SLURM_JOB_ID", "121"},
        {"SLURM_ARRAY_JOB_ID", "120"},
        {"SLURM_ARRAY_TASK_ID", "3"},
        {"SLURM_JOB_END_TIME", "1800000000"},
        {NULL, NULL},
    };

    return find(table, name);
}

static const char *lookup_broken(const char *name)
{
    static const pair_t table[] = {
        {"SLURM_JOB_ID", "12"},
        {"SLURM_STEP_NUM_TASKS", "four"},
        {NULL, NULL},
    };

    return find(table, name);
}

static const char *lookup_nothing(const char *name)
{
    (void)name;
    return NULL;
}

Test(slurm_job, step)
{
    err_t err = ERR_INIT;
    slurm_job_t job;
    char host[64];

    cr_assert_eq(slurm_job_read(lookup_step, &job, &err), ERR_OK);
    cr_assert_str_eq(job.id, "12");
    cr_assert_str_eq(job.array, "");
    cr_assert_str_eq(job.step_id, "12.1");
    cr_assert_eq(job.tasks, 4);
    cr_assert_eq(job.restarts, 1);
    cr_assert_eq(job.end_time, 0);
    gethostname(host, sizeof host);
    cr_assert_str_eq(job.host, host);
}

Test(slurm_job, array_outside_a_step)
{
    slurm_job_t job;

    cr_assert_eq(slurm_job_read(lookup_array, &job, NULL), ERR_OK);
    cr_assert_str_eq(job.id, "120_3");
    cr_assert_str_eq(job.array, "3");
    cr_assert_str_eq(job.step_id, "");
    cr_assert_eq(job.tasks, 1);
    cr_assert_eq(job.restarts, 0);
    cr_assert_eq(job.end_time, 1800000000.0);
    /* The end is known already, so squeue is not called. */
    cr_assert_eq(slurm_job_find_end(&job, NULL), ERR_OK);
    cr_assert_eq(job.end_time, 1800000000.0);
}

Test(slurm_job, outside)
{
    slurm_job_t job;

    cr_assert_eq(slurm_job_read(lookup_nothing, &job, NULL), ERR_OK);
    cr_assert_str_eq(job.id, "");
    cr_assert_eq(job.tasks, 1);
    cr_assert_eq(slurm_job_find_end(&job, NULL), ERR_OK);
    cr_assert_eq(job.end_time, 0);
}

Test(slurm_job, broken)
{
    err_t err = ERR_INIT;
    slurm_job_t job = {.tasks = 77};

    cr_assert_eq(slurm_job_read(lookup_broken, &job, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "SLURM_STEP_NUM_TASKS is 'four'"));
    cr_assert_eq(job.tasks, 77, "outputs are written only on success");
}

Test(slurm_time, parse)
{
    static const struct {
        const char *text;
        double seconds;
    } good[] = {
        {"0:00", 0},       {"5:00", 300},         {"59:59", 3599},
        {"1:00:01", 3601}, {"1-02:03:04", 93784}, {"UNLIMITED", INFINITY},
    };
    static const char *const bad[] = {
        "",       "5",     "INVALID", "NOT_SET", "1:2:3:4",
        "1-2:03", "-1:00", "1:",      "1:00 ",   "x-1:02:03"};
    double seconds;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert(slurm_time_parse(good[i].text, &seconds), "%s", good[i].text);
        cr_assert_eq(seconds, good[i].seconds, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_not(slurm_time_parse(bad[i], &seconds), "'%s'", bad[i]);
}

/* Make a directory [dir] with a script named squeue, and put it first in
 * PATH. */
static void fake_squeue(char *dir, const char *body)
{
    char path[128], search[4096];
    FILE *file;

    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/squeue", dir);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    cr_assert_eq(chmod(path, 0755), 0);
    snprintf(search, sizeof search, "%s:%s", dir, getenv("PATH"));
    setenv("PATH", search, 1);
}

static void fake_remove(const char *dir)
{
    char path[128];

    snprintf(path, sizeof path, "%s/squeue", dir);
    unlink(path);
    rmdir(dir);
}

Test(slurm_job, end_from_squeue)
{
    char dir[] = "/tmp/cddp-test-XXXXXX";
    err_t err = ERR_INIT;
    slurm_job_t job;
    double left;

    fake_squeue(dir, "test \"$*\" = '-h -j 12 -o %L' && echo 1:00:00");
    cr_assert_eq(slurm_job_read(lookup_step, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_job_find_end(&job, &err), ERR_OK, "%s", err.text);
    left = job.end_time - clock_wall();
    cr_assert(left > 3590 && left <= 3600, "%g s left", left);
    fake_remove(dir);
}

Test(slurm_job, no_time_limit)
{
    char dir[] = "/tmp/cddp-test-XXXXXX";
    slurm_job_t job;

    fake_squeue(dir, "echo UNLIMITED");
    cr_assert_eq(slurm_job_read(lookup_step, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_job_find_end(&job, NULL), ERR_OK);
    cr_assert_eq(job.end_time, 0);
    fake_remove(dir);
}

Test(slurm_job, squeue_fails)
{
    char dir[] = "/tmp/cddp-test-XXXXXX";
    err_t err = ERR_INIT;
    slurm_job_t job;

    fake_squeue(dir, "echo 1:00:00; exit 1");
    cr_assert_eq(slurm_job_read(lookup_step, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_job_find_end(&job, &err), ERR_UNAVAILABLE);
    cr_assert_eq(job.end_time, 0);
    cr_assert_not_null(strstr(err.text, "squeue"));
    fake_remove(dir);
}

Test(slurm_job, squeue_hangs, .timeout = 40)
{
    char dir[] = "/tmp/cddp-test-XXXXXX";
    double start = clock_now(), took;
    err_t err = ERR_INIT;
    slurm_job_t job;

    fake_squeue(dir, "exec sleep 1000");
    cr_assert_eq(slurm_job_read(lookup_step, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_job_find_end(&job, &err), ERR_UNAVAILABLE);
    took = clock_now() - start;
    cr_assert(took >= SLURM_ASK_TIMEOUT && took < 3 * SLURM_ASK_TIMEOUT);
    fake_remove(dir);
}

Test(slurm_job, squeue_missing)
{
    err_t err = ERR_INIT;
    slurm_job_t job;

    setenv("PATH", "/nonexistent", 1);
    cr_assert_eq(slurm_job_read(lookup_step, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_job_find_end(&job, &err), ERR_UNAVAILABLE);
    cr_assert_not_null(strstr(err.text, "cannot run squeue"), "%s", err.text);
}

Test(slurm_signal, strongest_wins)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_NONE);
    /* raised by a write to a closed pipe, and by one beyond a file size
     * limit */
    raise(SIGPIPE);
    raise(SIGXFSZ);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_NONE);
    raise(SIGUSR1);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_CHECKPOINT);
    raise(SIGTERM);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_TERM);
    raise(SIGTERM);
    raise(SIGUSR1);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_TERM);
}

Test(slurm_signal, interrupt_is_term)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    raise(SIGINT);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_TERM);
}

Test(slurm_exit, record)
{
    char dir[] = "/tmp/cddp-test-XXXXXX", path[64];
    err_t err = ERR_INIT;
    slurm_job_t job;
    slurm_exit_t record = {
        .job = &job,
        .status = ERR_PEER,
        .rank = 1,
        .culprit = 3,
        .culprit_host = "n2",
        .phase = "forward",
        .step = 17,
        .text = "rank 3 says \"no\"",
    };
    json_t *json;

    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/exit.json", dir);
    cr_assert_eq(slurm_job_read(lookup_step, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_exit_write(dir, &record, &err), ERR_OK, "%s", err.text);
    json = json_load_file(path, 0, NULL);
    cr_assert_not_null(json);
    cr_assert_str_eq(json_string_value(json_object_get(json, "step_id")),
                     "12.1");
    cr_assert_eq(json_integer_value(json_object_get(json, "restarts")), 1);
    cr_assert_eq(json_integer_value(json_object_get(json, "status")), 76);
    cr_assert_str_eq(json_string_value(json_object_get(json, "name")), "PEER");
    cr_assert(json_is_true(json_object_get(json, "requeue")));
    cr_assert_eq(json_integer_value(json_object_get(json, "rank")), 1);
    cr_assert_eq(json_integer_value(json_object_get(json, "culprit")), 3);
    cr_assert_str_eq(json_string_value(json_object_get(json, "culprit_host")),
                     "n2");
    cr_assert_str_eq(json_string_value(json_object_get(json, "phase")),
                     "forward");
    cr_assert_eq(json_integer_value(json_object_get(json, "step")), 17);
    cr_assert_str_eq(json_string_value(json_object_get(json, "text")),
                     "rank 3 says \"no\"");
    json_decref(json);
    unlink(path);
    rmdir(dir);
}

Test(slurm_exit, unknown_is_null_and_old_is_replaced)
{
    char dir[] = "/tmp/cddp-test-XXXXXX", path[64];
    slurm_job_t job;
    slurm_exit_t record = {.job = &job, .culprit = -1, .step = -1};
    json_t *json;

    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/exit.json", dir);
    cr_assert_eq(slurm_job_read(lookup_nothing, &job, NULL), ERR_OK);
    record.status = ERR_PEER;
    cr_assert_eq(slurm_exit_write(dir, &record, NULL), ERR_OK);
    record.status = ERR_OK;
    cr_assert_eq(slurm_exit_write(dir, &record, NULL), ERR_OK);
    json = json_load_file(path, 0, NULL);
    cr_assert_not_null(json);
    cr_assert_eq(json_integer_value(json_object_get(json, "status")), 0);
    cr_assert(json_is_null(json_object_get(json, "job")));
    cr_assert(json_is_null(json_object_get(json, "phase")));
    cr_assert(json_is_false(json_object_get(json, "requeue")));
    json_decref(json);
    unlink(path);
    rmdir(dir);
}

Test(slurm_exit, no_directory)
{
    err_t err = ERR_INIT;
    slurm_job_t job;
    slurm_exit_t record = {.job = &job, .culprit = -1};

    cr_assert_eq(slurm_job_read(lookup_nothing, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_exit_write("/nonexistent", &record, &err), ERR_IO);
    cr_assert_not_null(strstr(err.text, "/nonexistent"));
}
