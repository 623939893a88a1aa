/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * batchnorm in the layout of x: blocked by 16 or 8 channels, channels last, or
 * plain; y = bn(x) [+ other] [and relu]. oneDNN's is not used: its fused relu
 * turns NaN into 0, which would hide a diverging run. The loops are in
 * channels.h.
 *
 * Forward reads x twice: for the statistics, then for y. Backward reads x, dy
 * and (with relu) y twice: for the sums and the gradient of other, then for
 * dx. The work of a pass is divided into items: one block of channels of a few
 * samples, or of a segment of one large sample. Each item writes partial sums
 * to scratch. These are added in the order of samples, so the bits do not
 * depend on the number of threads. Mean and variance of an item are computed
 * chunk by chunk. A chunk stays in the L1 cache and is centred at its own
 * mean; chunks are merged in double by the formula of Chan, Golub and LeVeque
 * (1979).
 *
 * The workspace stores mean and 1 / sqrt(var + epsilon), float [2, padded C].
 */
#include <math.h>

#include "base/mem.h"
#include "op/cpu/cpu.h"
#include "op/cpu/ops/combine.h"
#include "op/cpu/vector/channels.h"
#include "op/cpu/vector/chunk.h"
#include "op/op_desc.h"
#include "simd/team.h"

/* Maximum vectors of a chunk (16 KiB), and of a segment. */
#define BN_CHUNK_VECTORS 256
#define BN_SEGMENT_VECTORS 2048

typedef struct cpu_bn {
    cpu_combine_t combine;
    int64_t C, N, lanes, blocks; /* lanes: channels per block */
    /* distance in elements between samples, and between blocks of channels */
    int64_t sample, block;
    bool adjacent; /* all channels of a position are adjacent in memory */
    cpu_run_t run; /* one sample of one block */
    int64_t group; /* samples per item: more than one where samples are small */
    int64_t groups, segments, items;
    size_t partials; /* offset in scratch: double [items, 2, lanes] */
    size_t sums;     /* backward: offset in scratch, double [2, padded C] */
} cpu_bn_t;

/* Arguments of one forward or backward call. */
typedef struct cpu_bn_work {
    const cpu_bn_t *bn;
    const op_config_t *config;
    const op_args_t *args;
    const void *x, *other, *y, *dy; /* bfloat16 if bn->run.bf16 */
    void *to;                       /* y or dx */
    void *dother;
    const float *kept;
    double *partials, *sums;
} cpu_bn_work_t;

/* ---- opening ------------------------------------------------------------- */

/* Set the sizes and distances of [bn] for a layout with [lanes] channels per
 * block. 0 means channels last, 1 means plain. */
static void bn_shape(const op_t *op, int lanes, cpu_bn_t *bn)
{
    const op_desc_t *in = &op->config.in;
    const int64_t C = in->dims[1], space = op_desc_space(in);
    const bool rows =
        lanes == 1 &&
        space == 1; /* [N,C]: N positions of one sample, channels last */
    const int64_t floats = space * lanes;

    bn->C = C;
    bn->N = rows ? 1 : in->dims[0];
    bn->lanes = lanes > 0 && !rows ? lanes : CPU_WIDE;
    bn->blocks = (C + bn->lanes - 1) / bn->lanes;
    bn->adjacent = rows || lanes == 0;
    if (bn->adjacent) {
        bn->sample = C * space;
        bn->block = CPU_WIDE;
        bn->run = (cpu_run_t){.vectors = rows ? in->dims[0] : space,
                              .stride = C,
                              .width = CPU_WIDE};
    } else {
        bn->sample = bn->blocks * floats;
        bn->block = floats;
        bn->run = (cpu_run_t){.vectors = floats / CPU_WIDE,
                              .stride = CPU_WIDE,
                              .width = CPU_WIDE,
                              .rest = (int)(floats % CPU_WIDE)};
    }
    bn->segments =
        (bn->run.vectors + BN_SEGMENT_VECTORS - 1) / BN_SEGMENT_VECTORS;
    if (bn->segments == 0)
        bn->segments = 1;
    bn->run.apart = bn->sample;
    bn->run.bf16 = op_stored_bf16(&op->out);
    bn->group = BN_CHUNK_VECTORS / (bn->run.vectors + 1);
    if (bn->group == 0)
        bn->group = 1;
    bn->groups = (bn->N + bn->group - 1) / bn->group;
    bn->items = bn->blocks * bn->groups * bn->segments;
}

