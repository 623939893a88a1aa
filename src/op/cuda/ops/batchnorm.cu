/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * batchnorm and syncbatchnorm; op/ref/batchnorm.c has the formulas. Forward
 * reads x twice: for the moments, in float64, then for y = bn(x) [+ other] [and
 * relu]. Backward reads x, dy and (with relu) y twice: for the sums and the
 * gradient of other, then for dx.
 *
 * The workspace keeps float [2C], mean and 1/sqrt(var + epsilon), after double
 * [2C + 1], the sums of the call and the number of elements of a channel.
 * syncbatchnorm adds these sums over the ranks, in device memory or on the
 * host.
 *
 * batchnorm also works on bfloat16 with channels last: there a row is a
 * position, C is the pitch of rows, and the channels that only pad it get and
 * give zeros.
 */
#include "op/cuda/channels.h"
#include "op/cuda/device/channels.cuh"

namespace
{

/* Tensors and numbers of a call. */
template <typename T> struct norm_call {
    int64_t C, S;
    index_divisor_t by_C, by_S;
    int64_t real;          /* channels, without those that pad C */
    double count, epsilon; /* count: elements of a channel in this rank */
    bool relu, bare, frozen;
    const T *x, *y, *dy, *other;
    const float *gamma, *beta, *running_mean, *running_var;
    T *to, *dother; /* to: y or dx */
    float *dgamma, *dbeta;
    double *moments;
    double *sums; /* [2C + 1]; the last is the count over all ranks */
    float *kept;  /* [2C] */
};

template <typename T>
static __device__ __forceinline__ void keep(const norm_call<T> &call, int64_t c,
                                            double mean, double var)
{
    call.kept[c] = (float)mean;
    call.kept[call.C + c] =
        (float)(1 / sqrt((var > 0 || var != var ? var : 0) + call.epsilon));
}

/* Mean and variance from sums over [count] elements. */
template <typename T>
static __device__ __forceinline__ void keep_sums(const norm_call<T> &call,
                                                 int64_t c, double count)
{
    const double mean = call.sums[c] / count;

    keep(call, c, mean, call.sums[call.C + c] / count - mean * mean);
}

/* Sums of x and x * x. */
template <typename T> struct moment_sums {
    norm_call<T> call;

    __device__ void term(int64_t c, int64_t n, int64_t at, double *sums) const
    {
        const double x = pack_get(call.x, at);

        (void)c;
        (void)n;
        sums[0] += x;
        sums[1] += x * x;
    }

    __device__ void finish(int64_t c, const double *sums) const
    {
        for (int k = 0; k < 2; k++) {
            call.sums[k * call.C + c] = sums[k];
            if (c < call.real)
                call.moments[k * call.real + c] = sums[k];
        }
        if (c == 0)
            call.sums[2 * call.C] = call.count;
        keep_sums(call, c, call.count);
    }
};

/* dy at [at]; with relu, 0 where y is not above 0. */
template <typename T>
static __device__ __forceinline__ float masked(const norm_call<T> &call,
                                               int64_t at)
{
    return call.relu && !(pack_get(call.y, at) > 0) ? 0 : pack_get(call.dy, at);
}

/* Sums of dy and dy * xhat; the gradient of other. */
template <typename T> struct gradient_sums {
    norm_call<T> call;

    __device__ void term(int64_t c, int64_t n, int64_t at, double *sums) const
    {
        const float dy = masked(call, at);
        const float centred = pack_get(call.x, at) - call.kept[c];

        (void)n;
        if (call.dother != NULL)
            pack_put(call.dother, at, dy);
        sums[0] += dy;
        sums[1] += (double)dy * (centred * call.kept[call.C + c]);
    }

    __device__ void finish(int64_t c, const double *sums) const
    {
        for (int k = 0; k < 2; k++)
            call.sums[k * call.C + c] = call.frozen ? 0 : sums[k];
        if (call.bare || c >= call.real)
            return;
        call.dgamma[c] = (float)sums[1];
        call.dbeta[c] = (float)sums[0];
    }
};

/* The channel of element [i]. */
template <typename T>
static __device__ __forceinline__ int64_t channel_at(const norm_call<T> &call,
                                                     int64_t i)
{
    int64_t plane = index_div(i, call.by_S);

    return index_split(&plane, call.by_C);
}

/* The channel of element [i] + [k], where [c] is that of the element before,
 * and [i] a multiple of N. */
template <int N, typename T>
static __device__ __forceinline__ int64_t next_channel(const norm_call<T> &call,
                                                       int64_t c, int64_t i,
                                                       int k)
{
    if (call.S % N == 0)
        return c;
    return call.S == 1 && call.C % N == 0 ? c + 1 : channel_at(call, i + k);
}

/* y = (x - mean) factor + shift */
struct apply_numbers {
    float mean, factor, shift;

