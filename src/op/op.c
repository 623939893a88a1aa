/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opens ops and forwards calls to the kernel of their backend. Everything that
 * does not depend on the backend is done here: the check of the configuration,
 * the plain output, the count of floating-point operations.
 */
#include "op/op.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "cddp/layer.h"
#include "dev/dev_plugin.h"
#include "op/op_attention.h"
#include "op/op_broadcast.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_loss.h"
#include "op/op_ops.h"

static err_code_t backend_unknown(const char *name, err_t *err)
{
    str_buf_t names = {0};
    err_code_t rc;

    for (int i = 0; op_registry[i] != NULL; i++)
        str_buf_add(&names, "%s, ", op_registry[i]->name);
    rc = err_set(err, ERR_UNAVAILABLE,
                 "there is no op backend \"%s\" (there are: %scuda)", name,
                 names.text);
    str_buf_free(&names);
    return rc;
}

static err_code_t cuda_find(const op_backend_ops_t **out, err_t *err)
{
    const cddp_cuda_t *cuda;
    err_code_t rc = dev_plugin_get(&cuda, err);

    if (rc == ERR_OK && cuda->op == NULL)
        rc = err_set(err, ERR_UNAVAILABLE, "the CUDA plugin has no ops");
    if (rc == ERR_OK)
        *out = cuda->op;
    return rc;
}

err_code_t op_backend_get(const char *name, const op_backend_ops_t **out,
                          err_t *err)
{
    for (int i = 0; op_registry[i] != NULL; i++) {
        if (strcmp(op_registry[i]->name, name) == 0) {
            *out = op_registry[i];
            return ERR_OK;
        }
    }
    return strcmp(name, "cuda") == 0 ? cuda_find(out, err)
                                     : backend_unknown(name, err);
}

const char *op_backend_lacks(const op_backend_ops_t *backend,
                             const dev_device_t *dev, op_type_t compute_type)
{
    if (compute_type == OP_TF32 && !backend->tf32)
        return "only GPUs compute in tf32";
    if ((compute_type != OP_BFLOAT16 && compute_type != OP_TF32) ||
        backend->lacks == NULL)
        return NULL;
    return backend->lacks(dev, compute_type);
}

bool op_backend_fuses(const op_backend_ops_t *backend, op_fuses_t what)
{
    return (backend->fuses & what) != 0;
}

op_bf16_use_t op_backend_bf16_use(const op_backend_ops_t *backend,
                                  op_kind_t kind)
{
    return backend->bf16_use[kind];
}

/* Floating-point operations of one forward. */
static double op_count_flops(const op_config_t *config, const op_desc_t *out)
{
    const double in_elems = (double)op_desc_elems(&config->in);
    const double out_elems = (double)op_desc_elems(out);

    switch (config->kind) {
    case OP_LINEAR:
        return out_elems * (2.0 * (double)op_linear_features(config) +
                            op_kind_flops(config->activation));
    case OP_CONV2D:
        return 2.0 * out_elems *
               (double)(config->in.dims[1] / config->conv.groups *
                        op_window_taps(config));
    case OP_LSTM:
    case OP_GRU:
        return 2.0 * (double)config->in.dims[0] * (double)config->in.dims[1] *
               op_recurrent_gates(config) * (double)config->out *
               (double)(config->in.dims[2] + config->out);
    case OP_CONV_TRANSPOSE:
        return 2.0 * in_elems *
               (double)(config->conv.out / config->conv.groups *
                        op_window_taps(config));
    case OP_MAXPOOL2D:
    case OP_AVGPOOL:
    case OP_AVGPOOL_CEIL:
        return out_elems * (double)op_window_taps(config);
    case OP_UPSAMPLE_LINEAR:
        return 4.0 * out_elems;
    case OP_ADD:
    case OP_MUL:
        return in_elems * (config->others + config->relu);
    case OP_ADD_BROADCAST:
    case OP_MUL_BROADCAST:
        return out_elems * config->others;
    case OP_MATMUL:
        return 2.0 * out_elems * (double)op_matmul_of(config).K;
    case OP_BATCHNORM:
        return in_elems *
               (op_kind_flops(config->kind) + config->others + config->relu);
    case OP_ATTENTION:
        return op_attention_flops(config);
    default:
        return in_elems * op_kind_flops(config->kind);
    }
}

