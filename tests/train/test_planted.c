/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Somebody who may write to a run directory has replaced a file that the run
 * opens by something else: a symbolic link to a file of the user, or a fifo.
 * The run must neither write to the link's target nor wait for the fifo.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "train/harness.h"

#define SAMPLES 96
#define PRECIOUS "a line that the user needs\n"

/* Run the first of two lives. The settings of job and life make the run write
 * and read all files of a run directory. */
static void run_open(harness_t *harness)
{
    train_outcome_t out;

    alarm(120); /* ends a test that waits for a fifo */
    harness_open(harness, SAMPLES);
    harness->settings[0] = "train.epochs=1";
    harness_run_ok(harness, 1, &out);
    harness->settings[0] = "train.epochs=2";
}

static char *below(const harness_t *harness, const char *name)
{
    return str_printf("%s/%s", harness->dir, name);
}

static char *planted(const harness_t *harness, const char *name)
{
    char *path = str_printf("%s/run/%s", harness->dir, name);

    cr_assert(unlink(path) == 0 || access(path, F_OK) != 0, "%s", path);
    return path;
}

static void plant_link(const harness_t *harness, const char *name,
                       const char *victim)
{
    char *path = planted(harness, name);

    cr_assert_eq(symlink(victim, path), 0, "%s", path);
    free(path);
}

static void plant_fifo(const harness_t *harness, const char *name)
{
    char *path = planted(harness, name);

    cr_assert_eq(mkfifo(path, 0600), 0, "%s", path);
    free(path);
}

Test(planted, a_link_leads_to_nothing_that_is_overwritten)
{
    /* Files that are published by a rename replace the link itself, so they are
     * not refused. */
    static const struct {
        const char *name;
        bool refused;
    } rows[] = {{"lock", true},
                {"metrics.jsonl", true},
                {"config.yaml", true},
                {"exit.json", false},
                /* If lives.jsonl cannot be written, the run only warns. */
                {"lives.jsonl", false},
                {"summary.json", false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        char *victim, *text = NULL;
        err_code_t code;

        run_open(&harness);
        victim = below(&harness, "victim");
        cr_assert_eq(file_publish(victim, PRECIOUS, strlen(PRECIOUS), &err),
                     ERR_OK);
        plant_link(&harness, rows[i].name, victim);
        code = harness_run(&harness, 2, &out, &err);
        cr_expect_eq(code, rows[i].refused ? ERR_DATA : ERR_OK, "%s: %s",
                     rows[i].name, err.text);
        if (rows[i].refused)
            cr_expect_not_null(strstr(err.text, "is a symbolic link"), "%s",
                               err.text);
        cr_assert_eq(file_read(victim, &text, NULL, &err), ERR_OK);
        cr_expect_str_eq(text, PRECIOUS, "%s", rows[i].name);
        free(text);
        free(victim);
        harness_close(&harness);
    }
}

/* A link whose target does not exist is refused, too: opening it would make
 * that file. */
Test(planted, no_file_is_made_where_a_link_leads)
{
    static const struct {
        const char *name;
        bool refused;
    } rows[] = {{"lock", true},
                {"metrics.jsonl", true},
                {"exit.json", false},
                {"lives.jsonl", false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        char *victim;

        run_open(&harness);
        victim = below(&harness, "not-there");
        plant_link(&harness, rows[i].name, victim);
        cr_expect_eq(harness_run(&harness, 2, &out, &err),
                     rows[i].refused ? ERR_DATA : ERR_OK, "%s", err.text);
        cr_expect_neq(access(victim, F_OK), 0, "%s", rows[i].name);
        free(victim);
        harness_close(&harness);
    }
}

/* A file or link whose name is that of an interrupted save is removed, but not
 * what the link leads to. */
Test(planted, a_temporary_name_leads_to_nothing_that_is_removed)
{
    static const char *const names[] = {
        "checkpoints/.tmp-step-0000000007-0123456789abcdef",
        "checkpoints/.trash-step-0000000002-0123456789abcdef",
        "exit.json.17-000000042.tmp", "config.yaml.17-000000042.tmp"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        char *victim, *file, *text = NULL;

        run_open(&harness);
        victim = below(&harness, "victim");
        file = str_printf("%s/MANIFEST.json", victim);
        cr_assert_eq(mkdir(victim, 0777), 0);
        cr_assert_eq(file_publish(file, PRECIOUS, strlen(PRECIOUS), &err),
                     ERR_OK);
        plant_link(&harness, names[i], victim);
        harness_run_ok(&harness, 2, &out);
        cr_assert_eq(file_read(file, &text, NULL, &err), ERR_OK, "%s: %s",
                     names[i], err.text);
        cr_expect_str_eq(text, PRECIOUS, "%s", names[i]);
        free(text);
        free(file);
        free(victim);
        harness_close(&harness);
    }
}

Test(planted, a_fifo_is_not_waited_for)
{
    static const struct {
        const char *name;
        bool refused;
    } rows[] = {{"lock", true},
                {"metrics.jsonl", true},
                {"config.yaml", true},
                {"exit.json", false},
                {"summary.json", false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        err_code_t code;

        run_open(&harness);
        plant_fifo(&harness, rows[i].name);
        code = harness_run(&harness, 2, &out, &err);
        cr_expect_eq(code, rows[i].refused ? ERR_DATA : ERR_OK, "%s: %s",
                     rows[i].name, err.text);
        if (rows[i].refused)
            cr_expect_not_null(strstr(err.text, "is a fifo"), "%s", err.text);
        harness_close(&harness);
    }
}

/* Links and fifos among the files of a checkpoint are neither followed nor
 * waited for: the checkpoint counts as damaged. */
Test(planted, a_checkpoint_of_links_and_fifos_is_damaged)
{
    static const char *const names[] = {
        "checkpoints/step-0000000004/MANIFEST.json",
        "checkpoints/step-0000000004/shard-0.h5"};

    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        const char *name = names[i / 2];
        train_outcome_t out;
        harness_t harness;
        err_t err = ERR_INIT;
        char *victim, *path;

        run_open(&harness);
        victim = below(&harness, "victim");
        path = str_printf("%s/run/%s", harness.dir, name);
        cr_assert_eq(rename(path, victim), 0, "%s", path);
        if (i % 2 == 0)
            plant_fifo(&harness, name);
        else
            plant_link(&harness, name, victim);
        cr_expect_neq(harness_run(&harness, 2, &out, &err), ERR_OK);
        cr_expect_not_null(strstr(err.text, i % 2 == 0 ? "not a regular file"
                                                       : "symbolic link"),
                           "%s: %s", name, err.text);
        free(path);
        free(victim);
        harness_close(&harness);
    }
}

/* A link as run directory is allowed: it is the usual way to keep runs on
 * scratch. */
Test(planted, a_run_directory_may_be_a_link_itself)
{
    train_outcome_t out;
    harness_t harness;
    char *run, *scratch;

    run_open(&harness);
    run = below(&harness, "run");
    scratch = below(&harness, "scratch");
    cr_assert_eq(rename(run, scratch), 0);
    cr_assert_eq(symlink(scratch, run), 0);
    harness_run_ok(&harness, 2, &out);
    free(scratch);
    free(run);
    harness_close(&harness);
}
