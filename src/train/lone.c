/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/lone.h"

#include "base/log.h"

/* Number of samples in micro-batch number [micro], if [count] samples are
 * divided into micro-batches. */
static int64_t micro_count(const train_deal_t *deal, int64_t count,
                           int64_t micro)
{
    const int64_t size =
        count == 0 ? 0
                   : train_micro_size(count, deal->config->train.accumulate);
    const int64_t left = count - micro * size;

    return left <= 0 ? 0 : left < size ? left : size;
}

static int64_t share_count(const train_deal_t *deal, int64_t step, int rank)
{
    return hdf5io_sampler_share_of(deal->train->sampler, step, rank).count;
}

/* Return whether some rank has a micro-batch of one sample in [step]. */
static bool lone_own(const train_deal_t *deal, int64_t step)
{
    bool lone = false;

    for (int r = 0; r < deal->ranks; r++) {
        const int64_t count = share_count(deal, step, r);
        const int64_t size =
            count == 0
                ? 0
                : train_micro_size(count, deal->config->train.accumulate);

        lone = lone || (count > 0 && (size == 1 || count % size == 1));
    }
    return lone;
}

/* Return whether a micro-batch has one sample, summed over all ranks, in
 * [step]. */
static bool lone_all(const train_deal_t *deal, int64_t step)
{
    bool lone = false;

    for (int64_t m = 0; m < deal->config->train.accumulate; m++) {
        int64_t all = 0;

        for (int r = 0; r < deal->ranks; r++)
            all += micro_count(deal, share_count(deal, step, r), m);
        lone = lone || all == 1;
    }
    return lone;
}

/* Return whether a leaf of [step] has one sample. */
static bool lone_leaf(const train_deal_t *deal, int64_t step)
{
    const int64_t leaf = deal->config->train.microbatch;
    const int64_t all = hdf5io_sampler_share(deal->train->sampler, step).global;

    return leaf == 1 || all % leaf == 1;
}

/* The kinds of moments (a bit each) that are computed from one sample in
 * [step]. */
static unsigned lone_step(const train_deal_t *deal, int64_t step)
{
    unsigned lone = 0;

    if (deal->config->train.reproducible ? lone_leaf(deal, step)
                                         : lone_own(deal, step))
        lone |= 1U << NN_MOMENTS_OWN;
    if (lone_all(deal, step))
        lone |= 1U << NN_MOMENTS_ALL;
    return lone;
}

/* The first layer that has one value per sample and channel, and whose kind of
 * moments is in [lone]; -1: none. */
static int layer_find(const nn_graph_t *graph, unsigned lone)
{
    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const nn_layer_info_t layer = nn_graph_layer(graph, i);

        if (layer.values == 1 && ((lone >> layer.moments) & 1) != 0)
            return i;
    }
    return -1;
}

static const char *together(const train_config_t *config,
                            const nn_layer_info_t *layer)
{
    if (layer->moments == NN_MOMENTS_ALL)
        return "a micro-batch of all ranks";
    return config->train.reproducible ? "a micro-batch (train.microbatch)"
                                      : "a micro-batch of a rank";
}

static err_code_t fail_lone(const train_deal_t *deal,
                            const nn_layer_info_t *layer, err_t *err)
{
    const train_config_t *config = deal->config;

    return err_set(
        err, ERR_CONFIG,
        "layer %s (%s) normalizes one value per channel: with %d rank%s, "
        "train.batch %lld, train.accumulate %lld%s %s is one sample, which has "
        "no variance; raise train.batch%s, start fewer ranks, or use "
        "layernorm%s",
        layer->name, layer->kind, deal->ranks, deal->ranks == 1 ? "" : "s",
        (long long)config->train.batch, (long long)config->train.accumulate,
        config->train.reproducible ? " and train.reproducible" : "",
        together(config, layer),
        config->train.reproducible     ? " or train.microbatch"
        : config->train.accumulate > 1 ? ", lower train.accumulate"
                                       : "",
        layer->moments == NN_MOMENTS_OWN ? " or syncbatchnorm" : "");
}

err_code_t train_lone_check(const train_deal_t *deal, unsigned *lone,
                            err_t *err)
{
    const nn_graph_t *graph = deal->graph;
    const train_data_t *train = deal->train;
    const int ranks = deal->ranks;
    const unsigned all = 1U << NN_MOMENTS_OWN | 1U << NN_MOMENTS_ALL;
    const int64_t last = train->steps - 1;
    unsigned found;
    int at;

    *lone = 0;
    if (train->steps == 0 || layer_find(graph, all) < 0)
        return ERR_OK;
    at = layer_find(graph, lone_step(deal, 0));
    if (at >= 0) {
        const nn_layer_info_t layer = nn_graph_layer(graph, at);

        return fail_lone(deal, &layer, err);
    }
    found = lone_step(deal, last);
    at = layer_find(graph, found);
    if (at < 0)
        return ERR_OK;
    if (deal->logs) {
        const nn_layer_info_t layer = nn_graph_layer(graph, at);

        log_warn("train",
                 "layer %s (%s) normalizes one value per channel in the last "
                 "step of an epoch, which has %lld samples for %d rank%s: its "
                 "output is its bias there, and its running statistics do not "
                 "count that step; another train.batch avoids it",
                 layer.name, layer.kind,
                 (long long)hdf5io_sampler_share(train->sampler, last).global,
                 ranks, ranks == 1 ? "" : "s");
    }
    *lone = found;
    return ERR_OK;
}