static void bn_reserve(op_t *op, cpu_bn_t *bn)
{
    const size_t padded = (size_t)(bn->blocks * bn->lanes);

    bn->partials = mem_round(op->scratch_bytes);
    bn->sums = bn->partials + mem_round((size_t)bn->items * 2 *
                                        (size_t)bn->lanes * sizeof(double));
    if (!op->config.training)
        return;
    op->scratch_bytes = bn->sums + 2 * padded * sizeof(double);
    op->workspace_bytes = 2 * padded * sizeof(float);
}

static err_code_t cpu_bn_open(op_t *op, err_t *err)
{
    const op_desc_t out = op->out;
    int lanes = 1;
    cpu_bn_t *bn;
    err_code_t rc = cpu_combine_open_in(op, sizeof *bn, false, err);

    if (rc != ERR_OK)
        return rc;
    bn = op->state;
    if (op->out.layout != NULL)
        rc = cpu_md_lanes(&bn->combine.layout, &bn->combine.scratch.engine,
                          &out, &lanes, err);
    if (rc == ERR_OK && lanes < 0) { /* no loop reads this layout: use plain */
        cpu_combine_close(op);
        op->state = NULL;
        op->out = out;
        rc = cpu_combine_open_in(op, sizeof *bn, true, err);
        bn = op->state;
        lanes = 1;
    }
    if (rc != ERR_OK)
        return rc;
    op->reads_y = op->config.relu;
    bn_shape(op, lanes, bn);
    bn_reserve(op, bn);
    return ERR_OK;
}

/* ---- items --------------------------------------------------------------- */

typedef struct cpu_bn_item {
    /* block: which block of channels; at: offset of the first element */
    int64_t block, at;
    cpu_run_t run;
} cpu_bn_item_t;

/* Index of the item for part [part] of [block]; a part is a segment or a group
 * of samples. Blocks that share cache lines (channels last) get consecutive
 * indices. */
static int64_t bn_index(const cpu_bn_t *bn, int64_t block, int64_t part)
{
    return bn->adjacent ? part * bn->blocks + block
                        : block * bn->groups * bn->segments + part;
}

static cpu_bn_item_t bn_item(const cpu_bn_t *bn, int64_t index)
{
    const int64_t each = bn->groups * bn->segments;
    const int64_t part = bn->adjacent ? index / bn->blocks : index % each;
    const int64_t s = part % bn->segments;
    const int64_t n = part / bn->segments * bn->group;
    cpu_bn_item_t item = {.block =
                              bn->adjacent ? index % bn->blocks : index / each,
                          .run = bn->run};
    const int64_t first = s * BN_SEGMENT_VECTORS,
                  left = bn->run.vectors - first;

    item.at = n * bn->sample + item.block * bn->block + first * bn->run.stride;
    item.run.samples = bn->N - n < bn->group ? bn->N - n : bn->group;
    item.run.vectors = left < BN_SEGMENT_VECTORS ? left : BN_SEGMENT_VECTORS;
    if (s + 1 < bn->segments)
        item.run.rest = 0;
    if (bn->adjacent && bn->C - item.block * CPU_WIDE < CPU_WIDE)
        item.run.width = (int)(bn->C - item.block * CPU_WIDE);
    return item;
}

/* Move the next chunk of [item] to [chunk]. Returns false if nothing is left.
 */
static bool bn_chunk(cpu_bn_item_t *item, cpu_bn_item_t *chunk)
{
    *chunk = *item;
    if (item->run.vectors > BN_CHUNK_VECTORS) {
        chunk->run.vectors = BN_CHUNK_VECTORS;
        chunk->run.rest = 0;
    }
    if (chunk->run.vectors == 0 && chunk->run.rest == 0)
        return false;
    item->at += chunk->run.vectors * item->run.stride;
    item->run.vectors -= chunk->run.vectors;
    item->run.rest -= chunk->run.rest;
    return true;
}

/* Elements per channel in [run]. */
static double bn_count(const cpu_bn_t *bn, cpu_run_t run)
{
    const int64_t floats = run.vectors * CPU_WIDE + run.rest;

    return (double)(run.samples * floats / bn->lanes);
}

