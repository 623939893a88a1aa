/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_value.h"

float bench_value(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 13) % 31);
}

err_code_t bench_value_check(const float *data, size_t count, int rank,
                             int size, err_t *err)
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0;

        for (int r = 0; r < size; r++)
            sum += bench_value(r, i);
        if (data[i] != sum)
            return err_set(err, ERR_DATA,
                           "the all-reduce of %zu floats is wrong: element "
                           "%zu on rank %d is %g, expected %g",
                           count, i, rank, (double)data[i], (double)sum);
    }
    return ERR_OK;
}
