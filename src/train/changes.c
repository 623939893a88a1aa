/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * First both sides get the same form: the option tables read the old text, with
 * today's defaults, and print it. Sections of the run file that no table
 * describes as a whole (model, loss, optimizer, ...) are compared as trees. If
 * a key of a tree is the name of a kind (adamw, conv, mse), the option rows of
 * that kind give the defaults of the keys below it.
 */
#include "train/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/opt_value.h"
#include "conf/conf.h"
#include "nn/nn.h"

#define VALUE_MAX 60 /* bytes of a value that messages show */

/* Two trees that are compared, and where in the run file they are. */
typedef struct pair {
    /* Section, such as "optimizer"; "" within the options of a kind, as no
     * option has the name of a kind. */
    const char *section;
    const char *path; /* path, such as "optimizer.groups[0]" */
    const tree_t *was, *now;
} pair_t;

/* ---- values -------------------------------------------------------------- */

static bool is_absent(const tree_t *tree)
{
    return tree == NULL || tree_kind(tree) == TREE_NULL;
}

static void value_add(const tree_t *tree, str_buf_t *out)
{
    const bool map = !is_absent(tree) && tree_kind(tree) == TREE_MAP;

    if (is_absent(tree)) {
        str_buf_add(out, "unset");
        return;
    }
    if (tree_kind(tree) == TREE_SCALAR) {
        str_buf_add(out, "%s",
                    tree_text(tree)[0] != '\0' ? tree_text(tree) : "\"\"");
        return;
    }
    str_buf_add(out, map ? "{" : "[");
    for (size_t i = 0; i < tree_count(tree) && out->length <= VALUE_MAX; i++) {
        str_buf_add(out, "%s", i > 0 ? ", " : "");
        if (map)
            str_buf_add(out, "%s: ", tree_key(tree, i));
        value_add(tree_at(tree, i), out);
    }
    str_buf_add(out, map ? "}" : "]");
}

/* The value as text; the caller frees it. */
static char *value_text(const tree_t *tree)
{
    str_buf_t text = {0};
    size_t cut = VALUE_MAX;

    value_add(tree, &text);
    if (text.length > VALUE_MAX) {
        while (cut > 0 && ((unsigned char)text.text[cut] & 0xc0) == 0x80)
            cut--; /* do not cut within a UTF-8 character */
        text.text[cut] = '\0';
        text.length = cut;
        str_buf_add(&text, "...");
    }
    return text.text;
}

static void change_add(const pair_t *pair, train_changes_t *out)
{
    if (out->count < TRAIN_CHANGES_MAX)
        out->items[out->count] = (train_change_t){.key = str_dup(pair->path),
                                                  .was = value_text(pair->was),
                                                  .now = value_text(pair->now)};
    out->count++;
}

static bool same_scalar(const char *a, const char *b)
{
    double x, y;
    bool p, q;

    if (strcmp(a, b) == 0)
        return true;
    if (str_to_real(a, &x) && str_to_real(b, &y))
        return x == y;
    return opt_value_bool(a, &p) && opt_value_bool(b, &q) && p == q;
}

/* ---- trees --------------------------------------------------------------- */

/* The options of the kind [name]; NULL: this section has no such kind. */
static const opt_row_t *rows_of(const char *section, const char *name)
{
    if (strcmp(section, "optimizer") == 0)
        return optim_option_rows(name);
    if (strcmp(section, "schedule") == 0)
        return optim_schedule_option_rows(name);
    if (strcmp(section, "model") == 0)
        return nn_layer_option_rows(name);
    if (strcmp(section, "loss") == 0)
        return nn_loss_option_rows(name);
    return NULL;
}

/* The kind that [tree] names: adamw, or {adamw: ..., groups: ...}. If the
 * other side is a bare name ([alone]), the only key of a map counts as a
 * kind, too. */
static const char *kind_of(const char *section, const tree_t *tree, bool alone)
{
    if (tree_kind(tree) == TREE_SCALAR)
        return tree_text(tree);
    for (size_t i = 0; i < tree_count(tree); i++)
        if (rows_of(section, tree_key(tree, i)) != NULL)
            return tree_key(tree, i);
    return alone && tree_count(tree) == 1 ? tree_key(tree, 0) : NULL;
}

static void compare(const pair_t *pair, train_changes_t *out);