/* Add the lanes that belong to one channel. Writes CPU_WIDE elements of [out].
 */
static void bn_add_lanes(const cpu_bn_t *bn, const float *lanes, double *out)
{
    for (int l = 0; l < CPU_WIDE; l++)
        out[l] = 0;
    for (int64_t l = 0; l < CPU_WIDE; l++)
        out[l % bn->lanes] += (double)lanes[l];
}

static void bn_team(const cpu_bn_work_t *work, simd_team_body_t *body)
{
    const cpu_bn_t *bn = work->bn;
    const int64_t floats = bn->group * (bn->run.vectors + 1) * CPU_WIDE;

    simd_team_run(work->config->threads, bn->items,
                  1 + CPU_COMBINE_GRAIN / floats, body, (void *)work);
}

static double *bn_partial(const cpu_bn_work_t *work, int64_t item)
{
    return work->partials + item * 2 * work->bn->lanes;
}

/* ---- statistics ---------------------------------------------------------- */

/* Mean, and sum of squared differences from it, of [count] elements. */
typedef struct cpu_bn_moments {
    double count, mean, square;
} cpu_bn_moments_t;

static void moments_merge(cpu_bn_moments_t *into, double count, double mean,
                          double square)
{
    const double all = into->count + count, apart = mean - into->mean;

    into->mean += apart * count / all;
    into->square += square + apart * apart * into->count * count / all;
    into->count = all;
}

static void statistics_chunk(const cpu_bn_work_t *work,
                             const cpu_bn_item_t *chunk,
                             cpu_bn_moments_t *moments)
{
    const cpu_bn_t *bn = work->bn;
    const void *x = cpu_chunk_at(work->x, chunk->at, bn->run.bf16);
    const double count = bn_count(bn, chunk->run);
    float centre[CPU_WIDE], first[CPU_WIDE], second[CPU_WIDE];
    double sums[CPU_WIDE], squares[CPU_WIDE];

    cpu_channels_sum(x, chunk->run, first);
    bn_add_lanes(bn, first, sums);
    for (int l = 0; l < CPU_WIDE; l++)
        centre[l] = (float)(sums[l % bn->lanes] / count);
    cpu_channels_moments(x, chunk->run, centre, first, second);
    bn_add_lanes(bn, first, sums);
    bn_add_lanes(bn, second, squares);
    for (int64_t c = 0; c < bn->lanes; c++)
        moments_merge(&moments[c], count, (double)centre[c] + sums[c] / count,
                      squares[c] - sums[c] * sums[c] / count);
}

static void statistics_body(void *context, int64_t first, int64_t last)
{
    const cpu_bn_work_t *work = context;
    const int64_t lanes = work->bn->lanes;

    for (int64_t i = first; i < last; i++) {
        cpu_bn_item_t item = bn_item(work->bn, i), chunk;
        cpu_bn_moments_t moments[CPU_WIDE] = {{0}};
        double *partial = bn_partial(work, i);

        while (bn_chunk(&item, &chunk))
            statistics_chunk(work, &chunk, moments);
        for (int64_t c = 0; c < lanes; c++) {
            partial[c] = moments[c].mean;
            partial[lanes + c] = moments[c].square;
        }
    }
}

/* Merge the items of each channel in a fixed order. */
static void statistics_finish(const cpu_bn_work_t *work, double *moments)
{
    const cpu_bn_t *bn = work->bn;
    const int64_t each = bn->groups * bn->segments,
                  padded = bn->blocks * bn->lanes;
    float *kept = work->args->workspace;

    for (int64_t c = 0; c < padded; c++) {
        const int64_t block = c / bn->lanes, lane = c % bn->lanes;
        cpu_bn_moments_t all = {0};

        for (int64_t k = 0; k < each; k++) {
            const int64_t i = bn_index(bn, block, k);
            const double *partial = bn_partial(work, i);

            moments_merge(&all, bn_count(bn, bn_item(bn, i).run), partial[lane],
                          partial[bn->lanes + lane]);
        }
        kept[c] = (float)all.mean;
        kept[padded + c] =
            (float)(1 / sqrt(all.square / all.count + work->config->epsilon));
        if (c >= bn->C)
            continue;
        moments[c] = all.count * all.mean;
        moments[bn->C + c] = all.square + all.count * all.mean * all.mean;
    }
}

