/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The parts of cddp-srun that start nothing. tests/slurm/batch.t runs it. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmd/srun_args.h"
#include "cmd/srun_cause.h"
#include "cmd/srun_history.h"
#include "cmd/srun_requeue.h"
#include "cmd/srun_words.h"
#include "slurm/supervise.h"

/* ---- words --------------------------------------------------------------- */

static void words_are(const char *output, const char *expected)
{
    char found[256];

    /* The words do not depend on how the output is cut. */
    for (size_t cut = 1; cut < strlen(output) + 2; cut += 7) {
        srun_words_t words = {0};

        for (size_t at = 0; at < strlen(output); at += cut) {
            const size_t left = strlen(output) - at;

            srun_words_take(&words, output + at, left < cut ? left : cut);
        }
        srun_words_end(&words, found, sizeof found);
        cr_expect_str_eq(found, expected);
    }
}

Test(srun, the_first_task_that_srun_names)
{
    words_are("2026 train: loss 1\n"
              "srun: error: something odd\n"
              "srun: error: n2: task 3: Killed\n"
              "srun: error: n1: tasks 0-1: Exited with exit code 76\n",
              "task 3 on n2: Killed");
    words_are("srun: error: n1: tasks 0-1: Exited with exit code 76",
              "tasks 0-1 on n1: Exited with exit code 76");
    words_are("srun: error: Node failure on n2\nsrun: error: another\n",
              "Node failure on n2");
    words_are("all is well\n", "");
    words_are("", "");
}

Test(srun, the_sentence_of_the_program)
{
    static const char output[] =
        "2026-11-28T04:42:53Z rank 0 train: warn: cannot write run/exit.json\n"
        "cddp-train: rank 0 on n1: cannot write x: No space left on device\n"
        "cddp-train: another\nsrun: error: n1: task 0: Exited with exit code "
        "74\n";
    srun_words_t words = {0};

    srun_words_take(&words, output, strlen(output));
    cr_expect_str_eq(words.said,
                     "rank 0 on n1: cannot write x: No space left on device");
    cr_expect(slurm_io_is_final(words.said));
}

/* Check whether [output] is read as that of an srun that could not start the
 * tasks: [unlaunched], because of [host]. */
static void launch_is(const char *output, bool unlaunched, const char *host)
{
    srun_words_t words = {0};
    char found[256];

    srun_words_take(&words, output, strlen(output));
    srun_words_end(&words, found, sizeof found);
    cr_expect_eq(words.unlaunched, unlaunched, "%s", output);
    cr_expect_str_eq(words.host, host);
}

Test(srun, a_step_that_was_never_created)
{
    launch_is("srun: error: Unable to create step for job 1: Memory required "
              "by task is not available\n",
              true, "");
    launch_is("srun: error: something odd\nsrun: error: Unable to confirm "
              "allocation for job 2: Unable to contact slurm controller\n",
              true, "");
    launch_is("srun: error: Task launch for StepId=3.1 failed on node n2: "
              "Communication connection failure\n"
              "srun: error: Application launch failed: x\n",
              true, "n2");
    launch_is("srun: launch/slurm: launch_p_step_launch: StepId=1.0 aborted "
              "before step completely launched.\n"
              "srun: error: task 2 launch failed: Unspecified error\n"
              "srun: error: n1: tasks 0-1: Killed\n",
              true, "");
    launch_is("srun: error: n2: task 3: Killed\n", false, "");
    launch_is("srun: error: Unable to confirm allocation for job 10: Invalid "
              "job id specified\n",
              false, "");
    launch_is("train: Unable to create step for job 1: x\n", false, "");
}

Test(srun, busy_nodes_are_told_from_other_reasons)
{
    static const char busy[] = "srun: error: Unable to create step for job 1: "
                               "Requested nodes are busy\n";
    static const char other[] = "srun: error: Unable to create step for job 1: "
                                "Memory required by task is not available\n";
    srun_words_t words = {0};

    srun_words_take(&words, other, strlen(other));
    cr_expect(words.unlaunched && !words.busy);
    srun_words_take(&words, busy, strlen(busy));
    cr_expect(words.unlaunched && words.busy);
}

static void gone_is(const char *output, bool gone)
{
    srun_words_t words = {0};

    srun_words_take(&words, output, strlen(output));
    cr_expect_eq(words.job_gone, gone, "%s", output);
    cr_expect_not(words.unlaunched, "%s", output);
}

Test(srun, a_job_that_has_ended)
{
    gone_is("srun: error: Slurm job 12 has expired.\n"
            "srun: Check SLURM_JOB_ID environment variable.\n",
            true);
    gone_is("srun: error: Unable to confirm allocation for job 10: Invalid job "
            "id specified\n",
            true);
    gone_is("srun: error: n2: task 3: Killed\n", false);
    gone_is("cddp-train: Slurm job 12 has expired\n", false);
}

/* [memory]: the words say that the task was killed for lack of memory. */
static void cause_is(const char *words, const char *expected, bool memory)
{
    char cause[256];

    cr_expect_eq(srun_cause_words(words, cause, sizeof cause),
                 expected[0] != '\0', "%s", words);
    cr_expect_str_eq(cause, expected);
    cr_expect_eq(srun_cause_memory(words), memory, "%s", words);
}

