/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <criterion/criterion.h>

#include "base/opt.h"
#include "lib/facts.h"

static const opt_row_t rows[] = {
    {.name = "mean", .type = OPT_REALS, .fallback = "[]", .min = -8, .max = 8},
    {.name = NULL}};

/* A map with the list [words] as "mean"; the list is at line 7 of file f. */
static tree_t *map_of(const char *const *words)
{
    const tree_place_t place = {"f", 7, 7};
    tree_t *map = tree_new(TREE_MAP, NULL, place);
    tree_t *list = tree_new(TREE_LIST, NULL, place);

    for (; *words != NULL; words++)
        tree_add(list, tree_new(TREE_SCALAR, *words, place));
    tree_put(map, "mean", place, list);
    return map;
}
#define LIST(...) map_of((const char *const[]){__VA_ARGS__, NULL})

static void refused(tree_t *tree, const char *const facts[FACTS_MAX])
{
    err_t err = ERR_INIT;
    opt_reals_t mean;

    cr_expect_eq(opt_fill(rows, tree, "", &mean, &err), ERR_CONFIG);
    facts_expect(err.text, facts);
    tree_free(tree);
}
#define REFUSED(tree, ...) \
    refused((tree), (const char *[FACTS_MAX]){__VA_ARGS__})

Test(opt_reals, lists_of_numbers_are_read_and_printed)
{
    tree_t *tree = LIST("1", "-0.1", "1e-3");
    str_buf_t text = {0};
    opt_reals_t mean;

    cr_assert_eq(opt_fill(rows, tree, "", &mean, NULL), ERR_OK);
    cr_expect_eq(mean.count, 3);
    opt_print(rows, &mean, 0, &text);
    cr_expect_str_eq(text.text, "mean: [1.0, -0.1, 0.001]\n");
    cr_expect_not(opt_is_default(rows, &mean));
    opt_free(rows, &mean);
    cr_expect_null(mean.items);
    str_buf_free(&text);
    tree_free(tree);
}

Test(opt_reals, one_number_needs_no_brackets)
{
    const tree_place_t place = {"f", 1, 1};
    tree_t *tree = tree_new(TREE_MAP, NULL, place);
    opt_reals_t mean;

    tree_put(tree, "mean", place, tree_new(TREE_SCALAR, "0.5", place));
    cr_assert_eq(opt_fill(rows, tree, "", &mean, NULL), ERR_OK);
    cr_expect_eq(mean.count, 1);
    cr_expect_eq(mean.items[0], 0.5);
    opt_free(rows, &mean);
    tree_free(tree);
}

Test(opt_reals, none_is_the_default)
{
    opt_reals_t mean;

    cr_assert_eq(opt_fill(rows, NULL, "", &mean, NULL), ERR_OK);
    cr_expect_eq(mean.count, 0);
    cr_expect(opt_is_default(rows, &mean));
    opt_free(rows, &mean);
}

Test(opt_reals, what_is_no_number_or_out_of_bounds_is_refused)
{
    REFUSED(LIST("1", "nan"), "f:7:7", "mean", "a number", "'nan'");
    REFUSED(LIST("1", "9"), "f:7:7", "mean", "-8 to 8", "9");
}
