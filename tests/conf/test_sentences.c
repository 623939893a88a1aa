/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The wording of messages, for mistakes in a run file and in --set. All other
 * tests look for facts only (lib/facts.h), so who rewords a sentence changes
 * this table alone. */
#include <criterion/criterion.h>

#include "conf/conf.h"

typedef struct train {
    int64_t epochs;
    double rate, timeout;
    opt_every_t every;
    opt_ints_t shape;
    int mode;
    bool on;
} train_t;

static const char *const modes[] = {"none", "chunk", "full", NULL};

static const opt_row_t train_rows[] = {
    {.name = "epochs",
     .type = OPT_INT,
     .offset = offsetof(train_t, epochs),
     .min = 1,
     .max = 1e9,
     .help = "how often all samples are seen"},
    {.name = "rate",
     .type = OPT_REAL,
     .offset = offsetof(train_t, rate),
     .fallback = "0.1",
     .min = 0,
     .max = 1},
    {.name = "timeout",
     .type = OPT_SECONDS,
     .offset = offsetof(train_t, timeout),
     .fallback = "60 s",
     .min = 1,
     .max = 86400},
    {.name = "every",
     .type = OPT_EVERY,
     .offset = offsetof(train_t, every),
     .fallback = "never"},
    {.name = "shape",
     .type = OPT_INTS,
     .offset = offsetof(train_t, shape),
     .fallback = "[1, 2]",
     .min = 1,
     .max = 64},
    {.name = "mode",
     .type = OPT_CHOICE,
     .offset = offsetof(train_t, mode),
     .fallback = "none",
     .choices = modes},
    {.name = "on",
     .type = OPT_BOOL,
     .offset = offsetof(train_t, on),
     .fallback = "false"},
    {.name = NULL},
};

static const opt_row_t rows[] = {
    {.name = "train", .type = OPT_SECTION, .rows = train_rows}, {.name = NULL}};

static const struct {
    const char *text, *set; /* a run file and an assignment; NULL: none */
    const char *sentence;
} golden[] = {
    {"", NULL,
     "run.yaml: expected sections such as 'data:' and 'model:', found nothing"},
    {"- a\n", NULL,
     "run.yaml:1:1: expected sections such as 'data:' and 'model:', found a "
     "list"},
    {"a: 1\nb: 2\na: 3\n", NULL,
     "run.yaml:3:1: duplicate key 'a'; it is already at run.yaml:1:1"},
    {"a: &x 1\n", NULL,
     "run.yaml:1:4: anchor '&x' is not supported; write the value out where "
     "it is used"},
    {"a: !!int 1\n", NULL,
     "run.yaml:1:4: tag 'tag:yaml.org,2002:int' is not supported; remove it"},
    {"[a]: 1\n", NULL, "run.yaml:1:1: expected a key, found a list"},
    {"a: 1\n---\nb: 2\n", NULL,
     "run.yaml:2:1: a second document begins; expected only one"},
    {"a:\n\tb: 1\n", NULL,
     "run.yaml:2:1: YAML syntax: a tab in the indentation; use spaces"},
    {"a: [1, 2\nb: 3\n", NULL,
     "run.yaml:2:2: YAML syntax: did not find expected ',' or ']', while "
     "parsing a flow sequence"},
    {"a: \xff\xfe\n", NULL,
     "run.yaml: invalid leading UTF-8 octet at byte 3; run files are UTF-8"},
    {"{}", "train", "--set train: expected KEY=VALUE, such as train.epochs=1"},
    {"{}", "train..epochs=1",
     "--set train..epochs=1: a step of the path is empty"},
    {"train: {epochs: 1}", "train.epochs.x=1",
     "--set train.epochs.x=1: 'train.epochs' is not a map"},
    {"{}", "train.epochs=0",
     "--set train.epochs=0: train.epochs: expected at least 1, found 0"},
    {"train: {rate: 1}", NULL,
     "run.yaml:1:8: train.epochs is missing: how often all samples are seen"},
    {"train: {epoch: 1}", NULL,
     "run.yaml:1:9: unknown key 'epoch' in train; did you mean 'epochs'?"},
    {"train: {zzzzz: 1}", NULL,
     "run.yaml:1:9: unknown key 'zzzzz' in train; known keys are epochs, rate, "
     "timeout, every, shape, mode, on"},
    {"rate: 1", NULL,
     "run.yaml:1:1: unknown key 'rate' at the top level; it belongs in train"},
    {"train: 5", NULL, "run.yaml:1:8: train: expected a map, found '5'"},
    {"train: {epochs: ten}", NULL,
     "run.yaml:1:17: train.epochs: expected an integer, found 'ten'"},
    {"train: {epochs: 1, rate: 2}", NULL,
     "run.yaml:1:26: train.rate: expected 0 to 1, found 2"},
    {"train: {epochs: 1, timeout: soon}", NULL,
     "run.yaml:1:29: train.timeout: expected a time such as '60 s', '10 min' "
     "or '2 h', found 'soon'"},
    {"train: {epochs: 1, every: often}", NULL,
     "run.yaml:1:27: train.every: expected an interval such as '1 epoch', '100 "
     "steps', '10 min' or 'never', found 'often'"},
    {"train: {epochs: 1, shape: x}", NULL,
     "run.yaml:1:27: train.shape: expected an integer or a list of integers, "
     "found 'x'"},
    {"train: {epochs: 1, mode: chunks}", NULL,
     "run.yaml:1:26: train.mode: expected one of none, chunk, full, found "
     "'chunks'; did you mean 'chunk'?"},
    {"train: {epochs: 1, on: maybe}", NULL,
     "run.yaml:1:24: train.on: expected true or false, found 'maybe'"},
};

Test(sentences, of_mistakes_in_a_run_file)
{
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        tree_t *tree = NULL;
        err_t err = ERR_INIT;
        err_code_t rc = conf_parse("run.yaml", golden[i].text, &tree, &err);
        train_t train;

        if (rc == ERR_OK && golden[i].set != NULL)
            rc = conf_set(tree, golden[i].set, &err);
        if (rc == ERR_OK)
            rc = opt_fill(rows, tree, "", &train, &err);
        cr_expect_neq(rc, ERR_OK, "%s", golden[i].sentence);
        cr_expect_str_eq(err.text, golden[i].sentence, "%s, not %s", err.text,
                         golden[i].sentence);
        tree_free(tree);
    }
}
