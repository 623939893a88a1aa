/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-train --pick: which line is taken, and how it is divided into words. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tree.h"
#include "cmd/pick.h"
#include "conf/conf.h"

static const char lines[] = "a.x=1 a.y=two\n"
                            "\n"
                            "   \t\n"
                            "  a.x=3\t\ta.y='{p: 1, q: \"s t\"}'  \r\n"
                            "a.x=5 a.y=\"with 'blanks'\"\n"
                            "a.x=6 word\n"
                            "a.x=7 a.y='open\n"
                            "a.x=8 a.y=";

typedef struct row {
    const char *task;
    err_code_t code;
    const char *x, *y; /* values, or with an error: words of the sentence */
} row_t;

static const row_t rows[] = {
    {"1", ERR_OK, "1", "two"},
    {"5", ERR_OK, "5", "with 'blanks'"},
    {"8", ERR_OK, "8", NULL},
    {"2", ERR_USAGE, "line 2", "empty"},
    {"3", ERR_USAGE, "line 3", "empty"},
    {"6", ERR_USAGE, "line 6", "word: expected KEY=VALUE"},
    {"7", ERR_USAGE, "line 7", "a quote is not closed: a.y=open"},
    {"9", ERR_USAGE, "there is no line 9", "the file has 8"},
    {"0", ERR_USAGE, "is \"0\"", "from 1 on"},
    {"x", ERR_USAGE, "is \"x\"", "--array=1-N"},
    {"", ERR_USAGE, "SLURM_ARRAY_TASK_ID is not set", "--array"},
    {NULL, ERR_USAGE, "SLURM_ARRAY_TASK_ID is not set", "--array"},
};

static void file_make(char *path)
{
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, lines, strlen(lines)), (ssize_t)strlen(lines));
    close(fd);
}

static tree_t *root_make(void)
{
    tree_t *root = NULL;

    cr_assert_eq(conf_parse("test", "{a: {x: 0, y: old}}", &root, NULL),
                 ERR_OK);
    return root;
}

static const char *text_at(const tree_t *root, const char *key)
{
    return tree_text(tree_get(tree_get(root, "a"), key));
}

static void row_check(const char *path, const row_t *row)
{
    const char *task = row->task != NULL ? row->task : "none";
    tree_t *root = root_make();
    err_t err = ERR_INIT;

    cr_expect_eq(pick_apply(path, row->task, root, &err), row->code, "%s: %s",
                 task, err.text);
    if (row->code != ERR_OK) {
        cr_expect_not_null(strstr(err.text, row->x), "%s: %s", task, err.text);
        cr_expect_not_null(strstr(err.text, row->y), "%s: %s", task, err.text);
        cr_expect_not_null(strstr(err.text, path), "%s: %s", task, err.text);
    } else {
        cr_expect_str_eq(text_at(root, "x"), row->x);
        if (row->y != NULL)
            cr_expect_str_eq(text_at(root, "y"), row->y);
    }
    tree_free(root);
}

Test(pick, lines)
{
    char path[] = "pick-XXXXXX";

    file_make(path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        row_check(path, &rows[i]);
    unlink(path);
}

/* A value in quotes is YAML, as with --set. */
Test(pick, a_map_in_quotes)
{
    char path[] = "pick-XXXXXX";
    tree_t *root = root_make();
    const tree_t *y;

    file_make(path);
    cr_assert_eq(pick_apply(path, "4", root, NULL), ERR_OK);
    cr_expect_str_eq(text_at(root, "x"), "3");
    y = tree_get(tree_get(root, "a"), "y");
    cr_expect_str_eq(tree_text(tree_get(y, "p")), "1");
    cr_expect_str_eq(tree_text(tree_get(y, "q")), "s t");
    tree_free(root);
    unlink(path);
}

Test(pick, no_file)
{
    tree_t *root = root_make();
    err_t err = ERR_INIT;

    cr_expect_eq(pick_apply("pick-none", "1", root, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, "pick-none"), "%s", err.text);
    tree_free(root);
}
