/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* To which run directory do local checkpoints belong, and who deletes them? */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "lib/entries.h"
#include "train/killed.h"

/* Sets cannot be deleted. */
static atomic_bool refuses;

err_code_t __real_file_remove_tree(const char *path, err_t *err);
err_code_t __wrap_file_remove_tree(const char *path, err_t *err);
err_code_t __wrap_file_remove_tree(const char *path, err_t *err)
{
    if (refuses && strncmp(strrchr(path, '/'), "/cddp-", 6) == 0)
        return err_set(err, ERR_IO, "%s is busy", path);
    return __real_file_remove_tree(path, err);
}

/* A start without checkpoint.local ends the line, and deletes the sets. */
Test(line, a_start_without_local_checkpoints_ends_the_line, .timeout = 120)
{
    harness_t parts;
    char *path;
    train_outcome_t out;

    killed_open(&parts, NULL);
    killed_life(&parts);
    path = str_printf("%s/run/local", parts.dir);
    cr_expect_eq(access(path, F_OK), 0);
    parts.settings[6] = NULL;
    harness_run_ok(&parts, KILLED_RANKS, &out);
    cr_expect_eq(harness_events(&parts, "resumed"), 0);
    cr_expect_neq(access(path, F_OK), 0);
    killed_home_gone();
    free(path);
    harness_close(&parts);
}

/* The text of RUNDIR/local, to be freed. */
static char *local_read(const harness_t *harness)
{
    char *path = str_printf("%s/run/local", harness->dir), *text = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    free(path);
    return text;
}

/* Write the first line of [text] and the place [host] [where] to RUNDIR/local.
 */
static void place_set(const harness_t *harness, const char *text,
                      const char *host, const char *where)
{
    char *path = str_printf("%s/run/local", harness->dir);
    char *whole = str_printf("%.*s\n%s %s\n", (int)strcspn(text, "\n"), text,
                             host, where);
    err_t err = ERR_INIT;

    cr_assert_eq(file_publish(path, whole, strlen(whole), &err), ERR_OK, "%s",
                 err.text);
    free(whole);
    free(path);
}

/* One start has no checkpoint.local, and lacks a node that has sets. After this
 * start the file still names the node and its directory. A later start on this
 * node deletes the sets, and then the file. */
Test(line, a_later_start_finds_what_another_node_has, .timeout = 120)
{
    harness_t parts;
    char *home, *path, *kept, *text, *copy;
    const char *host;

    killed_open(&parts, NULL);
    killed_life(&parts);
    home = killed_home();
    host = strrchr(home, '/') + sizeof "/cddp-" - 1 + 2 * 17;
    path = str_printf("%s/run/local", parts.dir);
    kept = str_printf("%s/kept", parts.dir);
    copy = str_printf("mkdir '%s' && cp -a '%s' '%s'", kept, home, kept);
    cr_assert_eq(system(copy), 0);
    text = local_read(&parts);
    cr_expect_not_null(strstr(text, host), "%s", text);
    place_set(&parts, text, "elsewhere", "/nowhere");
    free(text);
    parts.settings[6] = NULL;
    harness_run_ok(&parts, KILLED_RANKS, &(train_outcome_t){0});
    killed_home_gone();
    text = local_read(&parts);
    cr_expect_not_null(strstr(text, " 0000000000000000 "), "%s", text);
    cr_expect_not_null(strstr(text, "\nelsewhere /nowhere\n"), "%s", text);
    place_set(&parts, text, host, kept);
    harness_run_ok(&parts, KILLED_RANKS, &(train_outcome_t){0});
    cr_expect_neq(access(path, F_OK), 0);
    cr_expect_eq(entries_begin(kept, "cddp-"), 0);
    free(text);
    free(copy);
    free(kept);
    free(path);
    free(home);
    harness_close(&parts);
}

/* A start cannot delete the sets, and says so. The next start deletes them. */
Test(line, sets_that_cannot_be_deleted_are_not_forgotten, .timeout = 120)
{
    harness_t parts;
    char *path, *heard;

    killed_open(&parts, NULL);
    killed_life(&parts);
    path = str_printf("%s/run/local", parts.dir);
    parts.settings[6] = NULL;
    refuses = true;
    heard = harness_listen(&parts, KILLED_RANKS);
    refuses = false;
    cr_expect_not_null(strstr(heard, "cannot remove old local checkpoints"),
                       "%s", heard);
    cr_expect_eq(access(path, F_OK), 0);
    harness_run_ok(&parts, KILLED_RANKS, &(train_outcome_t){0});
    cr_expect_neq(access(path, F_OK), 0);
    killed_home_gone();
    free(heard);
    free(path);
    harness_close(&parts);
}

/* RUNDIR/local is a link, which is not followed: the start says that it finds
 * no local checkpoints. */
