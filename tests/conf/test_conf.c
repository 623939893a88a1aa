/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "conf/conf.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/facts.h"

static tree_t *parse(const char *text)
{
    err_t err = ERR_INIT;
    tree_t *tree = NULL;

    cr_assert_eq(conf_parse("run.yaml", text, &tree, &err), ERR_OK, "%s",
                 err.text);
    return tree;
}

Test(conf, reads_scalars_lists_and_maps_with_places)
{
    tree_t *tree = parse("# a comment\n"
                         "train: {epochs: 5, batch: '256'}\n"
                         "layers:\n"
                         "  - relu\n"
                         "  - conv: {out: 32}\n");
    const tree_t *train = tree_get(tree, "train");
    const tree_t *layers = tree_get(tree, "layers");
    char place[64];

    cr_assert_eq(tree_kind(train), TREE_MAP);
    cr_assert_str_eq(tree_text(tree_get(train, "epochs")), "5");
    cr_assert_str_eq(tree_text(tree_get(train, "batch")), "256");
    cr_assert_eq(tree_count(layers), 2);
    cr_assert_str_eq(tree_text(tree_at(layers, 0)), "relu");
    cr_assert_str_eq(tree_key(tree_at(layers, 1), 0), "conv");
    tree_place_format(tree_key_place(train, 1), place, sizeof place);
    cr_assert_str_eq(place, "run.yaml:2:20");
    tree_place_format(tree_place(tree_at(layers, 0)), place, sizeof place);
    cr_assert_str_eq(place, "run.yaml:4:5");
    tree_free(tree);
}

Test(conf, only_plain_nulls_are_null)
{
    tree_t *tree = parse("a:\nb: null\nc: ~\nd: 'null'\ne: \"\"\nf: nul\n");

    cr_assert_eq(tree_kind(tree_get(tree, "a")), TREE_NULL);
    cr_assert_eq(tree_kind(tree_get(tree, "b")), TREE_NULL);
    cr_assert_eq(tree_kind(tree_get(tree, "c")), TREE_NULL);
    cr_assert_str_eq(tree_text(tree_get(tree, "d")), "null");
    cr_assert_str_eq(tree_text(tree_get(tree, "e")), "");
    cr_assert_str_eq(tree_text(tree_get(tree, "f")), "nul");
    tree_free(tree);
}

Test(conf, a_bad_document_is_told_with_place_and_reason)
{
    static const struct {
        const char *text, *facts[FACTS_MAX];
    } bad[] = {
        {"", {"run.yaml", "data:", "nothing"}},
        {"# only words\n", {"run.yaml", "data:", "nothing"}},
        {"hello", {"run.yaml:1:1", "data:", "a text"}},
        {"- a\n", {"run.yaml:1:1", "data:", "a list"}},
        {"train:\n  epochs: 1\n  batch: 2\n  epochs: 3\n",
         {"run.yaml:4:3", "duplicate", "'epochs'", "run.yaml:2:3"}},
        {"a: &x 1\n", {"run.yaml:1:4", "anchor '&x'"}},
        {"a: *x\n", {"run.yaml:1:4", "alias '*x'", "quote"}},
        {"a: !!int 1\n", {"run.yaml:1:4", "tag 'tag:yaml.org,2002:int'"}},
        {"a: !mine {b: 1}\n", {"run.yaml:1:4", "tag '!mine'"}},
        {"&k a: 1\n", {"run.yaml:1:1", "anchor '&k'"}},
        {"[a]: 1\n", {"run.yaml:1:1", "key", "a list"}},
        {"? {a: b}\n: 1\n", {"run.yaml:1:3", "key", "a map"}},
        {"~: 1\n", {"run.yaml:1:1", "key", "nothing"}},
        {"*k : 1\n", {"run.yaml:1:1", "key", "an alias"}},
        {"a: 1\n---\nb: 2\n", {"run.yaml:2:1", "second document"}},
        {"a: \"x\\0y\"\n", {"run.yaml:1:4", "byte 0"}},
        {"a:\n\tb: 1\n", {"run.yaml:2:1", "tab", "spaces"}},
        {"a: [1, 2\nb: 3\n", {"run.yaml:2:2", "YAML"}},
        {"a: 1\n  b: 2\n", {"run.yaml:2:4", "YAML"}},
        {"a: \xff\xfe\n", {"run.yaml", "byte 3", "UTF-8"}},
    };
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        err_t err = ERR_INIT;
        tree_t *tree = NULL;

        cr_expect_eq(conf_parse("run.yaml", bad[i].text, &tree, &err),
                     ERR_CONFIG, "%s", bad[i].text);
        facts_expect(err.text, bad[i].facts);
        cr_expect_null(tree);
    }
}

