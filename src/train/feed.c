/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/feed.h"

#include "base/check.h"
#include "base/mem.h"

/* Memory of the device for a batch. */
typedef struct feed_slot {
    hdf5io_batch_t batch; /* its pointers are to memory of the device */
    dev_event_t *copied;
} feed_slot_t;

struct train_feed {
    train_feed_plan_t plan;
    const hdf5io_batch_t *host; /* the batch put last, if nothing is copied */
    dev_stream_t *stream;       /* of the copies; NULL: nothing is copied */
    void *block;                /* memory of all slots */
    void *pinned;               /* the loader's memory; NULL: none */
    feed_slot_t slots[TRAIN_FEED_SLOTS];
    int64_t puts; /* number of batches put so far */
};

/* Bytes of one sample of an input. */
static size_t input_bytes(const nn_graph_t *graph, int input)
{
    return sizeof(float) * (size_t)nn_graph_input_info(graph, input).elems;
}

/* Take memory for [bytes] bytes of each sample from the block at *at; if
 * [block] is NULL, only count. */
static void *slot_cut(const train_feed_t *feed, char *block, size_t bytes,
                      size_t *at)
{
    void *piece = block == NULL ? NULL : block + *at;

    *at += mem_round((size_t)feed->plan.most * bytes);
    return piece;
}

/* Place the slots in [block]; if it is NULL, only compute the total size. */
static size_t slots_layout(train_feed_t *feed, char *block)
{
    const nn_graph_t *graph = feed->plan.graph;
    size_t at = 0;

    for (int s = 0; s < feed->plan.slots; s++) {
        hdf5io_batch_t *batch = &feed->slots[s].batch;

        for (int k = 0; k < nn_graph_inputs(graph); k++)
            batch->inputs[k] =
                slot_cut(feed, block, input_bytes(graph, k), &at);
        for (int k = 0; k < nn_graph_targets(graph); k++)
            batch->targets[k] = slot_cut(
                feed, block, nn_graph_target_info(graph, k).bytes, &at);
        batch->sample_ids =
            slot_cut(feed, block, sizeof *batch->sample_ids, &at);
    }
    return at;
}

static err_code_t slots_open(train_feed_t *feed, err_t *err)
{
    err_code_t rc = dev_alloc(feed->plan.dev, slots_layout(feed, NULL),
                              "batches", &feed->block, err);

    if (rc == ERR_OK)
        slots_layout(feed, feed->block);
    if (rc == ERR_OK)
        rc = dev_stream_open(feed->plan.dev, DEV_STREAM_COPY, &feed->stream,
                             err);
    for (int s = 0; s < feed->plan.slots && rc == ERR_OK; s++)
        rc = dev_event_open(feed->plan.dev, &feed->slots[s].copied, err);
    return rc;
}

static err_code_t loader_pin(train_feed_t *feed, err_t *err)
{
    size_t bytes;
    void *block = hdf5io_loader_memory(feed->plan.loader, &bytes);
    err_code_t rc = dev_pin(feed->plan.dev, block, bytes, err);

    if (rc == ERR_OK)
        feed->pinned = block;
    return rc;
}

err_code_t train_feed_open(const train_feed_plan_t *plan, train_feed_t **out,
                           err_t *err)
{
    train_feed_t *feed = NULL;
    err_code_t rc = mem_new(train_feed_t, 1, "a feed", &feed, err);

    if (rc != ERR_OK)
        return rc;
    check(plan->slots > 0 && plan->slots <= TRAIN_FEED_SLOTS, "%d slots",
          plan->slots);
    feed->plan = *plan;
    if (!dev_host_visible(plan->dev)) {
        rc = slots_open(feed, err);
        if (rc == ERR_OK && plan->loader != NULL)
            rc = loader_pin(feed, err);
    }
    if (rc == ERR_OK)
        *out = feed;
    else
        train_feed_close(feed);
    return rc;
}

void train_feed_close(train_feed_t *feed)
{
    if (feed == NULL)
        return;
    /* After an error of the device nothing runs any more. */
    if (feed->stream != NULL)
        dev_stream_wait(feed->stream, NULL);
    for (int s = 0; s < feed->plan.slots; s++)
        dev_event_close(feed->slots[s].copied);
    dev_stream_close(feed->stream);
    if (feed->pinned != NULL) {
        dev_unpin(feed->plan.dev, feed->pinned);
        if (dev_abandoned(feed->plan.dev))
            hdf5io_loader_memory_keep(feed->plan.loader);
    }
    dev_free(feed->plan.dev, feed->block);
    mem_free(feed);
}

/* Enqueue the copy of a field with [bytes] bytes for each sample. */
static err_code_t field_copy(const train_feed_t *feed, void *to,
                             const void *from, size_t bytes, err_t *err)
{
    return dev_copy(feed->stream, to, from, bytes, DEV_HOST_TO_DEV, err);
}

err_code_t train_feed_put(train_feed_t *feed, const hdf5io_batch_t *batch,
                          err_t *err)
{
    feed_slot_t *slot = &feed->slots[(feed->puts + 1) % feed->plan.slots];
    const nn_graph_t *graph = feed->plan.graph;
    const size_t count = (size_t)batch->count;
    hdf5io_batch_t *own = &slot->batch;
    err_code_t rc = ERR_OK;

    feed->host = batch;
    if (feed->stream == NULL) {
        feed->puts++;
        return ERR_OK;
    }
    check(batch->count <= feed->plan.most, "%lld samples, but room for %lld",
          (long long)batch->count, (long long)feed->plan.most);
    own->epoch = batch->epoch;
    own->step = batch->step;
    own->count = batch->count;
    own->global = batch->global;
    for (int k = 0; k < nn_graph_inputs(graph) && rc == ERR_OK; k++)
        rc = field_copy(feed, own->inputs[k], batch->inputs[k],
                        count * input_bytes(graph, k), err);
    for (int k = 0; k < nn_graph_targets(graph) && rc == ERR_OK; k++)
        rc = field_copy(feed, own->targets[k], batch->targets[k],
                        count * nn_graph_target_info(graph, k).bytes, err);
    if (rc == ERR_OK)
        rc = field_copy(feed, own->sample_ids, batch->sample_ids,
                        count * sizeof *own->sample_ids, err);
    if (rc == ERR_OK)
        rc = dev_event_record(slot->copied, feed->stream, err);
    feed->puts += rc == ERR_OK;
    return rc;
}

void train_feed_skip(train_feed_t *feed)
{
    feed->puts++;
}

err_code_t train_feed_take(train_feed_t *feed, dev_stream_t *stream,
                           hdf5io_batch_t *out, err_t *err)
{
    feed_slot_t *slot = &feed->slots[feed->puts % feed->plan.slots];

    check(feed->puts > 0, "a batch is taken, but none was put");
    *out = feed->stream == NULL ? *feed->host : slot->batch;
    return feed->stream == NULL ? ERR_OK
                                : dev_event_wait_on(slot->copied, stream, err);
}

int train_feed_slot(const train_feed_t *feed)
{
    return (int)(feed->puts % feed->plan.slots);
}
