/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Parameter groups: options for the parameters whose names match. Groups apply
 * in order, key by key, so several groups may match one parameter. All
 * parameters that match the same groups share one set of options. A set is read
 * from one map, into which the options of these groups and of the optimizer are
 * merged: so a group may set any option of the optimizer.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "optim/optim_priv.h"

#define GROUPS_MAX 64  /* bits of optim_set_t.groups */
#define NAMES_SHOWN 12 /* maximum number of parameters that an error names */

typedef struct group {
    opt_texts_t match;
    double lr_scale;
    bool freeze;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
} group_t;

static const opt_row_t group_rows[] = {
    {.name = "match",
     .type = OPT_TEXTS,
     .offset = offsetof(group_t, match),
     .fallback = NULL,
     .help = "Patterns of parameter names, such as '*.bias' or 'conv1.*'"},
    {.name = "lr_scale",
     .type = OPT_REAL,
     .offset = offsetof(group_t, lr_scale),
     .fallback = "1",
     .min = 0,
     .max = 1e6,
     .help = "Factor of the learning rate of these parameters"},
    {.name = "freeze",
     .type = OPT_BOOL,
     .offset = offsetof(group_t, freeze),
     .fallback = "false",
     .help = "true: do not train these parameters. Their gradients are left "
             "out of all norms; running statistics are still updated"},
    {.name = NULL},
};

enum { GROUP_ROWS = sizeof group_rows / sizeof group_rows[0] - 1 };

typedef struct groups {
    optim_base_t base;
    const tree_t *tree; /* list of groups */
    const optim_layout_t *layout;
    /* Group_rows, then the rows of the kind, with offsets from .options. */
    opt_row_t rows[GROUP_ROWS + OPTIM_ROWS_MAX + 1];
    optim_sets_t sets;
    uint64_t *matched; /* [view]: bit i: group i matches the view */
} groups_t;

static void rows_join(groups_t *groups)
{
    const opt_row_t *kind = groups->base.kind->row.options;
    int count = GROUP_ROWS;

    memcpy(groups->rows, group_rows, sizeof group_rows);
    for (; kind->name != NULL; kind++) {
        groups->rows[count] = *kind;
        groups->rows[count++].offset += offsetof(group_t, options);
    }
    groups->rows[count] = (opt_row_t){.name = NULL};
}

static err_code_t fail_at(tree_place_t place, const char *text, err_t *err)
{
    char at[OPT_PLACE_TEXT];

    return err_set(err, ERR_CONFIG, "%s: %s",
                   tree_place_format(place, at, sizeof at), text);
}

/* ---- a pattern that matches nothing -------------------------------------- */

/* Keep in *near (NULL: none yet) the one of *near and [candidate] that is
 * nearer to [pattern], and free the other. */
static void consider(const char *pattern, char *candidate, char **near)
{
    const char *names[] = {candidate, *near, NULL};
    const char *best = str_nearest(pattern, names);

    if (best == candidate) {
        free(*near);
        *near = candidate;
    } else {
        free(candidate);
    }
}

/* The pattern nearest to [pattern] that would match something: a full name,
 * "LAYER.*" or "*.PARAMETER". The caller frees it. */
static char *nearest(const optim_layout_t *layout, const char *pattern)
{
    char *near = NULL;

    for (int i = 0; i < layout->view_count; i++) {
        const char *name = layout->views[i].name;
        const char *dot = strrchr(name, '.');

        consider(pattern, str_dup(name), &near);
        if (dot == NULL)
            continue;
        consider(pattern, str_printf("%.*s.*", (int)(dot - name), name), &near);
        consider(pattern, str_printf("*%s", dot), &near);
    }
    return near;
}

static err_code_t fail_unmatched(const groups_t *groups, const char *pattern,
                                 tree_place_t place, err_t *err)
{
    const optim_layout_t *layout = groups->layout;
    char *near = nearest(layout, pattern);
    str_buf_t text = {0};

    str_buf_add(&text, "'%s' matches no parameter; ", pattern);
    if (near != NULL)
        str_buf_add(&text, "did you mean '%s'? ", near);
    str_buf_add(&text, "The model has ");
    /* The arena begins with the last layer, but readers expect the first layer
     * first. */
    for (int i = 0; i < layout->view_count && i < NAMES_SHOWN; i++)
        str_buf_add(&text, "%s%s", i == 0 ? "" : ", ",
                    layout->views[layout->view_count - 1 - i].name);
    if (layout->view_count > NAMES_SHOWN)
        str_buf_add(&text, " and %d more", layout->view_count - NAMES_SHOWN);
    fail_at(place, text.text, err);
    str_buf_free(&text);
    free(near);
    return ERR_CONFIG;
}