/* Compare two values. [fallback] ("" or NULL: none) replaces a missing one. */
static void compare_or(pair_t pair, const char *fallback, train_changes_t *out)
{
    tree_t *none = NULL;

    if (fallback != NULL && fallback[0] != '\0' &&
        is_absent(pair.was) != is_absent(pair.now))
        none = tree_new(TREE_SCALAR, fallback, (tree_place_t){"", 0, 0});
    if (is_absent(pair.was))
        pair.was = none;
    if (is_absent(pair.now))
        pair.now = none;
    compare(&pair, out);
    tree_free(none);
}

static const tree_t *get(const tree_t *tree, const char *key)
{
    return is_absent(tree) || tree_kind(tree) != TREE_MAP ? NULL
                                                          : tree_get(tree, key);
}

/* Compare the values of [key] in [maps], which may be missing on either side.
 * [fallback] is as in compare_or. */
static void compare_key(const pair_t *maps, const char *key,
                        const char *fallback, train_changes_t *out)
{
    char *path = str_printf("%s.%s", maps->path, key);

    compare_or(
        (pair_t){maps->section, path, get(maps->was, key), get(maps->now, key)},
        fallback, out);
    free(path);
}

/* Compare the options of a kind. Options may be missing on either side. */
static void compare_options(const pair_t *maps, const opt_row_t *rows,
                            train_changes_t *out)
{
    const pair_t inside = {"", maps->path, maps->was, maps->now};

    for (; rows->name != NULL; rows++)
        compare_key(&inside, rows->name, rows->fallback, out);
}

/* The options of the preset that both sides name; NULL: they name no common
 * preset. */
static const opt_row_t *preset_rows(const pair_t *pair)
{
    const tree_t *a = get(pair->was, "preset"), *b = get(pair->now, "preset");

    if (strcmp(pair->section, "model") != 0 || is_absent(a) || is_absent(b) ||
        tree_kind(a) != TREE_SCALAR || tree_kind(b) != TREE_SCALAR ||
        strcmp(tree_text(a), tree_text(b)) != 0)
        return NULL;
    return nn_preset_option_rows(tree_text(a));
}

/* The default of the option [key] of [rows] (NULL allowed); NULL: none. */
static const char *default_of(const opt_row_t *rows, const char *key)
{
    for (; rows != NULL && rows->name != NULL; rows++)
        if (strcmp(rows->name, key) == 0)
            return rows->fallback;
    return NULL;
}

/* Compare the maps of a preset. Its keys are options, not layers, though some
 * of them have the name of a layer (dropout). */
static void compare_preset(const pair_t *maps, const opt_row_t *rows,
                           train_changes_t *out)
{
    const pair_t inside = {"", maps->path, maps->was, maps->now};

    for (size_t i = 0; i < tree_count(maps->was); i++) {
        const char *key = tree_key(maps->was, i);

        compare_key(&inside, key, default_of(rows, key), out);
    }
    for (size_t i = 0; i < tree_count(maps->now); i++) {
        const char *key = tree_key(maps->now, i);

        if (tree_get(maps->was, key) == NULL)
            compare_key(&inside, key, default_of(rows, key), out);
    }
}

static bool is_map(const tree_t *tree)
{
    return is_absent(tree) || tree_kind(tree) == TREE_MAP;
}

/* Compare the values of [key], which both maps may have. If it is the name of a
 * kind, they are its options. */
static void compare_kind(const pair_t *maps, const char *key,
                         train_changes_t *out)
{
    const opt_row_t *rows = rows_of(maps->section, key);
    const tree_t *was = tree_get(maps->was, key);
    const tree_t *now = tree_get(maps->now, key);
    char *path;

    if (rows == NULL || now == NULL || !is_map(was) || !is_map(now)) {
        compare_key(maps, key, NULL, out);
        return;
    }
    path = str_printf("%s.%s", maps->path, key);
    compare_options(&(pair_t){maps->section, path, was, now}, rows, out);
    free(path);
}

/* Compare all keys of both maps. */
static void compare_maps(const pair_t *maps, train_changes_t *out)
{
    for (size_t i = 0; i < tree_count(maps->was); i++)
        compare_kind(maps, tree_key(maps->was, i), out);
    for (size_t i = 0; i < tree_count(maps->now); i++)
        if (tree_get(maps->was, tree_key(maps->now, i)) == NULL)
            compare_key(maps, tree_key(maps->now, i), NULL, out);
}

