/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes of the ops on sequences of tokens. */
#include <inttypes.h>
#include <math.h>

#include "op/op_attention.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_shape.h"

/* One input: x is q, k and v side by side. Check that the heads divide its
 * features. */
static err_code_t attention_packed(const op_config_t *config, err_t *err)
{
    const op_heads_t *heads = &config->heads;
    int64_t parts = heads->heads + 2 * heads->kv_heads;
    char text[OP_TEXT_MAX];

    if (config->in.dims[2] % parts == 0)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "attention on %s: the %" PRId64
                   " features must be a multiple of %" PRId64
                   ", which is heads + 2 * kv_heads",
                   op_desc_text(&config->in, text), config->in.dims[2], parts);
}

/* Number of inputs without the mask. */
static int attention_inputs(const op_config_t *config)
{
    return config->others + (config->heads.masked ? 0 : 1);
}

/* Several inputs: x is q; k and v are two more inputs, or side by side in one.
 * Check their shapes. */
static err_code_t attention_apart(const op_config_t *config, err_t *err)
{
    const op_heads_t *heads = &config->heads;
    const int inputs = attention_inputs(config);
    const op_desc_t *q = &config->in, *k = &config->other[0];
    const op_desc_t *v = &config->other[inputs - 2];
    const int64_t width = q->dims[2] / heads->heads * heads->kv_heads;
    char first[OP_TEXT_MAX], second[OP_TEXT_MAX], third[OP_TEXT_MAX];
    bool fits = k->ndim == 3 && v->ndim == 3 && k->type == q->type &&
                v->type == q->type && q->dims[2] % heads->heads == 0 &&
                k->dims[1] >= 1;

    if (fits)
        fits = k->dims[0] == q->dims[0] && v->dims[0] == q->dims[0] &&
               v->dims[1] == k->dims[1] &&
               k->dims[2] == (inputs == 2 ? 2 * width : width) &&
               v->dims[2] == k->dims[2] &&
               (!heads->causal || k->dims[1] == q->dims[1]);
    if (fits)
        return ERR_OK;
    op_desc_text(q, first);
    op_desc_text(k, second);
    if (inputs == 2)
        return err_set(err, ERR_CONFIG,
                       "attention: q %s and the keys and values %s do not fit: "
                       "they must be [N, T, %" PRId64 " D] and [N, S, %" PRId64
                       " D]%s",
                       first, second, heads->heads, 2 * heads->kv_heads,
                       heads->causal ? " with S = T" : "");
    return err_set(err, ERR_CONFIG,
                   "attention: q %s, k %s and v %s do not fit: they must be "
                   "[N, T, %" PRId64 " D], [N, S, %" PRId64
                   " D] and [N, S, %" PRId64 " D]%s",
                   first, second, op_desc_text(v, third), heads->heads,
                   heads->kv_heads, heads->kv_heads,
                   heads->causal ? " with S = T" : "");
}

/* Check that the mask, which is the last input, fits the keys. */
static err_code_t attention_mask(const op_config_t *config, err_t *err)
{
    const op_attention_t a = op_attention_of(config);
    const op_desc_t *mask = &config->other[config->others - 1];
    char text[OP_TEXT_MAX];

    if (mask->type == config->in.type && mask->ndim == 2 &&
        mask->dims[0] == a.N && (mask->dims[1] == a.S || mask->dims[1] == 1))
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "attention: the mask, its last input, is %s, but must hold "
                   "real numbers and be [N, %" PRId64
                   "], a number for each key, or [N, 1], how many of the keys "
                   "are there",
                   op_desc_text(mask, text), a.S);
}

