/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which samples are for validation is decided one after the other: of the n
 * that are left, of which v are still wanted, the next one is taken with
 * probability v / n. So each choice of v samples is equally likely, the samples
 * keep their order, the files are read once, and it depends on nothing but the
 * seed and the number of samples. With --by-class the same is done for each
 * class on its own, after its samples were counted.
 */
#include "cmd/data_split.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/data_labels.h"
#include "cmd/data_source.h"
#include "cmd/data_target.h"
#include "import/copy.h"

enum { ONLY = CMD_TARGET_END, VALID, SEED, BY_CLASS };

typedef struct split_args {
    cmd_target_t train, valid;
    cmd_source_config_t source;
    double part; /* for validation, per cent */
    int64_t seed;
    const char *by_class; /* dataset of the labels; NULL: not given */
} split_args_t;

/* How many samples of a class are left, and how many of them are wanted. */
typedef struct share {
    int64_t left, wanted;
} share_t;

typedef struct split {
    split_args_t *args;
    import_source_t *source;
    import_sink_t *train, *valid;
    share_t *shares; /* [classes] */
    int classes;     /* 1 without --by-class */
    int field;       /* of the labels; -1: none */
    int64_t wanted;  /* samples for validation, in all */
    rng_t rng;
    int64_t slab; /* samples that are read at a time */
    int64_t done; /* samples that were read */
    void *data[IMPORT_FIELDS_MAX], *apart[IMPORT_FIELDS_MAX];
    int64_t *labels; /* of a slab */
} split_t;

/* ---- the command line ---------------------------------------------------- */

static err_code_t option_take(void *context, int option, err_t *err)
{
    split_args_t *args = context;

    switch (option) {
    case ONLY:
        args->source.only = optarg;
        return ERR_OK;
    case BY_CLASS:
        args->by_class = optarg;
        return ERR_OK;
    case VALID:
        if (str_to_real(optarg, &args->part) && args->part > 0 &&
            args->part < 100)
            return ERR_OK;
        return err_set(err, ERR_USAGE,
                       "--valid: expected a part in per cent, above 0 and "
                       "below 100, found \"%s\"",
                       optarg);
    case SEED:
        if (str_to_int(optarg, &args->seed) && args->seed >= 0)
            return ERR_OK;
        return err_set(err, ERR_USAGE,
                       "--seed: expected an integer from 0 on, found \"%s\"",
                       optarg);
    default:
        return cmd_target_take(&args->train, option, optarg, err);
    }
}

static err_code_t args_take(int argc, char **argv, split_args_t *args,
                            err_t *err)
{
    static const struct option table[] = {
        CMD_TARGET_OPTIONS,
        {"only", required_argument, NULL, ONLY},
        {"valid", required_argument, NULL, VALID},
        {"seed", required_argument, NULL, SEED},
        {"by-class", required_argument, NULL, BY_CLASS},
        {NULL, 0, NULL, 0}};
    const cmd_options_t options = {"cddp-data", ":o:", table, option_take};
    err_code_t rc = cmd_options_take(&options, argc, argv, args, err);

    if (rc == ERR_OK)
        rc = cmd_target_check(&args->train, "split", err);
    if (rc == ERR_OK && optind == argc)
        rc = err_set(err, ERR_USAGE,
                     "split: name at least one file; try cddp-data --help");
    args->source.paths = argv + optind;
    args->source.count = argc - optind;
    args->valid = args->train;
    args->valid.name = "valid";
    if (args->train.shards > 0)
        args->valid.shards = 1 + (int)(args->train.shards * args->part / 100);
    return rc;
}

/* ---- what is wanted ------------------------------------------------------ */

/* The samples of [count] that are for validation. */
static int64_t part_of(const split_args_t *args, int64_t count)
{
    return llround((double)count * args->part / 100);
}

