/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cddp-srun: keeps a training alive within an allocation of Slurm. It starts
 * the step, finds out how the step ended, and restarts it in place, requeues
 * the job, or ends (slurm/supervise.h decides).
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cmd/output.h"
#include "cmd/srun_args.h"
#include "cmd/srun_cause.h"
#include "cmd/srun_history.h"
#include "cmd/srun_requeue.h"
#include "cmd/srun_step.h"
#include "cmd/version.h"
#include "slurm/ask.h"
#include "slurm/limits.h"
#include "slurm/supervise.h"

/* Seconds that cddp-train may take to read the run file. */
#define RUN_FILE_PATIENCE 120.0

/* Seconds below which a restart is never worth it. */
#define NEEDED_LEAST 60.0

typedef struct supervisor {
    const srun_args_t *args;
    slurm_job_t job; /* attempt: number of the step */
    char node_list[4096];
    slurm_nodes_t nodes;
    int tasks_per_node, nodes_least;
    char run_dir[4096];
    double end;      /* clock instant at which the job ends; INFINITY: never */
    int io_failures; /* steps in a row that ended with 74 */
    int unlaunched;  /* starts in a row for which srun created no step */
    int busy;        /* those of them for which the nodes were busy */
    bool launched;   /* a step of this life of the job has run */
    srun_signals_t signals;
} supervisor_t;

/* ---- the environment ----------------------------------------------------- */

/* Variables that are set for srun unless they are set already. */
typedef struct setting {
    const char *name, *value;
} setting_t;

static const setting_t settings[] = {
    /* Seconds that PMIx waits for ranks on other nodes at start-up; its default
     * is 300. */
    {"SLURM_PMIX_TIMEOUT", "60"},
    /* MPI-IO (io: mpi) on Lustre: not Open MPI's own component, which is known
     * to hang, but ROMIO. Its name depends on the version of Open MPI
     * (romio321, romio341), and a wrong name fails every MPI_File_open. */
    {"OMPI_MCA_io", "^ompio"},
    /* MPI-IO on several nodes: PMIx's barriers by Slurm's ring. With its tree
     * (Slurm 22.05, Open MPI 4.1), about one start in 300 crashed in MPI_Init,
     * as a rank left the barrier before another had entered it. */
    {"SLURM_PMIX_FENCE", "ring"},
};

static void environment_set(void)
{
    const char *cpus = getenv("SLURM_CPUS_PER_TASK");

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        (void)setenv(settings[i].name, settings[i].value, 0);
    /* srun of Slurm 22.05 and later ignores --cpus-per-task of the job. */
    if (cpus != NULL && cpus[0] != '\0')
        (void)setenv("SRUN_CPUS_PER_TASK", cpus, 0);
}

/* ---- start --------------------------------------------------------------- */

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value == NULL ? "" : value;
}

/* The number in the variable [name]; 0 if it is unset or anything else. */
static int number_of(const char *name)
{
    int64_t value;

    return str_to_int(environment(name), &value) && value > 0 &&
                   value <= INT32_MAX
               ? (int)value
               : 0;
}

/* Ask the program for the run directory. It prints its own errors. */
static err_code_t run_dir_ask(supervisor_t *run, err_t *err)
{
    srun_line_t line = srun_line_rundir(run->args);
    const slurm_command_t command = {.args = (const char *const *)line.args,
                                     .timeout = RUN_FILE_PATIENCE,
                                     .errors = true};
    int status = -1;
    err_code_t rc = slurm_command_read(&command, run->run_dir,
                                       sizeof run->run_dir, &status, err);

    if (rc == ERR_OK && status != 0)
        rc = err_set(err, (err_code_t)status,
                     "%s --print-rundir ended with status %d",
                     run->args->program, status);
    run->run_dir[strcspn(run->run_dir, "\n")] = '\0';
    srun_line_free(&line);
    return rc;
}

/* Find out which nodes there are, and how many tasks each has. If that fails,
 * steps are restarted on all nodes. */
