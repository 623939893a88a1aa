/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The job's environment as recorded from Slurm 22.05, signals, and the exit
 * record. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* environment of sbatch --array=3-5 without srun */
static const char *lookup_array(const char *name)
{
    static const pair_t table[] = {
        {"SLURM_JOB_ID", "121"},
        {"SLURM_ARRAY_JOB_ID", "120"},
        {"SLURM_ARRAY_TASK_ID", "3"},
        {NULL, NULL},
    };

    return find(table, name);
}

/* The environment of a user who tries one line of a sweep without Slurm. */
static const char *lookup_by_hand(const char *name)
{
    static const pair_t table[] = {{"SLURM_ARRAY_TASK_ID", "2"}, {NULL, NULL}};

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
}

Test(slurm_job, array_without_a_job)
{
    slurm_job_t job;

    cr_assert_eq(slurm_job_read(lookup_by_hand, &job, NULL), ERR_OK);
    cr_assert_str_eq(job.id, "");
    cr_assert_str_eq(job.array, "2");
}

Test(slurm_job, outside)
{
    slurm_job_t job;

    cr_assert_eq(slurm_job_read(lookup_nothing, &job, NULL), ERR_OK);
    cr_assert_str_eq(job.id, "");
    cr_assert_eq(job.tasks, 1);
}

Test(slurm_job, broken)
{
    err_t err = ERR_INIT;
    slurm_job_t job = {.tasks = 77};

    cr_assert_eq(slurm_job_read(lookup_broken, &job, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "SLURM_STEP_NUM_TASKS is 'four'"));
    cr_assert_eq(job.tasks, 77, "outputs are written only on success");
}

Test(slurm_signal, strongest_wins)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_NONE);
    /* A write to a closed pipe raises SIGPIPE, and a write beyond a limit of
     * the file size raises SIGXFSZ. */
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

Test(slurm_signal, has_its_name)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    cr_assert_str_eq(slurm_signal_name(SLURM_SIGNAL_TERM), "TERM");
    cr_assert_str_eq(slurm_signal_name(SLURM_SIGNAL_CHECKPOINT), "USR1");
    cr_assert_str_eq(slurm_signal_name(SLURM_SIGNAL_TIME), "time limit");
    raise(SIGINT);
    cr_assert_str_eq(slurm_signal_name(SLURM_SIGNAL_TERM), "INT");
}

Test(slurm_signal, others_can_be_chosen)
{
    const char *const names[] = {"SIGUSR2", "TERM"};
    const char *const wrong[] = {"USR1", "KILL"};
    err_t err = ERR_INIT;

    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    cr_assert_eq(slurm_signal_choose(names, 2, &err), ERR_OK, "%s", err.text);
    raise(SIGUSR1);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_NONE);
    raise(SIGUSR2);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_CHECKPOINT);
    cr_assert_str_eq(slurm_signal_name(SLURM_SIGNAL_CHECKPOINT), "USR2");
    cr_assert_eq(slurm_signal_choose(wrong, 2, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "KILL"));
    cr_assert_eq(slurm_signal_number("KILL"), 0);
    cr_assert_eq(slurm_signal_number("SIGXCPU"), SIGXCPU);
}

Test(slurm_signal, term_left_out_ends_the_process, .signal = SIGTERM)
{
    const char *const names[] = {"USR1"};

    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    cr_assert_eq(slurm_signal_choose(names, 1, NULL), ERR_OK);
    raise(SIGTERM);
}

static void give_up(int number)
{
    (void)number;
    _exit(ERR_REQUEUE);
}

/* A signal before slurm_signal_start counts, too. */
Test(slurm_signal, in_start_up_ends_the_process, .exit_code = ERR_REQUEUE,
     .timeout = 60)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    raise(SIGUSR1);
    slurm_signal_start(give_up);
    while (true)
        pause();
}

Test(slurm_signal, after_start_up_does_not)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    slurm_signal_start(give_up);
    raise(SIGUSR1);
    slurm_signal_started();
    cr_assert_eq(alarm(0), 0, "the alarm is still set");
    raise(SIGTERM);
    cr_assert_eq(alarm(0), 0, "a later signal has set it");
}

Test(slurm_signal, third_interrupt_ends_the_process, .signal = SIGINT)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    slurm_signal_impatient();
    raise(SIGINT);
    raise(SIGINT);
    cr_assert_eq(slurm_signal_pending(), SLURM_SIGNAL_TERM);
    raise(SIGINT);
}

Test(slurm_signal, interrupts_of_patient_programs_are_not_counted)
{
    cr_assert_eq(slurm_signal_install(NULL), ERR_OK);
    for (int i = 0; i < 5; i++)
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
        .cause = "",
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
    cr_assert(json_is_null(json_object_get(json, "cause")));
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

Test(slurm_exit, a_cause_is_added_once)
{
    char dir[] = "/tmp/cddp-test-XXXXXX", path[64];
    slurm_exit_found_t found;
    err_t err = ERR_INIT;
    slurm_job_t job;
    slurm_exit_t record = {.job = &job,
                           .status = ERR_PEER,
                           .culprit = 3,
                           .step = 17,
                           .text = "rank 3 died"};

    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/exit.json", dir);
    cr_assert_eq(slurm_exit_cause(dir, "x", &err), ERR_IO);
    cr_assert_eq(slurm_job_read(lookup_step, &job, NULL), ERR_OK);
    cr_assert_eq(slurm_exit_write(dir, &record, NULL), ERR_OK);
    cr_assert_eq(slurm_exit_cause(dir, "task 3 on n2: SIGSEGV", &err), ERR_OK,
                 "%s", err.text);
    cr_assert_eq(slurm_exit_cause(dir, "later", &err), ERR_OK);
    cr_assert_eq(slurm_exit_read(dir, &found, &err), ERR_OK, "%s", err.text);
    cr_expect_str_eq(found.cause, "task 3 on n2: SIGSEGV");
    cr_expect_str_eq(found.text, "rank 3 died");
    cr_expect_eq(found.culprit, 3);
    cr_expect_eq(found.step, 17);
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
