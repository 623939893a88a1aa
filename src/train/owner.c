/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A process is recognised by the boot of its kernel, its number, and the time
 * of its start, since the kernel uses numbers again. Step ids are used again,
 * too, when a job is requeued: an owner with the step id of this process is an
 * earlier life of this job.
 */
#include "train/owner.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "slurm/ask.h"

#define LINE "step %s boot %s process %d began %llu"
#define LINE_READ "step %63s boot %63s process %d began %llu"
#define NO_STEP "-"

typedef struct owner {
    char step[64], boot[64];
    int process;
    unsigned long long began; /* clock ticks after the boot; 0: unknown */
} owner_t;

/* The id of the running kernel, or "-". */
static void boot_read(char *out, size_t room)
{
    char *text = NULL;

    snprintf(out, room, "-");
    if (file_read("/proc/sys/kernel/random/boot_id", &text, NULL, NULL) ==
        ERR_OK)
        snprintf(out, room, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

/* When process [number] of this host began; 0: it does not exist or is a
 * zombie. The name in the second field may contain anything, so fields are
 * counted from the end of the name. */
static unsigned long long began_read(int number)
{
    char *path = str_printf("/proc/%d/stat", number), *text = NULL;
    unsigned long long began = 0;
    const char *end = NULL;
    char state = 'Z';

    if (file_read(path, &text, NULL, NULL) == ERR_OK)
        end = strrchr(text, ')');
    if (end == NULL ||
        sscanf(end,
               ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%*s %*s %*s %*s %llu",
               &state, &began) != 2 ||
        state == 'Z' || state == 'X')
        began = 0;
    free(text);
    free(path);
    return began;
}

char *train_owner_text(const slurm_job_t *job)
{
    const bool step = job->step_id[0] != '\0';
    const int process = (int)getpid();
    char boot[64], people[192];

    boot_read(boot, sizeof boot);
    if (step)
        snprintf(people, sizeof people, "Slurm step %s on host %s, process %d",
                 job->step_id, job->host, process);
    else
        snprintf(people, sizeof people, "process %d on host %s", process,
                 job->host);
    return str_printf("%s\n" LINE, people, step ? job->step_id : NO_STEP, boot,
                      process, began_read(process));
}

static bool owner_read(const char *text, owner_t *out)
{
    const char *line = strchr(text, '\n');

    return line != NULL && sscanf(line + 1, LINE_READ, out->step, out->boot,
                                  &out->process, &out->began) == 4;
}

/* Is [step] one of the steps that run? */
static train_owner_state_t step_ask(const char *step)
{
    const char *const args[] = {"squeue", "-h", "-s", step, "-o", "%i", NULL};
    char said[256];

    if (slurm_ask(args, said, sizeof said, NULL) != ERR_OK)
        return TRAIN_OWNER_UNKNOWN;
    said[strcspn(said, " \n")] = '\0';
    return strcmp(said, step) == 0 ? TRAIN_OWNER_ALIVE : TRAIN_OWNER_GONE;
}

train_owner_state_t train_owner_look(const char *text, const char *mine)
{
    owner_t owner, me;
    bool here;

    if (!owner_read(text, &owner) || !owner_read(mine, &me))
        return TRAIN_OWNER_UNKNOWN;
    here = strcmp(owner.boot, me.boot) == 0 && strcmp(me.boot, "-") != 0;
    if (here && owner.began != 0 && began_read(owner.process) == owner.began)
        return TRAIN_OWNER_ALIVE;
    if (strcmp(owner.step, NO_STEP) == 0)
        return here ? TRAIN_OWNER_GONE : TRAIN_OWNER_UNKNOWN;
    return strcmp(owner.step, me.step) == 0 ? TRAIN_OWNER_GONE
                                            : step_ask(owner.step);
}
