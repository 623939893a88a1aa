/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/fixture_dev.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* A block on the device with a copy of [from]; if [from] is NULL, zeros. */
static void *block(fixture_dev_t *f, const void *from, size_t bytes)
{
    void *at = NULL;
    err_t err = ERR_INIT;

    cr_assert_lt(f->count, FIXTURE_BLOCKS);
    cr_assert_eq(dev_alloc(f->dev, bytes, "a test", &at, &err), ERR_OK);
    f->blocks[f->count++] = at;
    if (from != NULL && bytes > 0)
        cr_assert_eq(
            dev_copy(f->bind.stream, at, from, bytes, DEV_HOST_TO_DEV, &err),
            ERR_OK);
    return at;
}

static void copy_batch(fixture_dev_t *f)
{
    const fixture_t *like = f->like;
    const nn_graph_t *graph = like->graph;
    const size_t samples = (size_t)like->samples;

    f->batch.sample_ids = block(f, like->ids, samples * sizeof(uint64_t));
    for (int k = 0; k < nn_graph_inputs(graph); k++)
        f->batch.inputs[k] =
            block(f, like->inputs[k],
                  samples * sizeof(float) *
                      (size_t)nn_graph_input_info(graph, k).elems);
    for (int k = 0; k < nn_graph_targets(graph); k++)
        f->batch.targets[k] =
            block(f, like->targets[k],
                  samples * (size_t)nn_graph_target_info(graph, k).bytes);
}

void fixture_dev_open(fixture_dev_t *f, const fixture_t *like,
                      const nn_exec_config_t *config, const char *backend,
                      int index)
{
    const nn_graph_t *graph = like->graph;
    nn_exec_config_t own = *config;
    err_t err = ERR_INIT;

    *f = (fixture_dev_t){.like = like};
    cr_assert_eq(dev_open(backend, index, &f->dev, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(
        dev_stream_open(f->dev, DEV_STREAM_COMPUTE, &f->bind.stream, &err),
        ERR_OK);
    own.dev = f->dev;
    own.op_backend = backend;
    cr_assert_eq(nn_exec_open(graph, &own, &f->exec, &err), ERR_OK, "%s",
                 err.text);
    f->bind.params =
        block(f, like->params, nn_graph_param_elems(graph) * sizeof(float));
    f->bind.buffers =
        block(f, like->buffers, nn_graph_buffer_elems(graph) * sizeof(float));
    f->bind.grads = block(f, NULL, nn_graph_param_elems(graph) * sizeof(float));
    f->bind.moments =
        block(f, NULL, nn_graph_moment_elems(graph) * sizeof(double));
    f->bind.results =
        block(f, NULL, (size_t)nn_graph_losses(graph) * sizeof(nn_result_t));
    f->bind.step = block(f, &like->step, sizeof like->step);
    f->bind.activations = block(f, NULL, nn_exec_activation_bytes(f->exec));
    copy_batch(f);
    nn_exec_bind(f->exec, &f->bind);
    cr_assert_eq(dev_stream_wait(f->bind.stream, &err), ERR_OK);
}

void fixture_dev_close(fixture_dev_t *f)
{
    nn_exec_close(f->exec);
    for (int i = 0; i < f->count; i++)
        dev_free(f->dev, f->blocks[i]);
    dev_stream_close(f->bind.stream);
    dev_close(f->dev);
}

void *fixture_dev_read(fixture_dev_t *f, const void *at, size_t bytes)
{
    void *got = malloc(bytes + 1);
    err_t err = ERR_INIT;

    cr_assert_not_null(got);
    cr_assert_eq(
        dev_copy(f->bind.stream, got, at, bytes, DEV_DEV_TO_HOST, &err),
        ERR_OK);
    cr_assert_eq(dev_stream_wait(f->bind.stream, &err), ERR_OK, "%s", err.text);
    return got;
}