/* A file may start with a byte-order mark, which does not count as a column. */
Test(conf, a_byte_order_mark_begins_a_file_only)
{
    err_t err = ERR_INIT;
    tree_t *tree;

    cr_assert_eq(conf_parse("run.yaml",
                            "\xef\xbb\xbf"
                            "a: 1\n",
                            &tree, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_eq(tree_key_place(tree, 0).column, 1);
    cr_assert_str_eq(tree_key(tree, 0), "a");
    tree_free(tree);
    cr_assert_eq(conf_parse("run.yaml",
                            "a: 1\nb: \xef\xbb\xbf"
                            "2\n",
                            &tree, &err),
                 ERR_CONFIG);
    FACTS(err.text, "run.yaml:2:4", "byte-order mark", "EF BB BF");
}

/* CPU seconds to read a map of [keys] keys, whose last key is a duplicate. */
static double seconds_to_read(int keys)
{
    str_buf_t text = {0};
    err_t err = ERR_INIT;
    tree_t *tree;
    clock_t begin;

    for (int i = 0; i < keys; i++)
        str_buf_add(&text, "k%d: 1\n", i);
    str_buf_add(&text, "k%d: 1\n", keys - 1);
    begin = clock();
    cr_assert_eq(conf_parse("run.yaml", text.text, &tree, &err), ERR_CONFIG);
    cr_assert(strstr(err.text, "duplicate key") != NULL, "%s", err.text);
    str_buf_free(&text);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* Twenty times the keys take about twenty times the work; a linear search would
 * take four hundred times. */
Test(conf, many_keys_take_time_in_proportion, .timeout = 120)
{
    const double few = seconds_to_read(5000);
    const double many = seconds_to_read(100000);

    cr_assert_lt(many, 100 * few, "%g s and %g s", few, many);
}

Test(conf, depth_is_bounded)
{
    char text[2 * 5000 + 8];
    err_t err = ERR_INIT;
    tree_t *tree;

    memset(text, '[', 5000);
    memset(text + 5000, ']', 5000);
    text[10000] = '\0';
    cr_assert_eq(conf_parse("run.yaml", text, &tree, &err), ERR_CONFIG);
    FACTS(err.text, "run.yaml:1:65", "64 levels");
}

Test(conf, files_that_cannot_be_read_say_why)
{
    char path[] = "/tmp/cddp-conf-XXXXXX", *expected;
    err_t err = ERR_INIT;
    tree_t *tree;

    cr_assert_not_null(mkdtemp(path));
    cr_assert_eq(conf_read(path, &tree, &err), ERR_CONFIG);
    expected = str_printf("%s is a directory", path);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    free(expected);
    rmdir(path);
    cr_assert_eq(conf_read(path, &tree, &err), ERR_CONFIG);
    expected = str_printf("there is no run file %s", path);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    free(expected);
}

/* Refused before reading, so none of them may block. */
Test(conf, only_a_file_of_a_sensible_size_is_a_run_file, .timeout = 20)
{
    char fifo[] = "/tmp/cddp-conf-XXXXXX", *expected, *large;
    err_t err = ERR_INIT;
    tree_t *tree;
    int fd;

    cr_assert_eq(conf_read("/dev/zero", &tree, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "/dev/zero is a device"));
    cr_assert_not_null(mkdtemp(fifo));
    large = str_printf("%s/large", fifo);
    fd = open(large, O_WRONLY | O_CREAT, 0600);
    cr_assert_eq(ftruncate(fd, (16 << 20) + 1), 0);
    close(fd);
    cr_assert_eq(conf_read(large, &tree, &err), ERR_CONFIG);
    expected = str_printf("%s has 16777217 bytes", large);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    free(expected);
    cr_assert_eq(unlink(large), 0);
    free(large);
    cr_assert_eq(rmdir(fifo), 0);
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    cr_assert_eq(conf_read(fifo, &tree, &err), ERR_CONFIG);
    expected = str_printf("%s is a fifo", fifo);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    free(expected);
    unlink(fifo);
}

/* The message contains a key of the run file. */
Test(conf, escapes_in_a_key_are_not_shown_raw)
{
    err_t err = ERR_INIT;
    tree_t *tree;

    cr_assert_eq(conf_parse("run.yaml",
                            "\"\\e]0;owned\\a\": 1\n"
                            "\"\\e]0;owned\\a\": 2\n",
                            &tree, &err),
                 ERR_CONFIG);
    cr_assert_null(strchr(err.text, '\033'));
    cr_assert_not_null(strstr(err.text, "\\x1b]0;owned\\x07"), "%s", err.text);
}

Test(conf, a_file_that_opens_but_cannot_be_read_says_why)
{
    err_t err = ERR_INIT;
    tree_t *tree;

    cr_assert_eq(conf_read("/proc/self/mem", &tree, &err), ERR_CONFIG);
    cr_assert_eq(err.code, ERR_CONFIG);
    FACTS(err.text, "/proc/self/mem", "Input/output error");
}

Test(conf, reads_a_file_and_names_it)
{
    char path[] = "/tmp/cddp-conf-XXXXXX", place[64];
    err_t err = ERR_INIT;
    tree_t *tree;
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "run: {seed: 3}\n", 15), 15);
    close(fd);
    cr_assert_eq(conf_read(path, &tree, &err), ERR_OK, "%s", err.text);
    unlink(path);
    cr_assert_str_eq(tree_text(tree_get(tree_get(tree, "run"), "seed")), "3");
    tree_place_format(tree_place(tree), place, sizeof place);
    cr_assert_eq(strncmp(place, path, strlen(path)), 0);
    cr_assert_str_eq(place + strlen(path), ":1:1");
    tree_free(tree);
}

Test(conf, set_replaces_adds_and_makes_sections)
{
    tree_t *tree = parse("train: {epochs: 5}\nddp:\n");
    const tree_t *node;
    err_t err = ERR_INIT;
    char place[64];

    cr_assert_eq(conf_set(tree, "train.epochs=1", &err), ERR_OK);
    cr_assert_eq(conf_set(tree, "train.batch=64", &err), ERR_OK);
    cr_assert_eq(conf_set(tree, "ddp.zero=1", &err), ERR_OK);
    cr_assert_eq(conf_set(tree, "a.b.c={d: [1, 2]}", &err), ERR_OK);
    cr_assert_eq(conf_set(tree, "e=x=y", &err), ERR_OK);
    cr_assert_eq(conf_set(tree, "f=", &err), ERR_OK);
    node = tree_get(tree_get(tree, "train"), "epochs");
    cr_assert_str_eq(tree_text(node), "1");
    tree_place_format(tree_place(node), place, sizeof place);
    cr_assert_str_eq(place, "--set train.epochs=1");
    cr_assert_str_eq(tree_text(tree_get(tree_get(tree, "train"), "batch")),
                     "64");
    cr_assert_str_eq(tree_text(tree_get(tree_get(tree, "ddp"), "zero")), "1");
    node = tree_get(tree_get(tree_get(tree, "a"), "b"), "c");
    cr_assert_eq(tree_count(tree_get(node, "d")), 2);
    cr_assert_str_eq(tree_text(tree_get(tree, "e")), "x=y");
    cr_assert_eq(tree_kind(tree_get(tree, "f")), TREE_NULL);
    tree_free(tree);
}

Test(conf, a_bad_set_is_told_with_its_text)
{
    static const struct {
        const char *assignment, *facts[FACTS_MAX];
    } bad[] = {
        {"train", {"--set train:", "KEY=VALUE"}},
        {"=1", {"--set =1:", "KEY=VALUE"}},
        {"train..epochs=1", {"--set train..epochs=1:", "empty"}},
        {".train=1", {"--set .train=1:", "empty"}},
        {"train.epochs.x=1",
         {"--set train.epochs.x=1:", "'train.epochs'", "map"}},
        {"a.b.c.d=1", {"--set a.b.c.d=1:", "'a'", "map"}},
        {"train.epochs=[1", {"--set train.epochs=[1:", "YAML"}},
    };
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tree_t *tree = parse("train: {epochs: 5}\na: [1]\n");
        err_t err = ERR_INIT;

        cr_expect_eq(conf_set(tree, bad[i].assignment, &err), ERR_USAGE);
        facts_expect(err.text, bad[i].facts);
        tree_free(tree);
    }
}

/* The message for a mistyped key, through all layers of option tables. */
Test(conf, an_unknown_key_is_named_with_place_and_nearest_name)
{
    typedef struct train {
        int64_t epochs;
    } train_t;
    static const opt_row_t rows[] = {
        {.name = "epochs",
         .type = OPT_INT,
         .offset = offsetof(train_t, epochs),
         .fallback = "1"},
        {.name = NULL},
    };
    static const opt_row_t top[] = {
        {.name = "train", .type = OPT_SECTION, .rows = rows}, {.name = NULL}};
    tree_t *tree = parse("train:\n  epoch: 5\n");
    err_t err = ERR_INIT;
    train_t train;

    cr_assert_eq(opt_fill(top, tree, "", &train, &err), ERR_CONFIG);
    FACTS(err.text, "run.yaml:2:3", "'epoch'", "train", "'epochs'");
    tree_free(tree);
    tree = parse("{}");
    cr_assert_eq(conf_set(tree, "train.epoch=5", &err), ERR_OK);
    cr_assert_eq(opt_fill(top, tree, "", &train, &err), ERR_CONFIG);
    FACTS(err.text, "--set train.epoch=5", "'epoch'", "'epochs'");
    tree_free(tree);
}
