/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/srun_words.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "srun: error: "
#define PROGRAM "cddp-train: "

/* Keep "HOST: task 2: Killed" as "task 2 on HOST: Killed". srun lists several
 * tasks as "tasks 2-3". Returns whether the line is of this form. */
static int task_keep(srun_words_t *words, const char *text)
{
    const char *of = strstr(text, ": task");
    const char *end = of == NULL ? NULL : strstr(of + 2, ": ");
    const char *numbers = of == NULL ? NULL : strchr(of + 2, ' ');

    if (of == NULL || end == NULL || numbers == NULL || numbers > end ||
        numbers[1] < '0' || numbers[1] > '9')
        return 0;
    snprintf(words->task, sizeof words->task, "%.*s on %.*s%s",
             (int)(end - of - 2), of + 2, (int)(of - text), text, end);
    return 1;
}

/* Is this "task 2 launch failed: Unspecified error"? Then slurmstepd could not
 * prepare the step on a node, and srun has ended the tasks of the other nodes.
 * One reason is a socket of PMIx, left by a slurmstepd that was killed in an
 * earlier life of the job, whose step had the same number. */
static bool task_unlaunched(const char *text)
{
    int task, end = 0;

    return sscanf(text, "task %d launch failed:%n", &task, &end) == 1 &&
           end > 0;
}

/* How srun begins to say that it cannot start a step. The first two are about
 * the controller; then nothing has run. With the third, a node did not start
 * its tasks, and srun has ended those of the other nodes, which waited for
 * them. */
static const char *const unlaunched[] = {
    "Unable to create step for job ",
    "Unable to confirm allocation for job ",
    "Task launch for StepId=",
};

/* Is this "Slurm job 12 has expired.", or "Unable to confirm allocation for job
 * 12: Invalid job id specified"? The first comes for some minutes after the end
 * of the job, the second when the controller has forgotten it. */
static bool job_is_gone(const char *text)
{
    unsigned job;
    int end = 0;

    return strstr(text, "Invalid job id") != NULL ||
           (sscanf(text, "Slurm job %u has expired%n", &job, &end) == 1 &&
            end > 0);
}

static void launch_look(srun_words_t *words, const char *text)
{
    static const char on[] = " failed on node ";
    const char *host = strstr(text, on);

    words->job_gone |= job_is_gone(text);
    if (words->job_gone)
        return; /* it never will */
    words->unlaunched |= task_unlaunched(text);
    for (size_t i = 0; i < sizeof unlaunched / sizeof unlaunched[0]; i++) {
        if (strncmp(text, unlaunched[i], strlen(unlaunched[i])) != 0)
            continue;
        words->unlaunched = true;
        words->busy |= strstr(text, "Requested nodes are busy") != NULL;
        if (host != NULL && words->host[0] == '\0')
            snprintf(words->host, sizeof words->host, "%.*s",
                     (int)strcspn(host + strlen(on), ":"), host + strlen(on));
    }
}

/* Is this line "slurmstepd-n1: error: *** STEP 69.0 ON n1 CANCELLED AT 2026-...
 * ***", or the same with JOB? If Slurm names a reason, such as a time limit,
 * the line goes on with "DUE TO": then the answer is no. */
static bool is_cancelled(const char *line)
{
    return (strstr(line, "error: *** STEP ") != NULL ||
            strstr(line, "error: *** JOB ") != NULL) &&
           strstr(line, " CANCELLED AT ") != NULL &&
           strstr(line, " DUE TO ") == NULL;
}

static void line_end(srun_words_t *words)
{
    const char *text = words->line + strlen(PREFIX);

    words->line[words->length] = '\0';
    words->length = 0;
    words->cancelled |= is_cancelled(words->line);
    if (strncmp(words->line, PROGRAM, strlen(PROGRAM)) == 0 &&
        words->said[0] == '\0')
        snprintf(words->said, sizeof words->said, "%s",
                 words->line + strlen(PROGRAM));
    if (strncmp(words->line, PREFIX, strlen(PREFIX)) != 0)
        return;
    launch_look(words, text);
    if (words->task[0] != '\0')
        return;
    if (!task_keep(words, text) && words->error[0] == '\0')
        snprintf(words->error, sizeof words->error, "%s", text);
}

void srun_words_take(srun_words_t *words, const char *piece, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (piece[i] == '\n')
            line_end(words);
        else if (words->length < sizeof words->line - 1)
            words->line[words->length++] = piece[i];
    }
}

void srun_words_end(srun_words_t *words, char *out, size_t room)
{
    if (words->length > 0)
        line_end(words);
    snprintf(out, room, "%s",
             words->task[0] != '\0' ? words->task : words->error);
}