static void nodes_find(supervisor_t *run)
{
    err_t err = ERR_INIT;
    int tasks;

    snprintf(run->node_list, sizeof run->node_list, "%s",
             environment("SLURM_JOB_NODELIST"));
    if (slurm_nodes_read(run->node_list, &run->nodes, &err) != ERR_OK)
        log_warn("srun", "%s; steps are restarted on all nodes", err.text);
    run->tasks_per_node = number_of("SLURM_NTASKS_PER_NODE");
    tasks = number_of("SLURM_NTASKS");
    if (run->tasks_per_node == 0 && run->nodes.count > 0 &&
        tasks % run->nodes.count == 0)
        run->tasks_per_node = tasks / run->nodes.count;
    run->nodes_least = number_of("CDDP_MIN_NODES");
    if (run->nodes_least == 0)
        run->nodes_least = (run->nodes.count + 1) / 2;
}

/* The time that the job has left is asked for once and kept on the monotonic
 * clock, which no correction of the node's time moves. */
static void end_find(supervisor_t *run)
{
    slurm_limits_t limits = slurm_limits_none();
    err_t err = ERR_INIT;

    if (slurm_limits_ask(&run->job, NULL, &limits, &err) != ERR_OK)
        log_warn("srun", "%s; the time limit is unknown", err.text);
    run->end = limits.end;
}

static const char *lookup(const char *name)
{
    return getenv(name);
}

static err_code_t supervisor_open(supervisor_t *run, err_t *err)
{
    err_code_t rc = slurm_job_read(lookup, &run->job, err);

    if (rc == ERR_OK && run->job.id[0] == '\0')
        rc = err_set(err, ERR_USAGE,
                     "cddp-srun starts steps within an allocation of Slurm, "
                     "and there is none: use it in sbatch or salloc, or start "
                     "cddp-train itself");
    if (rc == ERR_OK)
        rc = run_dir_ask(run, err);
    if (rc == ERR_OK)
        rc = srun_signals_open(&run->signals, err);
    if (rc != ERR_OK)
        return rc;
    environment_set();
    nodes_find(run);
    end_find(run);
    return ERR_OK;
}

static void supervisor_close(supervisor_t *run)
{
    slurm_nodes_free(&run->nodes);
    srun_signals_close(&run->signals);
}

/* ---- one step ------------------------------------------------------------ */

static int nodes_left(const supervisor_t *run)
{
    int left = 0;

    for (int i = 0; i < run->nodes.count; i++)
        left += !slurm_node_avoided(&run->nodes.list[i]);
    return left;
}

/* Set the number of nodes in the variables of the job: srun complains if the
 * job now has fewer nodes than they say. */
