/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The numbers are converted to double in pieces. Of each run of a channel, mean
 * and squares are computed in two passes, and joined with those of the runs
 * before (Chan, Golub, LeVeque): no sum of squares is ever subtracted from
 * another, so nothing cancels.
 */
#include "cmd/data_stats.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/data_labels.h"
#include "cmd/data_source.h"
#include "hdf5io/h5.h"
#include "import/copy.h"

enum { ONLY = 256, YAML, LAYOUT, PIECE = 65536 };

/* Bytes of the largest number of a processor. */
#define ITEM_MAX 16

typedef struct stats_args {
    cmd_source_config_t source;
    const char *yaml; /* NULL: not given */
    bool last;        /* channels are the last dimension */
} stats_args_t;

typedef struct stats_run {
    import_source_t *source;
    bool last; /* channels are the last dimension */
    cmd_stats_t of[IMPORT_FIELDS_MAX];
    hid_t types[IMPORT_FIELDS_MAX]; /* of the numbers, or invalid */
    void *data[IMPORT_FIELDS_MAX];
    double *piece;   /* [PIECE] */
    int64_t *labels; /* of a slab */
} stats_run_t;

/* ---- numbers ------------------------------------------------------------- */

/* Join [count] numbers with their [mean] and [squares]. */
static void numbers_join(cmd_stats_channel_t *channel, int64_t count,
                         double mean, double squares)
{
    const int64_t all = channel->count + count;
    const double apart = mean - channel->mean;
    const double part = (double)count / (double)all;

    if (count == 0)
        return;
    channel->mean += apart * part;
    channel->squares += squares + apart * apart * part * (double)channel->count;
    channel->count = all;
}

static void run_add(cmd_stats_channel_t *channel, const double *numbers,
                    int64_t count)
{
    double sum = 0, squares = 0, mean;
    int64_t finite = 0;

    for (int64_t i = 0; i < count; i++) {
        const double x = numbers[i];

        if (!isfinite(x)) {
            channel->nan += isnan(x);
            channel->inf += !isnan(x);
            continue;
        }
        if (channel->count + finite == 0)
            channel->min = channel->max = x;
        channel->min = x < channel->min ? x : channel->min;
        channel->max = x > channel->max ? x : channel->max;
        sum += x;
        finite++;
    }
    mean = finite > 0 ? sum / (double)finite : 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(numbers[i]))
            squares += (numbers[i] - mean) * (numbers[i] - mean);
    numbers_join(channel, finite, mean, squares);
}

/* Add [count] numbers, the first of which is number [first] of a sample. */
static void piece_add(cmd_stats_t *stats, const double *numbers, int64_t first,
                      int64_t count)
{
    while (count > 0) {
        const int64_t channel = first / stats->inner % stats->channels;
        const int64_t left = stats->inner - first % stats->inner;
        const int64_t take = left < count ? left : count;

        run_add(&stats->of[channel], numbers, take);
        numbers += take;
        first += take;
        count -= take;
    }
}

/* Add the values of [rows] samples of field [index]. */
static err_code_t values_add(stats_run_t *run, int index, int64_t rows,
                             err_t *err)
{
    const import_field_t *field = &run->source->fields[index];
    cmd_stats_t *stats = &run->of[index];
    const int64_t each = (int64_t)(import_field_bytes(field) / field->item);
    const int64_t room = field->item > sizeof(double)
                             ? (int64_t)(PIECE * sizeof(double) / field->item)
                             : PIECE;

    for (int64_t at = 0; at < each * rows; at += room) {
        const int64_t left = each * rows - at;
        const int64_t count = room < left ? room : left;
        bool good;

        memcpy(run->piece, (char *)run->data[index] + (size_t)at * field->item,
               (size_t)count * field->item);
        h5_lock();
        good = H5Tconvert(run->types[index], H5T_NATIVE_DOUBLE, (size_t)count,
                          run->piece, NULL, H5P_DEFAULT) >= 0;
        if (!good)
            h5_err_set(err, ERR_DATA, "the numbers of /%s cannot be converted",
                       field->name);
        h5_unlock();
        if (!good)
            return ERR_DATA;
        piece_add(stats, run->piece, at % each, count);
    }
    return ERR_OK;
}

/* Count the classes of [rows] samples. What is no class, ends the counting. */
static err_code_t classes_add(stats_run_t *run, int index, int64_t rows,
                              err_t *err)
{
    cmd_stats_t *stats = &run->of[index];
    err_code_t rc = cmd_labels_get(run->source, index, rows, run->data[index],
                                   run->labels, err);

    for (int64_t i = 0; i < rows && rc == ERR_OK && stats->classes != NULL;
         i++) {
        const int64_t label = run->labels[i];

        if (label < 0 || label >= CMD_LABELS_MAX) {
            mem_free(stats->classes);
            stats->classes = NULL;
            break;
        }
        stats->classes[label]++;
        if (label >= stats->class_count)
            stats->class_count = (int)label + 1;
    }
    return rc;
}

/* ---- datasets ------------------------------------------------------------ */

/* The type of the numbers of a field; invalid: they are none. */
static hid_t type_of(const import_field_t *field)
{
    hid_t type = H5I_INVALID_HID;

    if (field->item > ITEM_MAX)
        return type;
    h5_lock();
    switch (H5Tget_class(field->stored)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
        type = H5Tcopy(field->stored);
        break;
    case H5T_ENUM:
        type = H5Tget_super(field->stored);
        break;
    default:
        break;
    }
    h5_unlock();
    return type;
}

/* Samples of three dimensions and more have channels along the first one. A
 * sample of one dimension is a row of a table, and each column is a channel.
 * [last]: samples of two dimensions and more have channels along the last one.
 */