/* ---- one group ----------------------------------------------------------- */

/* Set bit [index] in groups->matched of each view whose name the pattern of
 * group [index] matches. */
static err_code_t pattern_apply(const groups_t *groups, int index,
                                const char *pattern, tree_place_t place,
                                err_t *err)
{
    bool any = false;

    for (int i = 0; i < groups->layout->view_count; i++) {
        if (fnmatch(pattern, groups->layout->views[i].name, 0) != 0)
            continue;
        groups->matched[i] |= UINT64_C(1) << index;
        any = true;
    }
    return any ? ERR_OK : fail_unmatched(groups, pattern, place, err);
}

/* Check the keys of group [index], and mark the parameters that match. */
static err_code_t group_apply(const groups_t *groups, int index, err_t *err)
{
    const tree_t *tree = tree_at(groups->tree, (size_t)index), *match;
    char *path = str_printf("optimizer.groups[%d]", index);
    group_t group = {0};
    err_code_t rc;

    if (tree_kind(tree) == TREE_MAP)
        rc = opt_fill(groups->rows, tree, path, &group, err);
    else
        rc = fail_at(tree_place(tree),
                     "a group is a map, such as {match: '*.bias', "
                     "weight_decay: 0}",
                     err);
    free(path);
    if (rc != ERR_OK)
        return rc;
    match = tree_get(tree, "match");
    if (group.match.count == 0)
        rc = fail_at(tree_place(match), "'match' names no pattern", err);
    for (int i = 0; i < group.match.count && rc == ERR_OK; i++)
        rc = pattern_apply(groups, index, group.match.items[i],
                           tree_place(tree_kind(match) == TREE_LIST
                                          ? tree_at(match, (size_t)i)
                                          : match),
                           err);
    opt_free(groups->rows, &group);
    return rc;
}

/* ---- sets ---------------------------------------------------------------- */

/* Copy the keys of [from] that [to] lacks to [to]. */
static void merge(tree_t *to, const tree_t *from)
{
    if (from == NULL || tree_kind(from) != TREE_MAP)
        return;
    for (size_t i = 0; i < tree_count(from); i++)
        if (tree_kind(tree_at(from, i)) != TREE_NULL &&
            tree_get(to, tree_key(from, i)) == NULL)
            tree_put(to, tree_key(from, i), tree_key_place(from, i),
                     tree_clone(tree_at(from, i)));
}

static double lr_of(const optim_kind_t *kind, const void *options)
{
    return *(const double *)((const char *)options + kind->lr);
}

/* Fill [set] from [group], the merged options. */
static err_code_t set_take(const groups_t *groups, group_t *group,
                           tree_place_t place, optim_set_t *set, err_t *err)
{
    const optim_kind_t *kind = groups->base.kind;
    const double base = lr_of(kind, groups->base.options);
    const double own = lr_of(kind, group->options);
    err_code_t rc = ERR_OK;
    char at[OPT_PLACE_TEXT];

    if (own != base && base == 0)
        return fail_at(
            place,
            "a group's lr becomes a multiple of the optimizer's lr, "
            "which is 0: set the optimizer's lr, and freeze the other "
            "parameters",
            err);
    if (kind->validate != NULL)
        rc = kind->validate(group->options, err);
    if (rc != ERR_OK) {
        err_prefix(err, "%s", tree_place_format(place, at, sizeof at));
        return rc;
    }
    set->lr_ratio = group->lr_scale * (own == base ? 1 : own / base);
    set->freeze = group->freeze;
    memcpy(set->options, group->options, sizeof set->options);
    return ERR_OK;
}

/* Merge and read the options of the groups in [set->groups]. */
static err_code_t set_read(const groups_t *groups, optim_set_t *set, err_t *err)
{
    tree_place_t place = {.file = ""};
    tree_t *merged = tree_new(TREE_MAP, NULL, place);
    group_t group = {0};
    err_code_t rc;

    for (int i = GROUPS_MAX - 1; i >= 0; i--) {
        if (!((set->groups >> i) & 1))
            continue;
        if (place.line == 0)
            place = tree_place(tree_at(groups->tree, (size_t)i));
        merge(merged, tree_at(groups->tree, (size_t)i));
    }
    merge(merged, groups->base.written);
    /* The set of no groups has no key 'match', so its row is skipped. */
    rc = opt_fill(groups->rows + (set->groups == 0 ? 1 : 0), merged,
                  "optimizer.groups", &group, err);
    tree_free(merged);
    if (rc != ERR_OK)
        return rc;
    if (set->groups == 0)
        group.lr_scale = 1;
    rc = set_take(groups, &group, place, set, err);
    /* The set owns the options now. */
    opt_free(rc == ERR_OK ? group_rows : groups->rows, &group);
    return rc;
}