static void nodes_tell(const supervisor_t *run)
{
    const char *const names[] = {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"};
    char count[16];

    snprintf(count, sizeof count, "%d", nodes_left(run));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (run->nodes.count > 0 && getenv(names[i]) != NULL)
            (void)setenv(names[i], count, 1);
}

static err_code_t step_run(supervisor_t *run, srun_result_t *result, err_t *err)
{
    const srun_size_t size = {&run->nodes, run->tasks_per_node,
                              run->job.attempt > 1};
    srun_line_t line = srun_line_step(run->args, &size);
    const srun_step_t step = {.args = (const char *const *)line.args,
                              .run_dir = run->run_dir,
                              .job = &run->job,
                              .signals = &run->signals};
    char attempt[16];
    err_code_t rc;

    snprintf(attempt, sizeof attempt, "%d", run->job.attempt);
    (void)setenv("CDDP_ATTEMPT", attempt, 1);
    nodes_tell(run);
    rc = srun_step_run(&step, result, err);
    srun_line_free(&line);
    return rc;
}

/* How the step ended, in words. */
static void cause_of(const srun_result_t *result, char *out, size_t room)
{
    if (result->recorded && result->record.text[0] != '\0')
        snprintf(out, room, "%s", result->record.text);
    else if (result->words[0] != '\0')
        snprintf(out, room, "srun names %s", result->words);
    else
        snprintf(out, room, "srun ended with status %d", result->status);
}

static obs_lives_start_t start_of(const supervisor_t *run)
{
    return (obs_lives_start_t){
        .job = run->job.id,
        .step_id = "",
        .nodes = run->node_list,
        .restart = run->job.restarts,
        .attempt = run->job.attempt,
    };
}

/* Append to the history. Failing to do so does not end the run. */
static void history_append(const supervisor_t *run, obs_lives_event_t event,
                           int status, const char *detail)
{
    const obs_lives_start_t start = start_of(run);
    obs_lives_line_t line = obs_lives_line(event, -1);
    err_t err = ERR_INIT;

    line.status = status;
    line.detail = detail;
    if (file_make_dirs(run->run_dir, &err) != ERR_OK ||
        obs_lives_append(run->run_dir, &start, &line, &err) != ERR_OK)
        log_warn("srun", "%s", err.text);
}

/* Read the history. If the step was killed before it could write its end, the
 * end is written now: so the causes are known after a requeue, too. */
static void history_complete(const supervisor_t *run,
                             const srun_result_t *result, int status,
                             srun_history_t *history)
{
    const obs_lives_start_t start = start_of(run);
    const bool again =
        status == ERR_PEER || status == ERR_IO || status == ERR_REQUEUE;
    char cause[ERR_TEXT_MAX];
    err_t err = ERR_INIT;

    *history = (srun_history_t){.checkpoint = -1};
    cause_of(result, cause, sizeof cause);
    if (srun_history_read(run->run_dir, result->unlaunched ? NULL : &start,
                          history, &err) != ERR_OK)
        log_warn("srun", "%s", err.text);
    else if (!history->ended && again && !result->unlaunched) {
        history_append(run, OBS_LIVES_END, status, cause);
        (void)srun_history_read(run->run_dir, &start, history, NULL);
    }
}

/* Count what this step means for the next: nodes that are down, or that lost
 * two steps in a row. */
static void nodes_judge(supervisor_t *run, const srun_result_t *result)
{
    err_t err = ERR_INIT;

    if (run->nodes.count == 0)
        return;
    slurm_nodes_fault(&run->nodes, result->recorded
                                       ? result->record.culprit_host
                                       : result->unlaunched_host);
    if (slurm_nodes_ask(&run->nodes, run->node_list, run->job.id, &err) !=
        ERR_OK)
        log_warn("srun", "%s; the states of the nodes are unknown", err.text);
}

/* Add to the record what only srun has seen: the signal that ended a task. */
static void cause_merge(const supervisor_t *run, const srun_result_t *result)
{
    char cause[sizeof result->words + 32];
    err_t err = ERR_INIT;

    if (result->recorded &&
        srun_cause_words(result->words, cause, sizeof cause) &&
        slurm_exit_cause(run->run_dir, cause, &err) != ERR_OK)
        log_warn("srun", "%s", err.text);
}

/* The status of the step. If a rank was alone on its node and was killed for
 * lack of memory, no rank there could record that, but Slurm reports it. */
static int status_of(const srun_result_t *result)
{
    const int status = slurm_step_status(
        result->status, result->recorded ? result->record.status : -1);

    return status == ERR_PEER && srun_cause_memory(result->words) ? ERR_MEMORY
                                                                  : status;
}

/* Is Slurm ending the job? Slurm signals the step and the script; the step may
 * end before the script gets its signal. */
static bool slurm_ends(const supervisor_t *run, const srun_result_t *result,
                       int status)
{
    return run->signals.ends || (status == ERR_REQUEUE && result->cancelled &&
                                 srun_job_is_ending(&run->job));
}

static slurm_verdict_t step_judge(supervisor_t *run,
                                  const srun_result_t *result,
                                  srun_history_t *history)
{
    const int status = status_of(result);
    slurm_ended_t ended = {.status = status,
                           .ended_by_slurm = slurm_ends(run, result, status),
                           .job_gone = result->job_gone,
                           .left = run->end - clock_now()};

    run->io_failures = status == ERR_IO ? run->io_failures + 1 : 0;
    run->unlaunched = result->unlaunched ? run->unlaunched + 1 : 0;
    run->busy = result->unlaunched ? run->busy + result->busy : 0;
    run->launched |= !result->unlaunched;
    cause_merge(run, result);
    history_complete(run, result, status, history);
    /* On a full disk there may be no room for the record. */
    ended.io_final = slurm_io_is_final(result->recorded ? result->record.text
                                                        : result->said);
    ended.io_failures = run->io_failures;
    ended.unlaunched = run->unlaunched;
    ended.busy = run->busy;
    ended.launched = run->launched;
    ended.io_requeued = history->io_requeued;
    ended.fruitless = history->fruitless;
    ended.needed = 2.0 * history->first_step_s + history->save_s;
    if (ended.needed < NEEDED_LEAST)
        ended.needed = NEEDED_LEAST;
    if (result->status != status)
        log_info("srun", "srun ended with %d, which counts as %d (%s)",
                 result->status, status, err_code_text((err_code_t)status));
    return slurm_decide(&ended);
}

/* ---- after a step -------------------------------------------------------- */

static void fruitless_say(const srun_history_t *history)
{
    log_error("srun",
              "%d starts in a row wrote no checkpoint newer than step %lld",
              history->fruitless, (long long)history->checkpoint);
    for (int i = 0; i < SLURM_FRUITLESS_MOST; i++)
        log_error("srun", "cause %d: %s", i + 1,
                  history->causes[i][0] == '\0' ? "unknown"
                                                : history->causes[i]);
}

/* Requeue; the job ends with 75 even if that fails. */
static int job_requeue(supervisor_t *run, int status)
{
    err_t err = ERR_INIT;

    history_append(run, OBS_LIVES_REQUEUE, status, NULL);
    if (srun_requeue(&run->job, &run->signals, &err) != ERR_OK)
        log_error("srun", "%s", err.text);
    return ERR_REQUEUE;
}

/* Prepare a restart. False: too few nodes are left for it. */
static bool restart_prepare(supervisor_t *run, const srun_result_t *result)
{
    nodes_judge(run, result);
    if (run->nodes.count == 0 || nodes_left(run) >= run->nodes_least)
        return true;
    log_warn("srun", "%d of %d nodes are left, and CDDP_MIN_NODES is %d",
             nodes_left(run), run->nodes.count, run->nodes_least);
    return false;
}

/* Act on the verdict. Returns true if the job is to end with *status. */
static bool act(supervisor_t *run, const srun_result_t *result, int *status)
{
    srun_history_t history;
    slurm_verdict_t verdict = step_judge(run, result, &history);

    *status = verdict.status;
    if (verdict.action == SLURM_RESTART && !restart_prepare(run, result)) {
        verdict.action = SLURM_REQUEUE;
        verdict.why = "too few nodes are left";
    }
    if (verdict.action == SLURM_END) {
        if (verdict.status == ERR_DIVERGED &&
            history.fruitless >= SLURM_FRUITLESS_MOST)
            fruitless_say(&history);
        if (verdict.status != ERR_OK)
            log_info("srun", "the job ends with %d: %s", verdict.status,
                     verdict.why);
        return true;
    }
    log_info("srun", "status %d in attempt %d after %d requeues: %s, %s",
             verdict.status, run->job.attempt, run->job.restarts,
             verdict.action == SLURM_RESTART ? "restart" : "requeue",
             verdict.why);
    if (verdict.action == SLURM_REQUEUE) {
        *status = job_requeue(run, verdict.status);
        return true;
    }
    srun_signals_wait(&run->signals, verdict.wait);
    return run->signals.ends;
}

static int supervise(supervisor_t *run, err_t *err)
{
    srun_result_t result;
    int status = ERR_OK;

    do {
        const err_code_t rc = step_run(run, &result, err);

        if (rc != ERR_OK) {
            log_error("srun", "%s", err->text);
            return rc;
        }
        if (act(run, &result, &status))
            return status;
        /* A start for which srun created no step is repeated under its
         * number. */
        run->job.attempt += !result.unlaunched;
    } while (true);
}

int main(int argc, char **argv)
{
    srun_args_t args;
    supervisor_t run = {.args = &args};
    err_t err = ERR_INIT;
    int status;
    err_code_t rc;

    file_standard_open();
    rc = srun_args_parse(argc, argv, &args, &err);
    if (rc == ERR_OK && (args.help || args.version)) {
        if (args.help)
            fputs(srun_args_help, stdout);
        else
            cmd_version_print("cddp-srun");
        return (int)cmd_output_finish(ERR_OK, &err);
    }
    if (rc == ERR_OK)
        rc = supervisor_open(&run, &err);
    if (rc != ERR_OK) {
        fprintf(stderr, "cddp-srun: %s\n", err.text);
        return (int)rc;
    }
    status = supervise(&run, &err);
    supervisor_close(&run);
    return status;
}
