/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Runs with each value of checkpoint.writers: how many shards their checkpoints
 * have, that interrupted runs continue with the same bits, and which settings
 * are refused. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "lib/ranks.h"
#include "train/harness.h"
#include "train/writers.h"

#define SAMPLES 60

/* Number of shards of each checkpoint of the run. */
static size_t shards_of(const harness_t *harness)
{
    char *shards =
        str_printf("%s/run/checkpoints/step-*/shard-*.h5", harness->dir);
    char *views =
        str_printf("%s/run/checkpoints/step-*/checkpoint.h5", harness->dir);
    glob_t found = {0}, all = {0};
    size_t count;

    cr_assert_eq(glob(shards, 0, NULL, &found), 0);
    cr_assert_eq(glob(views, 0, NULL, &all), 0);
    cr_assert_eq(found.gl_pathc % all.gl_pathc, 0);
    count = found.gl_pathc / all.gl_pathc;
    globfree(&all);
    globfree(&found);
    free(views);
    free(shards);
    return count;
}

static void writers_open(harness_t *harness, const char *writers, bool zero)
{
    harness_open(harness, SAMPLES);
    harness->settings[0] = writers;
    harness->settings[1] = "checkpoint.every=4 steps";
    harness->settings[2] = zero ? "ddp.zero=1" : "ddp.zero=0";
}

Test(writers, ranks_write_as_many_shards_as_they_shall, .timeout = 60)
{
    static const struct {
        const char *setting;
        size_t shards; /* of 4 ranks on one host */
    } cases[] = {{"checkpoint.writers=auto", 4},
                 {"checkpoint.writers=rank", 4},
                 {"checkpoint.writers=node", 1},
                 {"checkpoint.writers=3", 3},
                 {"checkpoint.writers=9", 4}};
    train_outcome_t first, out;
    harness_t harness, straight;

    writers_open(&straight, cases[0].setting, true);
    harness_run_ok(&straight, 4, &first);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        writers_open(&harness, cases[c].setting, true);
        harness_run_ok(&harness, 4, &out);
        cr_expect_eq(shards_of(&harness), cases[c].shards, "%s: %zu shards",
                     cases[c].setting, shards_of(&harness));
        harness_compare(&harness, &straight, -1, 0, cases[c].setting);
        harness_close(&harness);
    }
    harness_close(&straight);
}

Test(writers, interrupted_runs_go_on_with_the_same_bits, .timeout = 60)
{
    train_outcome_t out;
    harness_t harness, straight;

    writers_open(&straight, "checkpoint.writers=rank", false);
    harness_run_ok(&straight, 3, &out);
    writers_open(&harness, "checkpoint.writers=node", false);
    cr_assert_gt(harness_run_interrupted(&harness, 15, (int[]){3, 3}, &out), 1);
    harness_compare(&harness, &straight, -1, 0, "interrupted");
    harness_close(&harness);
    harness_close(&straight);
}

/* ---- which ranks write together ------------------------------------------ */

#define PLACES 6

/* The host of each rank, and the rank whose shard it writes to. */
typedef struct place_case {
    const char *writers; /* setting */
    const char *hosts[PLACES];
    int heads[PLACES];
} place_case_t;

static int heads_compare(const comm_oob_t *oob, void *argument)
{
    const comm_config_t group_config = {.backend = "ucx", .timeout = 300};
    const place_case_t *test = argument;
    comm_oob_t own = *oob;
    comm_group_t *group = NULL;
    train_config_t config;
    tree_t *tree = NULL;
    harness_t harness = {.settings = {test->writers}};
    int *heads = NULL;
    err_t err = ERR_INIT;

    own.host = test->hosts[oob->rank];
    RANKS_OK(comm_group_open(&group_config, &own, &group, &err), err);
    RANKS_OK(harness_config(&harness, &tree, &config, &err), err);
    RANKS_OK(train_writers_open(&config, group, &heads, &err), err);
    RANKS_CHECK(heads != NULL);
    for (int r = 0; r < PLACES; r++)
        RANKS_CHECK(heads[r] == test->heads[r]);
    mem_free(heads);
    train_config_free(&config);
    tree_free(tree);
    comm_group_close(group);
    return 0;
}

Test(writers, ranks_of_a_node_write_together_wherever_they_are, .timeout = 300)
{
    static const char node[] = "checkpoint.writers=node";
    static const char one[] = "checkpoint.writers=1";
    static const char two[] = "checkpoint.writers=2";
    place_case_t cases[] = {
        {node, {"a", "a", "a", "b", "b", "b"}, {0, 0, 0, 3, 3, 3}},
        {node, {"a", "b", "a", "b", "a", "b"}, {0, 1, 0, 1, 0, 1}},
        {node, {"a", "b", "c", "c", "b", "a"}, {0, 1, 2, 2, 1, 0}},
        {one, {"a", "a", "a", "a", "a", "a"}, {0, 0, 0, 0, 0, 0}},
        {one, {"a", "a", "b", "b", "b", "a"}, {0, 0, 2, 2, 2, 0}},
        {two, {"a", "a", "a", "a", "b", "b"}, {0, 0, 0, 3, 4, 4}},
        {two, {"a", "b", "a", "b", "b", "b"}, {0, 1, 0, 3, 3, 3}}};

    ranks_transports();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        cr_expect_eq(ranks_threads(PLACES, heads_compare, &cases[c]), 0,
                     "case %zu", c);
}

static void refused(const char *writers, const char *other, const char *words)
{
    train_config_t config;
    tree_t *tree = NULL;
    harness_t harness;
    err_t err = ERR_INIT;

    writers_open(&harness, writers, false);
    harness.settings[3] = other;
    cr_expect_eq(harness_config(&harness, &tree, &config, &err), ERR_CONFIG);
    cr_expect(strstr(err.text, "checkpoint.writers") != NULL &&
                  strstr(err.text, words) != NULL,
              "%s", err.text);
    tree_free(tree);
    harness_close(&harness);
}

Test(writers, what_does_not_fit_is_refused)
{
    refused("checkpoint.writers=node", "checkpoint.format=1", "blocks");
    refused("checkpoint.writers=2", "checkpoint.format=1", "blocks");
    refused("checkpoint.writers=rank", "checkpoint.io=mpi", "one file");
    refused("checkpoint.writers=[1, 2]", NULL, "several numbers");
    refused("checkpoint.writers=0", NULL, "0");
}
