/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Batches on the test device, in both of its orders: the work on another stream
 * reads the batch that was put last, and nothing waits. On the CPU nothing is
 * copied.
 */
#include "train/feed.h"

#include <criterion/criterion.h>
#include <string.h>

#include "dev/dev_far.h"
#include "nn/fixture.h"

enum { MOST = 5, ELEMS = 3, BATCHES = 6 };

static const char model[] =
    "model: {input: [3], layers: [{linear: {out: 2}}]}\n"
    "loss: cross_entropy\n";

/* Batch number n, which has its number in all of its fields. */
typedef struct own_batch {
    hdf5io_batch_t batch;
    float input[MOST * ELEMS];
    int64_t target[MOST];
    uint64_t ids[MOST];
} own_batch_t;

static void batch_make(own_batch_t *own, int64_t n)
{
    own->batch = (hdf5io_batch_t){.step = n,
                                  .count = n % 2 == 0 ? MOST : MOST - 1,
                                  .global = 2 * MOST,
                                  .input = own->input,
                                  .target = own->target,
                                  .sample_ids = own->ids};
    for (int64_t i = 0; i < MOST; i++) {
        own->target[i] = n;
        own->ids[i] = (uint64_t)(100 * n + i);
        for (int64_t k = 0; k < ELEMS; k++)
            own->input[i * ELEMS + k] = (float)(n + i * k);
    }
}

static err_code_t feed_open(dev_device_t *dev, const nn_graph_t *graph,
                            train_feed_t **out, err_t *err)
{
    const train_feed_plan_t plan = {
        .dev = dev, .graph = graph, .most = MOST, .slots = 2};

    return train_feed_open(&plan, out, err);
}

static void batch_read(const hdf5io_batch_t *batch, dev_stream_t *stream,
                       own_batch_t *to)
{
    const size_t count = (size_t)batch->count;
    err_t err = ERR_INIT;

    cr_assert_eq(dev_copy(stream, to->input, batch->input,
                          count * sizeof(float) * ELEMS, DEV_DEV_TO_HOST, &err),
                 ERR_OK);
    cr_assert_eq(dev_copy(stream, to->target, batch->target,
                          count * sizeof(int64_t), DEV_DEV_TO_HOST, &err),
                 ERR_OK);
    cr_assert_eq(dev_copy(stream, to->ids, batch->sample_ids,
                          count * sizeof(uint64_t), DEV_DEV_TO_HOST, &err),
                 ERR_OK);
}

static void check_order(int order)
{
    nn_graph_t *graph = fixture_graph(model);
    own_batch_t own[BATCHES], got[BATCHES];
    dev_device_t *dev;
    dev_stream_t *stream;
    train_feed_t *feed;
    hdf5io_batch_t batch;
    dev_far_counts_t counts;
    err_t err = ERR_INIT;

    cr_assert_eq(dev_open("far", order, &dev, &err), ERR_OK);
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, &err),
                 ERR_OK);
    cr_assert_eq(feed_open(dev, graph, &feed, &err), ERR_OK);
    counts = dev_far_counts(dev);
    for (int n = 0; n < BATCHES; n++)
        batch_make(&own[n], n);
    cr_assert_eq(train_feed_put(feed, &own[0].batch, &err), ERR_OK);
    for (int n = 0; n < BATCHES; n++) {
        cr_assert_eq(train_feed_take(feed, stream, &batch, &err), ERR_OK);
        cr_expect_eq(batch.step, n);
        cr_expect_eq(batch.count, own[n].batch.count);
        cr_expect_eq(batch.global, 2 * MOST);
        batch_read(&batch, stream, &got[n]);
        if (n + 1 < BATCHES)
            cr_assert_eq(train_feed_put(feed, &own[n + 1].batch, &err), ERR_OK);
        cr_expect_eq(dev_far_counts(dev).waits, counts.waits + n);
        cr_assert_eq(dev_stream_wait(stream, &err), ERR_OK);
        cr_expect_arr_eq(got[n].ids, own[n].ids,
                         (size_t)batch.count * sizeof *own->ids);
        cr_expect_arr_eq(got[n].target, own[n].target,
                         (size_t)batch.count * sizeof *own->target);
        cr_expect_arr_eq(got[n].input, own[n].input,
                         (size_t)batch.count * ELEMS * sizeof *own->input);
        /* This batch may change now, but not the next one. */
        memset(own[n].input, 0x77, sizeof own[n].input);
    }
    cr_expect_eq(dev_far_counts(dev).allocs, counts.allocs);
    train_feed_close(feed);
    dev_stream_close(stream);
    dev_close(dev);
    nn_graph_close(graph);
}

