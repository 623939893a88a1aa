/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_stats.h"

#include <math.h>

#include "cmd/data_info.h"
#include "hdf5io/h5.h"

enum { SHOWN = 16 }; /* channels and classes in the table */

/* Over all numbers, not of a sample of them. */
static double deviation_of(const cmd_stats_channel_t *channel)
{
    return channel->count > 0 ? sqrt(channel->squares / (double)channel->count)
                              : NAN;
}

/* Append the type and the shape of a sample. */
static void title_add(const import_field_t *field, const char *between,
                      str_buf_t *out)
{
    char type[32];

    h5_lock();
    str_buf_add(out, "%s%s[", cmd_data_type_name(field->stored, type, 32),
                between);
    h5_unlock();
    for (int d = 0; d < field->ndim; d++)
        str_buf_add(out, "%s%lld", d > 0 ? ", " : "",
                    (long long)field->dims[d]);
    str_buf_add(out, "]\n");
}

static void channel_add(int index, const cmd_stats_channel_t *channel,
                        str_buf_t *out)
{
    str_buf_add(out, "  %7d  %12.6g %12.6g %12.6g %12.6g", index,
                channel->count > 0 ? channel->mean : NAN, deviation_of(channel),
                channel->count > 0 ? channel->min : NAN,
                channel->count > 0 ? channel->max : NAN);
    if (channel->nan > 0)
        str_buf_add(out, "  %lld nan", (long long)channel->nan);
    if (channel->inf > 0)
        str_buf_add(out, "  %lld inf", (long long)channel->inf);
    str_buf_add(out, "\n");
}

static void classes_add(const cmd_stats_t *stats, str_buf_t *out)
{
    int64_t least = INT64_MAX, most = 0;
    int empty = 0;

    for (int i = 0; i < stats->class_count; i++) {
        const int64_t count = stats->classes[i];

        empty += count == 0;
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    str_buf_add(out, "  classes 0 to %d, of %lld to %lld samples",
                stats->class_count - 1, (long long)least, (long long)most);
    if (empty > 0)
        str_buf_add(out, " (%d without any)", empty);
    str_buf_add(out, ":");
    for (int i = 0; i < stats->class_count && i < SHOWN; i++)
        str_buf_add(out, " %lld", (long long)stats->classes[i]);
    str_buf_add(out, "%s\n", stats->class_count > SHOWN ? " ..." : "");
}

void cmd_stats_print(const import_source_t *source, const cmd_stats_t *stats,
                     str_buf_t *out)
{
    char rows[32];

    str_buf_add(out, "%s samples\n",
                str_count((uint64_t)source->rows, rows, sizeof rows));
    for (int i = 0; i < source->field_count; i++) {
        str_buf_add(out, "/%-21s ", source->fields[i].name);
        title_add(&source->fields[i], " ", out);
        if (stats[i].channels == 0) {
            str_buf_add(out, "  no numbers\n");
            continue;
        }
        str_buf_add(out, "  %7s  %12s %12s %12s %12s\n", "channel", "mean",
                    "std", "min", "max");
        for (int c = 0; c < stats[i].channels && c < SHOWN; c++)
            channel_add(c, &stats[i].of[c], out);
        if (stats[i].channels > SHOWN)
            str_buf_add(out, "  ... (%d channels; --yaml FILE has all)\n",
                        stats[i].channels);
        if (stats[i].classes != NULL)
            classes_add(&stats[i], out);
    }
}

/* ---- YAML ---------------------------------------------------------------- */

/* Append a number so that reading it gives the same one. */
static void number_add(double x, str_buf_t *out)
{
    if (isnan(x))
        str_buf_add(out, ".nan");
    else
        str_buf_add(out, "%.17g", x);
}

/* Append "  NAME: [a, b]" with one value of each channel. */
static void list_add(const cmd_stats_t *stats, const char *name,
                     double (*value)(const cmd_stats_channel_t *),
                     str_buf_t *out)
{
    str_buf_add(out, "  %s: [", name);
    for (int c = 0; c < stats->channels; c++) {
        str_buf_add(out, "%s", c > 0 ? ", " : "");
        number_add(value(&stats->of[c]), out);
    }
    str_buf_add(out, "]\n");
}

static double mean_of(const cmd_stats_channel_t *channel)
{
    return channel->count > 0 ? channel->mean : NAN;
}

static double min_of(const cmd_stats_channel_t *channel)
{
    return channel->count > 0 ? channel->min : NAN;
}

static double max_of(const cmd_stats_channel_t *channel)
{
    return channel->count > 0 ? channel->max : NAN;
}

static double nan_of(const cmd_stats_channel_t *channel)
{
    return (double)channel->nan;
}

static double inf_of(const cmd_stats_channel_t *channel)
{
    return (double)channel->inf;
}

void cmd_stats_yaml(const import_source_t *source, const cmd_stats_t *stats,
                    str_buf_t *out)
{
    str_buf_add(out, "# Written by cddp-data stats.\nsamples: %lld\n",
                (long long)source->rows);
    for (int i = 0; i < source->field_count; i++) {
        const cmd_stats_t *of = &stats[i];

        str_buf_add(out, "\"/%s\":\n  type: ", source->fields[i].name);
        title_add(&source->fields[i], "\n  shape: ", out);
        if (of->channels == 0)
            continue;
        list_add(of, "mean", mean_of, out);
        list_add(of, "std", deviation_of, out);
        list_add(of, "min", min_of, out);
        list_add(of, "max", max_of, out);
        list_add(of, "nan", nan_of, out);
        list_add(of, "inf", inf_of, out);
        if (of->classes == NULL)
            continue;
        str_buf_add(out, "  classes: [");
        for (int c = 0; c < of->class_count; c++)
            str_buf_add(out, "%s%lld", c > 0 ? ", " : "",
                        (long long)of->classes[c]);
        str_buf_add(out, "]\n");
    }
}
