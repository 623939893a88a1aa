/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Does the owner of a run directory still use it? On a file system without
 * locks, the process of an owner on this host is looked up, and squeue is asked
 * for the step of an owner on another host. Here squeue is a script.
 */
#include "train/owner.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "lib/facts.h"
#include "lib/no_locks.h"
#include "train/rundir.h"

static char dir[] = "/tmp/cddp-owner-XXXXXX";

static void setup(void)
{
    log_level_set(LOG_ERROR);
    cr_assert_not_null(mkdtemp(dir));
    setenv("PATH", dir, 1);
}

static void teardown(void)
{
    cr_assert_eq(file_remove_tree(dir, NULL), ERR_OK);
}

TestSuite(owner, .init = setup, .fini = teardown);

/* Make a script squeue that prints [line] and exits with [status]. */
static void squeue_says(const char *line, int status)
{
    char *path = str_printf("%s/squeue", dir);
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    fprintf(file, "#!/bin/sh\necho '%s'\nexit %d\n", line, status);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(chmod(path, 0755), 0);
    free(path);
}

/* The state of the owner [text], as a task of [step] sees it. */
static train_owner_state_t look(const char *text, const char *step)
{
    slurm_job_t job = {.host = "here"};
    train_owner_state_t state;
    char *mine;

    snprintf(job.step_id, sizeof job.step_id, "%s", step);
    mine = train_owner_text(&job);
    state = train_owner_look(text, mine);
    free(mine);
    return state;
}

Test(owner, the_first_line_is_for_people)
{
    slurm_job_t job = {.host = "n7"};
    char *text = train_owner_text(&job);

    FACTS(text, "process ", " on host n7\n");
    free(text);
    snprintf(job.step_id, sizeof job.step_id, "12.0");
    text = train_owner_text(&job);
    FACTS(text, "Slurm step 12.0 on host n7, process ");
    free(text);
}

/* An owner is alive until its process has ended. A later process with the same
 * number is not the owner. */
Test(owner, a_process_of_this_host)
{
    int ends[2], status;
    char text[512];
    pid_t pid;

    cr_assert_eq(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        const slurm_job_t job = {.host = "here"};
        char *mine = train_owner_text(&job);

        (void)!write(ends[1], mine, strlen(mine) + 1);
        pause();
        _exit(0);
    }
    cr_assert_gt(read(ends[0], text, sizeof text), 0);
    cr_expect_eq(look(text, ""), TRAIN_OWNER_ALIVE);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    cr_expect_eq(look(text, ""), TRAIN_OWNER_GONE);
    close(ends[0]);
    close(ends[1]);
}

Test(owner, a_step_of_another_host)
{
    static const char there[] =
        "Slurm step 9.1 on host n2, process 4\nstep 9.1 boot x process 4 began "
        "77\n";

    squeue_says("9.1", 0);
    cr_expect_eq(look(there, "10.0"), TRAIN_OWNER_ALIVE);
    squeue_says("", 0);
    cr_expect_eq(look(there, "10.0"), TRAIN_OWNER_GONE);
    squeue_says("", 1);
    cr_expect_eq(look(there, "10.0"), TRAIN_OWNER_UNKNOWN);
    /* After a requeue a job has the same step ids again: the asking task itself
     * has the id of the owner. */
    squeue_says("9.1", 0);
    cr_expect_eq(look(there, "9.1"), TRAIN_OWNER_GONE);
}

Test(owner, a_process_of_another_host_is_unknown)
{
    cr_expect_eq(
        look("process 4 on host n2\nstep - boot x process 4 began 77", ""),
        TRAIN_OWNER_UNKNOWN);
    cr_expect_eq(look("process 4 on host n2\n", ""), TRAIN_OWNER_UNKNOWN);
    cr_expect_eq(look("", ""), TRAIN_OWNER_UNKNOWN);
}

Test(owner, a_directory_without_locks_is_refused_while_its_owner_lives)
{
    static const char gone[] =
        "process 4 on host n2\nstep - boot x process 4 began 77\n";
    const slurm_job_t job = {.host = "here"};
    char *path = str_printf("%s/run", dir), *mine = train_owner_text(&job);
    char *lock = str_printf("%s/run/lock", dir), *before, *after;
    train_rundir_t *first = NULL, *second = NULL;
    err_t err = ERR_INIT;

    no_locks = true;
    cr_assert_eq(train_rundir_open(path, mine, &first, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(file_read(lock, &before, NULL, &err), ERR_OK);
    cr_assert_eq(train_rundir_open(path, "other\n", &second, &err), ERR_OK,
                 "what is unknown does not end a run: %s", err.text);
    train_rundir_refuse(second);
    train_rundir_close(second);
    second = NULL;
    cr_expect_eq(train_rundir_open(path, mine, &second, &err), ERR_BUSY);
    FACTS(err.text, "in use by process ", " on host here:");
    cr_assert_eq(file_read(lock, &after, NULL, &err), ERR_OK);
    cr_expect_str_eq(before, after);
    train_rundir_close(first);
    first = NULL;
    cr_assert_eq(file_publish(lock, gone, strlen(gone), &err), ERR_OK);
    cr_expect_eq(train_rundir_open(path, mine, &first, &err), ERR_OK, "%s",
                 err.text);
    train_rundir_close(first);
    free(after);
    free(before);
    free(lock);
    free(mine);
    free(path);
}
