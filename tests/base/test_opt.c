/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/opt.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/facts.h"

typedef struct inner {
    double timeout;
    int mode;
} inner_t;

typedef struct sample {
    bool on;
    int64_t count;
    double rate;
    char *name;
    opt_every_t every;
    opt_ints_t shape;
    opt_texts_t files;
    const tree_t *model;
    inner_t inner;
} sample_t;

static const char *const modes[] = {"none", "chunk", "full", NULL};

static const opt_row_t inner_rows[] = {
    {.name = "timeout",
     .type = OPT_SECONDS,
     .offset = offsetof(inner_t, timeout),
     .fallback = "60 s",
     .min = 1,
     .max = 86400,
     .help = "silence that is a fault"},
    {.name = "mode",
     .type = OPT_CHOICE,
     .offset = offsetof(inner_t, mode),
     .fallback = "chunk",
     .choices = modes,
     .help = "a|b"},
    {.name = NULL},
};

static const char *const shapes[] = {"half", "whole", NULL};

static const opt_row_t rows[] = {
    {.name = "on",
     .type = OPT_BOOL,
     .offset = offsetof(sample_t, on),
     .fallback = "false",
     .help = "a switch"},
    {.name = "count",
     .type = OPT_INT,
     .offset = offsetof(sample_t, count),
     .fallback = NULL,
     .min = 1,
     .max = 1e9,
     .unit = "samples",
     .help = "how many"},
    {.name = "rate",
     .type = OPT_REAL,
     .offset = offsetof(sample_t, rate),
     .fallback = "1.0e-3",
     .min = 0,
     .max = 1},
    {.name = "name",
     .type = OPT_TEXT,
     .offset = offsetof(sample_t, name),
     .fallback = ""},
    {.name = "every",
     .type = OPT_EVERY,
     .offset = offsetof(sample_t, every),
     .fallback = "1 epoch"},
    {.name = "shape",
     .type = OPT_INTS,
     .offset = offsetof(sample_t, shape),
     .fallback = "[1, 2]",
     .min = 1,
     .max = 64},
    {.name = "files",
     .type = OPT_TEXTS,
     .offset = offsetof(sample_t, files),
     .fallback = "[]"},
    {.name = "model",
     .type = OPT_TREE,
     .offset = offsetof(sample_t, model),
     .fallback = ""},
    {.name = "inner",
     .type = OPT_SECTION,
     .offset = offsetof(sample_t, inner),
     .rows = inner_rows},
    {.name = NULL},
};

/* Make a map at line 1 of file f; key and value of item i are at line i + 2. */
static tree_t *map_of(const char *const *words)
{
    tree_place_t place = {"f", 1, 1};
    tree_t *map = tree_new(TREE_MAP, NULL, place);
    int i;

    for (i = 0; words != NULL && words[i] != NULL; i += 2) {
        place.line = i / 2 + 2;
        place.column = 9;
        tree_put(map, words[i], (tree_place_t){"f", i / 2 + 2, 3},
                 tree_new(TREE_SCALAR, words[i + 1], place));
    }
    return map;
}
#define MAP(...) map_of((const char *const[]){__VA_ARGS__, NULL})

static tree_t *list_of(const char *const *words)
{
    tree_place_t place = {"f", 7, 7};
    tree_t *list = tree_new(TREE_LIST, NULL, place);

    for (; *words != NULL; words++)
        tree_add(list, tree_new(TREE_SCALAR, *words, place));
    return list;
}
#define LIST(...) list_of((const char *const[]){__VA_ARGS__, NULL})

/* Fill a sample from [tree] and free the tree (so not for OPT_TREE). */
static sample_t fill(tree_t *tree)
{
    err_t err = ERR_INIT;
    sample_t sample;

    memset(&sample, 0xff, sizeof sample);
    cr_assert_eq(opt_fill(rows, tree, "", &sample, &err), ERR_OK, "%s",
                 err.text);
    tree_free(tree);
    return sample;
}

