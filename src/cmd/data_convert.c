/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_convert.h"

#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/data_target.h"
#include "cmd/data_team.h"
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

/* What is to be converted, and the tasks that divide the work. */
typedef struct work {
    import_args_t *args;
    cmd_team_t *team;
    bool failed; /* all tasks have been told of an error */
} work_t;

/* See import_share_t. */
static err_code_t work_gather(void *context, int64_t mine, err_code_t rc,
                              int64_t *out, int count, err_t *err)
{
    work_t *work = context;

    rc = cmd_team_gather(work->team, mine, rc, out, count, err);
    work->failed = rc != ERR_OK;
    return rc;
}

/* See import_round_t. */
static err_code_t work_meet(void *context, int64_t done, err_code_t rc,
                            err_t *err)
{
    const work_t *work = context;
    int64_t sums[CMD_TEAM_SUMS] = {done};

    rc = cmd_team_meet(work->team, sums, rc, err);
    if (rc == ERR_OK && work->team->rank == 0)
        cmd_progress_tell(&work->args->target.progress, sums[0]);
    return rc;
}

/* Give the shards their names. If a task fails, all shards are removed. *report
 * becomes the report of all tasks together. */
static err_code_t sink_end(const work_t *work, import_sink_t *sink,
                           import_sink_report_t *report, err_t *err)
{
    int64_t sums[CMD_TEAM_SUMS] = {0};
    err_code_t rc = import_sink_finish(sink, report, err);

    if (rc == ERR_OK) {
        sums[0] = report->shards;
        sums[1] = report->bytes;
    }
    rc = cmd_team_meet(work->team, sums, rc, err);
    if (rc != ERR_OK) {
        import_sink_revoke(sink);
        return rc;
    }
    if (work->team->size > 1)
        *report =
            (import_sink_report_t){.shards = (int)sums[0], .bytes = sums[1]};
    return ERR_OK;
}

static err_code_t source_convert(const work_t *work, import_source_t *source,
                                 import_sink_report_t *report, err_t *err)
{
    const import_round_t round = {work_meet, (void *)work};
    import_sink_t *sink = NULL;
    err_code_t rc =
        cmd_target_open(&work->args->target, source, source->rows, &sink, err);

    rc = cmd_team_vote(work->team, rc, err);
    if (rc == ERR_OK)
        rc = work->team->size > 1 ? import_copy_part(source, sink, &round, err)
                                  : import_copy(source, sink, err);
    if (rc == ERR_OK)
        rc = sink_end(work, sink, report, err);
    import_sink_close(sink);
    return rc;
}

/* Do all tasks have the same samples? If not, task 0 has the message. */
static err_code_t team_check(const work_t *work, const import_source_t *source,
                             err_t *err)
{
    const int size = work->team->size;
    hash_state_t *hash;
    int64_t *all = NULL;
    int64_t mine;
    int odd = 0;
    err_code_t rc;

    if (size == 1)
        return ERR_OK;
    hash = hash_state_open();
    hash_state_add(hash, &source->rows, sizeof source->rows);
    for (int i = 0; i < source->field_count; i++) {
        const import_field_t *field = &source->fields[i];

        hash_state_add(hash, field->name, strlen(field->name) + 1);
        hash_state_add(hash, field->dims,
                       (size_t)field->ndim * sizeof field->dims[0]);
    }
    mine = (int64_t)hash_state_value(hash);
    hash_state_free(hash);
    rc = mem_new(int64_t, (size_t)size, "a vote", &all, err);
    rc = cmd_team_gather(work->team, mine, rc, all, size, err);
    while (rc == ERR_OK && odd < size && all[odd] == all[0])
        odd++;
    mem_free(all);
    if (rc != ERR_OK || odd == size)
        return rc;
    err_set(err, ERR_CONFIG,
            "convert: task %d finds other samples than task 0: all tasks need "
            "the same files",
            odd);
    return work->team->rank == 0 ? ERR_CONFIG
                                 : err_set(err, ERR_CONFIG, "%s", "");
}

static void result_print(const work_t *work, const import_source_t *source,
                         const import_sink_report_t *report, double seconds)
{
    const int size = work->team->size;

    if (work->team->rank != 0)
        return;
    cmd_target_print(&work->args->target, source->rows, report, seconds);
    cmd_target_fields(source);
    if (report->shards < size)
        str_print("%d of %d tasks had nothing to do: --shards %d divides the "
                  "work among all\n",
                  size - report->shards, size, size);
}

/* Convert, with the other tasks. */
static err_code_t team_convert(import_args_t *args, cmd_team_t *team,
                               double start, err_t *err)
{
    work_t work = {.args = args, .team = team};
    const import_share_t share = {team->rank, team->size, work_gather, &work};
    import_source_t *source = NULL;
    import_sink_report_t report;
    err_code_t rc;

    check(args->kind != NULL, "the tasks go on after a wrong command line");
    args->config.share = team->size > 1 ? &share : NULL;
    rc = args->kind->open(&args->config, &source, err);
    if (!work.failed)
        rc = cmd_team_vote(team, rc, err);
    if (rc == ERR_OK)
        rc = team_check(&work, source, err);
    args->target.part = team->rank;
    args->target.parts = team->size;
    if (rc == ERR_OK)
        rc = source_convert(&work, source, &report, err);
    if (rc == ERR_OK)
        result_print(&work, source, &report, clock_now() - start);
    if (source != NULL)
        args->kind->close(source);
    return rc;
}

err_code_t cmd_data_convert(int argc, char **argv, err_t *err)
{
    const double start = clock_now();
    import_args_t args = {.target.name = "train"};
    cmd_team_t team = {0};
    err_code_t rc = cmd_team_open(&team, err);

    if (rc != ERR_OK)
        return rc;
    rc = args_take(argc, argv, &args, err);
    rc = cmd_team_vote(&team, rc, err);
    if (rc == ERR_OK)
        rc = team_convert(&args, &team, start, err);
    cmd_team_close(&team);
    return rc;
}
