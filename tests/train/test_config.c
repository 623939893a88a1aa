/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "conf/conf.h"
#include "lib/facts.h"

static const char minimal[] =
    "data: {train: a.h5, input: {path: /x}, "
    "target: {path: /y}}\n"
    "model: {input: [4], layers: [{linear: {out: 2}}]}\n"
    "loss: cross_entropy\n"
    "optimizer: sgd\n";

static err_code_t read_text(const char *text, tree_t **tree,
                            train_config_t *config, err_t *err)
{
    cr_assert_eq(conf_parse("run.yaml", text, tree, err), ERR_OK, "%s",
                 err->text);
    return train_config_read(*tree, NULL, config, err);
}

/* Settings that exclude each other, or that would never happen. */
static const struct {
    const char *section;
    const char *facts[FACTS_MAX];
} refused[] = {
    {"train: {eval_every: 10 min}", {"run.yaml:5:21", "train.eval_every"}},
    {"ddp: {check_every: 1 epoch}", {"run.yaml:5:20", "ddp.check_every"}},
    {"ddp: {check_every: 5 s}", {"run.yaml:5:20", "ddp.check_every"}},
    {"train: {reproducible: true}\nddp: {hook: powersgd}",
     {"run.yaml:6:13", "ddp.hook", "train.reproducible"}},
    {"train: {reproducible: true}\nddp: {local_sgd: {period: 2}}",
     {"run.yaml:6:18", "ddp.local_sgd", "train.reproducible"}},
    {"ddp: {hook: fp16, local_sgd: {period: 2}}",
     {"run.yaml:5:30", "ddp.local_sgd", "ddp.hook"}},
    {"ddp: {zero: 1, local_sgd: {period: 2}}",
     {"run.yaml:5:27", "ddp.local_sgd", "ddp.zero"}},
    {"checkpoint: {io: mpi, async: true}",
     {"run.yaml:5:30", "checkpoint.async", "checkpoint.io"}},
};

Test(config, what_would_never_happen_is_refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char text[512];
        train_config_t config;
        tree_t *tree = NULL;
        err_t err = ERR_INIT;

        snprintf(text, sizeof text, "%s%s\n", minimal, refused[i].section);
        cr_expect_eq(read_text(text, &tree, &config, &err), ERR_CONFIG, "%s",
                     refused[i].section);
        facts_expect(err.text, refused[i].facts);
        tree_free(tree);
    }
}

