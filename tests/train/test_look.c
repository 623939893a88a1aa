/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Ranks as threads open a dataset together. A shard at which a rank looked
 * stays open there, so open shards count the looks. */
#include "train/look.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hdf5io/open.h"
#include "lib/ranks.h"

enum { RANKS = 4, SHARDS = 10, ROWS = 30 };

typedef struct plan {
    const char *directory[RANKS];
    int failing;             /* this rank comes with an error; -1: none */
    err_code_t code;         /* expected of all ranks */
    const char *say[3];      /* expected in the message of all; NULL: none */
    atomic_int looks, alive; /* over all ranks */
} plan_t;

static void count_alive(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

/* Compare the outcome of a rank with the plan. */
static int outcome_check(plan_t *plan, err_code_t rc, const err_t *err,
                         hdf5io_dataset_t *dataset)
{
    if (rc != plan->code)
        fprintf(stderr, "status %d: %s\n", (int)rc, err->text);
    RANKS_CHECK(rc == plan->code);
    for (int i = 0; i < 3 && plan->say[i] != NULL; i++) {
        if (strstr(err->text, plan->say[i]) == NULL)
            fprintf(stderr, "\"%s\" lacks \"%s\"\n", err->text, plan->say[i]);
        RANKS_CHECK(strstr(err->text, plan->say[i]) != NULL);
    }
    RANKS_CHECK((rc == ERR_OK) == (dataset != NULL));
    if (rc != ERR_OK)
        return 0;
    atomic_fetch_add(&plan->looks, hdf5io_dataset_open_shards(dataset));
    RANKS_CHECK(open_wrong_orders(dataset, hdf5io_dataset_samples(dataset)) ==
                0);
    return 0;
}

static int look_main(const comm_oob_t *oob, void *argument)
{
    const comm_config_t config = {.backend = "threads", .timeout = 120};
    plan_t *plan = argument;
    hdf5io_dataset_t *dataset = NULL;
    comm_group_t *group = NULL;
    open_setup_t setup;
    err_t err = ERR_INIT;
    err_code_t rc = ERR_OK;
    train_look_t look = {
        .what = "data.train", .alive = count_alive, .context = &plan->alive};
    int result;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    open_setup(&setup, plan->directory[oob->rank], "part-*.h5");
    look.group = group;
    if (oob->rank == plan->failing)
        rc = err_set(&err, ERR_CONFIG, "this rank has another model");
    rc = train_look_open(&look, &setup.config, rc, &dataset, &err);
    result = outcome_check(plan, rc, &err, dataset);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    comm_group_close(group);
    return result;
}

static void shards_write(const char *directory, int count)
{
    char name[32];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "part-%d.h5", i);
        open_write(directory, name, i % 3 == 1 ? FILES_GZIP : FILES_CONTIGUOUS,
                   i * ROWS, ROWS);
    }
}

/* All ranks see [directory]. */
static void plan_make(plan_t *plan, const char *directory)
{
    *plan = (plan_t){.failing = -1, .code = ERR_OK};
    for (int r = 0; r < RANKS; r++)
        plan->directory[r] = directory;
}

static void plan_run(plan_t *plan)
{
    cr_assert_eq(ranks_threads(RANKS, look_main, plan), 0);
}

TestSuite(look, .timeout = 120);

static void check_shared(int shards)
{
    char *directory = files_make();
    plan_t plan;

    shards_write(directory, shards);
    plan_make(&plan, directory);
    plan_run(&plan);
    cr_assert_eq(atomic_load(&plan.looks), shards, "each shard is opened once");
    cr_assert_geq(atomic_load(&plan.alive), shards);
    files_remove(directory);
}

Test(look, each_shard_is_opened_by_one_rank)
{
    check_shared(SHARDS);
}

Test(look, there_may_be_fewer_shards_than_ranks)
{
    check_shared(2);
}

Test(look, ranks_with_other_files_look_for_themselves)
{
    char *first = files_make(), *second = files_make();
    plan_t plan;

    shards_write(first, SHARDS);
    shards_write(second, 3);
    plan_make(&plan, first);
    plan.directory[1] = second;
    plan.directory[2] = second;
    plan_run(&plan);
    cr_assert_eq(atomic_load(&plan.looks), SHARDS + 3);
    files_remove(second);
    files_remove(first);
}

Test(look, a_bad_shard_is_the_error_of_all_ranks)
{
    char *directory = files_make();
    char *path = files_path(directory, "part-6.h5");
    plan_t plan;

    shards_write(directory, SHARDS);
    files_write_text(path, "nothing", 7);
    plan_make(&plan, directory);
    plan.code = ERR_DATA;
    plan.say[0] = "rank 2 on ";
    plan.say[1] = "data.train";
    plan.say[2] = path;
    plan_run(&plan);
    files_remove(directory);
    free(path);
}

Test(look, a_rank_without_files_is_the_error_of_all_ranks)
{
    char *directory = files_make(), *empty = files_make();
    plan_t plan;

    shards_write(directory, SHARDS);
    plan_make(&plan, directory);
    plan.directory[3] = empty;
    plan.code = ERR_DATA;
    plan.say[0] = "rank 3 on ";
    plan.say[1] = "no shard matches";
    plan_run(&plan);
    files_remove(empty);
    files_remove(directory);
}

Test(look, an_error_from_before_is_the_error_of_all_ranks)
{
    char *directory = files_make();
    plan_t plan;

    shards_write(directory, SHARDS);
    plan_make(&plan, directory);
    plan.failing = 1;
    plan.code = ERR_CONFIG;
    plan.say[0] = "this rank has another model";
    plan_run(&plan);
    files_remove(directory);
}

/* Shard 5 has other shapes than shard 0: every rank finds this. */
Test(look, shapes_that_disagree_are_the_error_of_all_ranks)
{
    const files_column_t columns[] = {
        {"/spins", 2, {4, 3}, H5T_STD_I8LE, open_spin},
        {"/phase", 0, {0}, H5T_STD_I64LE, open_phase}};
    char *directory = files_make();
    char *path = files_path(directory, "part-5.h5");
    plan_t plan;

    shards_write(directory, SHARDS);
    files_write(path, FILES_CONTIGUOUS, 5 * ROWS, ROWS, columns, 2);
    plan_make(&plan, directory);
    plan.code = ERR_DATA;
    plan.say[0] = "shapes disagree";
    plan.say[1] = path;
    plan_run(&plan);
    files_remove(directory);
    free(path);
}