static bool op_has_private_in(const op_config_t *config)
{
    bool found = config->in.layout != NULL;

    for (int i = 0; i < config->others; i++)
        found = found || config->other[i].layout != NULL;
    return found;
}

/* Can this op read the input [desc] in its storage type? A plain input stored
 * as bfloat16 can be read only by a linear that would round it anyway. */
static bool op_takes_storage(const op_backend_ops_t *backend,
                             const op_config_t *config, const op_desc_t *desc)
{
    if (!op_stored_bf16(desc))
        return true;
    if (desc->layout != NULL)
        return backend->bf16_use[config->kind] != OP_BF16_REFUSED;
    return op_backend_fuses(backend, OP_FUSES_NARROW) &&
           config->kind == OP_LINEAR && op_computes_bf16(config);
}

/* Does this op store y rounded, but not the gradient of y? */
static bool op_rounds_y(const op_backend_ops_t *backend,
                        const op_config_t *config)
{
    return config->y_stored_as == OP_BFLOAT16 &&
           backend->bf16_use[config->kind] != OP_BF16_GIVEN &&
           (op_is_sample_norm(config->kind) ||
            (config->kind == OP_LINEAR && config->activation != OP_NONE));
}

/* Check that [backend] can compute in config.compute_type on [dev]. */
static err_code_t op_check_type(const op_backend_ops_t *backend,
                                const dev_device_t *dev,
                                const op_config_t *config, err_t *err)
{
    const char *lack = op_backend_lacks(backend, dev, config->compute_type);
    const bool never = config->compute_type == OP_TF32 && !backend->tf32;

    return lack == NULL
               ? ERR_OK
               : err_set(err, never ? ERR_CONFIG : ERR_UNAVAILABLE,
                         "%s: the op backend \"%s\" cannot compute in %s: %s",
                         op_kind_name(config->kind), backend->name,
                         config->compute_type == OP_TF32 ? "tf32" : "bf16",
                         lack);
}

/* Check that [backend] supports [config]. */
static err_code_t op_check_support(const op_backend_ops_t *backend,
                                   const op_config_t *config, err_t *err)
{
    const char *kind = op_kind_name(config->kind);

    if (backend->kernels[config->kind] == NULL && config->kind == OP_CUSTOM)
        return err_set(err, ERR_CONFIG,
                       "%s is a plugin's, whose layers compute on the host; "
                       "use train.device: cpu",
                       config->custom->name);
    if (backend->kernels[config->kind] == NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "the op backend \"%s\" has no %s; use another one",
                       backend->name, kind);
    if (op_number_type(config) == OP_FLOAT64 && !backend->float64)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s: the op backend \"%s\" works in float32 only; "
                       "use the backend \"ref\" for float64",
                       kind, backend->name);
    if (op_has_private_in(config) && !backend->private_in)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s: the op backend \"%s\" takes plain inputs only",
                       kind, backend->name);
    for (int i = 0; i <= config->others; i++)
        if (!op_takes_storage(backend, config,
                              i == 0 ? &config->in : &config->other[i - 1]))
            return err_set(
                err, ERR_UNAVAILABLE,
                "%s: the op backend \"%s\" takes no inputs stored as "
                "bfloat16",
                kind, backend->name);
    if (op_rounds_y(backend, config) &&
        (!op_backend_fuses(backend, OP_FUSES_NARROW) ||
         (config->kind == OP_LINEAR && !op_computes_bf16(config))))
        return err_set(err, ERR_UNAVAILABLE,
                       "%s: the op backend \"%s\" does not store its output as "
                       "bfloat16",
                       kind, backend->name);
    if (config->threads < 1)
        return err_set(err, ERR_CONFIG,
                       "%s: threads is %d, but must be at least 1", kind,
                       config->threads);
    return ERR_OK;
}