/* The name of a kind alone means a map with all defaults. */
static const tree_t *as_map(const tree_t *tree, tree_t **made)
{
    if (tree_kind(tree) != TREE_SCALAR)
        return tree;
    *made = tree_new(TREE_MAP, NULL, tree_place(tree));
    tree_put(*made, tree_text(tree), tree_place(tree),
             tree_new(TREE_NULL, NULL, tree_place(tree)));
    return *made;
}

/* Compare kinds; at least one side is a map. */
static void compare_kinds(const pair_t *pair, train_changes_t *out)
{
    const bool alone = tree_kind(pair->was) == TREE_SCALAR ||
                       tree_kind(pair->now) == TREE_SCALAR;
    const char *a = kind_of(pair->section, pair->was, alone);
    const char *b = kind_of(pair->section, pair->now, alone);
    tree_t *made[2] = {NULL, NULL};

    if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
        change_add(pair, out);
    else
        compare_maps(&(pair_t){pair->section, pair->path,
                               as_map(pair->was, &made[0]),
                               as_map(pair->now, &made[1])},
                     out);
    tree_free(made[1]);
    tree_free(made[0]);
}

static void compare_lists(const pair_t *lists, train_changes_t *out)
{
    for (size_t i = 0; i < tree_count(lists->was); i++) {
        char *path = str_printf("%s[%zu]", lists->path, i);

        compare(&(pair_t){lists->section, path, tree_at(lists->was, i),
                          tree_at(lists->now, i)},
                out);
        free(path);
    }
}

/* The only element of a list of one element; any other tree unchanged. */
static const tree_t *only_one(const tree_t *tree)
{
    return tree_kind(tree) == TREE_LIST && tree_count(tree) == 1
               ? tree_at(tree, 0)
               : tree;
}

/* Compare a list with another tree. They are equal if the list has one element,
 * equal to the other, or if both have the same text (a default "[1, 1]"). */
static void compare_texts(const pair_t *pair, train_changes_t *out)
{
    const tree_t *x = only_one(pair->was), *y = only_one(pair->now);
    char *a = value_text(pair->was), *b = value_text(pair->now);

    if (!is_absent(x) && !is_absent(y) && tree_kind(x) != TREE_LIST &&
        tree_kind(y) != TREE_LIST)
        compare(&(pair_t){pair->section, pair->path, x, y}, out);
    else if (strcmp(a, b) != 0)
        change_add(pair, out);
    free(b);
    free(a);
}

static void compare(const pair_t *pair, train_changes_t *out)
{
    const tree_t *was = pair->was, *now = pair->now;

    if (is_absent(was) || is_absent(now)) {
        if (!is_absent(was) || !is_absent(now))
            change_add(pair, out);
    } else if ((tree_kind(was) == TREE_LIST) != (tree_kind(now) == TREE_LIST)) {
        compare_texts(pair, out);
    } else if (tree_kind(was) == TREE_LIST &&
               tree_count(was) != tree_count(now)) {
        change_add(pair, out);
    } else if (tree_kind(was) == TREE_LIST) {
        compare_lists(pair, out);
    } else if (preset_rows(pair) != NULL) {
        compare_preset(pair, preset_rows(pair), out);
    } else if (tree_kind(was) == TREE_MAP || tree_kind(now) == TREE_MAP) {
        compare_kinds(pair, out);
    } else if (!same_scalar(tree_text(was), tree_text(now))) {
        change_add(pair, out);
    }
}

/* ---- the run file -------------------------------------------------------- */

/* The default of a whole tree that is missing. */
static const char *tree_default(const char *key)
{
    if (strcmp(key, "schedule") == 0)
        return "constant";
    return strcmp(key, "ddp.hook") == 0 ? "none" : NULL;
}

/* Has [tree] the value [text]? */
static bool has_text(const tree_t *tree, const char *text)
{
    return text != NULL && !is_absent(tree) && tree_kind(tree) == TREE_SCALAR &&
           same_scalar(tree_text(tree), text);
}

/* Compare the values of the key that [row] describes. */
static void compare_row(const pair_t *pair, const opt_row_t *row,
                        const char *fallback, train_changes_t *out)
{
    const int before = out->count;

    compare_or(*pair, fallback, out);
    if (has_text(pair->was, row->former) && has_text(pair->now, row->fallback))
        out->defaults += out->count - before;
}

static void compare_rows(const pair_t *maps, const opt_row_t *rows,
                         train_changes_t *out);

