/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A run directory belongs to one run: a refused start changes no byte of it,
 * the settings of each life are kept, and a process that is killed while it
 * writes leaves no temporary files.
 */
#include "train/rundir.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "train/harness.h"

#define SAMPLES 101

/* ---- what is there ------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Append a line for [path], and for everything below it: name, size and hash of
 * the bytes. */
static void tree_add_to(const char *path, str_buf_t *out)
{
    struct dirent **entries = NULL;
    struct stat info;
    err_t err = ERR_INIT;
    char *text = NULL;
    size_t bytes = 0;
    int count;

    if (lstat(path, &info) != 0) {
        str_buf_add(out, "%s: not there\n", path);
        return;
    }
    if (!S_ISDIR(info.st_mode)) {
        cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK, "%s",
                     err.text);
        str_buf_add(out, "%s: %zu bytes, %016llx\n", path, bytes,
                    (unsigned long long)hash_bytes(text, bytes));
        free(text);
        return;
    }
    str_buf_add(out, "%s/\n", path);
    count = scandir(path, &entries, not_dots, by_name);
    cr_assert_geq(count, 0, "%s", path);
    for (int i = 0; i < count; i++) {
        char *below = str_printf("%s/%s", path, entries[i]->d_name);

        tree_add_to(below, out);
        free(below);
        free(entries[i]);
    }
    free(entries);
}

/* Name, size and hash of everything in the run directory, as text; to be freed.
 */
static char *snapshot(const harness_t *harness)
{
    char *path = str_printf("%s/run", harness->dir);
    str_buf_t text = {0};

    tree_add_to(path, &text);
    free(path);
    return text.text;
}

static char *content(const harness_t *harness, const char *name)
{
    char *path = str_printf("%s/run/%s", harness->dir, name), *text = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    free(path);
    return text;
}

static bool there(const harness_t *harness, const char *name)
{
    char *path = str_printf("%s/run/%s", harness->dir, name);
    const bool found = access(path, F_OK) == 0;

    free(path);
    return found;
}

static void put(const harness_t *harness, const char *name, const char *text)
{
    char *path = str_printf("%s/run/%s", harness->dir, name);
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file, "%s", path);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    free(path);
}

/* Number of entries of the run directory whose names end with [end]. */
static int entries_with(const harness_t *harness, const char *end)
{
    char *path = str_printf("%s/run", harness->dir);
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;

    cr_assert_not_null(dir, "%s", path);
    while ((entry = readdir(dir)) != NULL) {
        const size_t length = strlen(entry->d_name);

        count += length >= strlen(end) &&
                 strcmp(entry->d_name + length - strlen(end), end) == 0;
    }
    closedir(dir);
    free(path);
    return count;
}

/* ---- refused ------------------------------------------------------------- */

/* Assert that the start fails with [rc] and a message that contains [word], and
 * leaves the directory unchanged. */
static void refused(harness_t *harness, err_code_t rc, const char *word)
{
    char *before = snapshot(harness), *after;
    train_outcome_t out;
    err_t err = ERR_INIT;

    cr_expect_eq(harness_run(harness, 2, &out, &err), rc, "%s", err.text);
    cr_expect_not_null(strstr(err.text, word), "%s", err.text);
    after = snapshot(harness);
    cr_expect_str_eq(after, before, "\"%s\" changed\n%sto\n%s", err.text,
                     before, after);
    free(after);
    free(before);
}

/* Run in the directory "run" until a signal interrupts the run after more than
 * 5 steps. */
static void interrupted(harness_t *harness)
{
    train_outcome_t out;
    err_t err = ERR_INIT;

    harness_interrupt(harness, 20);
    cr_assert_eq(harness_run(harness, 2, &out, &err), ERR_REQUEUE, "%s",
                 err.text);
    cr_assert_gt(out.step, 5);
    harness->signal = NULL;
}

