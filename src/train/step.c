/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One update. The losses, requests to stop and failures of all ranks are summed
 * with the tail of the gradients. So a step needs no other collective, and at
 * its end all ranks have the same numbers: they go on, write a checkpoint or
 * stop together.
 *
 * A rank that meets an error within a step (a bad label, for example) still
 * takes part in the reductions of the step, so that no rank waits for it. Then
 * all ranks stop without an update and get its error.
 */
#include "train/step.h"

#include "base/check.h"
#include "base/clock.h"
#include "train/batch_part.h"

/* ---- forward and backward ----------------------------------------------- */

/* Tell the device the weights, if that was not done when the step began, as
 * their sum over ranks was still on its way. */
static err_code_t weights_await(train_state_t *run, err_t *err)
{
    err_code_t rc;

    if (run->weigh.work == NULL)
        return ERR_OK;
    rc = train_weigh_finish(&run->weigh, err);
    train_in_weigh(run);
    return rc == ERR_OK ? train_in_send(run, err) : rc;
}

/* Samples of a step that are computed together. */
typedef struct micro {
    nn_batch_t batch;
    int64_t count;
    bool accumulate; /* add to the gradients of the previous micro-batches */
} micro_t;

static err_code_t micro_step(train_state_t *run, const micro_t *micro,
                             train_times_t *times, err_t *err)
{
    nn_exec_t *exec = train_replica_exec(&run->replica, micro->count, true);
    trace_t *trace = train_trace_own(&run->trace);
    double begin = clock_now();
    double middle, span;
    err_code_t rc;

    /* Report progress to the other ranks, as a step may take long. */
    train_phase_set(&run->world, "forward and backward");
    span = trace_begin(trace);
    rc = nn_exec_forward(exec, &micro->batch, err);
    middle = clock_now();
    trace_end(trace, span, "forward", NULL, TRACE_NO_NUMBER);
    times->forward += middle - begin;
    if (rc != ERR_OK)
        return rc;
    span = trace_begin(trace);
    rc = weights_await(run, err);
    if (rc == ERR_OK)
        rc = nn_exec_backward(exec, &micro->batch, micro->accumulate, err);
    trace_end(trace, span, "backward", NULL, TRACE_NO_NUMBER);
    times->backward += clock_now() - middle;
    return rc;
}

/* Compute this rank's samples of the step, one micro-batch after the other. */
static err_code_t share_run(train_state_t *run, train_times_t *times,
                            err_t *err)
{
    const hdf5io_batch_t *batch = &run->there;
    const int64_t size =
        train_micro_size(batch->count, run->config->train.accumulate);
    err_code_t rc = ERR_OK;

    for (int64_t from = 0; rc == ERR_OK && from < batch->count; from += size) {
        const int64_t left = batch->count - from;
        const micro_t micro = {.batch =
                                   train_batch_part(run->graph, batch, from),
                               .count = left < size ? left : size,
                               .accumulate = from > 0};

        run->replica.last_micro =
            left <= size && train_sync_reports(run->replica.sync);
        rc = micro_step(run, &micro, times, err);
    }
    return rc;
}

/* Number of micro-batches in [step] on the rank that has most of them; a rank's
 * samples are divided into [parts]. */
static int64_t micros_most(const hdf5io_sampler_t *sampler, int64_t step,
                           int ranks, int64_t parts)
{
    int64_t most = 0;

    for (int r = 0; r < ranks; r++) {
        int64_t count = hdf5io_sampler_share_of(sampler, step, r).count;
        int64_t size = train_micro_size(count, parts);
        int64_t micros = count == 0 ? 0 : (count + size - 1) / size;

        most = micros > most ? micros : most;
    }
    return most;
}

/* Compute this rank's samples, unless it has an error. Then take part in the
 * syncbatchnorm sums of ranks with more micro-batches, which expect it. */
static void share_step(train_state_t *run, const hdf5io_batch_t *batch,
                       train_times_t *times, train_own_t *own)
{
    train_sync_t *sync = run->replica.sync;

    if (sync != NULL)
        train_sync_begin(sync,
                         micros_most(run->data.train.sampler,
                                     run->progress.epoch_step, run->world.size,
                                     run->config->train.accumulate),
                         train_replica_stream(&run->replica));
    if (own->rc == ERR_OK && batch->count > 0)
        own->rc = share_run(run, times, own->err);
    if (sync != NULL && own->rc != ERR_PEER)
        train_own_add(
            own, train_sync_rest(sync, own->rc == ERR_OK && batch->count > 0,
                                 train_own_err(own)));
}