Test(srun, the_signal_that_ended_a_task)
{
    cause_is("task 3 on n2: Killed", "task 3 on n2: SIGKILL (Killed)", false);
    cause_is("task 0 on n1: Segmentation fault (core dumped)",
             "task 0 on n1: SIGSEGV (Segmentation fault (core dumped))", false);
    cause_is("tasks 0-1 on n1: Aborted", "tasks 0-1 on n1: SIGABRT (Aborted)",
             false);
    cause_is("task 1 on n2: Out Of Memory", "task 1 on n2: out of memory",
             true);
    cause_is("task 1 on n2: Exited with exit code 76", "", false);
    cause_is("Node failure on n2", "", false);
    cause_is("", "", false);
}

/* ---- arguments ----------------------------------------------------------- */

static void line_is(srun_line_t line, const char *expected)
{
    char text[1024] = "";

    for (int i = 0; i < line.count; i++) {
        strncat(text, i > 0 ? " " : "", sizeof text - strlen(text) - 1);
        strncat(text, line.args[i], sizeof text - strlen(text) - 1);
    }
    cr_expect_str_eq(text, expected);
    cr_expect_null(line.args[line.count]);
    srun_line_free(&line);
}

Test(srun, its_own_options_come_first)
{
    const char *const argv[] = {"cddp-srun", "--srun=-l",       "--program=./p",
                                "--fresh",   "--srun=not-mine", "run.yaml"};
    slurm_node_t list[] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}};
    slurm_nodes_t nodes = {list, 3};
    srun_size_t size = {&nodes, 2, false};
    srun_args_t args;
    err_t err = ERR_INIT;

    cr_assert_eq(srun_args_parse(6, (char **)(uintptr_t)argv, &args, &err),
                 ERR_OK, "%s", err.text);
    unsetenv("RUNDIR");
    line_is(srun_line_rundir(&args),
            "./p --print-rundir --fresh --srun=not-mine run.yaml");
    setenv("RUNDIR", "r", 1);
    line_is(srun_line_step(&args, &size),
            "srun --mpi=pmix --wait=120 -l ./p --fresh --srun=not-mine "
            "run.yaml --set "
            "run.dir=r");
    list[1].down = true;
    size.again = true;
    line_is(
        srun_line_step(&args, &size),
        "srun --mpi=pmix --wait=120 --overlap --immediate=10 -l --exclude=n2 "
        "--nodes=2 --ntasks=4 --ntasks-per-node=2 ./p --fresh --srun=not-mine "
        "run.yaml --set "
        "run.dir=r");
    size.tasks_per_node = 0;
    line_is(
        srun_line_step(&args, &size),
        "srun --mpi=pmix --wait=120 --overlap --immediate=10 -l ./p --fresh "
        "--srun=not-mine run.yaml --set "
        "run.dir=r");
}

Test(srun, an_option_without_its_value_is_refused)
{
    const char *const argv[] = {"cddp-srun", "--srun", "-l"};
    srun_args_t args;
    err_t err = ERR_INIT;

    cr_assert_eq(srun_args_parse(3, (char **)(uintptr_t)argv, &args, &err),
                 ERR_USAGE);
    cr_assert_not_null(strstr(err.text, "--srun"));
}

/* ---- Slurm's configuration ----------------------------------------------- */

Test(srun, the_exit_statuses_that_requeue)
{
    cr_assert(srun_requeue_exit("A = 1\nRequeueExit             = 75\n", 75));
    cr_assert(srun_requeue_exit("RequeueExit = 1,70-80,99\nB = 75", 75));
    cr_assert(!srun_requeue_exit("RequeueExit = 1,70-74,99\n", 75));
    cr_assert(!srun_requeue_exit("RequeueExit = (null)\n", 75));
    cr_assert(!srun_requeue_exit("RequeueExitHold = 75\n", 75));
    cr_assert(!srun_requeue_exit("", 75));
    cr_assert(srun_requeue_holds("Requeue=1 ExpeditedRequeue=Yes Restarts=0"));
    cr_assert(!srun_requeue_holds("Requeue=1 ExpeditedRequeue=No Restarts=0"));
    cr_assert(!srun_requeue_holds("Requeue=1 Restarts=0"));
}

Test(srun, a_job_that_slurm_is_ending)
{
    cr_assert(srun_requeue_ending("JobId=1 JobState=COMPLETING Reason=None"));
    cr_assert(srun_requeue_ending("JobId=1 JobState=CANCELLED Reason=None"));
    cr_assert(!srun_requeue_ending("JobId=1 JobState=RUNNING Reason=None"));
}

static bool words_cancelled(const char *output)
{
    srun_words_t words = {0};

    srun_words_take(&words, output, strlen(output));
    return words.cancelled;
}