Test(opt, defaults_are_as_written_in_the_table)
{
    sample_t sample = fill(MAP("count", "5"));

    cr_assert_eq(sample.on, false);
    cr_assert_eq(sample.count, 5);
    cr_assert_eq(sample.rate, 1e-3);
    cr_assert_str_eq(sample.name, "");
    cr_assert_eq(sample.every.unit, OPT_EPOCHS);
    cr_assert_eq(sample.every.value, 1);
    cr_assert_eq(sample.shape.count, 2);
    cr_assert_eq(sample.shape.items[1], 2);
    cr_assert_eq(sample.files.count, 0);
    cr_assert_null(sample.model);
    cr_assert_eq(sample.inner.timeout, 60);
    cr_assert_eq(sample.inner.mode, 1);
    opt_free(rows, &sample);
}

/* A required option of an absent section is reported at the place of the
 * enclosing map. */
Test(opt, sections_that_are_not_there_have_the_place_of_the_map_around_them)
{
    const opt_row_t must[] = {{.name = "path", .type = OPT_TEXT, .help = "why"},
                              {.name = NULL}};
    const opt_row_t around[] = {
        {.name = "section", .type = OPT_SECTION, .rows = must}, {.name = NULL}};
    const opt_row_t maps[] = {
        {.name = "map", .type = OPT_MAP, .rows = must, .size = sizeof(char *)},
        {.name = NULL}};
    _Alignas(max_align_t) char target[256] = {0};
    tree_t *tree = tree_new(TREE_MAP, NULL, (tree_place_t){"f", 3, 4});
    err_t err = ERR_INIT;

    cr_expect_eq(opt_fill(around, tree, "", target, &err), ERR_CONFIG);
    FACTS(err.text, "f:3:4", "section.path", "why");
    err = (err_t)ERR_INIT;
    cr_expect_eq(opt_fill(maps, tree, "", target, &err), ERR_CONFIG);
    FACTS(err.text, "f:3:4", "map.path", "why");
    tree_free(tree);
}

Test(opt, a_word_may_stand_for_integers)
{
    const opt_row_t pad_rows[] = {{.name = "pad",
                                   .type = OPT_INTS,
                                   .choices = shapes,
                                   .min = 0,
                                   .max = 64},
                                  {.name = NULL}};
    str_buf_t text = {0};
    err_t err = ERR_INIT;
    opt_ints_t pad;
    tree_t *tree = MAP("pad", "whole");

    cr_assert_eq(opt_fill(pad_rows, tree, "", &pad, &err), ERR_OK);
    cr_expect_eq(pad.count, -2);
    opt_print(pad_rows, &pad, 0, &text);
    cr_expect_str_eq(text.text, "pad: whole\n");
    tree_free(tree);
    str_buf_free(&text);
    tree = MAP("pad", "hole");
    cr_assert_eq(opt_fill(pad_rows, tree, "", &pad, &err), ERR_CONFIG);
    FACTS(err.text, "f:2:9", "pad", "half, whole", "list", "'hole'");
    tree_free(tree);
}