/* Begin the step's tail, and tell the device of the step all that is known. */
static err_code_t tail_begin(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err)
{
    train_replica_t *replica = &run->replica;
    err_code_t rc;

    train_in_begin(run, batch);
    if (run->weigh.work == NULL)
        train_in_weigh(run);
    rc = train_in_send(run, err);
    return rc == ERR_OK ? train_io_begin(&replica->io, ddp_tail(replica->ddp),
                                         train_replica_stream(replica), err)
                        : rc;
}

/* After this rank's last gradient: what else the other ranks must know. */
static void tail_end(train_state_t *run, const hdf5io_batch_t *batch,
                     train_own_t *own)
{
    train_replica_t *replica = &run->replica;

    if (own->rc == ERR_OK && batch->count > 0)
        own->rc = train_local_check(run, own->err);
    train_own_add(own, weights_await(run, train_own_err(own)));
    if (own->rc != ERR_OK && own->rc != ERR_PEER)
        train_io_fail(&replica->io, ddp_tail(replica->ddp),
                      train_replica_stream(replica), NULL);
}

/* Default mode: gradients are summed in ddp's arena; the reduction of a bucket
 * starts as soon as its gradients are complete. A rank with an error of its own
 * still takes part in the reductions. Returns their result. */
static err_code_t buckets_step(train_state_t *run, const hdf5io_batch_t *batch,
                               train_times_t *times, train_own_t *own)
{
    ddp_t *ddp = run->replica.ddp;
    double span;
    err_code_t rc;

    ddp_step_begin(ddp, train_replica_stream(&run->replica));
    train_local_begin(run);
    if (dev_host_visible(run->compute.dev))
        train_own_add(own, train_weigh_begin(&run->weigh,
                                             own->rc == ERR_OK ? batch : NULL,
                                             train_own_err(own)));
    train_own_add(own, tail_begin(run, batch, train_own_err(own)));
    share_step(run, batch, times, own);
    tail_end(run, batch, own);
    if (own->rc == ERR_PEER) {
        ddp_step_wait(ddp, NULL); /* returns its error at once */
        return own->rc;
    }
    train_phase_set(&run->world, "all-reduce");
    span = trace_begin(train_trace_own(&run->trace));
    rc = ddp_step_skip(ddp, train_own_err(own));
    if (rc == ERR_OK)
        rc = ddp_step_wait_on(ddp, train_replica_stream(&run->replica),
                              train_own_err(own));
    trace_end(train_trace_own(&run->trace), span, "wait", "all-reduce",
              TRACE_NO_NUMBER);
    return rc == ERR_OK ? ERR_OK : train_own_first(own, rc);
}

static err_code_t step_compute(train_state_t *run, const hdf5io_batch_t *batch,
                               train_times_t *times, train_own_t *own)
{
    return run->replica.tree != NULL ? train_leaves_step(run, batch, times, own)
                                     : buckets_step(run, batch, times, own);
}

/* ---- the whole step ------------------------------------------------------ */

/* Enqueue all that the device does in the step. */
static err_code_t step_enqueue(train_state_t *run, const hdf5io_batch_t *batch,
                               train_times_t *times, train_own_t *own)
{
    trace_t *trace = train_trace_own(&run->trace);
    err_code_t rc = step_compute(run, batch, times, own);
    double span;

    if (rc != ERR_OK)
        return rc;
    train_phase_set(&run->world, "update");
    span = trace_begin(trace);
    rc = train_end_start(run, train_own_err(own));
    trace_end(trace, span, "update", NULL, TRACE_NO_NUMBER);
    return rc;
}

