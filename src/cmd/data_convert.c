/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_convert.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/data_target.h"
#include "import/copy.h"

typedef struct import_args {
    const import_kind_t *kind;
    import_config_t config;
    cmd_target_t target;
} import_args_t;

enum {
    SHAPE = CMD_TARGET_END,
    TYPE,
    SKIP,
    INPUT,
    TARGET,
    RESIZE,
    CROP,
    CHANNELS,
    THREADS,
    VOCAB,
    MERGES
};

/* ---- the command line ---------------------------------------------------- */

static err_code_t skip_take(const char *text, int64_t *out, err_t *err)
{
    if (!str_to_int(text, out) || *out < 0)
        return err_set(err, ERR_USAGE,
                       "--skip: expected a number of bytes, found \"%s\"",
                       text);
    return ERR_OK;
}

static err_code_t option_take(void *context, int option, err_t *err)
{
    static const cmd_number_t channels = {"--channels", "channels", 1, 3};
    static const cmd_number_t threads = {"--threads", "threads", 1, 1024};
    import_args_t *args = context;

    switch (option) {
    case SHAPE:
        args->config.shape = optarg;
        return ERR_OK;
    case TYPE:
        args->config.type = optarg;
        return ERR_OK;
    case INPUT:
        args->config.input = optarg;
        return ERR_OK;
    case TARGET:
        args->config.target = optarg;
        return ERR_OK;
    case RESIZE:
        args->config.resize = optarg;
        return ERR_OK;
    case CROP:
        args->config.crop = optarg;
        return ERR_OK;
    case VOCAB:
        args->config.vocab = optarg;
        return ERR_OK;
    case MERGES:
        args->config.merges = optarg;
        return ERR_OK;
    case CHANNELS:
        return cmd_number_take(&channels, optarg, &args->config.channels, err);
    case THREADS:
        return cmd_number_take(&threads, optarg, &args->config.threads, err);
    case SKIP:
        return skip_take(optarg, &args->config.skip, err);
    default:
        return cmd_target_take(&args->target, option, optarg, err);
    }
}

static err_code_t kind_refuse(const char *name, err_t *err)
{
    const char *const *names = import_kind_names();
    str_buf_t list = {0};

    for (int i = 0; names[i] != NULL; i++)
        str_buf_add(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    err_set(err, ERR_USAGE,
            "convert: \"%s\" is no kind of files; there are: %s", name,
            list.text);
    str_buf_free(&list);
    return ERR_USAGE;
}

/* Refuse options that the kind does not have. */
static err_code_t others_refuse(const import_args_t *args, err_t *err)
{
    const import_config_t *config = &args->config;
    const struct {
        int takes;
        bool given;
        const char *rule;
    } rules[] = {
        {IMPORT_TAKES_SHAPE,
         config->shape != NULL || config->type != NULL || config->skip > 0,
         "--shape, --type and --skip are for raw files"},
        {IMPORT_TAKES_COLUMNS, config->input != NULL || config->target != NULL,
         "--input and --target are for csv files"},
        {IMPORT_TAKES_PICTURES,
         config->resize != NULL || config->crop != NULL ||
             config->channels > 0 || config->threads > 0,
         "--resize, --crop, --channels and --threads are for images"},
        {IMPORT_TAKES_VOCAB, config->vocab != NULL || config->merges != NULL,
         "--vocab and --merges are for text"},
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].given && (args->kind->takes & rules[i].takes) == 0)
            return err_set(err, ERR_USAGE, "convert %s: %s", args->kind->name,
                           rules[i].rule);
    return ERR_OK;
}

/* Find the kind, and refuse options that it does not have. */
static err_code_t kind_take(import_args_t *args, const char *name, err_t *err)
{
    const import_config_t *config = &args->config;

    args->kind = name == NULL ? NULL : import_kind_find(name);
    if (name != NULL && args->kind == NULL)
        return kind_refuse(name, err);
    if (args->kind == NULL || config->word_count == 0)
        return err_set(err, ERR_USAGE,
                       "convert: name a kind of files, and the files; try "
                       "cddp-data --help");
    return others_refuse(args, err);
}

static err_code_t args_take(int argc, char **argv, import_args_t *args,
                            err_t *err)
{
    static const struct option table[] = {
        CMD_TARGET_OPTIONS,
        CMD_TARGET_OPTION_NAME,
        {"shape", required_argument, NULL, SHAPE},
        {"type", required_argument, NULL, TYPE},
        {"skip", required_argument, NULL, SKIP},
        {"input", required_argument, NULL, INPUT},
        {"target", required_argument, NULL, TARGET},
        {"resize", required_argument, NULL, RESIZE},
        {"crop", required_argument, NULL, CROP},
        {"channels", required_argument, NULL, CHANNELS},
        {"threads", required_argument, NULL, THREADS},
        {"vocab", required_argument, NULL, VOCAB},
        {"merges", required_argument, NULL, MERGES},
        {NULL, 0, NULL, 0}};
    const cmd_options_t options = {"cddp-data", ":o:", table, option_take};
    err_code_t rc = cmd_options_take(&options, argc, argv, args, err);

    if (rc != ERR_OK)
        return rc;
    args->config.words = (const char *const *)argv + optind + 1;
    args->config.word_count = optind < argc ? argc - optind - 1 : 0;
    rc = kind_take(args, optind < argc ? argv[optind] : NULL, err);
    if (rc == ERR_OK)
        rc = cmd_target_check(&args->target, "convert", err);
    return rc;
}

/* ---- the work ------------------------------------------------------------ */

static err_code_t source_convert(import_args_t *args, import_source_t *source,
                                 import_sink_report_t *report, err_t *err)
{
    import_sink_t *sink = NULL;
    err_code_t rc =
        cmd_target_open(&args->target, source, source->rows, &sink, err);

    if (rc == ERR_OK)
        rc = import_copy(source, sink, err);
    if (rc == ERR_OK)
        rc = import_sink_finish(sink, report, err);
    import_sink_close(sink);
    return rc;
}

err_code_t cmd_data_convert(int argc, char **argv, err_t *err)
{
    const double start = clock_now();
    import_args_t args = {.target.name = "train"};
    import_source_t *source = NULL;
    import_sink_report_t report;
    err_code_t rc = args_take(argc, argv, &args, err);

    if (rc == ERR_OK)
        rc = args.kind->open(&args.config, &source, err);
    if (rc != ERR_OK)
        return rc;
    rc = source_convert(&args, source, &report, err);
    if (rc == ERR_OK) {
        cmd_target_print(&args.target, source->rows, &report,
                         clock_now() - start);
        cmd_target_fields(source);
    }
    args.kind->close(source);
    return rc;
}