Test(feed, last_first)
{
    check_order(DEV_FAR_LAST_FIRST);
}

Test(feed, needed_only)
{
    check_order(DEV_FAR_NEEDED_ONLY);
}

/* Each call of the device fails in turn: an error, and nothing stays open (the
 * device checks that when it is closed). */
Test(feed, failures)
{
    nn_graph_t *graph = fixture_graph(model);
    own_batch_t own;
    bool done = false;
    int failed = 0;

    batch_make(&own, 0);
    for (int64_t k = 1; !done; k++) {
        dev_device_t *dev;
        dev_stream_t *stream;
        train_feed_t *feed = NULL;
        hdf5io_batch_t batch;
        err_t err = ERR_INIT;
        err_code_t rc;

        cr_assert_eq(dev_open("far", 0, &dev, &err), ERR_OK);
        cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, &err),
                     ERR_OK);
        dev_far_fail(dev, k);
        rc = feed_open(dev, graph, &feed, &err);
        if (rc == ERR_OK)
            rc = train_feed_put(feed, &own.batch, &err);
        if (rc == ERR_OK)
            rc = train_feed_take(feed, stream, &batch, &err);
        done = rc == ERR_OK;
        failed += rc != ERR_OK;
        cr_expect(done || strstr(err.text, "failed (call") != NULL, "%s",
                  err.text);
        dev_far_fail(dev, 0);
        cr_expect_eq(dev_stream_wait(stream, &err), ERR_OK);
        train_feed_close(feed);
        dev_stream_close(stream);
        dev_close(dev);
    }
    /* Memory, a stream, two events; three copies and a record; a wait. */
    cr_expect_eq(failed, 9);
    nn_graph_close(graph);
}

/* A put that fails and the skip after it use one slot together. A put that
 * succeeds uses one slot, too. So all ranks go on with the same slot. */
Test(feed, a_put_that_fails_is_one_turn)
{
    nn_graph_t *graph = fixture_graph(model);
    own_batch_t own;
    dev_device_t *dev;
    train_feed_t *feed;
    err_t err = ERR_INIT;

    batch_make(&own, 0);
    cr_assert_eq(dev_open("far", 0, &dev, &err), ERR_OK);
    cr_assert_eq(feed_open(dev, graph, &feed, &err), ERR_OK);
    cr_assert_eq(train_feed_put(feed, &own.batch, &err), ERR_OK);
    cr_expect_eq(train_feed_slot(feed), 1);
    for (int64_t call = 1; call <= 4; call++) { /* three copies and a record */
        dev_far_fail(dev, call);
        cr_expect_eq(train_feed_put(feed, &own.batch, &err), ERR_UNAVAILABLE);
        train_feed_skip(feed);
        cr_expect_eq(train_feed_slot(feed), (int)(call + 1) % 2, "call %d",
                     (int)call);
    }
    cr_assert_eq(train_feed_put(feed, &own.batch, &err), ERR_OK);
    cr_expect_eq(train_feed_slot(feed), 0);
    train_feed_close(feed);
    dev_close(dev);
    nn_graph_close(graph);
}

Test(feed, copies_nothing_on_the_cpu)
{
    nn_graph_t *graph = fixture_graph(model);
    own_batch_t own;
    dev_device_t *dev;
    train_feed_t *feed;
    hdf5io_batch_t batch;
    err_t err = ERR_INIT;

    batch_make(&own, 1);
    cr_assert_eq(dev_open("cpu", 0, &dev, &err), ERR_OK);
    cr_assert_eq(feed_open(dev, graph, &feed, &err), ERR_OK);
    cr_assert_eq(train_feed_put(feed, &own.batch, &err), ERR_OK);
    cr_assert_eq(train_feed_take(feed, NULL, &batch, &err), ERR_OK);
    cr_expect_eq(batch.input, own.input);
    cr_expect_eq(batch.target, own.target);
    cr_expect_eq(batch.sample_ids, own.ids);
    train_feed_close(feed);
    dev_close(dev);
    nn_graph_close(graph);
}
