/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tests options in named sections (OPT_MAP). */
#include <criterion/criterion.h>
#include <string.h>

#include "base/opt.h"

/* The struct of one section. */
typedef struct field {
    double timeout;
    int64_t shift;
} field_t;

static const opt_row_t field_rows[] = {{.name = "timeout",
                                        .type = OPT_SECONDS,
                                        .offset = offsetof(field_t, timeout),
                                        .fallback = "60 s",
                                        .min = 1,
                                        .max = 86400},
                                       {.name = "shift",
                                        .type = OPT_INT,
                                        .offset = offsetof(field_t, shift),
                                        .fallback = "3"},
                                       {.name = NULL}};

typedef struct named {
    opt_map_t fields;
} named_t;

static const opt_row_t named_rows[] = {{.name = "fields",
                                        .type = OPT_MAP,
                                        .offset = offsetof(named_t, fields),
                                        .rows = field_rows,
                                        .size = sizeof(field_t)},
                                       {.name = NULL}};

/* Make {fields: {...}} from texts: "name=timeout" is a section with a name,
 * "=timeout" one without. */
static tree_t *fields_of(const char *const *texts)
{
    const tree_place_t place = {"f", 1, 1};
    tree_t *root = tree_new(TREE_MAP, NULL, place);
    tree_t *fields = tree_new(TREE_MAP, NULL, place);

    tree_put(root, "fields", place, fields);
    for (int i = 0; texts[i] != NULL; i++) {
        const tree_place_t key = {"f", i + 2, 3}, value = {"f", i + 2, 9};
        const char *equals = strchr(texts[i], '=');
        tree_t *section = tree_new(TREE_MAP, NULL, value);
        char name[32] = "";

        memcpy(name, texts[i], (size_t)(equals - texts[i]));
        if (name[0] == '\0') {
            tree_free(section);
            tree_put(fields, "timeout", key,
                     tree_new(TREE_SCALAR, equals + 1, value));
            continue;
        }
        tree_put(section, "timeout", value,
                 tree_new(TREE_SCALAR, equals + 1, value));
        tree_put(fields, name, key, section);
    }
    return root;
}
#define FIELDS(...) fields_of((const char *const[]){__VA_ARGS__, NULL})

static const field_t *field(const named_t *named, int index)
{
    return (const field_t *)named->fields.items + index;
}

Test(opt_map, a_section_may_have_no_name_or_be_several_with_names)
{
    tree_t *one = FIELDS("=5 s"), *two = FIELDS("a=5 s", "b-c=2 min");
    str_buf_t text = {0};
    named_t named = {{0}};
    err_t err = ERR_INIT;

    cr_assert_eq(opt_fill(named_rows, NULL, "", &named, &err), ERR_OK);
    cr_expect_eq(named.fields.count, 1);
    cr_expect_null(named.fields.names[0]);
    cr_expect_null(named.fields.places[0].file);
    cr_expect_eq(field(&named, 0)->timeout, 60);
    opt_free(named_rows, &named);
    cr_assert_eq(opt_fill(named_rows, one, "", &named, &err), ERR_OK);
    cr_expect_eq(named.fields.count, 1);
    cr_expect_null(named.fields.names[0]);
    cr_expect_eq(named.fields.places[0].line, 1);
    cr_expect_eq(field(&named, 0)->timeout, 5);
    opt_print(named_rows, &named, 0, &text);
    cr_expect_str_eq(text.text, "fields:\n  timeout: 5.0 s\n  shift: 3\n");
    str_buf_free(&text);
    opt_free(named_rows, &named);
    cr_assert_eq(opt_fill(named_rows, two, "", &named, &err), ERR_OK);
    cr_expect_eq(named.fields.count, 2);
    cr_expect_str_eq(named.fields.names[1], "b-c");
    cr_expect_eq(named.fields.places[1].line, 3);
    cr_expect_eq(field(&named, 1)->timeout, 120);
    text = (str_buf_t){0};
    opt_print(named_rows, &named, 0, &text);
    cr_expect_str_eq(text.text,
                     "fields:\n  a:\n    timeout: 5.0 s\n    shift: 3\n"
                     "  b-c:\n    timeout: 120.0 s\n    shift: 3\n");
    str_buf_free(&text);
    opt_free(named_rows, &named);
    cr_expect_null(named.fields.items);
    tree_free(one);
    tree_free(two);
}

Test(opt_map, faults_in_named_sections_have_their_path)
{
    tree_t *bad = FIELDS("a=5 s", "b=0 s");
    tree_t *many =
        FIELDS("a=1", "b=1", "c=1", "d=1", "e=1", "f=1", "g=1", "h=1", "i=1");
    tree_t *mixed = FIELDS("=5 s", "a=1");
    named_t named = {{0}};
    err_t err = ERR_INIT;

    cr_expect_eq(opt_fill(named_rows, bad, "", &named, &err), ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, "f:3:9: fields.b.timeout: expected"),
                       "%s", err.text);
    cr_expect_eq(opt_fill(named_rows, many, "", &named, &err), ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, "expected at most 8 names, found 9"),
                       "%s", err.text);
    cr_expect_eq(opt_fill(named_rows, mixed, "", &named, &err), ERR_CONFIG);
    cr_expect_not_null(strstr(err.text, "f:3:3: unknown key 'a' in fields"),
                       "%s", err.text);
    tree_free(bad);
    tree_free(many);
    tree_free(mixed);
}
