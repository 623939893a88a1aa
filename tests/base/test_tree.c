/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/tree.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const tree_place_t here = {.file = "f.yaml", .line = 3, .column = 5};

static tree_t *scalar(const char *text)
{
    return tree_new(TREE_SCALAR, text, here);
}

static tree_t *sample(void)
{
    tree_t *root = tree_new(TREE_MAP, NULL, here);
    tree_t *list = tree_new(TREE_LIST, NULL, here);
    tree_t *conv = tree_new(TREE_MAP, NULL, here);
    tree_t *inner = tree_new(TREE_MAP, NULL, here);

    tree_put(inner, "out", here, scalar("32"));
    tree_put(inner, "pad", here, tree_new(TREE_NULL, NULL, here));
    tree_put(conv, "conv", here, inner);
    tree_put(conv, "name", here, scalar("a: b"));
    tree_add(list, scalar("relu"));
    tree_add(list, conv);
    tree_add(list, tree_new(TREE_LIST, NULL, here));
    tree_put(root, "layers", here, list);
    tree_put(root, "empty", here, tree_new(TREE_MAP, NULL, here));
    tree_put(root, "seed", here, scalar("1"));
    return root;
}

static void expect_print(const tree_t *tree, int indent, const char *expected)
{
    str_buf_t out = {0};

    tree_print(tree, indent, &out);
    cr_assert_str_eq(out.text, expected);
    str_buf_free(&out);
}

static const char sample_yaml[] = "  layers:\n"
                                  "    - relu\n"
                                  "    - conv:\n"
                                  "        out: 32\n"
                                  "        pad: null\n"
                                  "      name: \"a: b\"\n"
                                  "    - []\n"
                                  "  empty: {}\n"
                                  "  seed: 1\n";

Test(tree, prints_as_block_yaml)
{
    tree_t *tree = sample();

    expect_print(tree, 2, sample_yaml);
    tree_free(tree);
}

Test(tree, a_clone_is_equal_and_its_own)
{
    tree_t *tree = sample(), *copy = tree_clone(tree);

    cr_assert(tree_set(tree, "layers", scalar("gone")));
    tree_free(tree);
    expect_print(copy, 2, sample_yaml);
    cr_assert_eq(tree_place(tree_get(copy, "seed")).line, 3);
    cr_assert_str_eq(tree_place(copy).file, "f.yaml");
    cr_assert_str_eq(tree_key_place(copy, 0).file, "f.yaml");
    tree_free(copy);
    tree_free(NULL);
}

Test(tree, children_are_found)
{
    tree_t *tree = sample();
    const tree_t *list = tree_get(tree, "layers");

    cr_assert_eq(tree_kind(list), TREE_LIST);
    cr_assert_eq(tree_count(list), 3);
    cr_assert_null(tree_at(list, 3));
    cr_assert_null(tree_text(list));
    cr_assert_null(tree_get(list, "relu"));
    cr_assert_str_eq(tree_key(tree, 2), "seed");
    cr_assert_null(tree_key(tree, 3));
    cr_assert_null(tree_get(tree, "see"));
    cr_assert_null(tree_get(tree, "seeds"));
    cr_assert_eq(tree_count(tree_get(tree, "seed")), 0);
    tree_free(tree);
}

/* Maps of all sizes, with and without a hash table. */
Test(tree, keys_are_found_in_maps_of_any_size)
{
    for (int count = 0; count < 200; count++) {
        tree_place_t place = {.file = "f"}, found = {0};
        tree_t *map = tree_new(TREE_MAP, NULL, place);
        char key[16];

        for (int i = 0; i < count; i++) {
            snprintf(key, sizeof key, "k%d", i);
            place.line = i + 1;
            tree_put(map, key, place, tree_new(TREE_SCALAR, key, place));
        }
        for (int i = 0; i < count; i++) {
            snprintf(key, sizeof key, "k%d", i);
            cr_assert_str_eq(tree_text(tree_get(map, key)), key);
            cr_assert(tree_key_find(map, key, &found));
            cr_assert_eq(found.line, i + 1);
        }
        snprintf(key, sizeof key, "k%d", count);
        cr_assert_null(tree_get(map, key));
        cr_assert_not(tree_key_find(map, key, &found));
        cr_assert(tree_set(map, "k0", tree_new(TREE_SCALAR, "new", place)));
        cr_assert_str_eq(tree_text(tree_get(map, "k0")), "new");
        tree_free(map);
    }
}

Test(tree, places_leave_out_what_is_unknown)
{
    tree_place_t place = here;
    char out[32];

    cr_assert_str_eq(tree_place_format(place, out, sizeof out), "f.yaml:3:5");
    place.column = 0;
    cr_assert_str_eq(tree_place_format(place, out, sizeof out), "f.yaml:3");
    place.line = 0;
    cr_assert_str_eq(tree_place_format(place, out, sizeof out), "f.yaml");
}

Test(tree, set_makes_its_way_or_says_no)
{
    tree_t *tree = tree_new(TREE_MAP, NULL, here);

    cr_assert(tree_set(tree, "a.b.c", scalar("1")));
    cr_assert(tree_set(tree, "a.b.d", scalar("2")));
    cr_assert(tree_set(tree, "a.b.c", scalar("3")));
    cr_assert(tree_set(tree, "n", tree_new(TREE_NULL, NULL, here)));
    cr_assert(tree_set(tree, "n.x", scalar("4")));
    cr_assert_not(tree_set(tree, "a.b.c.e", scalar("5")));
    cr_assert_not(tree_set(tree, "", scalar("5")));
    cr_assert_not(tree_set(tree, "a..b", scalar("5")));
    cr_assert_not(tree_set(tree, "a.", scalar("5")));
    expect_print(tree, 0, "a:\n  b:\n    c: 3\n    d: 2\nn:\n  x: 4\n");
    tree_free(tree);
}

Test(tree, text_is_quoted_where_a_reader_could_err)
{
    static const struct {
        const char *text, *yaml;
    } rows[] = {
        {"relu", "relu"},
        {"10 min", "10 min"},
        {"1.0e-3", "1.0e-3"},
        {"-1", "-1"},
        {"runs/a_b.h5", "runs/a_b.h5"},
        {"", "\"\""},
        {"null", "\"null\""},
        {"~", "\"~\""},
        {"- a", "\"- a\""},
        {"---", "\"---\""},
        {"-", "\"-\""},
        {"a: b", "\"a: b\""},
        {"a #b", "\"a #b\""},
        {"*.h5", "\"*.h5\""},
        {" a", "\" a\""},
        {"a ", "\"a \""},
        {"say \"x\\y\"", "\"say \\\"x\\\\y\\\"\""},
        {"a\tb\n", "\"a\\x09b\\x0a\""},
    };
    str_buf_t out;
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        out = (str_buf_t){0};
        tree_print_text(rows[i].text, &out);
        cr_expect_str_eq(out.text, rows[i].yaml);
        str_buf_free(&out);
    }
}

Test(tree, scalars_and_nulls_print_as_lines)
{
    tree_t *one = scalar("x"), *none = tree_new(TREE_NULL, NULL, here);

    expect_print(one, 2, "  x\n");
    expect_print(none, 0, "null\n");
    tree_free(one);
    tree_free(none);
}