Test(line, a_file_that_cannot_be_read_is_named, .timeout = 120)
{
    harness_t parts;
    char *path, *heard;

    killed_open(&parts, NULL);
    killed_life(&parts);
    path = str_printf("%s/run/local", parts.dir);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink("/dev/null", path), 0);
    heard = harness_listen(&parts, KILLED_RANKS);
    cr_expect_not_null(strstr(heard, "of earlier starts are not found"), "%s",
                       heard);
    cr_expect_eq(harness_events(&parts, "resumed"), 0);
    free(heard);
    free(path);
    harness_close(&parts);
}

/* A start without checkpoint.local ends before it has deleted the sets: the
 * next start finds and deletes them. */
Test(line, a_start_that_fails_leaves_the_place_of_the_sets, .timeout = 120)
{
    harness_t parts;
    char *path, *settings;
    train_outcome_t out;
    err_t err = ERR_INIT;

    killed_open(&parts, NULL);
    killed_life(&parts);
    path = str_printf("%s/run/local", parts.dir);
    settings = str_printf("%s/run/config.yaml", parts.dir);
    parts.settings[6] = NULL;
    cr_assert_eq(unlink(settings), 0);
    cr_assert_eq(mkdir(settings, 0777), 0);
    cr_expect_neq(harness_run(&parts, KILLED_RANKS, &out, &err), ERR_OK, "%s",
                  err.text);
    cr_assert_eq(rmdir(settings), 0);
    cr_expect_eq(access(path, F_OK), 0);
    harness_run_ok(&parts, KILLED_RANKS, &out);
    cr_expect_neq(access(path, F_OK), 0);
    killed_home_gone();
    free(settings);
    free(path);
    harness_close(&parts);
}

/* checkpoint.local names another directory: the sets in the old one are not
 * used, and are deleted. */
Test(line, a_start_with_another_directory_deletes_the_sets, .timeout = 120)
{
    harness_t parts;
    char option[1100];
    train_outcome_t out;

    killed_open(&parts, NULL);
    killed_life(&parts);
    snprintf(option, sizeof option, "checkpoint.local=%s/other", parts.dir);
    parts.settings[6] = option;
    harness_run_ok(&parts, KILLED_RANKS, &out);
    cr_expect_eq(harness_events(&parts, "resumed"), 0);
    killed_home_gone();
    harness_close(&parts);
}

/* A moved run directory keeps its sets. */
Test(line, a_moved_directory_resumes, .timeout = 120)
{
    harness_t whole, parts;
    char *moved;

    killed_pair(&whole, &parts, NULL);
    killed_rename(&parts, "run", "moved");
    moved = str_printf("run.dir=%s/moved", parts.dir);
    parts.settings[7] = moved;
    harness_run_ok(&parts, KILLED_RANKS, &(train_outcome_t){0});
    killed_rename(&parts, "moved", "run");
    cr_expect_eq(harness_events(&parts, "resumed"), 1);
    harness_compare(&whole, &parts, SAVES_STEPS, 0, "moved");
    free(moved);
    killed_pair_close(&whole, &parts);
}

/* A file of an older version has only the numbers of the run and of the line.
 * The start that uses it adds the rest. */
Test(line, a_file_of_an_older_version_is_completed, .timeout = 120)
{
    harness_t parts;
    char *path, *text = NULL;
    train_outcome_t out;

    killed_open(&parts, NULL);
    killed_life(&parts);
    path = str_printf("%s/run/local", parts.dir);
    cr_assert_eq(truncate(path, 2 * 16 + 1), 0);
    harness_run_ok(&parts, KILLED_RANKS, &out);
    cr_expect_eq(harness_events(&parts, "resumed"), 1);
    cr_assert_eq(file_read(path, &text, NULL, NULL), ERR_OK);
    cr_expect_not_null(strstr(text, strchr(killed_option, '=') + 1), "%s",
                       text);
    free(text);
    free(path);
    harness_close(&parts);
}

/* A copy of a run directory neither uses nor deletes the sets of the original.
 */
Test(line, a_copy_leaves_the_sets_of_the_original, .timeout = 120)
{
    for (int i = 0; i < 2; i++) {
        harness_t whole, parts;
        char *from, *to, *command, *heard;

        killed_pair(&whole, &parts, NULL);
        from = str_printf("%s/run", parts.dir);
        to = str_printf("%s/original", parts.dir);
        command = str_printf("cp -a '%s' '%s'", to, from);
        cr_assert_eq(rename(from, to), 0);
        cr_assert_eq(system(command), 0);
        if (i == 1)
            parts.settings[6] = NULL;
        heard = harness_listen(&parts, KILLED_RANKS);
        cr_expect_eq(strstr(heard, "was copied or restored") != NULL, i == 0,
                     "%s", heard);
        cr_expect_eq(harness_events(&parts, "resumed"), 0);
        parts.settings[6] = killed_option;
        killed_rename(&parts, "run", "copy");
        killed_rename(&parts, "original", "run");
        killed_finish(&parts, KILLED_RANKS, &whole, 1);
        free(heard);
        free(command);
        free(to);
        free(from);
        killed_pair_close(&whole, &parts);
    }
}
