/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "conf/conf.h"

/* ---- TensorBoard --------------------------------------------------------- */

/* The settings of a run by which TensorBoard compares runs. */
typedef struct settings {
    obs_tb_hparam_t items[OBS_TB_SCALARS_MAX];
    char *names[OBS_TB_SCALARS_MAX];
    int count;
} settings_t;

/* Add the scalars of [tree] below the name [path], such as
 * optimizer.adamw.lr. Lists are left out. */
static void settings_add(settings_t *settings, const char *path,
                         const tree_t *tree)
{
    const char *text = tree_text(tree);
    double number = 0;

    for (size_t i = 0; tree_kind(tree) == TREE_MAP && i < tree_count(tree);
         i++) {
        char *below = str_printf("%s.%s", path, tree_key(tree, i));

        settings_add(settings, below, tree_at(tree, i));
        free(below);
    }
    if (text == NULL || settings->count == OBS_TB_SCALARS_MAX)
        return;
    settings->names[settings->count] = str_dup(path);
    if (str_to_real(text, &number))
        text = NULL;
    settings->items[settings->count] =
        (obs_tb_hparam_t){.name = settings->names[settings->count],
                          .text = text,
                          .number = number};
    settings->count++;
}

/* The run file without what says where, not how, a run trains. */
static void settings_fill(settings_t *settings, const train_state_t *run,
                          const tree_t *file)
{
    static const char *const sections[] = {"loss", "optimizer", "schedule",
                                           "ema",  "train",     "ddp"};

    settings->items[settings->count++] = (obs_tb_hparam_t){
        .name = "run.seed", .number = (double)run->config->run.seed};
    settings->items[settings->count++] =
        (obs_tb_hparam_t){.name = "ranks", .number = run->world.size};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (tree_get(file, sections[i]) != NULL)
            settings_add(settings, sections[i], tree_get(file, sections[i]));
}

static err_code_t tb_open(train_state_t *run, err_t *err)
{
    char *directory = str_printf("%s/tb", run->dir.path);
    settings_t settings = {.count = 0};
    str_buf_t text = {0};
    tree_t *file = NULL;
    err_code_t rc;

    opt_print(train_options, run->config, 0, &text);
    rc = conf_parse("config.yaml", text.text, &file, err);
    if (rc == ERR_OK) {
        settings_fill(&settings, run, file);
        rc = obs_tb_open(&(obs_tb_config_t){.directory = directory,
                                            .step = run->progress.step,
                                            .every = run->config->obs.every,
                                            .run_file = text.text,
                                            .hparams = settings.items,
                                            .hparam_count = settings.count},
                         &run->dir.tb, err);
    }
    for (int i = 0; i < settings.count; i++)
        free(settings.names[i]);
    tree_free(file);
    str_buf_free(&text);
    free(directory);
    return rc;
}

static bool tb_wanted(const train_state_t *run)
{
    return run->config->obs.tensorboard != TRAIN_TB_FALSE && obs_tb_built();
}

/* ---- opening and closing ------------------------------------------------- */

static err_code_t prom_open(train_state_t *run, err_t *err)
{
    return obs_prom_open(
        &(obs_prom_config_t){.directory = run->config->obs.prometheus,
                             .job = run->env->job->id,
                             .run = run->config->run.name,
                             .run_dir = run->dir.path,
                             .rank = run->world.rank,
                             .every = run->config->obs.every},
        &run->dir.prom, err);
}

/* Log that the run continues without something. */
static void without(err_code_t rc, const err_t *err)
{
    if (rc != ERR_OK)
        log_warn("train", "%s; the run continues without it", err->text);
}

static err_code_t metrics_open(train_state_t *run, err_t *err)
{
    char *path = str_printf("%s/metrics.jsonl", run->dir.path);
    err_code_t rc =
        obs_metrics_open(path, run->progress.step, &run->dir.metrics, err);

    free(path);
    return rc;
}

err_code_t train_record_open(train_state_t *run, err_t *err)
{
    err_t trouble = ERR_INIT;
    err_code_t rc = ERR_OK;

    if (run->config->obs.prometheus[0] != '\0')
        without(prom_open(run, &trouble), &trouble);
    if (run->world.rank != 0)
        return ERR_OK;
    rc = metrics_open(run, err);
    if (rc != ERR_OK)
        return rc;
    if (run->dir.resumed != NULL)
        obs_metrics_event(run->dir.metrics,
                          &(obs_event_t){.name = "resume",
                                         .step = run->progress.step,
                                         .epoch = run->progress.epoch});
    trouble = (err_t)ERR_INIT;
    if (tb_wanted(run))
        without(tb_open(run, &trouble), &trouble);
    return ERR_OK;
}

