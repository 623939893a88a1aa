/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/start.h"

#include "base/clock.h"
#include "base/log.h"
#include "train/init.h"
#include "train/own.h"

/* Models with fewer parameters are initialized by one thread. */
#define CREW_ELEMS ((size_t)1 << 20)

/* Before the first step no bit depends on the number of threads, so all cores
 * of the rank are used, whatever train.threads is. */
static int start_cores(const train_replica_plan_t *plan)
{
    return plan->cores > plan->threads ? plan->cores : plan->threads;
}

/* The order is that in which the first step needs the pages. Activations are
 * left out: they are needed at once, and a step does not use all of them. The
 * state of frozen parameters is left out, too. */
void train_start_touch(const train_replica_plan_t *plan,
                       train_replica_t *replica)
{
    optim_t *optim = replica->optim;
    const size_t elems = nn_graph_param_elems(plan->graph);
    const int spare = start_cores(plan) - plan->threads;
    train_touch_arena_t arenas[TRAIN_TOUCH_MAX] = {
        {ddp_grads(replica->ddp), elems * sizeof(float)}};
    int count = 1;
    err_t err = ERR_INIT;

    if (spare < 1 || elems < CREW_ELEMS || optim_frozen(optim) > 0 ||
        replica->shard != NULL || !dev_host_visible(replica->dev))
        return;
    for (int s = 0; s < optim_slots(optim) && count < TRAIN_TOUCH_MAX; s++)
        arenas[count++] = (train_touch_arena_t){optim_slot_data(optim, s),
                                                elems * sizeof(float)};
    if (train_touch_open(arenas, count, spare, &replica->touch, &err) != ERR_OK)
        log_warn("train",
                 "memory pages are mapped when they are first used: %s",
                 err.text);
}

static void weights_draw(const train_replica_plan_t *plan, float *params,
                         float *buffers)
{
    const int members = start_cores(plan);
    const bool alone =
        members == 1 || nn_graph_param_elems(plan->graph) < CREW_ELEMS;
    const double begin = clock_now();
    crew_t *crew = NULL;
    err_t err = ERR_INIT;

    if (!alone && crew_open(members, "init", &crew, &err) != ERR_OK)
        log_warn("train", "initial weights are drawn by one thread: %s",
                 err.text);
    nn_graph_init(plan->graph, (uint64_t)plan->config->run.seed, crew, params,
                  buffers);
    crew_close(crew);
    log_debug("train", "initial weights drawn in %.2f s", clock_now() - begin);
}

err_code_t train_start_weights(const train_replica_plan_t *plan,
                               const train_replica_t *replica, err_t *err)
{
    const size_t param_bytes =
        nn_graph_param_elems(plan->graph) * sizeof(float);
    const size_t buffer_bytes =
        nn_graph_buffer_elems(plan->graph) * sizeof(float);
    float *params = train_mirror_host(replica->mirror, replica->params);
    float *buffers = train_mirror_host(replica->mirror, replica->buffers);
    train_own_t own = {.err = err};
    err_code_t rc;

    if (plan->rank == 0)
        weights_draw(plan, params, buffers);
    if (plan->rank == 0 && train_init_given(plan->config))
        own.rc =
            train_init_read(plan->config, plan->graph, params, buffers, err);
    rc = comm_broadcast(plan->group, params, param_bytes, 0,
                        train_own_err(&own));
    if (rc == ERR_OK && buffer_bytes > 0)
        rc = comm_broadcast(plan->group, buffers, buffer_bytes, 0,
                            train_own_err(&own));
    return train_own_first(&own, rc);
}
