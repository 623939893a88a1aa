/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A rank dies for lack of memory. A rank of its node sees this in a made-up
 * cgroup, and tells it to a rank that cannot see it. */
#include "train/oom.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "lib/facts.h"

static char root[] = "/tmp/cddp-oom-XXXXXX";
static slurm_job_t job = {.id = "5", .step_id = "5.1", .attempt = 2};

static void put(const char *path, const char *text)
{
    char *name = str_printf("%s/%s", root, path), *slash;
    err_t err = ERR_INIT;

    slash = strrchr(name, '/');
    *slash = '\0';
    cr_assert_eq(file_make_dirs(name, &err), ERR_OK, "%s", err.text);
    *slash = '/';
    cr_assert_eq(file_publish(name, text, strlen(text), &err), ERR_OK, "%s",
                 err.text);
    free(name);
}

static void kills_are(int number)
{
    char text[64];

    snprintf(text, sizeof text, "oom 0\noom_kill %d\n", number);
    put("sys/fs/cgroup/step_0/memory.events", text);
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(root));
    put("proc/self/cgroup", "0::/step_0/task_1\n");
    put("proc/self/mountinfo",
        "25 22 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("sys/fs/cgroup/step_0/memory.max", "4194304\n");
    kills_are(3);
}

static void teardown(void)
{
    cr_assert_eq(file_remove_tree(root, NULL), ERR_OK);
}

TestSuite(oom, .init = setup, .fini = teardown);

static err_t death(void)
{
    err_t err = ERR_INIT;

    err_set_peer(&err, 6, "n4", "rank 6 on n4 died");
    return err;
}

Test(oom, a_kill_names_the_limit)
{
    train_oom_t oom = train_oom_begin(root, &job, root);
    err_t err = death();

    kills_are(4);
    cr_expect_eq(train_oom_look(&oom, &err), ERR_MEMORY);
    cr_expect_eq(err.code, ERR_MEMORY);
    cr_expect_eq(err.culprit, 6);
    cr_expect_str_eq(err.host, "n4");
    FACTS(err.text, "rank 6 on n4", "out of memory", "4.0 MiB", "oom_kill 1",
          "the step's cgroup");
    FACTS(oom.cause, "out of memory: the step's limit is 4.0 MiB");
}

Test(oom, another_death_stays_what_it_is)
{
    train_oom_t oom = train_oom_begin(root, &job, root);
    err_t err = death(), found = ERR_INIT;
    char cause[TRAIN_OOM_CAUSE_MAX];

    cr_expect_eq(train_oom_look(&oom, &err), ERR_PEER);
    cr_expect_str_eq(err.text, "rank 6 on n4 died");
    cr_expect_str_eq(oom.cause, "");
    cr_expect_not(train_oom_found(&oom, &found, cause));
}

Test(oom, without_counters_nothing_is_known)
{
    train_oom_t oom = train_oom_begin(root, &job, "/nonexistent");
    err_t err = death();

    cr_expect_eq(train_oom_look(&oom, &err), ERR_PEER);
    oom.root = root;
    cr_expect_eq(train_oom_look(&oom, &err), ERR_PEER);
}

Test(oom, other_ranks_of_this_life_are_told)
{
    train_oom_t oom = train_oom_begin(root, &job, root), other = oom;
    slurm_job_t later = job;
    char cause[TRAIN_OOM_CAUSE_MAX];
    err_t err = death(), found = ERR_INIT;

    kills_are(5);
    cr_assert_eq(train_oom_look(&oom, &err), ERR_MEMORY);
    cr_assert(train_oom_found(&other, &found, cause));
    cr_expect_eq(found.code, ERR_MEMORY);
    cr_expect_eq(found.culprit, 6);
    cr_expect_str_eq(found.host, "n4");
    cr_expect_str_eq(found.text, err.text);
    cr_expect_str_eq(cause, oom.cause);
    later.attempt = 3;
    other.job = &later;
    cr_expect_not(train_oom_found(&other, &found, cause));
    put("oom", "5.1 0 2 6");
    cr_expect_not(train_oom_found(&oom, &found, cause));
}