Test(opt, every_type_is_read)
{
    tree_t *tree =
        MAP("on", "yes", "count", "7", "rate", "0.5", "name", "a b", "every",
            "10 min", "shape", "3", "files", "x.h5", "model", "m");
    err_t err = ERR_INIT;
    sample_t sample;

    cr_assert(
        tree_set(tree, "inner.timeout",
                 tree_new(TREE_SCALAR, "2 h", (tree_place_t){"f", 0, 0})));
    cr_assert(
        tree_set(tree, "inner.mode",
                 tree_new(TREE_SCALAR, "full", (tree_place_t){"f", 0, 0})));
    cr_assert_eq(opt_fill(rows, tree, "", &sample, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(sample.on, true);
    cr_assert_eq(sample.count, 7);
    cr_assert_eq(sample.rate, 0.5);
    cr_assert_str_eq(sample.name, "a b");
    cr_assert_eq(sample.every.unit, OPT_TIME);
    cr_assert_eq(sample.every.value, 600);
    cr_assert_eq(sample.shape.count, 1);
    cr_assert_eq(sample.shape.items[0], 3);
    cr_assert_eq(sample.files.count, 1);
    cr_assert_str_eq(sample.files.items[0], "x.h5");
    cr_assert_eq(sample.model, tree_get(tree, "model"));
    cr_assert_eq(sample.inner.timeout, 7200);
    cr_assert_eq(sample.inner.mode, 2);
    opt_free(rows, &sample);
    cr_assert_null(sample.name);
    cr_assert_null(sample.files.items);
    tree_free(tree);
}

Test(opt, lists_are_read)
{
    tree_t *tree = MAP("count", "1");
    sample_t sample;

    cr_assert(tree_set(tree, "shape", LIST("1", "32", "32")));
    cr_assert(tree_set(tree, "files", LIST("a", "b c")));
    sample = fill(tree);
    cr_assert_eq(sample.shape.count, 3);
    cr_assert_eq(sample.shape.items[2], 32);
    cr_assert_eq(sample.files.count, 2);
    cr_assert_str_eq(sample.files.items[1], "b c");
    opt_free(rows, &sample);
}

Test(opt, nulls_count_as_absent)
{
    tree_t *tree = MAP("count", "1");
    tree_place_t place = {"f", 9, 9};
    sample_t sample;

    cr_assert(tree_set(tree, "rate", tree_new(TREE_NULL, NULL, place)));
    cr_assert(tree_set(tree, "inner", tree_new(TREE_NULL, NULL, place)));
    cr_assert(tree_set(tree, "model", tree_new(TREE_NULL, NULL, place)));
    sample = fill(tree);
    cr_assert_eq(sample.rate, 1e-3);
    cr_assert_eq(sample.inner.timeout, 60);
    cr_assert_null(sample.model);
    opt_free(rows, &sample);
}

Test(opt, times_and_intervals_have_units)
{
    static const struct {
        const char *text;
        opt_unit_t unit;
        double value;
    } good[] = {
        {"never", OPT_NEVER, 0},       {"1 step", OPT_STEPS, 1},
        {"100 steps", OPT_STEPS, 100}, {"2 epochs", OPT_EPOCHS, 2},
        {"30s", OPT_TIME, 30},         {"1.5 h", OPT_TIME, 5400},
        {"1 d", OPT_TIME, 86400},      {"1e3 min", OPT_TIME, 60000},
        {"1epoch", OPT_EPOCHS, 1},     {"500 ms", OPT_TIME, 0.5},
    };
    static const char *const bad[] = {
        "",           "1",     "0 steps",  "-1 min", "1.5 steps",
        "1.5 epochs", "often", "1 week",   "min",    "0x1 min",
        "inf s",      " 1 s",  "2 h 5 min"};
    err_t err = ERR_INIT;
    sample_t sample;
    tree_t *tree;
    size_t i;

    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        sample = fill(MAP("count", "1", "every", good[i].text));
        cr_expect_eq(sample.every.unit, good[i].unit, "%s", good[i].text);
        cr_expect_eq(sample.every.value, good[i].value, "%s", good[i].text);
        opt_free(rows, &sample);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tree = MAP("count", "1", "every", bad[i]);
        cr_expect_eq(opt_fill(rows, tree, "", &sample, &err), ERR_CONFIG, "%s",
                     bad[i]);
        tree_free(tree);
    }
}

/* Filling from [tree] must fail with a message that tells [facts]
 * (lib/facts.h). Frees [tree]. */
static void expect_error(tree_t *tree, const char *path,
                         const char *const facts[FACTS_MAX])
{
    err_t err = ERR_INIT;
    sample_t sample;

    cr_expect_eq(opt_fill(rows, tree, path, &sample, &err), ERR_CONFIG);
    facts_expect(err.text, facts);
    tree_free(tree);
}
#define EXPECT_ERROR(tree, path, ...) \
    expect_error(tree, path, (const char *[FACTS_MAX]){__VA_ARGS__})

Test(opt, a_fault_is_told_with_place_key_value_and_what_was_expected)
{
    static const struct {
        const char *key, *value, *facts[FACTS_MAX];
    } bad[] = {
        {"on", "maybe", {"f:2:9", "t.on", "true", "false", "maybe"}},
        {"count", "ten", {"f:2:9", "t.count", "integer", "ten"}},
        {"count", "1.5", {"f:2:9", "t.count", "integer", "1.5"}},
        {"count", "0", {"f:2:9", "t.count", "at least 1 samples", "0"}},
        {"count",
         "9223372036854775807",
         {"f:2:9", "t.count", "1 to 1000000000 samples",
          "9223372036854775807"}},
        {"rate", "fast", {"f:2:9", "t.rate", "number", "fast"}},
        {"rate", "1.5", {"f:2:9", "t.rate", "0 to 1", "1.5"}},
        {"rate", "nan", {"f:2:9", "t.rate", "number", "nan"}},
        {"every", "often", {"f:2:9", "t.every", "1 epoch", "never", "often"}},
        {"shape", "65", {"f:2:9", "t.shape", "1 to 64", "65"}},
        {"shape", "x", {"f:2:9", "t.shape", "list of integers", "'x'"}},
        {"inner", "5", {"f:2:9", "t.inner", "map", "5"}},
        {"cuont", "5", {"f:2:3", "'cuont'", "'count'"}},
        {"zzzzz",
         "5",
         {"f:2:3", "'zzzzz'",
          "on, count, rate, name, every, shape, files, model, inner"}},
    };
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_error(MAP(bad[i].key, bad[i].value, "count", "1"), "t",
                     bad[i].facts);
}

Test(opt, faults_below_and_beside_scalars_are_told)
{
    tree_t *tree;

    EXPECT_ERROR(NULL, "", "count", "missing", "how many");
    EXPECT_ERROR(MAP("on", "true"), "t", "f:1:1", "t.count", "missing",
                 "how many");
    EXPECT_ERROR(MAP("onn", "true"), "", "f:2:3", "'onn'", "'on'");
    EXPECT_ERROR(MAP("timeout", "5 s"), "", "f:2:3", "'timeout'", "inner");
    EXPECT_ERROR(LIST("a"), "", "f:7:7", "map", "list");
    tree = MAP("count", "1");
    tree_set(tree, "count", LIST("1"));
    EXPECT_ERROR(tree, "", "f:7:7", "count", "integer", "list");
    tree = MAP("count", "1");
    tree_set(tree, "name", tree_new(TREE_MAP, NULL, (tree_place_t){"f", 3, 4}));
    EXPECT_ERROR(tree, "", "f:3:4", "name", "text", "map");
    tree = MAP("count", "1");
    tree_set(tree, "files.a", LIST("1"));
    EXPECT_ERROR(tree, "", "f:7:7", "files", "list of texts", "map");
    tree = MAP("count", "1");
    tree_set(tree, "shape", LIST("1", "x"));
    EXPECT_ERROR(tree, "", "f:7:7", "shape", "list of integers", "'x'");
    tree = MAP("count", "1");
    tree_set(tree, "shape",
             LIST("1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1",
                  "1", "1", "1", "1", "1"));
    EXPECT_ERROR(tree, "", "f:7:7", "shape", "16", "17");
    tree = MAP("count", "1");
    tree_set(tree, "inner.timeout",
             tree_new(TREE_SCALAR, "0.5 s", (tree_place_t){"--set", 0, 0}));
    EXPECT_ERROR(tree, "", "--set", "inner.timeout", "1 to 86400 s", "0.5 s");
    tree = MAP("count", "1");
    tree_set(tree, "inner.mode",
             tree_new(TREE_SCALAR, "chunks", (tree_place_t){"f", 4, 5}));
    EXPECT_ERROR(tree, "", "f:4:5", "inner.mode", "none, chunk, full",
                 "'chunks'", "'chunk'");
}

static const char resolved[] = "on: true\n"
                               "count: 7\n"
                               "rate: 0.1\n"
                               "name: \"a: b\"\n"
                               "every: 100 steps\n"
                               "shape: [1, 2]\n"
                               "files: [x, \"*.h5\"]\n"
                               "model:\n"
                               "  - relu\n"
                               "inner:\n"
                               "  timeout: 90.0 s\n"
                               "  mode: chunk\n";

Test(opt, the_resolved_configuration_is_printed)
{
    tree_t *tree = MAP("on", "true", "count", "7", "rate", "0.1", "name",
                       "a: b", "every", "100 steps");
    err_t err = ERR_INIT;
    str_buf_t out = {0};
    sample_t sample;

    tree_set(tree, "files", LIST("x", "*.h5"));
    tree_set(tree, "model", LIST("relu"));
    tree_set(tree, "inner.timeout",
             tree_new(TREE_SCALAR, "1.5 min", (tree_place_t){"f", 0, 0}));
    cr_assert_eq(opt_fill(rows, tree, "", &sample, &err), ERR_OK);
    opt_print(rows, &sample, 0, &out);
    cr_assert_str_eq(out.text, resolved);
    str_buf_free(&out);
    opt_free(rows, &sample);
    tree_free(tree);
}

Test(opt, the_table_is_its_own_documentation)
{
    str_buf_t out = {0};

    opt_document(rows, "train", &out);
    cr_assert_eq(strncmp(out.text, "### train\n\n| key | value |", 26), 0);
    cr_assert_not_null(strstr(out.text, "| `count` | an integer, at least 1 "
                                        "samples | **required** | how many "
                                        "|\n"));
    cr_assert_not_null(strstr(out.text, "| `rate` | a number, 0 to 1 | "
                                        "`1.0e-3` |  |\n"));
    cr_assert_not_null(strstr(out.text, "| `inner` | a map | see below |"));
    cr_assert_not_null(strstr(out.text, "### train.inner\n"));
    cr_assert_not_null(strstr(out.text, "| `mode` | one of none, chunk, full "
                                        "| `chunk` | a\\|b |\n"));
    str_buf_free(&out);
}

/* Numbers printed with an exponent must read back exactly, too. */
Test(opt, printed_values_read_back_to_the_same_bits)
{
    static const double values[] = {0.1, 1.0 / 3, 1e-7, 1.0000000000000002,
                                    90,  1e6,     0.5,  123456.789};
    static const opt_row_t row[] = {
        {.name = "every", .type = OPT_EVERY, .fallback = "never"},
        {.name = NULL}};
    err_t err = ERR_INIT;
    opt_every_t every;
    str_buf_t out;
    tree_t *tree;
    size_t i;

    for (i = 0; i < sizeof values / sizeof values[0]; i++) {
        every = (opt_every_t){OPT_TIME, values[i]};
        out = (str_buf_t){0};
        opt_print(row, &every, 0, &out);
        out.text[out.length - 1] = '\0'; /* remove the newline */
        tree = MAP("every", out.text + strlen("every: "));
        every.value = 0;
        cr_assert_eq(opt_fill(row, tree, "", &every, &err), ERR_OK, "%s",
                     err.text);
        cr_assert_eq(every.value, values[i], "%s", out.text);
        tree_free(tree);
        str_buf_free(&out);
    }
}

Test(opt, intervals_print_as_they_are_written)
{
    static const opt_row_t row[] = {
        {.name = "every", .type = OPT_EVERY, .fallback = "never"},
        {.name = NULL}};
    static const struct {
        opt_every_t every;
        const char *text;
    } rows_of[] = {
        {{OPT_NEVER, 0}, "every: never\n"},
        {{OPT_STEPS, 1}, "every: 1 step\n"},
        {{OPT_STEPS, 2000000}, "every: 2000000 steps\n"},
        {{OPT_EPOCHS, 1}, "every: 1 epoch\n"},
        {{OPT_EPOCHS, 3}, "every: 3 epochs\n"},
        {{OPT_TIME, 600}, "every: 600.0 s\n"},
    };
    str_buf_t out;
    size_t i;

    for (i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
        out = (str_buf_t){0};
        opt_print(row, &rows_of[i].every, 0, &out);
        cr_expect_str_eq(out.text, rows_of[i].text);
        str_buf_free(&out);
    }
}

Test(opt, a_misplaced_key_is_found_at_any_depth)
{
    static const opt_row_t middle[] = {
        {.name = "low", .type = OPT_SECTION, .rows = inner_rows},
        {.name = NULL}};
    static const opt_row_t top[] = {
        {.name = "high", .type = OPT_SECTION, .rows = middle}, {.name = NULL}};
    tree_t *tree = MAP("mode", "full");
    err_t err = ERR_INIT;
    inner_t inner;

    cr_assert_eq(opt_fill(top, tree, "", &inner, &err), ERR_CONFIG);
    FACTS(err.text, "f:2:3", "'mode'", "high.low");
    tree_free(tree);
}

Test(opt, one_sided_bounds_are_told_so)
{
    static const opt_row_t row[] = {
        {.name = "x", .type = OPT_REAL, .min = -1e300, .max = -1, .unit = "K"},
        {.name = NULL}};
    tree_t *tree = MAP("x", "0");
    err_t err = ERR_INIT;
    double x;

    cr_assert_eq(opt_fill(row, tree, "", &x, &err), ERR_CONFIG);
    FACTS(err.text, "f:2:9", "x", "at most -1 K", "0");
    tree_free(tree);
}

Test(opt, defaults_are_told_from_other_values)
{
    tree_t *standard = MAP("count", "3", "rate", "0.001");
    tree_t *other = MAP("count", "3", "on", "yes", "rate", "0.002", "name", "x",
                        "every", "2 epochs");
    sample_t sample;

    cr_assert_eq(opt_fill(rows, standard, "", &sample, NULL), ERR_OK);
    for (const opt_row_t *row = rows; row->name != NULL; row++)
        cr_expect_eq(opt_is_default(row, &sample), row->fallback != NULL, "%s",
                     row->name);
    opt_free(rows, &sample);
    cr_assert_eq(opt_fill(rows, other, "", &sample, NULL), ERR_OK);
    for (int i = 0; i < 5; i++)
        cr_expect_not(opt_is_default(&rows[i], &sample), "%s", rows[i].name);
    opt_free(rows, &sample);
    tree_free(standard);
    tree_free(other);
}

Test(opt, times_must_be_times)
{
    static const char *const bad[] = {"60 steps", "1 week", "soon", "s", ""};
    tree_t *tree;
    err_t err = ERR_INIT;
    inner_t inner;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tree = MAP("timeout", bad[i]);
        cr_assert_eq(opt_fill(inner_rows, tree, "fault", &inner, &err),
                     ERR_CONFIG);
        FACTS(err.text, "f:2:9", "fault.timeout", "60 s", "10 min", "2 h");
        cr_assert_not_null(strstr(err.text, bad[i]), "%s", err.text);
        tree_free(tree);
    }
    tree = MAP("timeout", "90");
    cr_assert_eq(opt_fill(inner_rows, tree, "fault", &inner, &err), ERR_OK);
    cr_assert_eq(inner.timeout, 90);
    tree_free(tree);
}