err_code_t op_shape_attention(const op_config_t *config, op_desc_t *out,
                              err_t *err)
{
    const op_heads_t *heads = &config->heads;
    const op_desc_t *in = &config->in;
    err_code_t rc = op_check_input(config, 3, 3, "[N, tokens, features]", err);
    char text[OP_TEXT_MAX];
    op_attention_t a;

    if (rc != ERR_OK)
        return rc;
    if (heads->heads < 1 || heads->kv_heads < 1 ||
        heads->heads % heads->kv_heads != 0)
        return err_set(err, ERR_CONFIG,
                       "attention on %s: heads, which is %" PRId64
                       ", must be a multiple of kv_heads, which is %" PRId64,
                       op_desc_text(in, text), heads->heads, heads->kv_heads);
    if (attention_inputs(config) < 1 || attention_inputs(config) > 3)
        return err_set(err, ERR_CONFIG,
                       "attention takes one input (q, k and v side by side), "
                       "two (q; k and v) or three, and a mask if it has the "
                       "option for it, but it got %d",
                       config->others + 1);
    rc = attention_inputs(config) == 1 ? attention_packed(config, err)
                                       : attention_apart(config, err);
    if (rc == ERR_OK && heads->masked)
        rc = attention_mask(config, err);
    if (rc != ERR_OK)
        return rc;
    a = op_attention_of(config);
    if (a.D < 1 || a.D > OP_HEAD_MAX)
        return err_set(err, ERR_CONFIG,
                       "attention on %s: a head has %" PRId64
                       " features, but must have 1 to %d; change heads",
                       op_desc_text(in, text), a.D, OP_HEAD_MAX);
    op_desc_fill(out, in->type, 3, (int64_t[]){a.N, a.T, a.H * a.D});
    return ERR_OK;
}

op_attention_t op_attention_of(const op_config_t *config)
{
    const op_heads_t *heads = &config->heads;
    const op_desc_t *in = &config->in;
    const int64_t parts = heads->heads + 2 * heads->kv_heads;
    op_attention_t a = {.N = in->dims[0],
                        .T = in->dims[1],
                        .S = in->dims[1],
                        .H = heads->heads,
                        .G = heads->kv_heads,
                        .D = in->dims[2] / parts};

    if (attention_inputs(config) == 1) {
        a.base[1] = a.H * a.D;
        a.base[2] = (a.H + a.G) * a.D;
        a.stride[0] = a.stride[1] = a.stride[2] = in->dims[2];
        return a;
    }
    a.S = config->other[0].dims[1];
    a.D = in->dims[2] / heads->heads;
    for (int i = 0; i < 3; i++) {
        a.input[i] = i;
        a.stride[i] = (i == 0 ? a.H : a.G) * a.D;
    }
    if (attention_inputs(config) == 2) {
        a.input[2] = 1;
        a.base[2] = a.G * a.D;
        a.stride[1] = a.stride[2] = 2 * a.G * a.D;
    }
    return a;
}

err_code_t op_attention_valid_keys(const op_config_t *config, const void *mask,
                                   float *valid, err_t *err)
{
    const op_desc_t *desc = &config->other[config->others - 1];
    const op_attention_t a = op_attention_of(config);
    const bool lengths = desc->dims[1] == 1;
    const double most = lengths ? (double)a.S : 1;
    const int64_t each = desc->dims[1];

    for (int64_t i = 0; i < a.N * a.S; i++) {
        const int64_t at = lengths ? i / a.S : i;
        const double value = desc->type == OP_FLOAT32
                                 ? (double)((const float *)mask)[at]
                                 : ((const double *)mask)[at];

        if (!(value >= 0 && value <= most && value == floor(value)))
            return err_set(err, ERR_DATA,
                           "attention: the mask of sample %" PRId64
                           " of the batch holds %g at position %" PRId64
                           ", but it must be %s %g",
                           at / each, value, at % each,
                           lengths ? "a whole number from 0 to" : "0 or", most);
        valid[i] = lengths ? (double)(i % a.S) < value : value != 0;
    }
    return ERR_OK;
}

double op_attention_flops(const op_config_t *config)
{
    op_attention_t a = op_attention_of(config);
    double pairs = (double)a.T * (double)a.S;

    if (config->heads.causal)
        pairs = (pairs + (double)a.T) / 2;
    return 4.0 * (double)(a.N * a.H * a.D) * pairs;
}