Test(srun, a_step_that_scancel_ended)
{
    cr_assert(
        words_cancelled("srun: got SIGCONT\nslurmstepd-n1: error: *** STEP "
                        "69.0 ON n1 CANCELLED AT 2026-11-29T08:32:14 "
                        "***\n"));
    cr_assert(!words_cancelled("slurmstepd-n1: error: *** STEP 69.0 ON n1 "
                               "CANCELLED AT 2026-11-29T08:32:14 DUE TO TIME "
                               "LIMIT ***\n"));
    cr_assert(!words_cancelled("srun: error: n1: task 0: Exited with exit code "
                               "75\n"));
}

/* ---- history ------------------------------------------------------------- */

static char dir[] = "/tmp/cddp-srun-XXXXXX";
static obs_lives_start_t start = {.job = "7", .step_id = "", .nodes = ""};

static void setup(void)
{
    cr_assert_not_null(mkdtemp(dir));
}

static void teardown(void)
{
    cr_assert_eq(file_remove_tree(dir, NULL), ERR_OK);
}

TestSuite(srun_history, .init = setup, .fini = teardown);

/* Add an event of the start (job, restart, attempt). */
static void add(obs_lives_event_t event, int64_t step, const char *detail)
{
    obs_lives_line_t line = obs_lives_line(event, step);
    err_t err = ERR_INIT;

    line.detail = detail;
    line.seconds = (double)step;
    line.status = event == OBS_LIVES_REQUEUE ? ERR_IO : -1;
    cr_assert_eq(obs_lives_append(dir, &start, &line, &err), ERR_OK, "%s",
                 err.text);
}

static void next_start(int restart, int attempt)
{
    start.restart = restart;
    start.attempt = attempt;
}

static srun_history_t history(void)
{
    srun_history_t found;
    err_t err = ERR_INIT;

    cr_assert_eq(srun_history_read(dir, &start, &found, &err), ERR_OK, "%s",
                 err.text);
    return found;
}

Test(srun_history, starts_count_until_a_newer_checkpoint)
{
    srun_history_t found;

    next_start(0, 1);
    cr_assert_eq(history().fruitless, 1, "a start that wrote nothing counts");
    add(OBS_LIVES_BEGIN, 0, NULL);
    add(OBS_LIVES_END, 3, "first");
    next_start(0, 2);
    add(OBS_LIVES_BEGIN, 0, NULL);
    cr_assert(!history().ended);
    add(OBS_LIVES_END, 3, "second");
    next_start(1, 1);
    found = history();
    cr_assert_eq(found.fruitless, 3);
    cr_assert(!found.ended);
    cr_assert_str_eq(found.causes[0], "first");
    cr_assert_str_eq(found.causes[1], "second");
    cr_assert_str_eq(found.causes[2], "");
    add(OBS_LIVES_CHECKPOINT, 5, NULL);
    add(OBS_LIVES_END, 6, "third");
    found = history();
    cr_assert_eq(found.fruitless, 0);
    cr_assert_eq(found.checkpoint, 5);
    cr_assert(found.ended);
    next_start(1, 2);
    add(OBS_LIVES_CHECKPOINT, 5, NULL);
    cr_assert_eq(history().fruitless, 1, "step 5 is no newer checkpoint");
    next_start(1, 3);
    add(OBS_LIVES_RESUMED, 5, NULL);
    cr_assert_eq(history().fruitless, 2, "it resumes from step 5 again");
    add(OBS_LIVES_RESUMED, 7, NULL);
    cr_assert_eq(history().fruitless, 0, "it resumes from step 7");
}

Test(srun_history, a_job_that_is_submitted_anew_starts_anew)
{
    next_start(0, 1);
    add(OBS_LIVES_CHECKPOINT, 9, NULL);
    next_start(0, 2);
    add(OBS_LIVES_REQUEUE, -1, NULL);
    next_start(0, 3);
    cr_assert_eq(history().fruitless, 2);
    cr_assert(history().io_requeued);
    start.job = "8";
    next_start(0, 1);
    cr_assert_eq(history().fruitless, 1);
    cr_assert(!history().io_requeued);
    cr_assert_eq(history().checkpoint, 9);
    add(OBS_LIVES_BEGIN, 0, "fresh");
    cr_assert_eq(history().checkpoint, -1);
    start.job = "7";
}

Test(srun_history, a_start_of_which_nothing_came_does_not_count)
{
    srun_history_t found;

    next_start(0, 1);
    add(OBS_LIVES_BEGIN, 0, NULL);
    cr_assert_eq(srun_history_read(dir, NULL, &found, NULL), ERR_OK);
    cr_assert_eq(found.fruitless, 1);
    next_start(0, 2);
    cr_assert_eq(history().fruitless, 2);
}

Test(srun_history, what_a_start_and_a_save_took)
{
    next_start(0, 1);
    add(OBS_LIVES_FIRST_STEP, 4, NULL);
    add(OBS_LIVES_CHECKPOINT, 8, NULL);
    next_start(0, 2);
    add(OBS_LIVES_FIRST_STEP, 2, NULL);
    cr_assert_float_eq(history().first_step_s, 4, 1e-9);
    cr_assert_float_eq(history().save_s, 8, 1e-9);
}