    template <typename T>
    __device__ apply_numbers(const norm_call<T> &call, int64_t c)
    {
        mean = call.kept[c];
        factor = shift = 0;
        if (c < call.real) {
            factor = call.kept[call.C + c] * (call.bare ? 1 : call.gamma[c]);
            shift = call.bare ? 0 : call.beta[c];
        }
    }
};

template <typename T> struct apply {
    norm_call<T> call;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t c = channel_at(call, i);
        apply_numbers now(call, c);
        float v[N], other[N] = {};

        pack_load(call.x + i, v);
        if (call.other != NULL)
            pack_load(call.other + i, other);
        for (int k = 0; k < N; k++) {
            const int64_t next = k == 0 ? c : next_channel<N>(call, c, i, k);

            if (next != c)
                now = apply_numbers(call, c = next);
            v[k] = (v[k] - now.mean) * now.factor + now.shift + other[k];
            v[k] = call.relu && v[k] < 0 ? 0 : v[k];
        }
        pack_store(call.to + i, v);
    }
};

/* dx = factor (dy - plain - (x - mean) product) */
struct gradient_numbers {
    float mean, factor, plain, product;

    template <typename T>
    __device__ gradient_numbers(const norm_call<T> &call, int64_t c)
    {
        const float inverse = call.kept[call.C + c];
        const double part = 1 / call.sums[2 * call.C];

        mean = call.kept[c];
        factor = c >= call.real ? 0 : inverse * (call.bare ? 1 : call.gamma[c]);
        plain = (float)(call.sums[c] * part);
        product = (float)(call.sums[call.C + c] * part) * inverse;
    }
};

template <typename T> struct gradient {
    norm_call<T> call;

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t c = channel_at(call, i);
        gradient_numbers now(call, c);
        float x[N], d[N], y[N];

        pack_load(call.x + i, x);
        pack_load(call.dy + i, d);
        if (call.relu)
            pack_load(call.y + i, y);
        for (int k = 0; k < N; k++) {
            const int64_t next = k == 0 ? c : next_channel<N>(call, c, i, k);

            if (next != c)
                now = gradient_numbers(call, c = next);
            if (call.relu && !(y[k] > 0))
                d[k] = 0;
            d[k] = now.factor *
                   (d[k] - (now.plain + (x[k] - now.mean) * now.product));
        }
        pack_store(call.to + i, d);
    }
};

} // namespace

/* Keep the running statistics. */
template <typename T> static __global__ void keep_running(norm_call<T> call)
{
    for (int64_t c = each_first(); c < call.C; c += each_step()) {
        const bool real = c < call.real;

        keep(call, c, real ? call.running_mean[c] : 0,
             real ? call.running_var[c] : 1);
        if (c == 0)
            call.sums[2 * call.C] = call.count;
    }
}

/* Keep the statistics of the sums over all ranks. */
static __global__ void keep_totals(norm_call<float> call)
{
    for (int64_t c = each_first(); c < call.C; c += each_step())
        keep_sums(call, c, call.sums[2 * call.C]);
}

/* ---- the op -------------------------------------------------------------- */

static bool is_last(const op_t *op)
{
    return op->config.in.layout != NULL;
}

