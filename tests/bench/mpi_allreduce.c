/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * usage: mpi_allreduce SMALLEST LARGEST [ROUNDS]     (bytes, below mpirun)
 *
 * Measures MPI_Allreduce as cddp-bench allreduce measures ours: in place;
 * before each call every rank writes its buffer and all ranks meet at a
 * barrier; a time is that of the slowest rank. Prints "bytes,median_us" per
 * size. allreduce-peers compiles it with mpicc.
 */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>

#define WARM_UP 3

static double measure(float *data, size_t count, int rank, size_t asked)
{
    static double times[PROBE_ROUNDS_MAX];
    const size_t rounds = probe_rounds(count * sizeof *data, asked);

    for (size_t i = 0; i < WARM_UP + rounds; i++) {
        double begin;

        for (size_t j = 0; j < count; j++)
            data[j] = (float)(rank + (int)i % 7);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = probe_now();
        MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        if (i >= WARM_UP)
            times[i - WARM_UP] = probe_now() - begin;
    }
    return probe_median(times, rounds);
}

int main(int argc, char **argv)
{
    size_t smallest, largest, rounds;
    float *data;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    smallest = argc > 2 ? strtoull(argv[1], NULL, 10) : 4;
    largest = argc > 2 ? strtoull(argv[2], NULL, 10) : (size_t)256 << 20;
    rounds = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    data = calloc(1, largest);
    if (data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 71);
    for (size_t bytes = smallest; bytes > 0;) {
        double median = measure(data, bytes / sizeof *data, rank, rounds);

        if (rank == 0)
            printf("%zu,%.3f\n", bytes, median * 1e6);
        bytes = probe_next(bytes, largest);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
