/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The hash of a model: of its layers, their options, and its tensors. A
 * checkpoint stores the hash, so it must not change when the program is updated
 * during a job of weeks.
 *
 * Options enter the hash in one of two forms. Those that existed when
 * checkpoints were first written are listed in first_form, and are hashed as
 * the fields of op_config_t that they are stored in (describe_layer).
 * first_form and describe_layer are complete and never change. Every other
 * option is hashed as its row prints it, unless it has its default value. So a
 * new option needs no code here, and a model that does not set it keeps its
 * hash.
 */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "nn/registry.h"

/* Kinds, and their options that describe_layer covers. */
static const char *const first_form[][2] = {
    {"linear", "out bias flatten"},
    {"conv", "out kernel stride pad dilation groups bias"},
    {"conv_transpose", "out kernel stride pad dilation groups bias out_pad"},
    {"leaky_relu", "slope"},
    {"gelu", "approximate"},
    {"elu", "alpha"},
    {"softplus", "beta"},
    {"scale", "by"},
    {"prelu", "channels"},
    {"softmax", "axis"},
    {"log_softmax", "axis"},
    {"maxpool", "kernel stride pad ceil_mode"},
    {"avgpool", "kernel stride pad count_pad ceil_mode"},
    {"adaptive_avgpool", "size"},
    {"adaptive_maxpool", "size"},
    {"batchnorm", "eps momentum affine frozen"},
    {"syncbatchnorm", "eps momentum affine frozen"},
    {"layernorm", "axis eps affine bias"},
    {"rmsnorm", "axis eps affine"},
    {"groupnorm", "groups eps affine bias"},
    {"instancenorm", "eps affine bias"},
    {"dropout", "rate"},
    {"embedding", "vocabulary out"},
    {"attention", "heads kv_heads causal mask"},
    {"rotary", "heads kv_heads packed base pairs"},
    {"lstm", "out bias reverse last"},
    {"gru", "out bias reverse last"},
    {"matmul", "transpose_a transpose_b"},
    {"concat", "axis"},
    {"reshape", "shape"},
    {"permute", "order"},
    {"slice", "axis start size"},
    {"split", "parts part axis"},
    {"pad", "before after mode value"},
    {"mean", "axes"},
    {"max", "axes"},
    {"upsample", "factor mode"},
    {"cross_entropy",
     "classes label_smoothing weight ignore_index soft_target"},
    {"huber", "delta"},
    {"bce", "pos_weight classes"},
    {"kl", "log_target"},
};

/* Is [word] one of [words], which are separated by single spaces? */
static bool has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);

    for (; words != NULL; words = strchr(words, ' ')) {
        words += words[0] == ' ';
        if (strncmp(words, word, length) == 0 &&
            (words[length] == ' ' || words[length] == '\0'))
            return true;
    }
    return false;
}

/* Is [option] hashed by describe_layer? True for all options of plugins: they
 * are numbers in op_config_t. */
static bool in_first_form(const nn_kind_t *kind, const char *option)
{
    for (size_t i = 0; i < sizeof first_form / sizeof first_form[0]; i++)
        if (strcmp(first_form[i][0], kind->name) == 0)
            return has_word(first_form[i][1], option);
    return kind->op == OP_CUSTOM;
}

/* Shorten a list of equal numbers to one number: [3, 3] means the same as 3
 * where one number is valid for all dimensions. */
static void ints_shorten(opt_ints_t *ints)
{
    int i = 1;

    while (i < ints->count && ints->items[i] == ints->items[0])
        i++;
    if (i == ints->count)
        ints->count = 1;
}

void nn_hash_options(const nn_kind_t *kind, void *options, str_buf_t *out)
{
    for (const opt_row_t *row = kind->rows; row->name != NULL; row++) {
        const opt_row_t one[] = {*row, {.name = NULL}};

        if (in_first_form(kind, row->name) || opt_is_default(row, options))
            continue;
        if (row->type == OPT_INTS)
            ints_shorten((opt_ints_t *)((char *)options + row->offset));
        opt_print(one, options, 0, out);
    }
}

static void describe_desc(const op_desc_t *desc, str_buf_t *text)
{
    for (int i = 1; i < desc->ndim; i++)
        str_buf_add(text, " %" PRId64, desc->dims[i]);
}

/* Fields that were added after the others. They are written only where they are
 * set, so that the hash of a model without them has not changed. */
static void describe_added(const op_config_t *config, str_buf_t *text)
{
    if (config->channels)
        str_buf_add(text, " channels");
    if (config->transpose.a || config->transpose.b)
        str_buf_add(text, " turn %d %d", config->transpose.a,
                    config->transpose.b);
    if (config->pool.ceil)
        str_buf_add(text, " ceil");
    if (config->heads.masked)
        str_buf_add(text, " masked");
    if (config->norm.bare || config->norm.frozen)
        str_buf_add(text, " bare %d frozen %d", config->norm.bare,
                    config->norm.frozen);
}