/* Channels as the kernels count them: with those that pad a row. */
static int64_t channels_in(const op_t *op)
{
    const int64_t C = op->config.in.dims[1];

    return is_last(op) ? cuda_channels_pitch(C) : C;
}

static channels shape_of(const op_t *op)
{
    const op_desc_t *in = &op->config.in;

    if (is_last(op))
        return channels_of(in->dims[0] * op_desc_space(in), channels_in(op), 1);
    return channels_of(in->dims[0], in->dims[1], op_desc_space(in));
}

static size_t sums_bytes(int64_t C)
{
    return mem_round((2 * (size_t)C + 1) * sizeof(double));
}

/* Bytes of the sums and what is kept. */
static size_t kept_bytes(int64_t C)
{
    return sums_bytes(C) + 2 * (size_t)C * sizeof(float);
}

static err_code_t norm_open(op_t *op, err_t *err)
{
    const int64_t C = channels_in(op);

    (void)err;
    op->reads_y = op->config.relu;
    if (!op->config.training) {
        op->scratch_bytes = kept_bytes(C);
        return ERR_OK;
    }
    op->workspace_bytes = kept_bytes(C);
    op->scratch_bytes = channels_bytes(shape_of(op));
    return ERR_OK;
}

template <typename T>
static norm_call<T> call_of(const op_t *op, const op_args_t *args, void *to)
{
    const op_config_t *config = &op->config;
    const op_desc_t *in = &config->in;
    void *kept = config->training ? args->workspace : args->scratch;
    norm_call<T> call = {};

    call.C = channels_in(op);
    call.real = in->dims[1];
    call.S = is_last(op) ? 1 : op_desc_space(in);
    call.by_C = index_divisor_of(call.C);
    call.by_S = index_divisor_of(call.S);
    call.count = (double)(in->dims[0] * op_desc_space(in));
    call.epsilon = config->epsilon;
    call.relu = config->relu;
    call.bare = config->norm.bare;
    call.frozen = config->norm.frozen;
    call.x = (const T *)args->x;
    call.y = (const T *)args->y;
    call.dy = (const T *)args->dy;
    call.other = config->others > 0 ? (const T *)args->other[0] : NULL;
    call.gamma = (const float *)args->params[0];
    call.beta = (const float *)args->params[1];
    call.running_mean = args->running_mean;
    call.running_var = args->running_var;
    call.to = (T *)to;
    call.dother = config->others > 0 ? (T *)args->dother[0] : NULL;
    call.dgamma = (float *)args->dparams[0];
    call.dbeta = (float *)args->dparams[1];
    call.moments = args->moments;
    call.sums = (double *)kept;
    call.kept = (float *)((char *)kept + sums_bytes(call.C));
    return call;
}

template <typename T>
static void apply_start(const op_t *op, const norm_call<T> &call,
                        const op_args_t *args)
{
    each_start<16 / sizeof(T)>(
        apply<T>{call}, cuda_channels_elems(&op->config.in),
        pack_aligned(call.x, call.other, call.to), cuda_stream(args));
}

template <typename T>
static void gradient_start(const op_t *op, const norm_call<T> &call,
                           const op_args_t *args)
{
    each_start<16 / sizeof(T)>(
        gradient<T>{call}, cuda_channels_elems(&op->config.in),
        pack_aligned(call.x, call.y, call.dy, call.to), cuda_stream(args));
}

template <typename T>
static err_code_t forward_start(const op_t *op, const op_args_t *args,
                                err_t *err)
{
    const norm_call<T> call = call_of<T>(op, args, args->y);

    if (op->config.training && !op->config.norm.frozen)
        channels_start(moment_sums<T>{call}, shape_of(op), args->scratch,
                       cuda_stream(args));
    else
        LAUNCH(keep_running<T>, each_blocks(call.C, EACH_THREADS), EACH_THREADS,
               0, cuda_stream(args), call);
    apply_start(op, call, args);
    return cuda_started(op, err);
}

