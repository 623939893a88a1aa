/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/prom.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "lib/facts.h"

static char directory[] = "/tmp/cddp-prom-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
}

static void teardown(void)
{
    err_t err = ERR_INIT;

    cr_assert_eq(file_remove_tree(directory, &err), ERR_OK, "%s", err.text);
}

TestSuite(prom, .init = setup, .fini = teardown);

static obs_prom_t *open_for(const char *job, const char *run_dir, int rank)
{
    obs_prom_t *prom = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_prom_open(&(obs_prom_config_t){.directory = directory,
                                                    .job = job,
                                                    .run = "a\"b\\c\nd",
                                                    .run_dir = run_dir,
                                                    .rank = rank,
                                                    .every = 1e9},
                               &prom, &err),
                 ERR_OK, "%s", err.text);
    return prom;
}

static const obs_step_t row = {
    .step = 7, .loss = INFINITY, .lr = 0.25, .grad_norm = NAN, .step_s = 0.5};

static int files_count(void)
{
    DIR *dir = opendir(directory);
    int count = -2; /* . and .. */

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* The text of the only file, which the caller frees. */
static char *file_text(void)
{
    DIR *dir = opendir(directory);
    char *text = NULL;
    err_t err = ERR_INIT;

    cr_assert_not_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char *path = str_printf("%s/%s", directory, entry->d_name);

        if (entry->d_name[0] != '.') {
            cr_assert_null(text, "two files");
            cr_assert_eq(strncmp(entry->d_name, "cddp-", 5), 0);
            cr_assert_str_eq(path + strlen(path) - 5, ".prom");
            cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
        }
        free(path);
    }
    closedir(dir);
    cr_assert_not_null(text, "no file");
    return text;
}

/* Parse [at], "NAME{LABEL="VALUE",...} NUMBER", and check its form; the name
 * must be that of the newest comment. */
static void sample_parse(const char *at, const char *name)
{
    char *end;

    cr_assert_eq(strncmp(at, name, strlen(name)), 0, "%s: %s", name, at);
    at += strlen(name);
    do {
        at++; /* the brace or comma */
        cr_assert(isalpha(*at), "%s", at);
        at += strspn(at, "abcdefghijklmnopqrstuvwxyz_");
        cr_assert_eq(strncmp(at, "=\"", 2), 0, "%s", at);
        for (at += 2; *at != '"'; at++) {
            cr_assert(*at != '\0');
            if (*at == '\\')
                cr_assert_not_null(memchr("\\\"n", *++at, 3));
        }
        at++;
    } while (*at == ',');
    cr_assert_eq(strncmp(at, "} ", 2), 0, "%s", at);
    strtod(at + 2, &end);
    cr_assert(end > at + 2 && *end == '\0', "%s", at);
}

/* Check each line of [text]: HELP, then TYPE, then samples, each name once. */
static void text_parse(char *text)
{
    char name[128] = "", typed[128], *rest = NULL, *seen = str_dup(" ");

    cr_assert_eq(text[strlen(text) - 1], '\n');
    for (char *at = strtok_r(text, "\n", &rest); at != NULL;
         at = strtok_r(NULL, "\n", &rest)) {
        char *more;

        if (sscanf(at, "# HELP %127s", name) == 1) {
            more = str_printf("%s%s ", seen, name);
            cr_assert_null(strstr(seen, more + strlen(seen) - 1), "%s", name);
            free(seen);
            seen = more;
        } else if (sscanf(at, "# TYPE %127s gauge", typed) == 1) {
            cr_assert_str_eq(typed, name);
        } else {
            sample_parse(at, name);
        }
    }
    free(seen);
}

Test(prom, the_file_has_the_text_format)
{
    static const obs_value_t values[] = {{"top\"5", 0.75}};
    obs_prom_t *prom = open_for("12_3", "runs/a", 2);
    char *text;

    obs_prom_eval(prom, &(obs_eval_t){.step = 6,
                                      .loss = 1.5,
                                      .accuracy = NAN,
                                      .values = values,
                                      .value_count = 1});
    obs_prom_saved(prom, 5);
    obs_prom_step(prom, &row);
    text = file_text();
    FACTS(text,
          "\ncddp_step{job=\"12_3\",rank=\"2\",run=\"a\\\"b\\\\c\\nd\"} 7\n",
          "\n# TYPE cddp_step gauge\n", "} +Inf\n", "} NaN\n",
          "cddp_checkpoint_step{");
    FACTS(text, "cddp_evaluation_step{", ",metric=\"loss\"} 1.5\n",
          ",metric=\"top\\\"5\"} 0.75\n");
    text_parse(text);
    free(text);
    obs_prom_close(prom);
    cr_assert_eq(files_count(), 0);
}