/* The target and weights of samples that a loss reads, and its weight. */
static void describe_reads(const nn_layer_t *layer, str_buf_t *text)
{
    if (layer->target != 0 || (layer->weight != 0 && layer->weight != 1))
        str_buf_add(text, " target %d weight %a", layer->target, layer->weight);
    if (layer->sample_weight != 0)
        str_buf_add(text, " samples %d", layer->sample_weight);
}

static void describe_loss(const nn_layer_t *layer, str_buf_t *text)
{
    const op_config_t *config = &layer->config;

    str_buf_add(text, " loss %d %a %d %" PRId64 " %a", config->loss.axis,
                config->loss.smoothing, config->loss.ignore,
                config->loss.ignored, config->loss.positive);
    for (int64_t k = 0;
         layer->class_weights != NULL && k < op_classes_of(config).classes; k++)
        str_buf_add(text, " %a", (double)layer->class_weights[k]);
}

static void describe_windows(const op_config_t *config, str_buf_t *text)
{
    str_buf_add(text, " conv %" PRId64 " %" PRId64, config->conv.out,
                config->conv.groups);
    for (int i = 0; i < OP_SPACE_MAX; i++)
        str_buf_add(text,
                    " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                    " pool %" PRId64 " %" PRId64 " %" PRId64,
                    config->conv.kernel[i], config->conv.stride[i],
                    config->conv.pad[i], config->conv.dilation[i],
                    config->pool.kernel[i], config->pool.stride[i],
                    config->pool.pad[i]);
    for (int i = 0; i < OP_SPACE_MAX; i++)
        if (config->conv.behind[i] != 0)
            str_buf_add(text, " behind %d %" PRId64, i, config->conv.behind[i]);
}

/* Write the fields in which the options of first_form are stored. Fields that a
 * kind does not use are zero. */
static void describe_layer(const nn_layer_t *layer, str_buf_t *text)
{
    const op_config_t *config = &layer->config;

    str_buf_add(text, "layer %s %s bias %d out %" PRId64, layer->kind->name,
                layer->name, config->bias, config->out);
    describe_windows(config, text);
    str_buf_add(text, " eps %a rate %a momentum %a in", config->epsilon,
                config->rate, layer->momentum);
    describe_desc(&config->in, text);
    str_buf_add(text, " view %d %d %" PRId64 " %" PRId64, config->view.axis,
                config->view.axis_last, config->view.start, config->view.size);
    for (int i = 0; i < config->view.ndim; i++)
        str_buf_add(text, " %" PRId64, config->view.dims[i]);
    str_buf_add(text, " op %d last %d alpha %a norm %d %d %" PRId64,
                (int)config->kind - OP_LINEAR, config->last, config->alpha,
                config->norm.affine, config->norm.axis, config->norm.groups);
    str_buf_add(text, " heads %" PRId64 " %" PRId64 " causal %d",
                config->heads.heads, config->heads.kv_heads,
                config->heads.causal);
    str_buf_add(text, " rows %" PRId64, config->embedding.rows);
    for (int i = 0; i < OP_SPACE_MAX; i++)
        str_buf_add(text, " pad %" PRId64 " %" PRId64 " %" PRId64,
                    config->pad.before[i], config->pad.after[i],
                    config->conv.out_pad[i]);
    str_buf_add(text, " %d %a inside %d", config->pad.reflect,
                config->pad.value, config->pool.inside);
    str_buf_add(text, " recurrent %d %d", config->recurrent.reverse,
                config->recurrent.last);
    str_buf_add(text, " rotary %" PRId64 " %" PRId64 " %a %d",
                config->rotary.parts, config->rotary.heads, config->rotary.base,
                config->rotary.halves);
    describe_loss(layer, text);
    describe_added(config, text);
    for (int i = 0; i < OP_CUSTOM_OPTIONS && config->custom != NULL; i++)
        str_buf_add(text, " %a", config->custom_options[i]);
    str_buf_add(text, " owner %d from", layer->owner);
    for (int k = 0; k < layer->inputs; k++)
        str_buf_add(text, " %d", layer->from[k]);
    describe_reads(layer, text);
    if (layer->later_options != NULL)
        str_buf_add(text, " options\n%s", layer->later_options);
    str_buf_add(text, "\n");
}

static void describe_table(const nn_table_t *table, str_buf_t *text)
{
    for (int i = 0; i < table->count; i++) {
        const nn_param_t *tensor = &table->tensors[i].public;

        str_buf_add(text, "tensor %s at %zu:", tensor->name, tensor->offset);
        for (int d = 0; d < tensor->ndim; d++)
            str_buf_add(text, " %" PRId64, tensor->dims[d]);
        str_buf_add(text, "\n");
    }
}

uint64_t nn_graph_hash(const nn_graph_t *graph)
{
    str_buf_t text = {0};
    uint64_t hash;

    for (int i = 0; i < graph->layer_count + graph->loss_count; i++)
        describe_layer(&graph->layers[i], &text);
    describe_table(&graph->params, &text);
    describe_table(&graph->buffers, &text);
    hash = hash_bytes(text.text, text.length);
    str_buf_free(&text);
    return hash;
}