/* Do both have the same names of sections? */
static bool same_names(const tree_t *a, const tree_t *b)
{
    if (tree_count(a) != tree_count(b))
        return false;
    for (size_t i = 0; i < tree_count(a); i++)
        if (tree_get(b, tree_key(a, i)) == NULL)
            return false;
    return true;
}

/* Compare a section with or without names (OPT_MAP). */
static void compare_sections(const pair_t *pair, const opt_row_t *row,
                             train_changes_t *out)
{
    const tree_t *was = pair->was, *now = pair->now;
    const bool named = opt_map_is_named(was);

    if (is_absent(was) || is_absent(now) || tree_kind(was) != TREE_MAP ||
        tree_kind(now) != TREE_MAP || named != opt_map_is_named(now) ||
        (named && !same_names(was, now))) {
        compare(pair, out);
        return;
    }
    if (!named)
        compare_rows(pair, row->rows, out);
    for (size_t i = 0; named && i < tree_count(was); i++) {
        const char *name = tree_key(was, i);
        char *path = str_printf("%s.%s", pair->path, name);

        compare_rows(&(pair_t){"", path, tree_at(was, i), tree_get(now, name)},
                     row->rows, out);
        free(path);
    }
}

/* Compare all keys of [maps] that [rows] describe. A key that the older version
 * did not know is missing in maps->was and is skipped. */
static void compare_rows(const pair_t *maps, const opt_row_t *rows,
                         train_changes_t *out)
{
    const bool root = maps->path[0] == '\0';

    for (; rows->name != NULL; rows++) {
        char *path =
            str_printf("%s%s%s", maps->path, root ? "" : ".", rows->name);
        const pair_t pair = {root ? rows->name : "", path,
                             get(maps->was, rows->name),
                             get(maps->now, rows->name)};

        if (rows->type == OPT_SECTION)
            compare_rows(&pair, rows->rows, out);
        else if (rows->type == OPT_MAP)
            compare_sections(&pair, rows, out);
        else if (!rows->free && (pair.was != NULL || rows->type == OPT_TREE))
            compare_row(&pair, rows, tree_default(path), out);
        free(path);
    }
}

/* Set *out to [text] as this version would print it, or to [text] unchanged if
 * this version's tables refuse it. */
static err_code_t resolved(const char *text, tree_t **out, err_t *err)
{
    train_config_t config = {0};
    str_buf_t again = {0};
    tree_t *tree = NULL;
    err_code_t rc = conf_parse("the checkpoint's settings", text, &tree, err);

    if (rc != ERR_OK)
        return rc;
    if (opt_fill(train_options, tree, "", &config, NULL) != ERR_OK) {
        *out = tree;
        return ERR_OK;
    }
    opt_print(train_options, &config, 0, &again);
    rc = conf_parse("the checkpoint's settings", again.text, out, err);
    str_buf_free(&again);
    train_config_free(&config);
    tree_free(tree);
    return rc;
}

err_code_t train_changes_find(const char *was, const train_config_t *now,
                              train_changes_t *out, err_t *err)
{
    train_changes_t changes = {0};
    tree_t *then = NULL, *today = NULL;
    str_buf_t text = {0};
    err_code_t rc = ERR_OK;

    if (was[0] != '\0') {
        opt_print(train_options, now, 0, &text);
        rc = resolved(was, &then, err);
        if (rc == ERR_OK)
            rc = conf_parse("run file", text.text, &today, err);
        if (rc == ERR_OK)
            compare_rows(&(pair_t){"", "", then, today}, train_options,
                         &changes);
    }
    if (rc == ERR_OK)
        *out = changes;
    str_buf_free(&text);
    tree_free(today);
    tree_free(then);
    return rc;
}

void train_changes_free(train_changes_t *changes)
{
    for (int i = 0; i < changes->count && i < TRAIN_CHANGES_MAX; i++) {
        free(changes->items[i].key);
        free(changes->items[i].was);
        free(changes->items[i].now);
    }
    *changes = (train_changes_t){0};
}

void train_changes_print(const train_changes_t *changes, int most,
                         str_buf_t *out)
{
    for (int i = 0; i < changes->count && i < most; i++)
        str_buf_add(out, "%s%s %s -> %s", i > 0 ? ", " : "",
                    changes->items[i].key, changes->items[i].was,
                    changes->items[i].now);
    if (changes->count > most)
        str_buf_add(out, " and %d more", changes->count - most);
}
