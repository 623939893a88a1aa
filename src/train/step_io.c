/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/step_io.h"

#include "base/mem.h"

#define WHAT "the numbers of a step"

/* Bytes before the optimizer's part. */
static size_t own_bytes(void)
{
    return mem_round(sizeof(train_step_in_t));
}

/* Bytes of the flags and the sums of all losses. */
static size_t sums_bytes(const train_step_io_t *io)
{
    return train_tail_sums(nn_graph_losses(io->graph)) * sizeof(double);
}

static err_code_t host_open(train_step_io_t *io, err_t *err)
{
    void *block = NULL;
    err_code_t rc = dev_pinned_alloc(io->dev, io->in_bytes, WHAT, &block, err);

    io->in = block;
    block = NULL;
    if (rc == ERR_OK)
        rc = dev_pinned_alloc(io->dev, sizeof *io->out + sums_bytes(io), WHAT,
                              &block, err);
    io->out = block;
    if (rc == ERR_OK)
        io->in->failed = 1;
    return rc;
}

err_code_t train_io_open(dev_device_t *dev, const nn_graph_t *graph,
                         const optim_t *optim, train_step_io_t *io, err_t *err)
{
    void *block = NULL;
    err_code_t rc;

    io->dev = dev;
    io->graph = graph;
    io->in_bytes = own_bytes() + mem_round(optim_in_bytes(optim));
    rc = host_open(io, err);
    if (rc == ERR_OK)
        rc = dev_alloc(dev, io->in_bytes + sizeof *io->verdict, WHAT, &block,
                       err);
    if (rc != ERR_OK)
        return rc;
    io->there = block;
    io->verdict = (optim_verdict_t *)((char *)block + io->in_bytes);
    return ERR_OK;
}

void train_io_close(train_step_io_t *io)
{
    if (io->dev == NULL)
        return;
    dev_free(io->dev, io->there);
    dev_pinned_free(io->dev, io->out);
    dev_pinned_free(io->dev, io->in);
    *io = (train_step_io_t){0};
}

optim_in_t *train_io_optim(train_step_in_t *in)
{
    return (optim_in_t *)((char *)in + own_bytes());
}

err_code_t train_io_send(train_step_io_t *io, dev_stream_t *stream, err_t *err)
{
    return dev_copy(stream, io->there, io->in, io->in_bytes, DEV_HOST_TO_DEV,
                    err);
}

err_code_t train_io_flags(train_step_io_t *io, double *tail,
                          dev_stream_t *stream, err_t *err)
{
    return dev_copy(stream, tail, io->there->flags, sizeof io->there->flags,
                    DEV_DEV_TO_DEV, err);
}

err_code_t train_io_begin(train_step_io_t *io, double *tail,
                          dev_stream_t *stream, err_t *err)
{
    const size_t bytes = sizeof io->there->flags;
    err_code_t rc = train_io_flags(io, tail, stream, err);

    return rc == ERR_OK
               ? dev_fill(stream, (char *)tail + bytes, 0,
                          train_tail_doubles(io->graph) * sizeof *tail - bytes,
                          err)
               : rc;
}

err_code_t train_io_fail(train_step_io_t *io, double *tail,
                         dev_stream_t *stream, err_t *err)
{
    return dev_copy(stream, tail + TRAIN_TAIL_FAILED, &io->in->failed,
                    sizeof *tail, DEV_HOST_TO_DEV, err);
}

err_code_t train_io_fetch(train_step_io_t *io, const double *tail,
                          dev_stream_t *stream, err_t *err)
{
    err_code_t rc = dev_copy(stream, &io->out->verdict, io->verdict,
                             sizeof *io->verdict, DEV_DEV_TO_HOST, err);

    return rc == ERR_OK ? dev_copy(stream, io->out->tail, tail, sums_bytes(io),
                                   DEV_DEV_TO_HOST, err)
                        : rc;
}