/* Starts over a checkpoint that the settings, or --resume never, forbid. */
static void forbidden(harness_t *harness)
{
    static const char *const settings[][2] = {
        {"model.layers=[{linear: {out: 2}}]", "model/linear1."},
        {"train.batch=7", "train.batch 7"}};

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        harness->settings[0] = settings[i][0];
        refused(harness, ERR_CONFIG, settings[i][1]);
    }
    harness->settings[0] = NULL;
    harness->resume = TRAIN_RESUME_NEVER;
    refused(harness, ERR_CONFIG, "--resume never");
    harness->resume = TRAIN_RESUME_AUTO;
}

Test(rundir, a_start_that_another_configuration_forbids_changes_nothing)
{
    harness_t harness;

    harness_open(&harness, SAMPLES);
    interrupted(&harness);
    forbidden(&harness);
    harness.settings[0] = "optimizer.groups=[{match: 'none.*', lr: 1}]";
    refused(&harness, ERR_CONFIG, "matches no parameter");
    harness.settings[0] = "train.batch=1";
    refused(&harness, ERR_CONFIG, "2 ranks");
    harness.resume = TRAIN_RESUME_FRESH;
    harness.settings[0] = "optimizer.groups=[{match: 'none.*', lr: 1}]";
    refused(&harness, ERR_CONFIG, "matches no parameter");
    harness.settings[0] = NULL;
    harness.resume = TRAIN_RESUME_PATH;
    harness.resume_path = harness.dir;
    refused(&harness, ERR_DATA, harness.dir);
    harness_close(&harness);
}

/* A complete checkpoint that an interrupted save left under its temporary name
 * keeps that name until the start is accepted. */
Test(rundir, a_start_over_an_interrupted_save_changes_nothing)
{
    harness_t harness;
    train_outcome_t out;
    err_t err = ERR_INIT;
    char *command;
    int64_t step;

    harness_open(&harness, SAMPLES);
    harness_interrupt(&harness, 20);
    cr_assert_eq(harness_run(&harness, 2, &out, &err), ERR_REQUEUE, "%s",
                 err.text);
    harness.signal = NULL;
    step = out.step;
    command = str_printf("cd %s/run/checkpoints && for s in step-*; do "
                         "mv $s .tmp-$s-00000000000000aa; done",
                         harness.dir);
    cr_assert_eq(system(command), 0);
    forbidden(&harness);
    harness.settings[0] = "checkpoint.every=100 epoch";
    harness.settings[1] = "checkpoint.keep=100";
    harness_run_ok(&harness, 2, &out);
    cr_expect_gt(out.step, step);
    free(command);
    command = str_printf("%s/run/checkpoints/step-%010lld", harness.dir,
                         (long long)step);
    cr_expect_eq(access(command, F_OK), 0, "%s was not adopted", command);
    free(command);
    harness_close(&harness);
}

Test(rundir, a_start_without_its_data_or_checkpoints_changes_nothing)
{
    harness_t harness;
    char *files, *path;

    harness_open(&harness, SAMPLES);
    interrupted(&harness);
    harness.settings[0] = "data.train=nowhere.h5";
    refused(&harness, ERR_DATA, "nowhere.h5");
    files = str_printf("data.train=[%s/train.h5, %s/valid.h5]", harness.dir,
                       harness.dir);
    harness.settings[0] = files;
    harness.settings[1] = "train.reproducible=true";
    refused(&harness, ERR_DATA, "when the checkpoint was written");
    harness.settings[0] = NULL;
    path = str_printf("for f in %s/run/checkpoints/*/MANIFEST.json; do "
                      "echo >$f; done",
                      harness.dir);
    cr_assert_eq(system(path), 0);
    refused(&harness, ERR_DATA, "no checkpoint in");
    free(path);
    free(files);
    harness_close(&harness);
}

/* Counts the log lines that contain [word]. */
typedef struct lines {
    const char *word;
    int count;
} lines_t;

static void line_count(void *context, log_level_t level, int rank,
                       const char *module, const char *text)
{
    lines_t *lines = context;

    (void)rank;
    (void)module;
    if (level == LOG_WARN && strstr(text, lines->word) != NULL)
        lines->count++;
}

/* The results of the old settings would be shown beside settings that were
 * never used in training. */