template <typename T>
static err_code_t backward_start(const op_t *op, const op_args_t *args,
                                 err_t *err)
{
    const norm_call<T> call = call_of<T>(op, args, args->dx);

    channels_start(gradient_sums<T>{call}, shape_of(op), args->scratch,
                   cuda_stream(args));
    if (op->config.need_dx)
        gradient_start(op, call, args);
    return cuda_started(op, err);
}

static err_code_t norm_forward(op_t *op, const op_args_t *args, err_t *err)
{
    return is_last(op) ? forward_start<bf16_t>(op, args, err)
                       : forward_start<float>(op, args, err);
}

static err_code_t norm_backward(op_t *op, const op_args_t *args, err_t *err)
{
    return is_last(op) ? backward_start<bf16_t>(op, args, err)
                       : backward_start<float>(op, args, err);
}

extern "C" const op_kernel_t cuda_batchnorm_kernel = {
    norm_open, NULL, norm_forward, norm_backward};

/* ---- over all ranks ------------------------------------------------------ */

static err_code_t sync_open(op_t *op, err_t *err)
{
    const size_t bytes = sums_bytes(op->config.in.dims[1]);
    err_code_t rc = norm_open(op, err);

    if (rc == ERR_OK && op->config.training)
        rc = dev_pinned_alloc(op->dev, 2 * bytes, "sums over the ranks",
                              &op->state, err);
    return rc;
}

static void sync_close(op_t *op)
{
    if (op->state != NULL)
        dev_pinned_free(op->dev, op->state);
}

/* Replace the first [count] sums by those over all ranks: in device memory if
 * args->reduce.on is set; else on the host, after a wait for the stream. On the
 * host forward and backward have a place each: when backward begins, the copy
 * from forward's place may still be pending. */
static err_code_t sync_sums(const op_t *op, const norm_call<float> &call,
                            size_t count, bool backward, const op_args_t *args,
                            err_t *err)
{
    const size_t bytes = count * sizeof(double);
    double *host =
        (double *)((char *)op->state + (backward ? sums_bytes(call.C) : 0));
    err_code_t rc;

    if (args->reduce.on != NULL)
        return args->reduce.on(args->reduce.context, call.sums, count,
                               args->stream, err);
    if (args->reduce.small == NULL)
        return ERR_OK;
    rc = dev_copy(args->stream, host, call.sums, bytes, DEV_DEV_TO_HOST, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(args->stream, err);
    if (rc == ERR_OK)
        rc = args->reduce.small(args->reduce.context, host, count, err);
    if (rc == ERR_OK)
        rc = dev_copy(args->stream, call.sums, host, bytes, DEV_HOST_TO_DEV,
                      err);
    return rc;
}

static err_code_t sync_forward(op_t *op, const op_args_t *args, err_t *err)
{
    const norm_call<float> call = call_of<float>(op, args, args->y);
    err_code_t rc;

    if (!op->config.training)
        return norm_forward(op, args, err);
    channels_start(moment_sums<float>{call}, shape_of(op), args->scratch,
                   cuda_stream(args));
    rc = cuda_started(op, err);
    if (rc == ERR_OK)
        rc = sync_sums(op, call, 2 * (size_t)call.C + 1, false, args, err);
    if (rc != ERR_OK)
        return rc;
    LAUNCH(keep_totals, each_blocks(call.C, EACH_THREADS), EACH_THREADS, 0,
           cuda_stream(args), call);
    apply_start(op, call, args);
    return cuda_started(op, err);
}

static err_code_t sync_backward(op_t *op, const op_args_t *args, err_t *err)
{
    const norm_call<float> call = call_of<float>(op, args, args->dx);
    err_code_t rc;

    channels_start(gradient_sums<float>{call}, shape_of(op), args->scratch,
                   cuda_stream(args));
    rc = cuda_started(op, err);
    if (rc == ERR_OK)
        rc = sync_sums(op, call, 2 * (size_t)call.C, true, args, err);
    if (rc == ERR_OK && op->config.need_dx) {
        gradient_start(op, call, args);
        rc = cuda_started(op, err);
    }
    return rc;
}

extern "C" const op_kernel_t cuda_syncbatchnorm_kernel = {
    sync_open, sync_close, sync_forward, sync_backward};