void train_record_close(train_state_t *run)
{
    obs_metrics_close(run->dir.metrics);
    obs_tb_close(run->dir.tb);
    obs_prom_close(run->dir.prom);
}

/* ---- rows ---------------------------------------------------------------- */

void train_record_step(train_state_t *run, const obs_step_t *row)
{
    obs_prom_step(run->dir.prom, row);
    if (row->step % run->config->train.log_every != 0)
        return;
    if (run->dir.metrics != NULL)
        obs_metrics_step(run->dir.metrics, row);
    obs_tb_step(run->dir.tb, row);
}

void train_record_eval(train_state_t *run, const train_eval_t *eval)
{
    const obs_eval_t row = {.step = run->progress.step,
                            .epoch = run->progress.epoch,
                            .loss = eval->loss,
                            .accuracy = eval->accuracy,
                            .values = eval->values,
                            .value_count = eval->value_count};

    if (run->dir.metrics != NULL && obs_metrics_eval(run->dir.metrics, &row))
        obs_tb_eval(run->dir.tb, &row);
    obs_prom_eval(run->dir.prom, &row);
}

void train_record_saving(train_state_t *run)
{
    obs_tb_flush(run->dir.tb);
}

void train_record_saved(train_state_t *run, const train_saved_t *saved)
{
    const obs_value_t values[] = {{"seconds", saved->seconds},
                                  {"exposed", saved->exposed},
                                  {"bytes", saved->bytes}};
    const obs_event_t row = {.name = "checkpoint",
                             .step = saved->step,
                             .epoch = saved->epoch,
                             .values = values,
                             .value_count = 3};

    if (run->dir.metrics != NULL)
        obs_metrics_event(run->dir.metrics, &row);
    obs_prom_saved(run->dir.prom, saved->step);
}

void train_record_unsaved(train_state_t *run, const train_unsaved_t *unsaved)
{
    const obs_text_t texts[] = {{"path", unsaved->path},
                                {"reason", unsaved->reason}};
    const obs_value_t values[] = {{"failures", (double)unsaved->failures}};
    const obs_event_t row = {.name = "checkpoint_failed",
                             .step = unsaved->step,
                             .epoch = unsaved->epoch,
                             .texts = texts,
                             .text_count = 2,
                             .values = values,
                             .value_count = 1};

    if (run->dir.metrics != NULL)
        obs_metrics_event(run->dir.metrics, &row);
}

void train_record_slow(train_state_t *run, const obs_slow_t *slow,
                       const char *host)
{
    const obs_text_t texts[] = {{"host", host},
                                {"cause", obs_slow_text(slow->cause)}};
    const obs_value_t values[] = {{"seconds", slow->seconds},
                                  {"median", slow->median},
                                  {"rank", slow->rank}};
    const obs_event_t row = {.name = "straggler",
                             .step = run->progress.step,
                             .epoch = run->progress.epoch,
                             .texts = texts,
                             .text_count = 2,
                             .values = values,
                             .value_count = slow->rank < 0 ? 2 : 3};

    if (run->dir.metrics != NULL)
        obs_metrics_event(run->dir.metrics, &row);
}

void train_record_ranks(train_state_t *run, obs_ranks_t *ranks)
{
    obs_value_t values[] = {{"windows", (double)obs_ranks_windows(ranks)},
                            {"steps", 0}};
    str_buf_t object = {0};
    obs_event_t row = {.name = "ranks",
                       .step = run->progress.step,
                       .epoch = run->progress.epoch,
                       .values = values,
                       .value_count = 2,
                       .object_name = "ranks"};

    values[1].value = (double)obs_ranks_print(ranks, &object);
    row.object = object.text;
    if (run->dir.metrics != NULL)
        obs_metrics_event(run->dir.metrics, &row);
    str_buf_free(&object);
}

err_code_t train_record_back(train_state_t *run, err_t *err)
{
    if (run->dir.metrics == NULL)
        return ERR_OK;
    obs_metrics_close(run->dir.metrics);
    run->dir.metrics = NULL;
    obs_tb_back(run->dir.tb, run->progress.step);
    return metrics_open(run, err);
}