Test(prom, the_file_is_replaced_only_when_it_is_due)
{
    obs_prom_t *prom = open_for("", "runs/a", 0);
    obs_step_t later = row;
    char *text;

    cr_assert_eq(files_count(), 0);
    obs_prom_step(prom, &row);
    later.step = 8;
    obs_prom_step(prom, &later);
    text = file_text();
    FACTS(text, "cddp_step{job=\"\"", "} 7\n");
    free(text);
    obs_prom_close(prom);
}

/* Files of killed lives, of other ranks and of another job, go; those of
 * another run stay. */
Test(prom, a_start_removes_what_its_earlier_lives_left)
{
    obs_prom_t *mine[3], *other = open_for("9", "runs/b", 0);

    for (int rank = 0; rank < 3; rank++)
        mine[rank] = open_for("7", "runs/a", rank);
    for (int rank = 0; rank < 3; rank++)
        obs_prom_step(mine[rank], &row);
    obs_prom_step(other, &row);
    cr_assert_eq(files_count(), 4);
    obs_prom_close(open_for("8", "runs/a", 1));
    cr_assert_eq(files_count(), 1);
    for (int rank = 0; rank < 3; rank++)
        obs_prom_close(mine[rank]);
    obs_prom_close(other);
    cr_assert_eq(files_count(), 0);
}

/* Anybody may write to the directory: a link in place of the draft is removed,
 * and its target stays. */
Test(prom, a_planted_link_is_not_followed)
{
    char *victim = str_printf("%s/victim", directory), *draft, *text;
    obs_prom_t *prom = open_for("7", "runs/a", 0);
    DIR *dir;
    err_t err = ERR_INIT;

    cr_assert_eq(file_publish(victim, "precious", 8, &err), ERR_OK);
    obs_prom_step(prom, &row);
    dir = opendir(directory);
    draft = NULL;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, "cddp-", 5) == 0)
            draft = str_printf("%s/.%s.tmp", directory, entry->d_name);
    closedir(dir);
    cr_assert_not_null(draft);
    obs_prom_close(prom);
    prom = open_for("7", "runs/a", 0);
    cr_assert_eq(symlink(victim, draft), 0);
    obs_prom_step(prom, &row);
    cr_assert_eq(file_read(victim, &text, NULL, &err), ERR_OK);
    cr_assert_str_eq(text, "precious");
    cr_assert_eq(access(draft, F_OK), -1);
    obs_prom_close(prom);
    free(text);
    free(draft);
    free(victim);
}

Test(prom, a_directory_that_is_missing_is_named)
{
    obs_prom_t *prom = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_prom_open(&(obs_prom_config_t){.directory = "/none/there",
                                                    .job = "",
                                                    .run = "",
                                                    .run_dir = "a"},
                               &prom, &err),
                 ERR_IO);
    FACTS(err.text, "/none/there", "No such file or directory");
    cr_assert_null(prom);
}

/* The directory goes while the run lasts: logged once, and the run goes on. */
Test(prom, a_file_that_cannot_be_written_is_told_once)
{
    obs_prom_t *prom = NULL;
    char *below = str_printf("%s/below", directory), text[4096] = "";
    const int old = dup(STDERR_FILENO);
    int ends[2];
    err_t err = ERR_INIT;

    cr_assert_eq(mkdir(below, 0700), 0);
    cr_assert_eq(obs_prom_open(&(obs_prom_config_t){.directory = below,
                                                    .job = "",
                                                    .run = "r",
                                                    .run_dir = "a"},
                               &prom, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq(rmdir(below), 0);
    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    obs_prom_step(prom, &row);
    obs_prom_step(prom, &row);
    dup2(old, STDERR_FILENO);
    close(old);
    close(ends[1]);
    cr_assert_gt(read(ends[0], text, sizeof text - 1), 0);
    close(ends[0]);
    FACTS(text, below);
    cr_assert_eq(strchr(text, '\n'), strrchr(text, '\n'), "%s", text);
    obs_prom_close(prom);
    free(below);
}
