/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cmd/args.h"
#include "hdf5io/dataset_index.h"

enum { INPUT = 256, TARGET, SEQUENCE, FILES };

typedef struct index_args {
    const char *input, *target; /* names with commas; NULL: not given */
    int sequence;
    bool files; /* each shard is one sample */
} index_args_t;

/* The fields that a list of names stands for. */
typedef struct index_fields {
    hdf5io_field_t fields[HDF5IO_FIELDS_MAX];
    char *names; /* to be freed */
    int count;
} index_fields_t;

static err_code_t option_take(void *context, int option, err_t *err)
{
    const cmd_number_t numbers = {"--sequence", "numbers", 1, 1 << 30};
    index_args_t *args = context;

    if (option == SEQUENCE)
        return cmd_number_take(&numbers, optarg, &args->sequence, err);
    if (option == INPUT)
        args->input = optarg;
    else if (option == TARGET)
        args->target = optarg;
    else
        args->files = true;
    return ERR_OK;
}

static err_code_t args_take(int argc, char **argv, index_args_t *args,
                            err_t *err)
{
    static const struct option table[] = {
        {"input", required_argument, NULL, INPUT},
        {"target", required_argument, NULL, TARGET},
        {"sequence", required_argument, NULL, SEQUENCE},
        {"files", no_argument, NULL, FILES},
        {NULL, 0, NULL, 0}};
    const cmd_options_t options = {"cddp-data", ":", table, option_take};
    err_code_t rc = cmd_options_take(&options, argc, argv, args, err);

    if (rc == ERR_OK && args->input == NULL)
        rc = err_set(err, ERR_USAGE,
                     "index: --input is missing: name the datasets of "
                     "data.input, in the order of model.input; try cddp-data "
                     "--help");
    if (rc == ERR_OK && args->target == NULL && args->sequence == 0)
        rc = err_set(err, ERR_USAGE,
                     "index: --target is missing: name the datasets of "
                     "data.target, in the order of the losses; or give "
                     "--sequence");
    if (rc == ERR_OK && optind == argc)
        rc = err_set(err, ERR_USAGE,
                     "index: name files or a directory; try cddp-data --help");
    return rc;
}

static err_code_t fields_take(const char *text, const char *option,
                              hdf5io_want_t *wants, int *count,
                              index_fields_t *out, err_t *err)
{
    char *rest = NULL, *name;

    out->names = str_dup(text);
    for (name = strtok_r(out->names, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        if (out->count == HDF5IO_FIELDS_MAX)
            return err_set(err, ERR_USAGE,
                           "index: %s %s: expected at most %d names", option,
                           text, HDF5IO_FIELDS_MAX);
        out->fields[out->count] = (hdf5io_field_t){.path = name, .scale = 1};
        wants[out->count].field = &out->fields[out->count];
        out->count++;
    }
    *count = out->count;
    return out->count > 0
               ? ERR_OK
               : err_set(err, ERR_USAGE, "index: %s names no dataset", option);
}

/* Look at all shards, and write their index. */
static err_code_t index_make(const hdf5io_dataset_config_t *config, err_t *err)
{
    hdf5io_dataset_t *dataset = NULL;
    err_code_t rc = hdf5io_dataset_begin(config, &dataset, err);
    int shards = 0;

    if (rc == ERR_OK) {
        hdf5io_dataset_index_read(dataset, false);
        shards = hdf5io_dataset_shards(dataset);
    }
    for (int i = 0; i < shards && rc == ERR_OK; i++)
        rc = hdf5io_dataset_look(dataset, i, err);
    if (rc == ERR_OK)
        rc = hdf5io_dataset_index_write(dataset, err);
    if (rc == ERR_OK)
        str_print("%d shards\n", shards);
    hdf5io_dataset_close(dataset);
    return rc;
}

/* A directory stands for the HDF5 files in it. */
static char *pattern_of(const char *word)
{
    struct stat status;

    return stat(word, &status) == 0 && S_ISDIR(status.st_mode)
               ? str_printf("%s/*.h5", word)
               : str_dup(word);
}

err_code_t cmd_data_index(int argc, char **argv, err_t *err)
{
    index_args_t args = {.input = NULL};
    index_fields_t inputs = {.count = 0}, targets = {.count = 0};
    hdf5io_dataset_config_t config = {.digest = true};
    opt_texts_t shards = {.count = 0};
    err_code_t rc = args_take(argc, argv, &args, err);

    if (rc != ERR_OK)
        return rc;
    shards.items = calloc((size_t)(argc - optind) + 1, sizeof *shards.items);
    if (shards.items == NULL)
        abort();
    for (; optind < argc; optind++)
        shards.items[shards.count++] = pattern_of(argv[optind]);
    config.shards = &shards;
    config.sequence = args.sequence;
    config.whole = args.files;
    rc = fields_take(args.input, "--input", config.inputs, &config.input_count,
                     &inputs, err);
    if (rc == ERR_OK && args.sequence == 0)
        rc = fields_take(args.target, "--target", config.targets,
                         &config.target_count, &targets, err);
    if (rc == ERR_OK)
        rc = index_make(&config, err);
    for (int i = 0; i < shards.count; i++)
        free(shards.items[i]);
    free(shards.items);
    free(targets.names);
    free(inputs.names);
    return rc;
}