Test(config, defaults_are_those_of_the_table)
{
    train_config_t config;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(read_text(minimal, &tree, &config, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_str_eq(config.run.dir, "runs/run");
    cr_assert_eq(config.train.batch, 256);
    cr_assert_eq(config.fault.timeout, 60.0);
    cr_assert_eq(config.obs.every, 60.0);
    cr_assert_eq(config.checkpoint.every.unit, OPT_TIME);
    cr_assert_eq(config.checkpoint.every.value, 600.0);
    cr_assert_eq(config.data.valid.count, 0);
    cr_assert_null(config.schedule);
    train_config_free(&config);
    tree_free(tree);
}

/* ---- the run directory --------------------------------------------------- */

/* The directory of a run called "ising" in [job] whose run.dir is "[dir]". */
static err_code_t dir_read(const char *dir, const slurm_job_t *job, char **out,
                           err_t *err)
{
    char *text =
        str_printf("%srun: {name: ising, dir: \"%s\"}\n", minimal, dir);
    train_config_t config;
    tree_t *tree = NULL;
    err_code_t rc;

    cr_assert_eq(conf_parse("run.yaml", text, &tree, err), ERR_OK, "%s",
                 err->text);
    rc = train_config_read(tree, job, &config, err);
    if (rc == ERR_OK) {
        *out = str_dup(config.run.dir);
        train_config_free(&config);
    }
    tree_free(tree);
    free(text);
    return rc;
}

Test(config, the_run_directory_is_named_after_run_and_job)
{
    const slurm_job_t none = {.tasks = 1};
    const slurm_job_t plain = {.id = "12"};
    const slurm_job_t task = {.id = "120_3", .array = "3"};
    const struct {
        const char *dir;
        const slurm_job_t *job;
        const char *expected;
    } cases[] = {
        {"", NULL, "runs/ising"},
        {"", &none, "runs/ising"},
        {"", &plain, "runs/ising"},
        {"", &task, "runs/ising-3"},
        {"mine", &task, "mine"},
        {"a/{name}/{array}/x", &task, "a/ising/3/x"},
        {"{name}{name}", &none, "isingising"},
        {"{job}", &task, "120_3"},
        {"out-{job}}", &plain, "out-12}"},
        {"{name}-{array}-{job}", NULL, "ising-{array}-{job}"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err_t err = ERR_INIT;
        char *found = NULL;

        cr_assert_eq(dir_read(cases[i].dir, cases[i].job, &found, &err), ERR_OK,
                     "%s", err.text);
        cr_expect_str_eq(found, cases[i].expected, "%s", cases[i].dir);
        free(found);
    }
}

Test(config, an_impossible_run_directory_has_its_place)
{
    const slurm_job_t plain = {.id = "12"}, none = {.tasks = 1};
    const struct {
        const char *dir;
        const slurm_job_t *job;
        const char *facts[FACTS_MAX];
    } cases[] = {
        {"runs/{nmae}",
         NULL,
         {"run.yaml:5:25", "run.dir", "\"runs/{nmae}\"", "{nmae}", "{array}"}},
        {"{}", &none, {"run.dir", "{}"}},
        {"{Name}", &none, {"run.dir", "{Name}"}},
        {"{{name}}", &none, {"run.dir", "{{name}"}},
        {"a{name", &none, {"run.dir", "\"a{name\"", "}"}},
        {"{array}",
         &plain,
         {"run.yaml:5:25", "\"{array}\"", "SLURM_ARRAY_TASK_ID",
          "--set run.dir=DIR"}},
        {"{job}", &none, {"run.dir", "SLURM_JOB_ID"}},
        {"a\\e[31m", &none, {"run.dir", "\"a\\x1b[31m\""}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err_t err = ERR_INIT;
        char *found = NULL;

        cr_assert_eq(dir_read(cases[i].dir, cases[i].job, &found, &err),
                     ERR_CONFIG, "%s", cases[i].dir);
        facts_expect(err.text, cases[i].facts);
    }
}

/* ---- the whole ----------------------------------------------------------- */

Test(config, the_hash_sees_every_value)
{
    train_config_t one, two;
    tree_t *tree1 = NULL;
    tree_t *tree2 = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(read_text(minimal, &tree1, &one, &err), ERR_OK);
    cr_assert_eq(read_text(minimal, &tree2, &two, &err), ERR_OK);
    cr_assert_eq(train_config_hash(&one), train_config_hash(&two));
    two.train.batch = 257;
    cr_assert_neq(train_config_hash(&one), train_config_hash(&two));
    train_config_free(&one);
    train_config_free(&two);
    tree_free(tree1);
    tree_free(tree2);
}

/* The printed configuration, read again, gives the same run. */
Test(config, the_resolved_form_reads_back)
{
    train_config_t one, two;
    tree_t *tree1 = NULL;
    tree_t *tree2 = NULL;
    str_buf_t text = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(read_text(minimal, &tree1, &one, &err), ERR_OK);
    opt_print(train_options, &one, 0, &text);
    cr_assert_eq(read_text(text.text, &tree2, &two, &err), ERR_OK, "%s\n%s",
                 err.text, text.text);
    cr_assert_eq(train_config_hash(&one), train_config_hash(&two));
    str_buf_free(&text);
    train_config_free(&one);
    train_config_free(&two);
    tree_free(tree1);
    tree_free(tree2);
}

Test(config, a_typo_is_told_with_its_place_and_the_nearest_name)
{
    char text[1024];
    train_config_t config;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    snprintf(text, sizeof text, "%strain:\n  epoch: 3\n", minimal);
    cr_assert_eq(read_text(text, &tree, &config, &err), ERR_CONFIG);
    facts_expect(err.text,
                 (const char *[FACTS_MAX]){"run.yaml:6:3", "'epochs'"});
    tree_free(tree);
}

/* Wrong sections `data`. */
static const struct {
    const char *data;
    const char *facts[FACTS_MAX];
} fields[] = {
    {"  input: {path: /x}\n", {"run.yaml:2:3", "data.target", "path"}},
    {"  input: {path: /x}\n  target: {shift: 1}\n",
     {"run.yaml:4:11", "data.target", "path"}},
    {"  input: {path: /x}\n  target: {path: /y}\n  sequence: 4\n",
     {"run.yaml:4:11", "data.target", "data.sequence"}},
    {"  input: {path: /x}\n  target: {a: {path: /y}, b: {shift: 1}}\n",
     {"run.yaml:4:27", "data.target.b", "path"}},
    {"  input: {path: /x}\n  target: {a: {path: /y}}\n  sequence: 4\n",
     {"data.target", "data.sequence"}},
    {"  input: {a: {path: /x}, b: {path: /y}}\n  sequence: 4\n",
     {"run.yaml:3:10", "data.input", "data.sequence"}},
};

Test(config, one_stream_or_a_path_for_each_target)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char text[1024];
        train_config_t config;
        tree_t *tree = NULL;
        err_t err = ERR_INIT;

        snprintf(text, sizeof text,
                 "data:\n  train: a\n%smodel: {}\nloss: mse\n"
                 "optimizer: sgd\n",
                 fields[i].data);
        cr_expect_eq(read_text(text, &tree, &config, &err), ERR_CONFIG, "%s",
                     fields[i].data);
        facts_expect(err.text, fields[i].facts);
        tree_free(tree);
    }
}

Test(config, the_rate_scales_with_the_batch)
{
    static const struct {
        const char *how;
        double factor;
    } cases[] = {{"none", 1}, {"linear", 4}, {"sqrt", 2}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        train_config_t config;
        tree_t *tree = NULL;
        err_t err = ERR_INIT;

        snprintf(text, sizeof text,
                 "%strain: {scale_lr: %s, batch: 512, base_batch: 128}\n",
                 minimal, cases[i].how);
        cr_assert_eq(read_text(text, &tree, &config, &err), ERR_OK, "%s",
                     err.text);
        cr_assert_eq(train_lr_factor(&config), cases[i].factor);
        train_config_free(&config);
        tree_free(tree);
    }
}

/* A run file with [input] as data.input.x beside another field. */
static err_code_t read_stats(const char *input, tree_t **tree,
                             train_config_t *config, err_t *err)
{
    char text[1024];

    snprintf(text, sizeof text,
             "data: {train: a.h5, target: {path: /y}, input: {"
             "x: {%s}, z: {path: /z}}}\n"
             "model: {input: {x: [3], z: [3]}, layers: [{linear: {out: 2}}]}\n"
             "loss: cross_entropy\noptimizer: sgd\n",
             input);
    return read_text(text, tree, config, err);
}

/* Each test has a file of its own, as tests run at the same time. */
#define STATS "/tmp/cddp-stats-"
static char stats_path[] = STATS "XXXXXX";

static void write_stats(const char *text)
{
    FILE *file;

    if (strcmp(stats_path, STATS "XXXXXX") == 0)
        close(mkstemp(stats_path));
    file = fopen(stats_path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(config, a_file_of_statistics_becomes_its_numbers)
{
    train_config_t config, again;
    str_buf_t text = {0};
    tree_t *tree = NULL, *second = NULL;
    err_t err = ERR_INIT;
    char input[256];

    write_stats("samples: 9\n\"/x\":\n  type: uint8\n"
                "  mean: [1.5, 0, -2e-3]\n  std: [0.1, 0, 7]\n");
    snprintf(input, sizeof input, "path: x, stats: %s", stats_path);
    cr_assert_eq(read_stats(input, &tree, &config, &err), ERR_OK, "%s",
                 err.text);
    remove(stats_path);
    opt_print(train_options, &config, 0, &text);
    FACTS(text.text, "mean: [1.5, 0.0, -0.002]", "std: [0.1, 1.0, 7.0]");
    cr_expect_eq(train_field(&config.data.input, 1)->mean.count, 0);
    cr_assert_eq(read_text(text.text, &second, &again, &err), ERR_OK,
                 "the resolved configuration does without the file: %s",
                 err.text);
    cr_expect_eq(train_config_hash(&again), train_config_hash(&config));
    train_config_free(&again);
    train_config_free(&config);
    str_buf_free(&text);
    tree_free(second);
    tree_free(tree);
}

Test(config, statistics_that_do_not_fit_are_refused)
{
    static const struct {
        const char *file, *input, *facts[FACTS_MAX];
    } bad[] = {
        {"a: 1\n", "path: /x", {STATS, "/x"}},
        {"\"/x\": 1\n", "path: /x", {STATS, ":1:7", "/x"}},
        {"\"/x\": {mean: [1]}\n", "path: /x", {":1:7", "/x.std"}},
        {"\"/x\": {mean: [1, .nan], std: [1, 1]}\n",
         "path: /x",
         {":1:18", "/x.mean", "a number"}},
        {"\"/x\": {mean: [1], std: [1]}\n",
         "path: /x, mean: 3",
         {"run.yaml:1:", "data.input", "stats", "mean"}},
        {"\"/x\": {mean: [1], std: [1]}\n",
         "path: /x, scale: 3",
         {"run.yaml:1:", "data.input", "stats", "scale"}},
        {NULL, "path: /x", {STATS}},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        train_config_t config;
        tree_t *tree = NULL;
        err_t err = ERR_INIT;
        char input[256];

        if (bad[i].file != NULL)
            write_stats(bad[i].file);
        snprintf(input, sizeof input, "%s, stats: %s", bad[i].input,
                 stats_path);
        cr_expect_eq(read_stats(input, &tree, &config, &err), ERR_CONFIG, "%zu",
                     i);
        tree_free(tree);
        remove(stats_path);
        facts_expect(err.text, bad[i].facts);
    }
}

Test(config, a_file_is_one_sample_or_a_stream)
{
    train_config_t config;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;

    cr_expect_eq(read_text("data: {train: a.h5, input: {path: /x}, sequence: "
                           "4, samples: files}\n"
                           "model: {input: [4], layers: [{linear: {out: 2}}]}\n"
                           "loss: cross_entropy\noptimizer: sgd\n",
                           &tree, &config, &err),
                 ERR_CONFIG);
    FACTS(err.text, "run.yaml:1:", "data.samples", "data.sequence");
    tree_free(tree);
}
