/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A thread has one feature k of one sample n. See op/ref/recurrent.c for the
 * formulas. */
#include "op/cuda/recurrent.h"

#include "op/cuda/device/curves.cuh"
#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"

namespace
{

/* Index of feature k of a matrix [N,T,H]. */
__device__ __forceinline__ int64_t state_at(const cuda_step_t &s, int64_t n,
                                            int64_t token, int64_t k)
{
    return (n * s.T + token) * s.H + k;
}

__device__ __forceinline__ void put_state(const cuda_step_t &s, int64_t at,
                                          float h)
{
    s.h[at] = h;
    if (s.h_bf16 != nullptr)
        pack_put(static_cast<bf16_t *>(s.h_bf16), at, h);
}

struct start_work {
    cuda_step_t s;
    index_divisor_t by_H;

    template <int N> __device__ void at(int64_t i) const
    {
        const int64_t k = index_split(&i, by_H);
        const int64_t at = state_at(s, i, s.token, k);

        put_state(s, at, 0.0f);
        if (s.lstm)
            s.kept[at] = 0.0f;
    }
};

struct forward_work {
    cuda_step_t s;
    index_divisor_t by_H;

    template <int N> __device__ void at(int64_t i) const
    {
        const int64_t k = index_split(&i, by_H), n = i, H = s.H;
        const int64_t G = (s.lstm ? 4 : 3) * H;
        const int64_t now = state_at(s, n, s.token, k);
        const int64_t next = state_at(s, n, s.next, k);
        float *gate = s.gates + (n * s.T + s.token) * G + k, h;
        const float *u = s.u + n * G + k;

        if (s.lstm) {
            const float in = curve_sigmoid(gate[0] + u[0]);
            const float forget = curve_sigmoid(gate[H] + u[H]);
            const float fresh = tanhf(gate[2 * H] + u[2 * H]);
            const float out = curve_sigmoid(gate[3 * H] + u[3 * H]);
            const float c = forget * s.kept[now] + in * fresh;

            gate[0] = in;
            gate[H] = forget;
            gate[2 * H] = fresh;
            gate[3 * H] = out;
            h = out * tanhf(c);
            if (s.next >= 0)
                s.kept[next] = c;
        } else {
            const float reset = curve_sigmoid(gate[0] + u[0]);
            const float z = curve_sigmoid(gate[H] + u[H]);
            const float fresh = tanhf(gate[2 * H] + reset * u[2 * H]);

            gate[0] = reset;
            gate[H] = z;
            gate[2 * H] = fresh;
            s.kept[now] = u[2 * H];
            h = (1.0f - z) * fresh + z * s.h[now];
        }
        if (s.next >= 0)
            put_state(s, next, h);
        if (s.y != nullptr)
            s.y[n * s.y_row + k] = h;
    }
};

/* Store element [i] of da or du: rounded, and exactly for the sums. */
template <typename T>
__device__ __forceinline__ void put_slope(void *to, float *exact, int64_t i,
                                          float value)
{
    pack_put(static_cast<T *>(to), i, value);
    if (exact != nullptr)
        exact[i] = value;
}

template <typename T> struct backward_work {
    cuda_step_t s;
    index_divisor_t by_H;

    __device__ void lstm(int64_t i, int64_t g, int64_t now, float dh) const
    {
        const int64_t H = s.H;
        const float in = s.gates[g], forget = s.gates[g + H],
                    fresh = s.gates[g + 2 * H], out = s.gates[g + 3 * H];
        const float c = forget * s.kept[now] + in * fresh, curve = tanhf(c);
        const float dc = s.dc[i] + dh * out * (1.0f - curve * curve);

        put_slope<T>(s.da, s.da_sum, g, dc * fresh * in * (1.0f - in));
        put_slope<T>(s.da, s.da_sum, g + H,
                     dc * s.kept[now] * forget * (1.0f - forget));
        put_slope<T>(s.da, s.da_sum, g + 2 * H,
                     dc * in * (1.0f - fresh * fresh));
        put_slope<T>(s.da, s.da_sum, g + 3 * H,
                     dh * curve * out * (1.0f - out));
        s.dc[i] = dc * forget;
        s.dh[i] = 0.0f;
    }

    __device__ void gru(int64_t i, int64_t g, int64_t now, float dh) const
    {
        const int64_t H = s.H;
        const float reset = s.gates[g], z = s.gates[g + H],
                    fresh = s.gates[g + 2 * H];
        const float dn = dh * (1.0f - z) * (1.0f - fresh * fresh);
        const float dz = dh * (s.h[now] - fresh) * z * (1.0f - z);
        const float dr = dn * s.kept[now] * reset * (1.0f - reset);

        put_slope<T>(s.da, s.da_sum, g, dr);
        put_slope<T>(s.da, s.da_sum, g + H, dz);
        put_slope<T>(s.da, s.da_sum, g + 2 * H, dn);
        put_slope<T>(s.du, s.du_sum, g, dr);
        put_slope<T>(s.du, s.du_sum, g + H, dz);
        put_slope<T>(s.du, s.du_sum, g + 2 * H, dn * reset);
        s.dh[i] = dh * z;
    }

    template <int N> __device__ void at(int64_t i) const
    {
        int64_t n = i;
        const int64_t k = index_split(&n, by_H);
        const int64_t G = (s.lstm ? 4 : 3) * s.H;
        const int64_t g = (n * s.T + s.token) * G + k;
        const int64_t now = state_at(s, n, s.token, k);
        float dh = s.dh[i];

        if (s.dy != nullptr)
            dh += s.dy[n * s.y_row + k];
        if (s.lstm)
            lstm(i, g, now, dh);
        else
            gru(i, g, now, dh);
    }
};

} // namespace

template <typename Work>
static err_code_t start(const op_t *op, const op_args_t *args,
                        const cuda_step_t *step, err_t *err)
{
    each_start<1>(Work{*step, index_divisor_of(step->H)}, step->N * step->H,
                  false, cuda_stream(args));
    return cuda_started(op, err);
}

extern "C" err_code_t cuda_step_start(const op_t *op, const op_args_t *args,
                                      const cuda_step_t *step, err_t *err)
{
    return start<start_work>(op, args, step, err);
}

extern "C" err_code_t cuda_step_forward(const op_t *op, const op_args_t *args,
                                        const cuda_step_t *step, err_t *err)
{
    return start<forward_work>(op, args, step, err);
}

extern "C" err_code_t cuda_step_backward(const op_t *op, const op_args_t *args,
                                         const cuda_step_t *step, err_t *err)
{
    return step->bf16 ? start<backward_work<bf16_t>>(op, args, step, err)
                      : start<backward_work<float>>(op, args, step, err);
}