Test(rundir, a_complete_run_is_not_begun_again_with_other_settings)
{
    lines_t lines = {"is the end of another run: nothing is trained here", 0};
    harness_t harness, other;
    train_outcome_t out, more;

    harness_open(&harness, SAMPLES);
    harness_run_ok(&harness, 2, &out);
    harness.settings[0] = "optimizer.adamw.lr=0.5";
    harness.settings[1] = "train.batch=12";
    refused(&harness, ERR_CONFIG,
            "/run is complete with another configuration (optimizer.adamw.lr "
            "1.0e-2 -> 0.5, train.batch 24 -> 12): raise train.epochs, choose "
            "run.name, or --fresh");
    harness.settings[1] = NULL;
    harness.settings[0] = "train.epochs=2";
    refused(&harness, ERR_CONFIG, "(train.epochs 3 -> 2)");
    harness.settings[0] = "data.valid=[]";
    refused(&harness, ERR_CONFIG, "(data.valid [");
    harness.resume_path =
        str_printf("%s/run/checkpoints/step-0000000015", harness.dir);
    harness.resume = TRAIN_RESUME_PATH;
    refused(&harness, ERR_CONFIG, "(data.valid [");
    /* In another run directory the checkpoint may be evaluated with other
     * settings, with a warning. */
    log_sink_set(line_count, &lines);
    harness_open(&other, SAMPLES);
    other.resume = TRAIN_RESUME_PATH;
    other.resume_path = harness.resume_path;
    other.settings[0] = "train.log_every=3";
    other.settings[1] = "train.microbatch=3";
    harness_run_ok(&other, 2, &more);
    cr_expect_eq(more.loss, out.loss);
    cr_expect_eq(lines.count, 1);
    other.settings[0] = "train.epochs=4";
    harness_run_ok(&other, 2, &more);
    cr_expect_eq(more.step, out.step + 5);
    cr_expect_eq(lines.count, 1);
    log_sink_set(NULL, NULL);
    harness_close(&other);
    /* Settings that may differ are accepted, and so are more epochs. */
    harness.resume = TRAIN_RESUME_AUTO;
    harness.settings[0] = "train.log_every=2";
    harness_run_ok(&harness, 3, &more);
    cr_expect_eq(more.step, out.step);
    harness.settings[0] = "train.epochs=4";
    harness.settings[1] = "optimizer.adamw.lr=0.001";
    harness_run_ok(&harness, 2, &more);
    cr_expect_eq(more.step, out.step + 5);
    free((char *)(uintptr_t)harness.resume_path);
    harness_close(&harness);
}

Test(rundir, a_start_in_a_directory_in_use_changes_nothing)
{
    train_rundir_t *other = NULL;
    harness_t harness;
    err_t err = ERR_INIT;
    char *path;

    harness_open(&harness, SAMPLES);
    interrupted(&harness);
    path = str_printf("%s/run", harness.dir);
    cr_assert_eq(train_rundir_open(path, "job 3 on host n7", &other, &err),
                 ERR_OK, "%s", err.text);
    refused(&harness, ERR_BUSY, "is in use by job 3 on host n7: wait for it");
    train_rundir_close(other);
    free(path);
    harness_close(&harness);
}

/* A refused start does not create the run directory: it removes what it made
 * for its own checks. */
Test(rundir, a_start_that_is_refused_makes_no_directory)
{
    harness_t harness;
    char *path;

    harness_open(&harness, SAMPLES);
    harness.settings[0] = "optimizer.groups=[{match: 'none.*', lr: 1}]";
    refused(&harness, ERR_CONFIG, "matches no parameter");
    path = str_printf("%s/run", harness.dir);
    cr_assert_eq(mkdir(path, 0777), 0);
    refused(&harness, ERR_CONFIG, "matches no parameter");
    put(&harness, "lock", "somebody's words, longer than those of this run");
    refused(&harness, ERR_CONFIG, "matches no parameter");
    free(path);
    harness_close(&harness);
}

/* ---- settings of each life ------------------------------------------------
 */

static void expect_text(const harness_t *harness, const char *name,
                        const char *first, const char *word)
{
    char *text = content(harness, name);

    cr_expect_eq(strncmp(text, first, strlen(first)), 0, "%s: %s", name, text);
    cr_expect_not_null(strstr(text, word), "%s has no %s: %s", name, word,
                       text);
    free(text);
}