err_code_t op_shape_embedding(const op_config_t *config, op_desc_t *out,
                              err_t *err)
{
    const op_desc_t *in = &config->in;
    const op_embedding_t *embedding = &config->embedding;
    err_code_t rc = op_check_input(config, 1, OP_DIMS_MAX - 1, "[N, ...]", err);
    op_desc_t shape = *in;
    char text[OP_TEXT_MAX];

    if (rc != ERR_OK)
        return rc;
    if (embedding->rows < 1 || embedding->rows > INT32_MAX || config->out < 1)
        return err_set(err, ERR_CONFIG,
                       "embedding on %s: vocabulary is %" PRId64
                       " and out %" PRId64
                       ", but both must be at least 1, and vocabulary less "
                       "than 2^31",
                       op_desc_text(in, text), embedding->rows, config->out);
    shape.dims[shape.ndim++] = config->out;
    op_desc_fill(out, embedding->type, shape.ndim, shape.dims);
    return ERR_OK;
}

err_code_t op_shape_rotary(const op_config_t *config, op_desc_t *out,
                           err_t *err)
{
    const op_desc_t *in = &config->in;
    const op_rotary_t *rotary = &config->rotary;
    err_code_t rc = op_check_input(config, 3, 3, "[N, tokens, features]", err);
    char text[OP_TEXT_MAX];

    if (rc != ERR_OK)
        return rc;
    op_desc_text(in, text);
    if (rotary->heads < 1 || rotary->heads > rotary->parts ||
        !(rotary->base > 0) || !isfinite(rotary->base))
        return err_set(err, ERR_CONFIG,
                       "rotary on %s: %" PRId64 " of %" PRId64
                       " heads with base %g; at least one and at most all can "
                       "be rotated, and the base must be positive",
                       text, rotary->heads, rotary->parts, rotary->base);
    if (in->dims[2] % (2 * rotary->parts) != 0)
        return err_set(err, ERR_CONFIG,
                       "rotary on %s: the %" PRId64
                       " features must be a multiple of %" PRId64
                       ", as each of the %" PRId64 " heads has pairs of them",
                       text, in->dims[2], 2 * rotary->parts, rotary->parts);
    op_desc_fill(out, in->type, 3, in->dims);
    return ERR_OK;
}

int op_recurrent_gates(const op_config_t *config)
{
    return config->kind == OP_LSTM ? 4 : 3;
}

err_code_t op_shape_recurrent(const op_config_t *config, op_desc_t *out,
                              err_t *err)
{
    const op_desc_t *in = &config->in;
    const bool last = config->recurrent.last;
    err_code_t rc = op_check_input(config, 3, 3, "[N, tokens, features]", err);
    char text[OP_TEXT_MAX];

    if (rc != ERR_OK)
        return rc;
    if (config->out < 1)
        return err_set(err, ERR_CONFIG,
                       "%s on %s: out is %" PRId64 ", but must be at least 1",
                       op_kind_name(config->kind), op_desc_text(in, text),
                       config->out);
    op_desc_fill(out, in->type, last ? 2 : 3,
                 (int64_t[]){in->dims[0], last ? config->out : in->dims[1],
                             config->out});
    return ERR_OK;
}

int op_params_recurrent(const op_config_t *config, op_desc_t out[OP_PARAMS_MAX])
{
    const op_type_t type = config->in.type;
    const int64_t gates = op_recurrent_gates(config) * config->out;

    op_desc_fill(&out[0], type, 2, (int64_t[]){gates, config->in.dims[2]});
    op_desc_fill(&out[1], type, 2, (int64_t[]){gates, config->out});
    if (!config->bias)
        return 2;
    op_desc_fill(&out[2], type, 1, &gates);
    op_desc_fill(&out[3], type, 1, &gates);
    return 4;
}
