/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "killed.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "hdf5io/nodeset.h"

char killed_option[1024];
int killed_steps = 5;
int killed_checkpoints;

static char local[1000]; /* checkpoint.local */
static atomic_int looks;

char *killed_home(void)
{
    const struct dirent *entry;
    DIR *dir = opendir(local);
    char *home = NULL;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "cddp-", 5) != 0)
            continue;
        cr_assert_null(home, "there are two homes");
        home = str_printf("%s/%s", local, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    return home;
}

void killed_home_gone(void)
{
    char *home = killed_home();

    cr_expect_null(home, "%s stays", home);
    free(home);
}

char *killed_set(void)
{
    char *home = killed_home(), *set = NULL;
    DIR *dir = home == NULL ? NULL : opendir(home);
    hdf5io_nodeset_name_t name;
    const struct dirent *entry;
    int64_t newest = -1;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!hdf5io_nodeset_parse(entry->d_name, &name) || name.step <= newest)
            continue;
        newest = name.step;
        free(set);
        set = str_printf("%s/%s", home, entry->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    free(home);
    return set;
}

void killed_open(harness_t *harness, const char *more)
{
    saves_open(harness, "checkpoint.async=true", "checkpoint.every=never",
               NULL);
    snprintf(local, sizeof local, "%s/local", harness->dir);
    snprintf(killed_option, sizeof killed_option, "checkpoint.local=%s", local);
    harness->settings[5] = "checkpoint.local_every=2 steps";
    harness->settings[6] = killed_option;
    harness->settings[7] = more;
}

/* Each rank looks for signals when a step begins. When all ranks have begun
 * [killed_steps] steps, the next rank that looks waits for a set, and kills the
 * process. */
static slurm_signal_t die(void)
{
    char *set = NULL;

    if (atomic_fetch_add(&looks, 1) < KILLED_RANKS * killed_steps)
        return SLURM_SIGNAL_NONE;
    while ((set = killed_set()) == NULL)
        usleep(1000); /* a thread of this process makes it, and tells nobody */
    kill(getpid(), SIGKILL);
    return SLURM_SIGNAL_NONE;
}

void killed_life(harness_t *harness)
{
    const pid_t child = fork();
    train_outcome_t out;
    char *set;
    int status;

    cr_assert_geq(child, 0);
    if (child == 0) {
        harness->signal = die;
        harness_run_ok(harness, KILLED_RANKS, &out);
        _exit(1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x",
              (unsigned)status);
    cr_assert_eq(harness_events(harness, "checkpoint"), killed_checkpoints);
    set = killed_set();
    cr_assert_not_null(set);
    free(set);
}

void killed_finish(harness_t *harness, int ranks, const harness_t *whole,
                   int resumed)
{
    train_outcome_t out;

    harness_run_ok(harness, ranks, &out);
    cr_expect_eq(harness_events(harness, "resumed"), resumed);
    harness_compare(whole, harness, SAVES_STEPS, 0, "killed");
    killed_home_gone();
}

void killed_whole(harness_t *whole, const char *more)
{
    train_outcome_t out;

    saves_open(whole, "checkpoint.async=true", "checkpoint.every=never", more);
    harness_run_ok(whole, KILLED_RANKS, &out);
}

void killed_pair(harness_t *whole, harness_t *parts, const char *more)
{
    killed_whole(whole, more);
    killed_open(parts, more);
    killed_life(parts);
}

void killed_pair_close(harness_t *whole, harness_t *parts)
{
    harness_close(parts);
    harness_close(whole);
}

void killed_rename(const harness_t *harness, const char *from, const char *to)
{
    char *old = str_printf("%s/%s", harness->dir, from);
    char *new = str_printf("%s/%s", harness->dir, to);

    cr_assert_eq(rename(old, new), 0, "%s to %s", old, new);
    free(new);
    free(old);
}
