/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_reshape.h"

#include "base/clock.h"
#include "cmd/args.h"
#include "cmd/data_source.h"
#include "cmd/data_target.h"
#include "import/copy.h"

enum { ONLY = CMD_TARGET_END };

typedef struct reshape_args {
    cmd_target_t target;
    cmd_source_config_t source;
} reshape_args_t;

static err_code_t option_take(void *context, int option, err_t *err)
{
    reshape_args_t *args = context;

    if (option != ONLY)
        return cmd_target_take(&args->target, option, optarg, err);
    args->source.only = optarg;
    return ERR_OK;
}

static err_code_t args_take(int argc, char **argv, reshape_args_t *args,
                            err_t *err)
{
    static const struct option table[] = {
        CMD_TARGET_OPTIONS,
        CMD_TARGET_OPTION_NAME,
        {"only", required_argument, NULL, ONLY},
        {NULL, 0, NULL, 0}};
    const cmd_options_t options = {"cddp-data", ":o:", table, option_take};
    err_code_t rc = cmd_options_take(&options, argc, argv, args, err);

    if (rc == ERR_OK)
        rc = cmd_target_check(&args->target, "shard", err);
    if (rc == ERR_OK && optind == argc)
        rc = err_set(err, ERR_USAGE,
                     "shard: name at least one file; try cddp-data --help");
    args->source.paths = argv + optind;
    args->source.count = argc - optind;
    return rc;
}

err_code_t cmd_data_reshape(int argc, char **argv, err_t *err)
{
    const double start = clock_now();
    reshape_args_t args = {.target.name = "train"};
    import_source_t *source = NULL;
    import_sink_t *sink = NULL;
    import_sink_report_t report;
    err_code_t rc = args_take(argc, argv, &args, err);

    if (rc == ERR_OK)
        rc = cmd_target_apart(&args.target, args.source.paths,
                              args.source.count, err);
    if (rc == ERR_OK)
        rc = cmd_source_open(&args.source, &source, err);
    if (rc != ERR_OK)
        return rc;
    rc = cmd_target_open(&args.target, source, source->rows, &sink, err);
    if (rc == ERR_OK)
        rc = import_copy(source, sink, err);
    if (rc == ERR_OK)
        rc = import_sink_finish(sink, &report, err);
    if (rc == ERR_OK) {
        cmd_target_print(&args.target, source->rows, &report,
                         clock_now() - start);
        cmd_target_fields(source);
    }
    import_sink_close(sink);
    source->kind->close(source);
    return rc;
}