/* norm.frozen: use the running statistics instead of those of x. */
static void statistics_frozen(const cpu_bn_work_t *work)
{
    const int64_t padded = work->bn->blocks * work->bn->lanes;
    float *kept = work->args->workspace;

    for (int64_t c = 0; c < padded; c++) {
        const bool real = c < work->bn->C;
        const double var = real ? (double)work->args->running_var[c] : 1;

        kept[c] = real ? work->args->running_mean[c] : 0;
        kept[padded + c] = (float)(1 / sqrt(var + work->config->epsilon));
    }
}

/* ---- elements ------------------------------------------------------------ */

/* Set lane [lane] to the numbers of channel [c]. Channels of padding keep 0 in
 * all of them, so their elements stay 0. */
static void bn_channel(const cpu_bn_work_t *work, int64_t c, int lane,
                       cpu_lanes_t *lanes)
{
    const cpu_bn_t *bn = work->bn;
    const int64_t padded = bn->blocks * bn->lanes;
    const float *gamma = work->args->params[0], *beta = work->args->params[1];
    const float *variance = work->args->running_var;
    float inverse;

    if (c >= bn->C)
        return;
    lanes->mean[lane] =
        work->kept != NULL ? work->kept[c] : work->args->running_mean[c];
    inverse =
        work->kept != NULL
            ? work->kept[padded + c]
            : (float)(1 / sqrt((double)variance[c] + work->config->epsilon));
    lanes->factor[lane] = gamma == NULL ? inverse : inverse * gamma[c];
    lanes->shift[lane] = beta == NULL ? 0 : beta[c];
    if (work->sums == NULL)
        return;
    lanes->plain[lane] = (float)work->sums[c];
    lanes->product[lane] = (float)work->sums[padded + c];
}

static void bn_lanes(const cpu_bn_work_t *work, int64_t block,
                     cpu_lanes_t *lanes)
{
    const int64_t each = work->bn->lanes;

    *lanes = (cpu_lanes_t){.mean = {0}};
    for (int l = 0; l < CPU_WIDE; l++)
        bn_channel(work, block * each + l % each, l, lanes);
}

/* The tensors of the call from element [i] on. */
static cpu_tensors_t bn_tensors(const cpu_bn_work_t *work, int64_t i)
{
    const bool bf16 = work->bn->run.bf16;

    return (cpu_tensors_t){.x = cpu_chunk_at(work->x, i, bf16),
                           .y = cpu_chunk_at(work->y, i, bf16),
                           .dy = cpu_chunk_at(work->dy, i, bf16),
                           .other = cpu_chunk_at(work->other, i, bf16),
                           .to = cpu_chunk_at(work->to, i, bf16),
                           .dother = cpu_chunk_at(work->dother, i, bf16)};
}

static void apply_body(void *context, int64_t first, int64_t last)
{
    const cpu_bn_work_t *work = context;

    for (int64_t i = first; i < last; i++) {
        const cpu_bn_item_t item = bn_item(work->bn, i);
        const cpu_tensors_t tensors = bn_tensors(work, item.at);
        cpu_lanes_t lanes;

        bn_lanes(work, item.block, &lanes);
        cpu_channels_apply(&tensors, item.run, &lanes, work->config->relu);
    }
}

static err_code_t cpu_bn_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const cpu_bn_t *bn = op->state;
    const void *in[OP_INPUTS_MAX] = {NULL};
    cpu_bn_work_t work = {
        .bn = bn, .config = &op->config, .args = args, .to = args->y};
    err_code_t rc = cpu_combine_convert(op, args, in, err);

    if (rc != ERR_OK)
        return rc;
    work.x = in[0];
    work.other = op->config.others > 0 ? in[1] : NULL;
    if (op->config.training && op->config.norm.frozen) {
        statistics_frozen(&work);
        work.kept = args->workspace;
    } else if (op->config.training) {
        work.partials = (double *)((char *)args->scratch + bn->partials);
        bn_team(&work, statistics_body);
        statistics_finish(&work, args->moments);
        work.kept = args->workspace;
    }
    bn_team(&work, apply_body);
    return ERR_OK;
}

/* ---- backward ------------------------------------------------------------ */

