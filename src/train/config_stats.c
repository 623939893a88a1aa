/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Replaces `stats: FILE` of a field by the numbers in FILE. So the resolved
 * configuration has the numbers that are used: all ranks compare them, a
 * checkpoint keeps them, and a run that resumes with other numbers logs the
 * change. A complete run that is started again with other numbers is refused.
 */
#include <stdlib.h>

#include "conf/conf.h"
#include "train/config_rows.h"

/* The entry of a dataset in a file of statistics. */
typedef struct stats {
    char *type;
    const tree_t *unused;
    opt_reals_t mean, std;
} stats_t;

#define STATS(field, key, kind, value, ...) \
    ROW(stats_t, field, key, kind, value, __VA_ARGS__)
#define UNUSED(key) STATS(unused, key, OPT_TREE, "")

static const opt_row_t stats_options[] = {
    STATS(type, "type", OPT_TEXT, ""),
    STATS(mean, "mean", OPT_REALS, NULL),
    STATS(std, "std", OPT_REALS, NULL, .max = 1e300),
    UNUSED("shape"),
    UNUSED("min"),
    UNUSED("max"),
    UNUSED("nan"),
    UNUSED("inf"),
    UNUSED("classes"),
    {.name = NULL}};

/* Refuse settings that stats replaces. */
static err_code_t field_check(const hdf5io_field_t *field, const char *key,
                              tree_place_t place, err_t *err)
{
    const bool lists = field->mean.count > 0 || field->std.count > 0;
    const char *const others = lists ? "mean or std" : "scale or shift";
    char at[512];

    if (!lists && field->scale == 1 && field->shift == 0)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s: data.%s has stats and %s: leave %s out, as stats gives "
                   "mean and std of the stored numbers",
                   tree_place_format(place, at, sizeof at), key, others,
                   others);
}

/* Move the numbers of [entry], which is about dataset [path], to [field]. */
static err_code_t entry_take(const tree_t *entry, const char *path,
                             hdf5io_field_t *field, err_t *err)
{
    stats_t stats;
    err_code_t rc = opt_fill(stats_options, entry, path, &stats, err);

    if (rc != ERR_OK)
        return rc;
    for (int c = 0; c < stats.std.count; c++)
        if (stats.std.items[c] == 0)
            stats.std.items[c] = 1;
    free(field->mean.items);
    free(field->std.items);
    field->mean = stats.mean;
    field->std = stats.std;
    stats.mean = stats.std = (opt_reals_t){0};
    opt_free(stats_options, &stats);
    return ERR_OK;
}

static err_code_t field_resolve(hdf5io_field_t *field, err_t *err)
{
    char *path =
        str_printf("%s%s", field->path[0] == '/' ? "" : "/", field->path);
    const tree_t *entry = NULL;
    tree_t *tree = NULL;
    err_code_t rc = conf_read(field->stats, &tree, err);

    if (rc == ERR_OK) {
        entry = tree_get(tree, path);
        if (entry == NULL)
            rc = err_set(err, ERR_CONFIG,
                         "%s: there is no entry %s: expected a file that "
                         "cddp-data stats --yaml has written for this dataset",
                         field->stats, path);
    }
    if (rc == ERR_OK)
        rc = entry_take(entry, path, field, err);
    if (rc == ERR_OK) {
        free(field->stats);
        field->stats = str_dup("");
    }
    tree_free(tree);
    free(path);
    return rc;
}

err_code_t train_config_stats(const opt_map_t *fields, const char *key,
                              err_t *err)
{
    hdf5io_field_t *all = fields->items;
    err_code_t rc = ERR_OK;

    for (int k = 0; k < fields->count && rc == ERR_OK; k++) {
        if (all[k].stats[0] == '\0')
            continue;
        rc = field_check(&all[k], key, fields->places[k], err);
        if (rc == ERR_OK)
            rc = field_resolve(&all[k], err);
    }
    return rc;
}