/* Set *out to the index of the set of the groups in [mask]; make the set if
 * there is none. */
static err_code_t set_find(groups_t *groups, uint64_t mask, int *out,
                           err_t *err)
{
    optim_set_t *set;
    err_code_t rc;

    for (*out = 0; *out < groups->sets.count; ++*out)
        if (groups->sets.list[*out].groups == mask)
            return ERR_OK;
    check(groups->sets.count <= groups->layout->view_count,
          "%d sets for %d parameters", groups->sets.count,
          groups->layout->view_count);
    set = &groups->sets.list[groups->sets.count];
    set->groups = mask;
    rc = set_read(groups, set, err);
    if (rc == ERR_OK)
        groups->sets.count++;
    return rc;
}

static err_code_t sets_make(groups_t *groups, int *set_of, err_t *err)
{
    const int views = groups->layout->view_count;
    bool trains = false;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < views && rc == ERR_OK; i++) {
        rc = set_find(groups, groups->matched[i], &set_of[i], err);
        if (rc == ERR_OK && !groups->sets.list[set_of[i]].freeze)
            trains = true;
    }
    if (rc == ERR_OK && !trains)
        rc = fail_at(tree_place(groups->tree),
                     "every parameter is frozen, so there is nothing to "
                     "train",
                     err);
    return rc;
}

/* ---- all groups ---------------------------------------------------------- */

static err_code_t groups_check(const tree_t *tree, err_t *err)
{
    if (tree_kind(tree) != TREE_LIST)
        return fail_at(tree_place(tree),
                       "optimizer.groups is a list of maps, such as [{match: "
                       "'*.bias', weight_decay: 0}]",
                       err);
    if (tree_count(tree) > GROUPS_MAX)
        return fail_at(
            tree_place(tree),
            "optimizer.groups has more than 64 groups; give one group "
            "several patterns: match: [a.*, b.*]",
            err);
    return ERR_OK;
}

err_code_t optim_groups_read(const optim_base_t *base,
                             const optim_layout_t *layout, optim_sets_t *out,
                             int *set_of, err_t *err)
{
    const size_t views = (size_t)layout->view_count;
    tree_t *none = tree_new(TREE_LIST, NULL, (tree_place_t){.file = ""});
    groups_t groups = {.base = *base, .tree = base->groups, .layout = layout};
    err_code_t rc;

    if (base->groups == NULL || tree_kind(base->groups) == TREE_NULL)
        groups.tree = none;
    rows_join(&groups);
    rc = groups_check(groups.tree, err);
    if (rc == ERR_OK)
        rc = mem_new(optim_set_t, views + 1, "parameter groups",
                     &groups.sets.list, err);
    if (rc == ERR_OK)
        rc = mem_new(uint64_t, views + 1, "parameter groups", &groups.matched,
                     err);
    for (int i = 0; rc == ERR_OK && i < (int)tree_count(groups.tree); i++)
        rc = group_apply(&groups, i, err);
    if (rc == ERR_OK)
        rc = sets_make(&groups, set_of, err);
    mem_free(groups.matched);
    tree_free(none);
    if (rc != ERR_OK) {
        optim_sets_free(base->kind, &groups.sets);
        return rc;
    }
    *out = groups.sets;
    return ERR_OK;
}

void optim_sets_free(const optim_kind_t *kind, optim_sets_t *sets)
{
    for (int i = 0; i < sets->count; i++)
        opt_free(kind->row.options, sets->list[i].options);
    mem_free(sets->list);
    *sets = (optim_sets_t){0};
}

void optim_groups_document(str_buf_t *out)
{
    str_buf_add(
        out, "### groups\n\n"
             "`groups`, beside the optimizer's name, is a list of maps. Each "
             "map applies to the parameters whose names it matches (`*`, `?` "
             "and `[...]` as in a shell). It may name any option of the "
             "optimizer, and the keys below. Groups apply in order: if "
             "several match a parameter, the last one that names a key wins. "
             "The schedule scales all rates together.\n\n"
             "    optimizer:\n"
             "      adamw: {lr: 1.0e-3, weight_decay: 0.01}\n"
             "      groups:\n"
             "        - {match: '*.bias', weight_decay: 0}\n"
             "        - {match: 'conv1.*', lr_scale: 0.1}\n"
             "        - {match: ['conv2.*', 'bn2.*'], freeze: true}\n\n");
    opt_document(group_rows, "optimizer.groups", out);
}