Test(rundir, the_settings_of_each_life_are_kept)
{
    train_outcome_t out;
    harness_t harness;
    char *first;

    harness_open(&harness, SAMPLES);
    interrupted(&harness);
    expect_text(&harness, "config.yaml", "# from step 0, ", "lr: 1.0e-2");
    harness.settings[0] = "train.threads=2";
    harness.settings[1] = "optimizer.adamw.lr=0.5";
    interrupted(&harness);
    expect_text(&harness, "config-1.yaml", "# from step 0, ", "lr: 1.0e-2");
    expect_text(&harness, "config.yaml", "# from step ", "lr: 0.5");
    /* With unchanged settings no further configuration file is written. */
    harness.settings[2] = "optimizer.adamw.lr=0.5";
    first = content(&harness, "config.yaml");
    harness_run_ok(&harness, 3, &out);
    expect_text(&harness, "config.yaml", first, "lr: 0.5");
    cr_expect_eq(entries_with(&harness, ".yaml"), 2);
    free(first);
    /* A run that begins anew writes one in any case. */
    harness.resume = TRAIN_RESUME_FRESH;
    harness_run_ok(&harness, 2, &out);
    expect_text(&harness, "config-2.yaml", "# from step ", "lr: 0.5");
    expect_text(&harness, "config.yaml", "# from step 0, ", "lr: 0.5");
    cr_expect_eq(entries_with(&harness, ".yaml"), 3);
    harness_close(&harness);
}

/* ---- killed -------------------------------------------------------------- */

/* Calls of fsync and rename until the one in which the process dies. */
static atomic_int fsyncs_left, renames_left;

static void die_after(atomic_int *left)
{
    if (atomic_load(left) > 0 && atomic_fetch_sub(left, 1) == 1)
        raise(SIGKILL);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int fsync(int fd)
{
    die_after(&fsyncs_left);
    return (int)syscall(SYS_fsync, fd);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int rename(const char *from, const char *to)
{
    die_after(&renames_left);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* Start a run in a process of its own, which the [call]-th fsync or rename
 * kills. */
static void killed_start(const harness_t *harness, atomic_int *left, int call)
{
    pid_t child = fork();
    int status = 0;

    cr_assert_geq(child, 0);
    if (child == 0) {
        train_outcome_t out;
        err_t err = ERR_INIT;

        atomic_store(left, call);
        harness_run(harness, 2, &out, &err);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
              "status %x: the start was not killed", (unsigned)status);
}

/* With O_TMPFILE a killed process leaves no file, unless it dies between the
 * two calls that give the file its name; the next start removes that file. */
Test(rundir, who_is_killed_while_he_writes_leaves_nothing)
{
    train_outcome_t out;
    harness_t harness;

    harness_open(&harness, SAMPLES);
    interrupted(&harness);
    harness.settings[0] = "optimizer.adamw.lr=0.5";
    for (int call = 1; call <= 4; call++) {
        int fd = open(harness.dir, O_TMPFILE | O_WRONLY, 0600);

        killed_start(&harness, &fsyncs_left, call);
        cr_expect(fd < 0 || entries_with(&harness, ".tmp") == 0,
                  "after fsync %d", call);
        close(fd);
    }
    killed_start(&harness, &renames_left, 1);
    cr_expect_eq(entries_with(&harness, ".tmp"), 1);
    killed_start(&harness, &renames_left, 2);
    put(&harness, "exit.json.77-123456789.tmp", "{");
    put(&harness, "notes.tmp", "mine");
    put(&harness, "checkpoints/best.json.77-123456789.tmp", "{");
    harness_run_ok(&harness, 2, &out);
    cr_expect_eq(entries_with(&harness, ".tmp"), 1);
    cr_expect(there(&harness, "notes.tmp"));
    cr_expect(!there(&harness, "checkpoints/best.json.77-123456789.tmp"));
    expect_text(&harness, "config.yaml", "# from step ", "lr: 0.5");
    expect_text(&harness, "config-1.yaml", "# from step 0, ", "lr: 1.0e-2");
    cr_expect_not(there(&harness, "config-2.yaml"));
    harness_close(&harness);
}
