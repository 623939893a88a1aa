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

/* Where in the run file the two compared trees are. */
typedef struct place {
    const char *section; /* section, such as "optimizer" */
    const char *path;    /* path, such as "optimizer.groups[0]" */
} place_t;

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

static void change_add(train_changes_t *out, const char *key, const tree_t *was,
                       const tree_t *now)
{
    if (out->count < TRAIN_CHANGES_MAX)
        out->items[out->count] = (train_change_t){.key = str_dup(key),
                                                  .was = value_text(was),
                                                  .now = value_text(now)};
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

static void compare(place_t at, const tree_t *was, const tree_t *now,
                    train_changes_t *out);

/* Compare two values. [fallback] ("" or NULL: none) replaces a missing one. */
static void compare_or(place_t at, const char *fallback, const tree_t *was,
                       const tree_t *now, train_changes_t *out)
{
    tree_t *none = NULL;

    if (fallback != NULL && fallback[0] != '\0' &&
        is_absent(was) != is_absent(now))
        none = tree_new(TREE_SCALAR, fallback, (tree_place_t){"", 0, 0});
    compare(at, is_absent(was) ? none : was, is_absent(now) ? none : now, out);
    tree_free(none);
}

/* Compare the values of [key]. [was] or [now] is NULL if that side has no such
 * key. */
static void compare_key(place_t at, const char *key, const char *fallback,
                        const tree_t *was, const tree_t *now,
                        train_changes_t *out)
{
    char *path = str_printf("%s.%s", at.path, key);

    compare_or((place_t){at.section, path}, fallback, was, now, out);
    free(path);
}

static const tree_t *get(const tree_t *tree, const char *key)
{
    return is_absent(tree) || tree_kind(tree) != TREE_MAP ? NULL
                                                          : tree_get(tree, key);
}

/* Compare the options of a kind. Options may be missing on either side. */
static void compare_options(place_t at, const opt_row_t *rows,
                            const tree_t *was, const tree_t *now,
                            train_changes_t *out)
{
    /* No option has the name of a kind. */
    const place_t inside = {"", at.path};

    for (; rows->name != NULL; rows++)
        compare_key(inside, rows->name, rows->fallback, get(was, rows->name),
                    get(now, rows->name), out);
}

/* The options of the preset that both sides name; NULL: they name no common
 * preset. */
static const opt_row_t *preset_rows(place_t at, const tree_t *was,
                                    const tree_t *now)
{
    const tree_t *a = get(was, "preset"), *b = get(now, "preset");

    if (strcmp(at.section, "model") != 0 || is_absent(a) || is_absent(b) ||
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
static void compare_preset(place_t at, const opt_row_t *rows, const tree_t *was,
                           const tree_t *now, train_changes_t *out)
{
    const place_t inside = {"", at.path};

    for (size_t i = 0; i < tree_count(was); i++)
        compare_key(inside, tree_key(was, i),
                    default_of(rows, tree_key(was, i)), tree_at(was, i),
                    tree_get(now, tree_key(was, i)), out);
    for (size_t i = 0; i < tree_count(now); i++)
        if (tree_get(was, tree_key(now, i)) == NULL)
            compare_key(inside, tree_key(now, i),
                        default_of(rows, tree_key(now, i)), NULL,
                        tree_at(now, i), out);
}

static bool is_map(const tree_t *tree)
{
    return is_absent(tree) || tree_kind(tree) == TREE_MAP;
}

/* Compare all keys of both maps. */
static void compare_maps(place_t at, const tree_t *was, const tree_t *now,
                         train_changes_t *out)
{
    for (size_t i = 0; i < tree_count(was); i++) {
        const char *key = tree_key(was, i);
        const opt_row_t *rows = rows_of(at.section, key);

        if (rows == NULL || tree_get(now, key) == NULL ||
            !is_map(tree_at(was, i)) || !is_map(tree_get(now, key))) {
            compare_key(at, key, NULL, tree_at(was, i), tree_get(now, key),
                        out);
        } else {
            char *path = str_printf("%s.%s", at.path, key);

            compare_options((place_t){at.section, path}, rows, tree_at(was, i),
                            tree_get(now, key), out);
            free(path);
        }
    }
    for (size_t i = 0; i < tree_count(now); i++)
        if (tree_get(was, tree_key(now, i)) == NULL)
            compare_key(at, tree_key(now, i), NULL, NULL, tree_at(now, i), out);
}

/* A bare name of a kind stands for a map with all defaults. */
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
static void compare_kinds(place_t at, const tree_t *was, const tree_t *now,
                          train_changes_t *out)
{
    const bool alone =
        tree_kind(was) == TREE_SCALAR || tree_kind(now) == TREE_SCALAR;
    const char *a = kind_of(at.section, was, alone);
    const char *b = kind_of(at.section, now, alone);
    tree_t *made[2] = {NULL, NULL};

    if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
        change_add(out, at.path, was, now);
    else
        compare_maps(at, as_map(was, &made[0]), as_map(now, &made[1]), out);
    tree_free(made[1]);
    tree_free(made[0]);
}

static void compare_lists(place_t at, const tree_t *was, const tree_t *now,
                          train_changes_t *out)
{
    for (size_t i = 0; i < tree_count(was); i++) {
        char *path = str_printf("%s[%zu]", at.path, i);

        compare((place_t){at.section, path}, tree_at(was, i), tree_at(now, i),
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
static void compare_texts(place_t at, const tree_t *was, const tree_t *now,
                          train_changes_t *out)
{
    const tree_t *x = only_one(was), *y = only_one(now);
    char *a = value_text(was), *b = value_text(now);

    if (!is_absent(x) && !is_absent(y) && tree_kind(x) != TREE_LIST &&
        tree_kind(y) != TREE_LIST)
        compare(at, x, y, out);
    else if (strcmp(a, b) != 0)
        change_add(out, at.path, was, now);
    free(b);
    free(a);
}

static void compare(place_t at, const tree_t *was, const tree_t *now,
                    train_changes_t *out)
{
    if (is_absent(was) || is_absent(now)) {
        if (!is_absent(was) || !is_absent(now))
            change_add(out, at.path, was, now);
    } else if ((tree_kind(was) == TREE_LIST) != (tree_kind(now) == TREE_LIST)) {
        compare_texts(at, was, now, out);
    } else if (tree_kind(was) == TREE_LIST &&
               tree_count(was) != tree_count(now)) {
        change_add(out, at.path, was, now);
    } else if (tree_kind(was) == TREE_LIST) {
        compare_lists(at, was, now, out);
    } else if (preset_rows(at, was, now) != NULL) {
        compare_preset(at, preset_rows(at, was, now), was, now, out);
    } else if (tree_kind(was) == TREE_MAP || tree_kind(now) == TREE_MAP) {
        compare_kinds(at, was, now, out);
    } else if (!same_scalar(tree_text(was), tree_text(now))) {
        change_add(out, at.path, was, now);
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

/* Compare all rows. A key that the older version did not know is missing in
 * [was] and is skipped. */
static void compare_rows(const opt_row_t *rows, const char *path,
                         const tree_t *was, const tree_t *now,
                         train_changes_t *out)
{
    for (; rows->name != NULL; rows++) {
        const tree_t *a = get(was, rows->name), *b = get(now, rows->name);
        char *key =
            str_printf("%s%s%s", path, path[0] == '\0' ? "" : ".", rows->name);

        if (rows->type == OPT_SECTION)
            compare_rows(rows->rows, key, a, b, out);
        else if (!rows->free && (a != NULL || rows->type == OPT_TREE))
            compare_or((place_t){path[0] == '\0' ? rows->name : "", key},
                       tree_default(key), a, b, out);
        free(key);
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
            compare_rows(train_options, "", then, today, &changes);
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
