/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes of the ops on sequences of tokens. */
#include <inttypes.h>
#include <math.h>

#include "op/op_ops.h"

/* x is q, k and v side by side, and its features D for each of their heads. */
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

static err_code_t attention_apart(const op_config_t *config, err_t *err)
{
    const op_heads_t *heads = &config->heads;
    const op_desc_t *q = &config->in, *k = &config->other[0];
    const op_desc_t *v = &config->other[1];
    char first[OP_TEXT_MAX], second[OP_TEXT_MAX], third[OP_TEXT_MAX];
    bool fits = config->others == 2 && k->ndim == 3 && v->ndim == 3 &&
                k->type == q->type && v->type == q->type &&
                q->dims[2] % heads->heads == 0 && k->dims[1] >= 1;

    if (fits)
        fits = k->dims[0] == q->dims[0] && v->dims[0] == q->dims[0] &&
               v->dims[1] == k->dims[1] &&
               k->dims[2] == q->dims[2] / heads->heads * heads->kv_heads &&
               v->dims[2] == k->dims[2] &&
               (!heads->causal || k->dims[1] == q->dims[1]);
    if (fits)
        return ERR_OK;
    if (config->others != 2)
        return err_set(err, ERR_CONFIG,
                       "attention takes one input (q, k and v side by side) or "
                       "three, but it got %d",
                       config->others + 1);
    return err_set(err, ERR_CONFIG,
                   "attention: q %s, k %s and v %s do not fit: they must be "
                   "[N, T, %" PRId64 " D], [N, S, %" PRId64
                   " D] and [N, S, %" PRId64 " D]%s",
                   op_desc_text(q, first), op_desc_text(k, second),
                   op_desc_text(v, third), heads->heads, heads->kv_heads,
                   heads->kv_heads, heads->causal ? " with S = T" : "");
}

err_code_t op_shape_attention(const op_config_t *config, op_desc_t *out,
                              err_t *err)
{
    const op_heads_t *heads = &config->heads;
    const op_desc_t *in = &config->in;
    err_code_t code =
        op_check_input(config, 3, 3, "[N, tokens, features]", err);
    char text[OP_TEXT_MAX];
    op_attention_t a;

    if (code != ERR_OK)
        return code;
    if (heads->heads < 1 || heads->kv_heads < 1 ||
        heads->heads % heads->kv_heads != 0)
        return err_set(err, ERR_CONFIG,
                       "attention on %s: heads, which is %" PRId64
                       ", must be a multiple of kv_heads, which is %" PRId64,
                       op_desc_text(in, text), heads->heads, heads->kv_heads);
    code = config->others == 0 ? attention_packed(config, err)
                               : attention_apart(config, err);
    if (code != ERR_OK)
        return code;
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

    if (config->others == 0) {
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
    return a;
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
    err_code_t code =
        op_check_input(config, 1, OP_DIMS_MAX - 1, "[N, ...]", err);
    op_desc_t shape = *in;
    char text[OP_TEXT_MAX];

    if (code != ERR_OK)
        return code;
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
    err_code_t code =
        op_check_input(config, 3, 3, "[N, tokens, features]", err);
    char text[OP_TEXT_MAX];

    if (code != ERR_OK)
        return code;
    op_desc_text(in, text);
    if (rotary->heads < 1 || rotary->heads > rotary->parts ||
        !(rotary->base > 0) || !isfinite(rotary->base))
        return err_set(err, ERR_CONFIG,
                       "rotary on %s: %" PRId64 " of %" PRId64
                       " heads with base %g; at least one and at most all can "
                       "turn, and the base must be positive",
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
    err_code_t code =
        op_check_input(config, 3, 3, "[N, tokens, features]", err);
    char text[OP_TEXT_MAX];

    if (code != ERR_OK)
        return code;
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
