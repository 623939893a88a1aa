/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The lines of progress, and how the tasks of a conversion meet. */
#include <criterion/criterion.h>
#include <string.h>

#include "cmd/data_progress.h"
#include "cmd/data_team.h"

Test(progress, lines)
{
    static const struct {
        int64_t done;
        double seconds;
        const char *line;
    } cases[] = {
        {0, 10, "cddp-data: valid: 0 of 2,000 samples (0 %)"},
        {1000, 42,
         "cddp-data: valid: 1,000 of 2,000 samples (50 %), about 42 s left"},
        {1999, 19990,
         "cddp-data: valid: 1,999 of 2,000 samples (99 %), about 10 s left"},
        {500, 100,
         "cddp-data: valid: 500 of 2,000 samples (25 %), about 5 min left"},
        {1, 10, "cddp-data: valid: 1 of 2,000 samples (0 %), about 5.6 h left"},
    };
    cmd_progress_t progress;

    cmd_progress_begin(&progress, "valid", 2000);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str_buf_t line = {0};

        cmd_progress_line(&progress, cases[i].done, cases[i].seconds, &line);
        cr_expect_str_eq(line.text, cases[i].line);
        str_buf_free(&line);
    }
}

/* ---- the tasks of a conversion ------------------------------------------- */

#define TASKS 3

/* What a task has got at the end. */
typedef struct task {
    err_code_t rc;
    err_t err;
    int64_t sums[CMD_TEAM_SUMS], all[TASKS];
} task_t;

/* Does only task [speaker] have a message, with [words]? */
static void one_speaks(const task_t *tasks, int speaker, const char *words)
{
    for (int t = 0; t < TASKS; t++) {
        const char *text = tasks[t].err.text;

        if (t == speaker)
            cr_expect_not_null(strstr(text, words), "%s", text);
        else
            cr_expect_str_eq(text, "");
    }
}

/* All tasks meet twice. In the second meeting task 1 has an error. */
static void meet(boot_t *boot, int rank, void *context)
{
    task_t *task = (task_t *)context + rank;
    cmd_team_t team = {0};
    int64_t sums[CMD_TEAM_SUMS] = {rank, 10};

    task->rc = cmd_team_join(boot, &team, &task->err);
    if (task->rc == ERR_OK)
        task->rc = cmd_team_meet(&team, sums, ERR_OK, &task->err);
    if (task->rc == ERR_OK)
        task->rc = cmd_team_gather(&team, rank * rank, ERR_OK, task->all, TASKS,
                                   &task->err);
    memcpy(task->sums, sums, sizeof sums);
    if (task->rc == ERR_OK && rank == 1)
        err_set(&task->err, ERR_IO, "no space");
    if (task->rc == ERR_OK)
        task->rc = cmd_team_vote(&team, task->err.code, &task->err);
    cmd_team_close(&team);
}

Test(team, meets, .timeout = 120)
{
    const boot_config_t config = {.timeout = 60.0};
    task_t tasks[TASKS] = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(boot_threads_run(TASKS, &config, meet, tasks, &err), ERR_OK);
    for (int t = 0; t < TASKS; t++) {
        cr_expect_eq(tasks[t].rc, ERR_IO, "%s", tasks[t].err.text);
        cr_expect(tasks[t].sums[0] == 3 && tasks[t].sums[1] == 30);
        cr_expect(tasks[t].all[0] == 0 && tasks[t].all[2] == 4);
    }
    one_speaks(tasks, 1, "no space");
}

/* Task 0 ends, and the other tasks do not wait for it. */
static void desert(boot_t *boot, int rank, void *context)
{
    task_t *task = (task_t *)context + rank;
    cmd_team_t team = {0};

    task->rc = cmd_team_join(boot, &team, &task->err);
    if (task->rc == ERR_OK && rank > 0)
        task->rc = cmd_team_vote(&team, ERR_OK, &task->err);
    cmd_team_close(&team);
}

Test(team, loses_a_task, .timeout = 120)
{
    const boot_config_t config = {.timeout = 60.0};
    task_t tasks[TASKS] = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(boot_threads_run(TASKS, &config, desert, tasks, &err), ERR_OK);
    cr_expect_eq(tasks[0].rc, ERR_OK);
    cr_expect_eq(tasks[1].rc, ERR_PEER);
    cr_expect_eq(tasks[2].rc, ERR_PEER);
    one_speaks(tasks, 1, "rank 0");
}