/* Count the samples of each class, which takes a reading of its own. */
static err_code_t classes_count(split_t *split, err_t *err)
{
    cmd_source_config_t config = split->args->source;
    import_source_t *source = NULL;
    int64_t counts[CMD_LABELS_MAX] = {0};
    err_code_t rc;

    config.only = split->args->by_class;
    rc = cmd_source_open(&config, &source, err);
    if (rc != ERR_OK)
        return rc;
    rc = cmd_labels_count(source, counts, &split->classes, err);
    source->kind->close(source);
    if (rc == ERR_OK)
        rc = mem_new(share_t, (size_t)split->classes, "classes", &split->shares,
                     err);
    for (int i = 0; i < split->classes && rc == ERR_OK; i++) {
        split->shares[i] = (share_t){.left = counts[i],
                                     .wanted = part_of(split->args, counts[i])};
        split->wanted += split->shares[i].wanted;
    }
    return rc;
}

/* Find the field of the labels among those that are copied. */
static err_code_t labels_find(split_t *split, err_t *err)
{
    const import_source_t *source = split->source;
    const char *name = split->args->by_class;

    name += *name == '/';
    for (int i = 0; i < source->field_count; i++)
        if (strcmp(source->fields[i].name, name) == 0)
            split->field = i;
    if (split->field < 0)
        return err_set(err, ERR_USAGE,
                       "--by-class: there is no dataset /%s among those that "
                       "are copied",
                       name);
    return cmd_labels_check(source, split->field, err);
}

static err_code_t wanted_find(split_t *split, err_t *err)
{
    const int64_t rows = split->source->rows;
    err_code_t rc;

    split->field = -1;
    if (split->args->by_class != NULL) {
        rc = labels_find(split, err);
        if (rc == ERR_OK)
            rc = classes_count(split, err);
    } else {
        split->classes = 1;
        rc = mem_new(share_t, 1, "classes", &split->shares, err);
        split->wanted = part_of(split->args, rows);
        if (rc == ERR_OK)
            split->shares[0] = (share_t){.left = rows, .wanted = split->wanted};
    }
    if (rc == ERR_OK && (split->wanted == 0 || split->wanted == rows))
        rc = err_set(err, ERR_USAGE,
                     "--valid: %g %% of %lld samples are %lld: nothing would "
                     "be left for %s",
                     split->args->part, (long long)rows,
                     (long long)split->wanted,
                     split->wanted == 0 ? "validation" : "training");
    return rc;
}

/* ---- copying ------------------------------------------------------------- */

/* Is the next sample, with this label, for validation? */
static bool row_wanted(split_t *split, int64_t label)
{
    share_t *share = &split->shares[label];
    const bool wanted =
        (int64_t)rng_below(&split->rng, (uint64_t)share->left) < share->wanted;

    share->left--;
    share->wanted -= wanted;
    return wanted;
}

/* Of [rows] samples, move those for validation to split->apart, and the others
 * together; *out: how many those for validation are. */
static err_code_t slab_part(split_t *split, int64_t rows, int64_t *out,
                            err_t *err)
{
    const import_source_t *source = split->source;
    int64_t valid = 0;
    err_code_t rc = ERR_OK;

    if (split->field >= 0)
        rc = cmd_labels_get(source, split->field, rows,
                            split->data[split->field], split->labels, err);
    for (int64_t row = 0; row < rows && rc == ERR_OK; row++) {
        const int64_t label = split->field >= 0 ? split->labels[row] : 0;
        bool wanted;

        if (label < 0 || label >= split->classes ||
            split->shares[label].left == 0)
            return err_set(err, ERR_DATA,
                           "%s: the labels were changed while they were read",
                           split->args->source.paths[0]);
        wanted = row_wanted(split, label);
        for (int i = 0; i < source->field_count; i++) {
            const size_t bytes = import_field_bytes(&source->fields[i]);
            char *to =
                wanted ? (char *)split->apart[i] + (size_t)valid * bytes
                       : (char *)split->data[i] + (size_t)(row - valid) * bytes;

            memmove(to, (char *)split->data[i] + (size_t)row * bytes, bytes);
        }
        valid += wanted;
    }
    *out = valid;
    return rc;
}