/* Why the steps of this run cannot be captured; NULL: they can. */
static const char *capture_lacks(const train_state_t *run)
{
    const bool alone = run->world.size == 1;

    if (!run->config->train.graphs)
        return "train.graphs is false";
    if (!dev_can_capture(run->compute.dev))
        return "the device captures no graphs";
    if (ddp_hook_away(run->replica.ddp))
        return "ddp.hook works on the host's memory";
    if (ddp_hook_turns(run->replica.ddp))
        return "the host takes the turns of ddp.hook";
    if (!train_world_graphs(&run->world))
        return "ranks sum gradients through the host";
    return !alone && run->config->ddp.local_sgd.period > 0
               ? "ddp.local_sgd is on"
               : NULL;
}

/* The graph of this step; NULL: the step is made without a graph. All ranks get
 * the same answer. */
static train_replay_graph_t *graph_find(train_state_t *run)
{
    const bool last = run->progress.epoch_step + 1 == run->data.train.steps;
    const char *lack;

    if (dev_host_visible(run->compute.dev))
        return NULL;
    lack = capture_lacks(run);
    if (lack != NULL)
        train_replay_stop(&run->replay, lack, run->world.rank == 0);
    return train_replay_find(&run->replay, last,
                             train_feed_slot(run->data.train.feed));
}

/* What a rank says about a capture. The greatest number of all ranks counts. */
enum { CAPTURE_WELL, CAPTURE_LATER, CAPTURE_NEVER };

/* Tell all ranks the number of this rank, *says. Then *says becomes the
 * greatest number of all ranks. Collective. */
static err_code_t capture_vote(train_state_t *run, int32_t *says, err_t *err)
{
    return run->world.size == 1 ? ERR_OK
                                : comm_allreduce(run->world.group, says, 1,
                                                 COMM_INT32, COMM_MAX, err);
}

/* Launch the operations of later steps one by one, because some rank cannot
 * capture them. If this rank cannot, [why] has the reason. */
static void capture_stop(train_state_t *run, const err_t *why)
{
    train_replay_stop(&run->replay,
                      why->code != ERR_OK ? why->text
                                          : "another rank could not capture "
                                            "them",
                      run->world.rank == 0);
}

/* Begin to capture a step. NCCL may let the ranks of a node wait for each other
 * when its calls are captured. So all ranks capture, or none: no rank captures
 * this step if a rank has an error ([had] is the error of this rank), and no
 * rank captures any step if a capture cannot begin on some rank. Returns
 * whether the capture has begun; all ranks get the same answer. Collective. */
static bool capture_begin(train_state_t *run, err_code_t had)
{
    dev_stream_t *stream = train_replica_stream(&run->replica);
    dev_graph_t *nothing = NULL;
    err_t why = ERR_INIT;
    int32_t says = CAPTURE_LATER;
    bool begun;

    if (had == ERR_OK)
        says = dev_capture_begin(stream, &why) == ERR_OK ? CAPTURE_WELL
                                                         : CAPTURE_NEVER;
    begun = says == CAPTURE_WELL;
    if (capture_vote(run, &says, &why) == ERR_OK && says == CAPTURE_WELL)
        return true;
    if (begun) {
        (void)dev_capture_end(stream, &nothing, NULL);
        dev_graph_close(nothing);
    }
    if (says == CAPTURE_NEVER)
        capture_stop(run, &why);
    return false;
}

/* The capture of a step has begun: capture the step in [graph]. If the capture
 * cannot end on some rank, the step must still be made without a capture. If a
 * call in between fails on one of several ranks, all ranks end, as in a step
 * without a capture. */
static void step_capture(train_state_t *run, const hdf5io_batch_t *batch,
                         train_times_t *times, train_replay_graph_t *graph)
{
    err_t why = ERR_INIT;
    train_own_t own = {.err = &why};
    int32_t says;
    err_code_t rc;

    train_own_add(&own, step_enqueue(run, batch, times, &own));
    rc = dev_capture_end(train_replica_stream(&run->replica), &graph->graph,
                         train_own_err(&own));
    rc = train_own_first(&own, rc);
    says = rc == ERR_OK ? CAPTURE_WELL : CAPTURE_NEVER;
    graph->samples = run->there.count;
    if (capture_vote(run, &says, train_own_err(&own)) == ERR_OK &&
        says == CAPTURE_WELL)
        return;
    dev_graph_close(graph->graph);
    graph->graph = NULL;
    capture_stop(run, &why);
}

/* Launch the graph of a step. A rank without a good batch computes an older
 * batch once more, and tells the others, so that no rank makes an update. */
