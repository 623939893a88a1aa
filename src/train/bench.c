/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/bench.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/run_priv.h"

/* Number of steps in the plan of a benchmark; learning rate schedules run over
 * them. */
#define BENCH_STEPS 100000

struct train_bench {
    train_env_t env;
    slurm_job_t job;
    train_state_t run;
    hdf5io_batch_t batch;
};

static slurm_signal_t no_signal(void)
{
    return SLURM_SIGNAL_NONE;
}

/* ---- samples ------------------------------------------------------------- */

/* Fill [input] with random tokens, or with random numbers around 0. */
static void input_fill(const nn_input_info_t *info, void *input, size_t count,
                       rng_t *rng)
{
    const uint64_t tokens = (uint64_t)info->tokens;
    const size_t elems = count * (size_t)info->elems;
    int32_t *numbers = input;

    if (tokens == 0) {
        rng_fill_normal(rng, 0, 1, input, elems);
        return;
    }
    for (size_t i = 0; i < elems; i++)
        numbers[i] = (int32_t)rng_below(rng, tokens);
}

static void target_fill(const nn_target_info_t *info, void *target,
                        size_t count, rng_t *rng)
{
    int64_t *labels = target;
    float *values = target;

    for (size_t i = 0; i < count * (size_t)info->elems; i++)
        if (info->classes > 0)
            labels[i] = (int64_t)rng_below(rng, (uint64_t)info->classes);
        else
            values[i] = (float)rng_uniform(rng);
}

/* Allocate memory for [count] samples. */
static err_code_t batch_alloc(const nn_graph_t *graph, size_t count,
                              hdf5io_batch_t *batch, err_t *err)
{
    err_code_t rc =
        mem_new(uint64_t, count, "sample numbers", &batch->sample_ids, err);

    for (int k = 0; k < nn_graph_inputs(graph) && rc == ERR_OK; k++)
        rc = mem_alloc(count * sizeof(float) *
                           (size_t)nn_graph_input_info(graph, k).elems,
                       "samples", &batch->inputs[k], err);
    for (int k = 0; k < nn_graph_targets(graph) && rc == ERR_OK; k++)
        rc = mem_alloc(count * nn_graph_target_info(graph, k).bytes, "targets",
                       &batch->targets[k], err);
    return rc;
}

/* Make this rank's share of the global batch: random values, drawn from a
 * random stream of the rank. The sample ids are indices in the global batch. */
static err_code_t batch_make(const train_state_t *run, hdf5io_batch_t *batch,
                             err_t *err)
{
    const hdf5io_share_t share =
        hdf5io_sampler_share(run->data.train.sampler, 0);
    const size_t count = (size_t)share.count;
    const nn_graph_t *graph = run->graph;
    rng_t rng;
    err_code_t rc;

    batch->count = share.count;
    batch->global = share.global;
    rc = batch_alloc(graph, count, batch, err);
    if (rc != ERR_OK)
        return rc;
    rng_open(&rng, (uint64_t)run->config->run.seed, RNG_BENCH,
             (uint64_t)run->world.rank, 0);
    for (int k = 0; k < nn_graph_inputs(graph); k++) {
        nn_input_info_t input = nn_graph_input_info(graph, k);

        input_fill(&input, batch->inputs[k], count, &rng);
    }
    for (size_t i = 0; i < count; i++)
        batch->sample_ids[i] = (uint64_t)share.first + i;
    for (int k = 0; k < nn_graph_targets(graph); k++) {
        nn_target_info_t target = nn_graph_target_info(graph, k);

        target_fill(&target, batch->targets[k], count, &rng);
    }
    return ERR_OK;
}

/* ---- the run ------------------------------------------------------------- */

err_code_t train_bench_open(const train_config_t *config, const char *backend,
                            boot_t *boot, train_bench_t **out, err_t *err)
{
    train_bench_t *bench = NULL;
    err_code_t rc = mem_new(train_bench_t, 1, "a benchmark", &bench, err);

    if (rc != ERR_OK) {
        boot_close(boot);
        return rc;
    }
    bench->env = (train_env_t){.job = &bench->job,
                               .signal = no_signal,
                               .started = clock_now(),
                               .backend = backend};
    train_state_init(&bench->run, config, &bench->env, boot);
    rc = train_open_bench(&bench->run, BENCH_STEPS, err);
    if (rc == ERR_OK)
        rc = train_world_vote(&bench->run.world,
                              batch_make(&bench->run, &bench->batch, err), err);
    if (rc != ERR_OK) {
        train_bench_close(bench);
        return rc;
    }
    *out = bench;
    return ERR_OK;
}

void train_bench_close(train_bench_t *bench)
{
    if (bench == NULL)
        return;
    train_close(&bench->run);
    for (int k = 0; k < NN_FIELDS_MAX; k++) {
        mem_free(bench->batch.inputs[k]);
        mem_free(bench->batch.targets[k]);
    }
    mem_free(bench->batch.sample_ids);
    mem_free(bench);
}

train_bench_info_t train_bench_info(const train_bench_t *bench)
{
    const train_state_t *run = &bench->run;
    const size_t params = sizeof(float) * nn_graph_param_elems(run->graph);
    const size_t slots = (size_t)optim_slots(run->replica.optim);

    return (train_bench_info_t){
        .rank = run->world.rank,
        .size = run->world.size,
        .threads = run->compute.threads,
        .dev = run->compute.dev,
        .compute_type = run->compute.type,
        .count = bench->batch.count,
        .global = bench->batch.global,
        .group = run->world.group,
        .graph = run->graph,
        .params = train_mirror_host(run->replica.mirror, run->replica.params),
        .buffers = train_mirror_host(run->replica.mirror, run->replica.buffers),
        .inputs = bench->batch.inputs,
        .targets = bench->batch.targets,
        .state_bytes = (2 + slots) * params +
                       sizeof(float) * nn_graph_buffer_elems(run->graph),
        .activation_bytes = train_replica_activations(&run->replica),
        .update_bytes = (3 + 2 * slots) * params};
}

nn_cost_t train_bench_cost(const train_bench_t *bench, double flops_s,
                           double bytes_s)
{
    const train_state_t *run = &bench->run;
    const train_replica_t *replica = &run->replica;
    const int64_t size =
        train_micro_size(bench->batch.count, run->config->train.accumulate);
    const double parts =
        size > 0 ? (double)bench->batch.count / (double)size : 0;
    const nn_exec_t *exec = train_replica_exec(replica, size, true);
    nn_cost_t cost = {0};

    if (exec != NULL)
        cost = nn_exec_cost(exec, flops_s, bytes_s);
    cost.forward_flops *= parts;
    cost.backward_flops *= parts;
    cost.seconds *= parts;
    cost.compute_seconds *= parts;
    return cost;
}

err_code_t train_bench_step(train_bench_t *bench, double *loss, err_t *err)
{
    hdf5io_progress_t *progress = &bench->run.progress;
    err_code_t rc;

    progress->loss_sum = 0;
    progress->loss_count = 0;
    rc = train_step_batch(&bench->run, &bench->batch, err);
    if (rc == ERR_OK)
        *loss = progress->loss_sum / (double)progress->loss_count;
    return rc;
}

err_code_t train_bench_pull(train_bench_t *bench, err_t *err)
{
    return train_mirror_pull(bench->run.replica.mirror, err);
}

double train_bench_exposed(const train_bench_t *bench)
{
    return bench->run.life.exposed_s;
}