static err_code_t slab_copy(split_t *split, int64_t rows, err_t *err)
{
    int64_t valid = 0;
    err_code_t rc =
        split->source->kind->read(split->source, rows, split->data, err);

    if (rc == ERR_OK)
        rc = slab_part(split, rows, &valid, err);
    if (rc == ERR_OK)
        rc = import_sink_write(split->train, rows - valid, split->data, err);
    if (rc == ERR_OK)
        rc = import_sink_write(split->valid, valid, split->apart, err);
    split->done += rows;
    return rc;
}

static err_code_t buffers_make(split_t *split, err_t *err)
{
    const import_source_t *source = split->source;
    err_code_t rc = ERR_OK;

    split->slab = import_copy_rows(source);
    for (int i = 0; i < source->field_count && rc == ERR_OK; i++) {
        const size_t bytes =
            (size_t)split->slab * import_field_bytes(&source->fields[i]);

        rc = mem_alloc(bytes, "samples", &split->data[i], err);
        if (rc == ERR_OK)
            rc = mem_alloc(bytes, "samples", &split->apart[i], err);
    }
    if (rc == ERR_OK)
        rc = mem_new(int64_t, (size_t)split->slab, "labels", &split->labels,
                     err);
    return rc;
}

static void split_free(split_t *split)
{
    for (int i = 0; i < IMPORT_FIELDS_MAX; i++) {
        mem_free(split->data[i]);
        mem_free(split->apart[i]);
    }
    mem_free(split->labels);
    mem_free(split->shares);
    import_sink_close(split->train);
    import_sink_close(split->valid);
}

/* Split the samples of split->source and say what was written. */
static err_code_t split_run(split_t *split, double start, err_t *err)
{
    split_args_t *args = split->args;
    const int64_t rows = split->source->rows;
    import_sink_report_t train, valid;
    err_code_t rc = wanted_find(split, err);

    if (rc == ERR_OK)
        rc = cmd_target_open(&args->train, split->source, rows - split->wanted,
                             &split->train, err);
    if (rc == ERR_OK)
        rc = cmd_target_open(&args->valid, split->source, split->wanted,
                             &split->valid, err);
    if (rc == ERR_OK)
        rc = buffers_make(split, err);
    rng_open(&split->rng, (uint64_t)args->seed, RNG_SPLIT, 0, 0);
    while (split->done < rows && rc == ERR_OK) {
        const int64_t left = rows - split->done;

        rc = slab_copy(split, left < split->slab ? left : split->slab, err);
    }
    if (rc == ERR_OK)
        rc = import_sink_finish(split->train, &train, err);
    if (rc == ERR_OK)
        rc = import_sink_finish(split->valid, &valid, err);
    if (rc != ERR_OK)
        return rc;
    cmd_target_print(&args->train, rows - split->wanted, &train,
                     clock_now() - start);
    cmd_target_print(&args->valid, split->wanted, &valid, clock_now() - start);
    cmd_target_fields(split->source);
    return ERR_OK;
}

err_code_t cmd_data_split(int argc, char **argv, err_t *err)
{
    const double start = clock_now();
    split_args_t args = {.train.name = "train", .part = 10, .seed = 1};
    split_t split = {.args = &args};
    err_code_t rc = args_take(argc, argv, &args, err);

    if (rc == ERR_OK)
        rc = cmd_target_apart(&args.train, args.source.paths, args.source.count,
                              err);
    if (rc == ERR_OK)
        rc = cmd_target_apart(&args.valid, args.source.paths, args.source.count,
                              err);
    if (rc == ERR_OK)
        rc = cmd_source_open(&args.source, &split.source, err);
    if (rc != ERR_OK)
        return rc;
    rc = split_run(&split, start, err);
    split_free(&split);
    split.source->kind->close(split.source);
    return rc;
}