static err_code_t step_launch(train_state_t *run, const hdf5io_batch_t *batch,
                              train_replay_graph_t *graph, train_own_t *own)
{
    const bool good = own->rc == ERR_OK;

    check(!good || graph->samples == run->there.count,
          "a graph for %lld samples is launched for %lld",
          (long long)graph->samples, (long long)run->there.count);
    train_phase_set(&run->world, "forward and backward");
    if (run->replica.tree == NULL)
        ddp_step_replay(run->replica.ddp);
    train_in_begin(run, good ? batch : NULL);
    train_in_weigh(run);
    if (!good)
        run->replica.io.in->flags[TRAIN_TAIL_FAILED] = 1;
    return dev_graph_launch(graph->graph, train_replica_stream(&run->replica),
                            train_own_err(own));
}

/* Let the device begin the step: by its graph, if it has one. */
static err_code_t step_start(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, train_own_t *own)
{
    train_replay_graph_t *graph =
        own->rc == ERR_OK || run->world.size > 1 ? graph_find(run) : NULL;

    if (graph != NULL && graph->graph == NULL && train_replay_due(graph) &&
        capture_begin(run, own->rc)) {
        step_capture(run, batch, times, graph);
        if (graph->graph != NULL) /* step_capture has set the weights */
            return dev_graph_launch(
                graph->graph, train_replica_stream(&run->replica), own->err);
    }
    return graph != NULL && graph->graph != NULL
               ? step_launch(run, batch, graph, own)
               : step_enqueue(run, batch, times, own);
}

/* Wait until the device has done the step. */
static err_code_t step_wait(train_state_t *run, train_times_t *times,
                            err_t *err)
{
    trace_t *trace = train_trace_own(&run->trace);
    const double begin = clock_now(), span = trace_begin(trace);
    err_code_t rc = dev_stream_wait(train_replica_stream(&run->replica), err);

    if (!dev_host_visible(run->compute.dev))
        trace_end(trace, span, "device", NULL, TRACE_NO_NUMBER);
    times->backward += clock_now() - begin;
    return rc;
}

/* The learning rate of the next update. */
static double lr_next(const train_state_t *run)
{
    const optim_t *optim = run->replica.optim;
    const double lr = optim_schedule_lr(run->replica.schedule, optim_lr(optim),
                                        run->progress.step);

    return train_plateau_lr(&run->plateau, lr);
}

/* Make the step for which run->turn is loaded. */
static err_code_t step_run(train_state_t *run, train_times_t *times, err_t *err)
{
    train_turn_t *turn = &run->turn;
    const hdf5io_batch_t *batch = turn->batch;
    train_own_t own = {.rc = turn->rc, .err = err};
    err_code_t rc;

    if (own.rc != ERR_OK)
        err_copy(err, &turn->err);
    if (!dev_host_visible(run->compute.dev))
        run->weigh = turn->weigh;
    turn->loaded = false;
    run->lr = lr_next(run);
    if (own.rc == ERR_OK)
        own.rc = train_feed_take(run->data.train.feed,
                                 train_replica_stream(&run->replica),
                                 &run->there, err);
    rc = step_start(run, batch, times, &own);
    if (rc == ERR_OK)
        rc = train_turn_next(run, train_own_err(&own));
    if (rc == ERR_OK)
        rc = step_wait(run, times, train_own_err(&own));
    return rc == ERR_OK ? train_end_finish(run, batch, times, &own)
                        : train_world_lost(&run->world, err);
}

err_code_t train_step(train_state_t *run, err_t *err)
{
    trace_t *trace = train_trace_own(&run->trace);
    const double span = trace_begin(trace);
    const int64_t number = run->progress.step + 1;
    train_times_t times = {.begin = clock_now()};
    err_code_t rc = ERR_OK;

    if (!run->turn.loaded)
        rc = train_turn_load(run, run->progress.epoch_step, err);
    if (rc != ERR_OK)
        return rc;
    times.data = run->turn.waited;
    rc = step_run(run, &times, err);
    trace_end(trace, span, "step", NULL, number);
    return rc;
}

err_code_t train_step_batch(train_state_t *run, const hdf5io_batch_t *batch,
                            err_t *err)
{
    run->given = batch;
    return train_step(run, err);
}
