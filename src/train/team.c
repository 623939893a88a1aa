/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/team.h"

nn_exec_t *train_team_exec(const train_team_t *team, int64_t batch,
                           bool training)
{
    for (int i = 0; i < team->exec_count; i++) {
        const train_team_exec_t *exec = &team->execs[i];

        if (exec->batch == batch && exec->training == training)
            return exec->exec;
    }
    return NULL;
}

/* Begin an exec, unless its batch size is 0 or the team has it already. */
static err_code_t exec_add(train_team_t *team, const nn_graph_t *graph,
                           const nn_exec_config_t *config, err_t *err)
{
    train_team_exec_t *slot = &team->execs[team->exec_count];
    err_code_t rc;

    if (config->batch == 0 ||
        train_team_exec(team, config->batch, config->training) != NULL)
        return ERR_OK;
    rc = nn_exec_begin(graph, config, &slot->exec, err);
    if (rc != ERR_OK)
        return rc;
    slot->batch = config->batch;
    slot->training = config->training;
    team->exec_count++;
    return ERR_OK;
}

err_code_t train_team_begin(const nn_graph_t *graph,
                            const nn_exec_config_t *like,
                            const train_team_sizes_t *sizes, train_team_t *team,
                            err_t *err)
{
    nn_exec_config_t config = *like;
    err_code_t rc;

    team->dev = like->dev;
    rc = dev_stream_open(team->dev, DEV_STREAM_COMPUTE, &team->stream, err);
    config.training = true;
    for (int i = 0; rc == ERR_OK && i < sizes->train_count; i++) {
        config.batch = sizes->train[i];
        rc = exec_add(team, graph, &config, err);
    }
    config.training = false;
    for (int i = 0; rc == ERR_OK && i < sizes->eval_count; i++) {
        config.batch = sizes->eval[i];
        rc = exec_add(team, graph, &config, err);
    }
    return rc;
}

err_code_t train_team_settle(train_team_t *team, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < team->exec_count; i++) {
        nn_exec_t *exec = team->execs[i].exec;

        rc = nn_exec_settle(exec, err);
        if (rc == ERR_OK &&
            nn_exec_activation_bytes(exec) > team->activation_bytes)
            team->activation_bytes = nn_exec_activation_bytes(exec);
    }
    return rc;
}

err_code_t train_team_alloc(train_team_t *team, err_t *err)
{
    return dev_alloc(team->dev, team->activation_bytes, "activations",
                     &team->activations, err);
}

void train_team_close(train_team_t *team)
{
    for (int i = 0; i < team->exec_count; i++)
        nn_exec_close(team->execs[i].exec);
    if (team->dev != NULL)
        dev_free(team->dev, team->activations);
    if (team->stream != NULL)
        dev_stream_close(team->stream);
    *team = (train_team_t){0};
}

void train_team_bind(train_team_t *team, const nn_bind_t *bind,
                     const float *eval_params)
{
    nn_bind_t eval;

    team->bind = *bind;
    team->bind.activations = team->activations;
    team->bind.stream = team->stream;
    eval = team->bind;
    eval.params = eval_params;
    eval.results = NULL;
    for (int i = 0; i < team->exec_count; i++)
        nn_exec_bind(team->execs[i].exec,
                     team->execs[i].training ? &team->bind : &eval);
}

nn_exec_t *train_team_leaf(const train_team_t *team, int64_t batch,
                           const train_team_sums_t *sums)
{
    nn_exec_t *exec = train_team_exec(team, batch, true);
    nn_bind_t bind = team->bind;

    bind.grads = sums->grads;
    bind.results = sums->results;
    bind.moments = sums->moments;
    nn_exec_bind(exec, &bind);
    return exec;
}