static void products_body(void *context, int64_t first, int64_t last)
{
    const cpu_bn_work_t *work = context;
    const int64_t each = work->bn->lanes;

    for (int64_t i = first; i < last; i++) {
        cpu_bn_item_t item = bn_item(work->bn, i), chunk;
        double *partial = bn_partial(work, i);
        cpu_lanes_t lanes;

        bn_lanes(work, item.block, &lanes);
        for (int64_t c = 0; c < 2 * each; c++)
            partial[c] = 0;
        while (bn_chunk(&item, &chunk)) {
            const cpu_tensors_t tensors = bn_tensors(work, chunk.at);
            float plain[CPU_WIDE], product[CPU_WIDE];
            double sums[2][CPU_WIDE];

            cpu_channels_products(&tensors, chunk.run, lanes.mean, plain,
                                  product);
            bn_add_lanes(work->bn, plain, sums[0]);
            bn_add_lanes(work->bn, product, sums[1]);
            for (int64_t c = 0; c < each; c++) {
                partial[c] += sums[0][c];
                partial[each + c] += sums[1][c];
            }
        }
    }
}

/* Compute the gradients of gamma and beta, and the two means that dx
 * subtracts. With norm.frozen the means are 0, because frozen statistics do
 * not depend on x. */
static void products_finish(const cpu_bn_work_t *work, double *sums)
{
    const cpu_bn_t *bn = work->bn;
    const int64_t each = bn->groups * bn->segments,
                  padded = bn->blocks * bn->lanes;
    const bool frozen = work->config->norm.frozen;
    const double M =
        (double)(bn->N * (bn->run.vectors * CPU_WIDE + bn->run.rest) /
                 bn->lanes);
    float *dgamma = work->args->dparams[0], *dbeta = work->args->dparams[1];

    for (int64_t c = 0; c < bn->C; c++) {
        const int64_t block = c / bn->lanes, lane = c % bn->lanes;
        const double inverse = (double)work->kept[padded + c];
        double plain = 0, product = 0;

        for (int64_t k = 0; k < each; k++) {
            const double *partial = bn_partial(work, bn_index(bn, block, k));

            plain += partial[lane];
            product += partial[bn->lanes + lane];
        }
        if (dgamma != NULL) {
            dbeta[c] = (float)plain;
            dgamma[c] = (float)(product * inverse);
        }
        sums[c] = frozen ? 0 : plain / M;
        sums[padded + c] = frozen ? 0 : product * inverse * inverse / M;
    }
}

static void dx_body(void *context, int64_t first, int64_t last)
{
    const cpu_bn_work_t *work = context;

    for (int64_t i = first; i < last; i++) {
        const cpu_bn_item_t item = bn_item(work->bn, i);
        const cpu_tensors_t tensors = bn_tensors(work, item.at);
        cpu_lanes_t lanes;

        bn_lanes(work, item.block, &lanes);
        cpu_channels_backward(&tensors, item.run, &lanes);
    }
}

static err_code_t cpu_bn_backward(op_t *op, const op_args_t *args, err_t *err)
{
    cpu_bn_t *bn = op->state;
    char *scratch = args->scratch;
    cpu_bn_work_t work = {.bn = bn,
                          .config = &op->config,
                          .args = args,
                          .y = op->config.relu ? args->y : NULL,
                          .dy = args->dy,
                          .to = cpu_combine_place(op, args, 0),
                          .kept = args->workspace,
                          .partials = (double *)(scratch + bn->partials)};
    double *sums = (double *)(scratch + bn->sums);
    const void *x = NULL;
    err_code_t rc =
        cpu_reorder_read(&bn->combine.in[0], args, args->x, &x, err);

    if (rc != ERR_OK)
        return rc;
    work.x = x;
    if (op->config.others > 0)
        work.dother = cpu_combine_place(op, args, 1);
    bn_team(&work, products_body);
    products_finish(&work, sums);
    work.sums = sums;
    if (work.dother != NULL) { /* dother is dy already masked by relu */
        work.dy = work.dother;
        work.y = NULL;
    }
    if (work.to != NULL)
        bn_team(&work, dx_body);
    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++)
        rc = cpu_combine_flush(op, args, k, err);
    return rc;
}

const op_kernel_t cpu_batchnorm_kernel = {
    .open = cpu_bn_open,
    .close = cpu_combine_close,
    .forward = cpu_bn_forward,
    .backward = cpu_bn_backward,
};
