/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/predict.h"

#include "base/log.h"
#include "train/init.h"
#include "train/open.h"
#include "train/outcome.h"
#include "train/outputs.h"

/* The configuration without what only training needs. Ranks have equal copies
 * of everything, and samples are divided as in the reproducible mode. */
static train_config_t config_of(const train_config_t *config)
{
    train_config_t own = *config;

    own.train.reproducible = true;
    own.schedule = NULL;
    own.ddp.hook = NULL;
    own.ddp.zero = 0;
    own.ddp.local_sgd.period = 0;
    own.data.io = TRAIN_IO_INDEPENDENT;
    own.checkpoint.io = TRAIN_IO_INDEPENDENT;
    own.checkpoint.async = TRAIN_ASYNC_FALSE;
    return own;
}

/* ---- opening ------------------------------------------------------------- */

static err_code_t graph_open(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;

    if (config->data.valid.count == 0)
        return err_set(
            err, ERR_CONFIG,
            "data.valid is empty: name the samples to predict, as in "
            "--set data.valid=FILE.h5");
    return nn_graph_open(config->model, config->loss, &run->graph, err);
}

/* Rank 0 looks whether the samples have targets, and says if they have none. */
static err_code_t targets_look(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    const char *absent = NULL;
    err_code_t rc;

    if (run->world.rank != 0)
        return ERR_OK;
    rc = train_data_targets(config, &absent, err);
    run->data.inputs_only = rc == ERR_OK && absent != NULL;
    if (run->data.inputs_only)
        log_info("train",
                 "the samples of data.valid have no targets (no dataset %s in "
                 "the first file): the outputs are written, and no loss",
                 absent);
    return rc;
}

static err_code_t samples_open(train_state_t *run, err_t *err)
{
    const train_split_t split = train_open_split(run, true);
    train_data_t *valid = &run->data.valid;
    dev_device_t *dev = run->compute.dev;
    err_code_t rc = train_data_open(&split, valid, err);

    if (rc != ERR_OK)
        return rc;
    run->compute.teams = train_teams(
        run->config, valid, dev_host_visible(dev) ? run->compute.threads : 1);
    run->evaluator.reads_output = true;
    return train_eval_open(run->config, run->graph, valid, run->compute.teams,
                           &run->evaluator, err);
}

static err_code_t samples_start(train_state_t *run, err_t *err)
{
    const train_split_t split = train_open_split(run, true);

    return train_data_start(&split, &run->data.valid, 0, 0, err);
}

/* Open model and samples. Collective. */
static err_code_t data_open(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_storage_begin(&run->world, "opening data");
    rc = train_open_voted(run, graph_open, err);
    if (rc == ERR_OK)
        rc = train_open_voted(run, targets_look, err);
    if (rc == ERR_OK)
        rc = comm_broadcast(run->world.group, &run->data.inputs_only,
                            sizeof run->data.inputs_only, 0, err);
    if (rc == ERR_OK)
        rc = train_open_voted(run, samples_open, err);
    if (rc == ERR_OK)
        rc = train_open_bound(run, err);
    if (rc == ERR_OK)
        rc = train_open_compare(run, "data.valid", &run->data.valid, err);
    train_storage_end(&run->world);
    return rc;
}

/* There is no checkpoint: does checkpoint.init give all weights? With init_skip
 * some would be random. */
static err_code_t weights_given(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;

    if (!train_init_given(config))
        return err_set(err, ERR_DATA,
                       "%s/checkpoints has no checkpoint, and "
                       "checkpoint.init names no weights: train first, or "
                       "name a checkpoint by --resume PATH",
                       run->dir.path);
    if (config->checkpoint.init_skip.count > 0)
        return err_set(err, ERR_CONFIG,
                       "%s/checkpoints has no checkpoint, and the tensors "
                       "that checkpoint.init_skip names have random values: "
                       "train first, name a checkpoint by --resume PATH, or "
                       "leave init_skip out",
                       run->dir.path);
    return train_open_voted(run, train_open_init_check, err);
}

/* Read the weights; *found: they are those of a checkpoint. Collective. */
static err_code_t weights_read(train_state_t *run, bool *found, err_t *err)
{
    err_code_t rc;

    train_storage_begin(&run->world, "reading weights");
    rc = train_restore_weights(run, found, err);
    if (rc == ERR_OK && !*found)
        rc = weights_given(run, err);
    train_storage_end(&run->world);
    return rc;
}

/* Do everything that comes before the first sample. Collective. */
static err_code_t predict_open(train_state_t *run, err_t *err)
{
    bool found = false;
    err_code_t rc = train_join(run, err);

    if (rc == ERR_OK)
        rc = data_open(run, err);
    if (rc == ERR_OK)
        rc = train_open_replica(run, err);
    if (rc != ERR_OK)
        return rc;
    train_patience_also(run->world.patience, run->world.sync);
    rc = weights_read(run, &found, err);
    if (rc == ERR_OK)
        rc = train_open_voted(run, samples_start, err);
    if (rc == ERR_OK)
        rc = train_open_start(run, found, err);
    run->world.working = rc == ERR_OK && !dev_host_visible(run->compute.dev);
    return rc;
}

/* ---- writing ------------------------------------------------------------- */

/* Open the file, evaluate all samples, and publish it. Collective. */
static err_code_t outputs_write(train_state_t *run, err_t *err)
{
    const train_outputs_plan_t plan = {
        .world = &run->world,
        .graph = run->graph,
        .scores = run->evaluator.scores,
        .path = run->env->predict,
        .samples = hdf5io_dataset_samples(run->data.valid.dataset)};
    train_outputs_t *outputs = NULL;
    train_eval_t eval;
    err_code_t rc = train_outputs_open(&plan, &outputs, err);

    if (rc != ERR_OK)
        return rc;
    run->evaluator.outputs = outputs;
    rc = train_evaluate(run, &eval, err);
    if (rc == ERR_OK && eval.stopped)
        rc = err_set(err, ERR_REQUEUE,
                     "stopped by a signal: %s is not written; start again",
                     plan.path);
    if (rc == ERR_OK)
        rc = train_outputs_publish(outputs, err);
    run->evaluator.outputs = NULL;
    train_outputs_close(outputs);
    if (rc != ERR_OK)
        return rc;
    if (!run->data.inputs_only) {
        run->last_eval.found = eval;
        run->last_eval.step = run->progress.step;
    }
    if (run->world.rank == 0)
        log_info("train", "%s: outputs of %lld samples", plan.path,
                 (long long)plan.samples);
    return ERR_OK;
}

err_code_t train_predict(const train_config_t *config, const train_env_t *env,
                         boot_t *boot, train_outcome_t *out, err_t *err)
{
    const train_config_t own = config_of(config);
    train_state_t run;
    err_code_t rc;

    train_state_init(&run, &own, env, boot);
    rc = predict_open(&run, err);
    slurm_signal_started();
    if (rc == ERR_OK)
        rc = outputs_write(&run, err);
    if (rc == ERR_PEER) {
        train_outcome_tell_fault(&run, err);
        run.world.speaker = train_outcome_speaks(&run.world, rc, err);
    }
    train_outcome_fill(&run, out);
    train_close(&run);
    return rc;
}