static void channels_set(const import_field_t *field, bool last,
                         cmd_stats_t *stats)
{
    const bool along = field->ndim == 1 || field->ndim >= 3;
    const bool behind = last && field->ndim >= 2;
    const int at = behind ? field->ndim - 1 : 0;

    stats->channels = 1;
    if ((along || behind) && field->dims[at] <= CMD_STATS_CHANNELS)
        stats->channels = (int)field->dims[at];
    stats->inner = 1;
    if (behind && stats->channels > 1)
        return;
    for (int i = stats->channels > 1 ? 1 : 0; i < field->ndim; i++)
        stats->inner *= field->dims[i];
}

static err_code_t field_open(stats_run_t *run, int index, int64_t slab,
                             err_t *err)
{
    const import_field_t *field = &run->source->fields[index];
    cmd_stats_t *stats = &run->of[index];
    err_code_t rc = mem_alloc((size_t)slab * import_field_bytes(field),
                              "samples", &run->data[index], err);

    run->types[index] = type_of(field);
    if (rc != ERR_OK || run->types[index] < 0)
        return rc;
    channels_set(field, run->last, stats);
    rc = mem_new(cmd_stats_channel_t, (size_t)stats->channels, "channels",
                 &stats->of, err);
    if (rc == ERR_OK && cmd_labels_check(run->source, index, NULL) == ERR_OK)
        rc = mem_new(int64_t, CMD_LABELS_MAX, "classes", &stats->classes, err);
    return rc;
}

static err_code_t slab_add(stats_run_t *run, int64_t rows, err_t *err)
{
    err_code_t rc = run->source->kind->read(run->source, rows, run->data, err);

    for (int i = 0; i < run->source->field_count && rc == ERR_OK; i++) {
        if (run->types[i] < 0)
            continue;
        rc = values_add(run, i, rows, err);
        if (rc == ERR_OK && run->of[i].classes != NULL)
            rc = classes_add(run, i, rows, err);
    }
    return rc;
}

static err_code_t samples_add(stats_run_t *run, err_t *err)
{
    const int64_t rows = run->source->rows;
    const int64_t slab = import_copy_rows(run->source);
    err_code_t rc = mem_new(double, PIECE, "numbers", &run->piece, err);

    if (rc == ERR_OK)
        rc = mem_new(int64_t, (size_t)slab, "labels", &run->labels, err);
    for (int i = 0; i < run->source->field_count && rc == ERR_OK; i++)
        rc = field_open(run, i, slab, err);
    for (int64_t done = 0; done < rows && rc == ERR_OK; done += slab)
        rc = slab_add(run, slab < rows - done ? slab : rows - done, err);
    return rc;
}

static void run_free(stats_run_t *run)
{
    h5_lock();
    for (int i = 0; i < IMPORT_FIELDS_MAX; i++)
        if (run->types[i] >= 0)
            H5Tclose(run->types[i]);
    h5_unlock();
    for (int i = 0; i < IMPORT_FIELDS_MAX; i++) {
        mem_free(run->data[i]);
        mem_free(run->of[i].of);
        mem_free(run->of[i].classes);
    }
    mem_free(run->piece);
    mem_free(run->labels);
    run->source->kind->close(run->source);
}

/* ---- the command --------------------------------------------------------- */

static err_code_t option_take(void *context, int option, err_t *err)
{
    stats_args_t *args = context;

    if (option == ONLY)
        args->source.only = optarg;
    else if (option == YAML)
        args->yaml = optarg;
    else if (strcmp(optarg, "nhwc") == 0)
        args->last = true;
    else if (strcmp(optarg, "nchw") == 0)
        args->last = false;
    else
        return err_set(err, ERR_USAGE,
                       "stats: --layout %s: expected nchw or nhwc; try "
                       "cddp-data --help",
                       optarg);
    return ERR_OK;
}

static err_code_t args_take(int argc, char **argv, stats_args_t *args,
                            err_t *err)
{
    static const struct option table[] = {
        {"only", required_argument, NULL, ONLY},
        {"layout", required_argument, NULL, LAYOUT},
        {"yaml", required_argument, NULL, YAML},
        {NULL, 0, NULL, 0}};
    const cmd_options_t options = {"cddp-data", ":", table, option_take};
    err_code_t rc = cmd_options_take(&options, argc, argv, args, err);

    if (rc == ERR_OK && optind == argc)
        rc = err_set(err, ERR_USAGE,
                     "stats: name at least one file; try cddp-data --help");
    args->source.paths = argv + optind;
    args->source.count = argc - optind;
    return rc;
}

err_code_t cmd_data_stats(int argc, char **argv, err_t *err)
{
    stats_args_t args = {.yaml = NULL};
    stats_run_t run = {.source = NULL};
    str_buf_t text = {0}, yaml = {0};
    err_code_t rc = args_take(argc, argv, &args, err);

    for (int i = 0; i < IMPORT_FIELDS_MAX; i++)
        run.types[i] = H5I_INVALID_HID;
    if (rc == ERR_OK)
        rc = cmd_source_open(&args.source, &run.source, err);
    if (rc != ERR_OK)
        return rc;
    run.last = args.last;
    rc = samples_add(&run, err);
    if (rc == ERR_OK) {
        cmd_stats_print(run.source, run.of, &text);
        cmd_stats_yaml(run.source, run.of, &yaml);
        str_print("%s", text.text);
    }
    if (rc == ERR_OK && args.yaml != NULL)
        rc = file_publish(args.yaml, yaml.text, yaml.length, err);
    str_buf_free(&text);
    str_buf_free(&yaml);
    run_free(&run);
    return rc;
}