/* Compute the bytes of a plain tensor from its shape. */
static void op_fill_bytes(op_desc_t *desc)
{
    if (desc->layout == NULL)
        desc->bytes =
            (size_t)op_desc_elems(desc) * op_type_bytes(op_desc_storage(desc));
}

/* Describe the gradient of [desc]. The gradient of a plain tensor is not stored
 * as bfloat16. */
static op_desc_t op_gradient_of(const op_desc_t *desc)
{
    op_desc_t gradient = *desc;

    if (desc->layout == NULL) {
        gradient.stored_as = desc->type;
        op_fill_bytes(&gradient);
    }
    return gradient;
}

err_code_t op_begin(const op_backend_ops_t *backend, dev_device_t *dev,
                    const op_config_t *config, op_t **out, err_t *err)
{
    op_desc_t shape;
    op_t *op;
    err_code_t rc = op_shape(config, &shape, err);

    if (rc == ERR_OK)
        rc = op_check_support(backend, config, err);
    if (rc == ERR_OK)
        rc = op_check_type(backend, dev, config, err);
    if (rc == ERR_OK)
        rc = mem_new(op_t, 1, "an op", &op, err);
    if (rc != ERR_OK)
        return rc;
    *op = (op_t){.backend = backend,
                 .dev = dev,
                 .kernel = backend->kernels[config->kind],
                 .config = *config,
                 .out = shape,
                 .flops = op_count_flops(config, &shape),
                 .reads_x = true};
    op_fill_bytes(&op->config.in);
    for (int i = 0; i < config->others; i++)
        op_fill_bytes(&op->config.other[i]);
    op->grad_in = op_gradient_of(&op->config.in);
    if (op_rounds_y(backend, config))
        op->out.stored_as = OP_BFLOAT16;
    op_fill_bytes(&op->out);
    if (backend->team != NULL)
        backend->team(config->threads);
    if (op->kernel->open != NULL)
        rc = op->kernel->open(op, err);
    if (rc != ERR_OK) {
        op_close(op);
        return rc;
    }
    check(op->out.layout != NULL ||
              op->out.bytes == (size_t)op_desc_elems(&op->out) *
                                   op_type_bytes(op_desc_storage(&op->out)),
          "%s: plain output of %zu bytes", op_kind_name(config->kind),
          op->out.bytes);
    check(!op->in_place || op->out.bytes <= op->config.in.bytes,
          "%s in place: %zu bytes over %zu", op_kind_name(config->kind),
          op->out.bytes, op->config.in.bytes);
    op->grad_out = op_gradient_of(&op->out);
    *out = op;
    return ERR_OK;
}

err_code_t op_settle(op_t *op, err_t *err)
{
    err_code_t (*settle)(op_t *, err_t *) = op->settle;

    op->settle = NULL;
    return settle != NULL ? settle(op, err) : ERR_OK;
}

err_code_t op_open(const op_backend_ops_t *backend, dev_device_t *dev,
                   const op_config_t *config, op_t **out, err_t *err)
{
    op_t *op = NULL;
    err_code_t rc = op_begin(backend, dev, config, &op, err);

    if (rc == ERR_OK)
        rc = op_settle(op, err);
    if (rc == ERR_OK)
        *out = op;
    else
        op_close(op);
    return rc;
}

void op_close(op_t *op)
{
    if (op == NULL)
        return;
    if (op->kernel->close != NULL)
        op->kernel->close(op);
    mem_free(op);
}

const op_desc_t *op_out(const op_t *op)
{
    return &op->out;
}

