/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op_rig_dev.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

#define GUARD 128
#define GUARD_BYTE 0x5a

void op_rig_dev_open(op_rig_dev_t *rig, const char *name, const char *backend,
                     int index)
{
    err_t err = ERR_INIT;

    *rig = (op_rig_dev_t){.name = name};
    if (dev_open(backend, index, &rig->dev, &err) != ERR_OK) {
        cr_assert_str_neq(backend, "cuda", "%s", err.text);
        cr_assert_eq(dev_open("cpu", 0, &rig->dev, &err), ERR_OK, "%s",
                     err.text);
    }
    cr_assert_eq(
        dev_stream_open(rig->dev, DEV_STREAM_COMPUTE, &rig->stream, &err),
        ERR_OK, "%s", err.text);
}

/* ---- blocks -------------------------------------------------------------- */

static size_t guard_bytes(const op_rig_block_t *block)
{
    return block->guards ? GUARD : 0;
}

static op_rig_block_t *block_add(op_rig_dev_t *rig, void *host, size_t bytes,
                                 bool guards)
{
    op_rig_block_t *block = &rig->blocks[rig->count];
    err_t err = ERR_INIT;
    void *copy = NULL;

    cr_assert_lt(rig->count, OP_RIG_BLOCKS);
    *block = (op_rig_block_t){.host = host, .bytes = bytes, .guards = guards};
    if (!dev_host_visible(rig->dev))
        cr_assert_eq(dev_alloc(rig->dev, bytes + guard_bytes(block), "a test",
                               &copy, &err),
                     ERR_OK, "%s", err.text);
    block->copy = copy;
    rig->count++;
    return block;
}

void *op_rig_block(op_rig_dev_t *rig, size_t bytes)
{
    err_t err = ERR_INIT;
    void *host;

    cr_assert_eq(mem_alloc(bytes + GUARD, "a test", &host, &err), ERR_OK, "%s",
                 err.text);
    memset((char *)host + bytes, GUARD_BYTE, GUARD);
    return block_add(rig, host, bytes, true)->host;
}

void op_rig_block_add(op_rig_dev_t *rig, void *host, size_t bytes)
{
    block_add(rig, host, bytes, false);
}

static void block_free(op_rig_dev_t *rig, op_rig_block_t *block)
{
    for (size_t i = 0; i < guard_bytes(block); i++)
        cr_assert_eq((unsigned char)block->host[block->bytes + i], GUARD_BYTE,
                     "%s: somebody wrote behind a block of %zu bytes",
                     rig->name, block->bytes);
    dev_free(rig->dev, block->copy);
    if (block->guards)
        mem_free(block->host);
    *block = rig->blocks[--rig->count];
}

void op_rig_block_free(op_rig_dev_t *rig, void *host)
{
    int i = 0;

    if (host == NULL)
        return;
    while (i < rig->count && rig->blocks[i].host != (char *)host)
        i++;
    cr_assert_lt(i, rig->count, "%s: no such block", rig->name);
    block_free(rig, &rig->blocks[i]);
}

void op_rig_dev_close(op_rig_dev_t *rig)
{
    while (rig->count > 0)
        block_free(rig, &rig->blocks[rig->count - 1]);
    dev_stream_close(rig->stream);
    dev_close(rig->dev);
}

/* ---- calls --------------------------------------------------------------- */

/* Address on the device of the copy of [at], an address on the host. */
static void *device_at(const op_rig_dev_t *rig, const void *at)
{
    const char *host = at;

    if (host == NULL)
        return NULL;
    for (int i = 0; i < rig->count; i++) {
        const op_rig_block_t *block = &rig->blocks[i];

        if (host >= block->host &&
            host < block->host + block->bytes + guard_bytes(block))
            return block->copy + (host - block->host);
    }
    cr_assert_fail("%s: an argument points to no block", rig->name);
    return NULL;
}

static op_args_t device_args(const op_rig_dev_t *rig, const op_args_t *args)
{
    op_args_t out = *args;

    out.stream = rig->stream;
    out.x = device_at(rig, args->x);
    out.target = device_at(rig, args->target);
    out.y = device_at(rig, args->y);
    for (int i = 0; i < OP_PARAMS_MAX; i++) {
        out.params[i] = device_at(rig, args->params[i]);
        out.dparams[i] = device_at(rig, args->dparams[i]);
    }
    out.dy = device_at(rig, args->dy);
    out.dx = device_at(rig, args->dx);
    for (int k = 0; k < OP_INPUTS_MAX - 1; k++) {
        out.other[k] = device_at(rig, args->other[k]);
        out.dother[k] = device_at(rig, args->dother[k]);
    }
    out.step = device_at(rig, args->step);
    out.running_mean = device_at(rig, args->running_mean);
    out.running_var = device_at(rig, args->running_var);
    out.moments = device_at(rig, args->moments);
    out.workspace = device_at(rig, args->workspace);
    out.scratch = device_at(rig, args->scratch);
    out.sample_ids = device_at(rig, args->sample_ids);
    out.sample_weights = device_at(rig, args->sample_weights);
    out.loss_sum = device_at(rig, args->loss_sum);
    out.correct = device_at(rig, args->correct);
    return out;
}

static err_code_t blocks_copy(op_rig_dev_t *rig, dev_copy_kind_t kind,
                              err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < rig->count && rc == ERR_OK; i++) {
        const op_rig_block_t *block = &rig->blocks[i];
        const bool in = kind == DEV_HOST_TO_DEV;

        rc = dev_copy(rig->stream, in ? block->copy : block->host,
                      in ? block->host : block->copy,
                      block->bytes + guard_bytes(block), kind, err);
    }
    return rc;
}

err_code_t op_rig_call(op_rig_dev_t *rig, op_rig_call_fn *call, op_t *op,
                       const op_args_t *args, err_t *err)
{
    op_args_t copies;
    err_code_t rc;

    if (dev_host_visible(rig->dev))
        return call(op, args, err);
    copies = device_args(rig, args);
    rc = blocks_copy(rig, DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK) /* copying back overwrites these sources */
        rc = dev_stream_wait(rig->stream, err);
    if (rc == ERR_OK)
        rc = call(op, &copies, err);
    if (rc == ERR_OK)
        rc = blocks_copy(rig, DEV_DEV_TO_HOST, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(rig->stream, err);
    return rc;
}

void op_rig_cuda_call(void *memory, size_t bytes, op_rig_cuda_fn *call,
                      const void *context)
{
    const op_backend_ops_t *backend;
    op_rig_dev_t rig;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cuda", &backend, &err), ERR_OK, "%s",
                 err.text);
    op_rig_dev_open(&rig, "a call", "cuda", 0);
    op_rig_block_add(&rig, memory, bytes);
    cr_assert_not_null(rig.blocks[0].copy);
    cr_assert_eq(blocks_copy(&rig, DEV_HOST_TO_DEV, &err), ERR_OK, "%s",
                 err.text);
    /* Copying back overwrites these sources. */
    cr_assert_eq(dev_stream_wait(rig.stream, &err), ERR_OK, "%s", err.text);
    call(backend, rig.blocks[0].copy, rig.stream, context);
    cr_assert_eq(blocks_copy(&rig, DEV_DEV_TO_HOST, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(dev_stream_wait(rig.stream, &err), ERR_OK, "%s", err.text);
    op_rig_dev_close(&rig);
}
