/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * usage: mpi_allreduce SMALLEST LARGEST [ROUNDS]     (bytes, below mpirun)
 *
 * MPI_Allreduce measured as cddp-bench allreduce measures ours: in place, every
 * rank writes its buffer before each call, a barrier, the slowest rank's time.
 * Prints "bytes,median_us" per size. Compiled with mpicc by allreduce-peers.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS_MAX 2000
#define ROUNDS_MIN 15
#define ROUNDS_BYTES ((size_t)512 << 20)
#define WARM_UP 3

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double measure(float *data, size_t count, int rank, size_t asked)
{
    static double times[ROUNDS_MAX];
    size_t rounds = ROUNDS_BYTES / (count * sizeof *data);

    rounds = rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    rounds = rounds < ROUNDS_MIN ? ROUNDS_MIN : rounds;
    rounds = asked > 0 && asked < ROUNDS_MAX ? asked : rounds;
    for (size_t i = 0; i < WARM_UP + rounds; i++) {
        double begin;

        for (size_t j = 0; j < count; j++)
            data[j] = (float)(rank + (int)i % 7);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = now();
        MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        if (i >= WARM_UP)
            times[i - WARM_UP] = now() - begin;
    }
    MPI_Allreduce(MPI_IN_PLACE, times, (int)rounds, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    qsort(times, rounds, sizeof *times, compare);
    return (times[(rounds - 1) / 2] + times[rounds / 2]) / 2;
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
        bytes = bytes >= largest      ? 0
                : bytes > largest / 4 ? largest
                                      : bytes * 4;
    }
    free(data);
    MPI_Finalize();
    return 0;
}