const op_desc_t *op_grad_in(const op_t *op)
{
    return &op->grad_in;
}

const op_desc_t *op_grad_out(const op_t *op)
{
    return &op->grad_out;
}

size_t op_workspace_bytes(const op_t *op)
{
    check(op->settle == NULL, "%s is not settled",
          op_kind_name(op->config.kind));
    return op->workspace_bytes;
}

size_t op_scratch_bytes(const op_t *op)
{
    check(op->settle == NULL, "%s is not settled",
          op_kind_name(op->config.kind));
    return op->scratch_bytes;
}

double op_flops(const op_t *op)
{
    return op->flops;
}

bool op_in_place(const op_t *op)
{
    return op->in_place;
}

bool op_reads_x(const op_t *op)
{
    return op->reads_x;
}

bool op_reads_y(const op_t *op)
{
    return op->reads_y;
}

bool op_adds(const op_t *op)
{
    return op->adds;
}

bool op_adds_dx(const op_t *op)
{
    return op->adds_dx;
}

bool op_passes_dy(const op_t *op)
{
    return op->passes_dy;
}

const char *op_note(const op_t *op)
{
    return op->note;
}

bool op_over_x(const op_t *op)
{
    return op->over_x;
}

/* May the caller access the memory of the op's device? */
static bool op_on_host(const op_t *op)
{
    return op->dev == NULL || dev_host_visible(op->dev);
}

/* Check the arguments that all kinds of ops need. */
static void op_check_call(const op_t *op, const op_args_t *args)
{
    const char *kind = op_kind_name(op->config.kind);

    check(args->scratch != NULL || op->scratch_bytes == 0,
          "%s is called without its %zu bytes of scratch", kind,
          op->scratch_bytes);
    check(args->workspace != NULL || !op->config.training ||
              op->workspace_bytes == 0,
          "%s is called without its %zu bytes of workspace", kind,
          op->workspace_bytes);
    check(!args->add || op->adds, "%s does not add to dparams", kind);
    check(!args->add_dx || op->adds_dx, "%s does not add to dx", kind);
    (void)kind;
}

err_code_t op_forward(op_t *op, const op_args_t *args, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (op_on_host(op))
        rc = op_check_weights(&op->config, args->sample_weights, err);
    if (rc != ERR_OK)
        return rc;
    op_check_call(op, args);
    check(args->x != NULL, "%s reads no input", op_kind_name(op->config.kind));
    /* In backward, x and y that are not read may share memory. */
    check(args->y != args->x || op->in_place, "%s does not work in place",
          op_kind_name(op->config.kind));
    if (op->backend->team != NULL)
        op->backend->team(op->config.threads);
    return op->kernel->forward(op, args, err);
}

err_code_t op_backward(op_t *op, const op_args_t *args, err_t *err)
{
    if (!op->config.training)
        return err_set(err, ERR_CONFIG,
                       "%s was opened for evaluation and has no backward",
                       op_kind_name(op->config.kind));
    op_check_call(op, args);
    check(args->x != NULL || !op->reads_x, "backward of %s needs x",
          op_kind_name(op->config.kind));
    check(args->y != NULL || !op->reads_y, "backward of %s needs y",
          op_kind_name(op->config.kind));
    if (op->backend->team != NULL)
        op->backend->team(op->config.threads);
    return op->kernel->backward(op, args, err);
}

err_code_t op_add(const op_backend_ops_t *backend, void *to, const void *from,
                  size_t count, op_type_t type, dev_stream_t *stream,
                  err_t *err)
{
    if (type == OP_INT64 || type == OP_INT32 ||
        (type == OP_BFLOAT16 && !backend->private_in))
        return err_set(err, ERR_UNAVAILABLE,
                       "the op backend \"%s\" cannot add tensors of this type",
                       backend->name);
    return backend->add(to, from, count, type, stream, err);
}
