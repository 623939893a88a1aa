/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A program with its own training loop: fit y = w x + b by gradient descent.
 * Each rank computes the gradients of its share of the samples, and cddp sums
 * them over the ranks.
 *
 *   cc own-loop.c $(pkg-config --cflags --libs cddp) -o own-loop
 *   ./own-loop 2                             two ranks, threads of one process
 *   srun --mpi=pmix -n 2 ./own-loop          two processes under Slurm
 *   srun --mpi=pmix -n 2 ./own-loop 0 5000   the same, 5000 steps
 *   ./own-loop --device cuda 2               gradients are in GPUs' memory
 *   srun --mpi=pmix -n 2 ./own-loop --device cuda     and NCCL sums them
 *
 * --backend nccl: NCCL sums them also if the ranks share a GPU.
 */
#include <cddp/cddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 1024 };

/* Add the gradients of this rank's samples, divided by the number of all
 * samples, to [grads]; returns this rank's part of the mean squared error. */
static double gradients(int rank, int size, const float *params, float *grads)
{
    double loss = 0;

    for (int i = rank; i < SAMPLES; i += size) {
        float x = (float)i / SAMPLES, y = 3 * x - 1;
        float d = params[0] * x + params[1] - y;

        grads[0] += 2 * d * x / SAMPLES;
        grads[1] += 2 * d / SAMPLES;
        loss += (double)d * d / SAMPLES;
    }
    return loss;
}

/* What a step sums over the ranks. */
typedef struct numbers {
    float grads[2];
    double loss;
} numbers_t;

/* Give the reducer this rank's numbers. (On a GPU, kernels would write them
 * directly to the reducer's memory.) */
static cddp_code_t send(cddp_group_t *group, cddp_ddp_t *ddp,
                        const numbers_t *from, cddp_error_t *error)
{
    cddp_code_t code =
        cddp_device_copy(group, cddp_ddp_grads(ddp), from->grads,
                         sizeof from->grads, CDDP_TO_DEVICE, error);

    return code == CDDP_OK
               ? cddp_device_copy(group, cddp_ddp_sums(ddp), &from->loss,
                                  sizeof from->loss, CDDP_TO_DEVICE, error)
               : code;
}

/* Take the sums over all ranks from the reducer. */
static cddp_code_t receive(cddp_group_t *group, cddp_ddp_t *ddp, numbers_t *to,
                           cddp_error_t *error)
{
    cddp_code_t code =
        cddp_device_copy(group, to->grads, cddp_ddp_grads(ddp),
                         sizeof to->grads, CDDP_FROM_DEVICE, error);

    return code == CDDP_OK
               ? cddp_device_copy(group, &to->loss, cddp_ddp_sums(ddp),
                                  sizeof to->loss, CDDP_FROM_DEVICE, error)
               : code;
}

static cddp_code_t train(cddp_group_t *group, void *context,
                         cddp_error_t *error)
{
    const cddp_view_t views[] = {{"w", 0, 1}, {"b", 1, 1}};
    const cddp_ddp_config_t config = {
        .views = views, .view_count = 2, .elems = 2, .sums = 1};
    const int rank = cddp_group_rank(group), size = cddp_group_size(group);
    const int steps = *(const int *)context;
    float params[2] = {0, 0};
    cddp_ddp_t *ddp = NULL;
    cddp_code_t code = cddp_ddp_open(group, &config, &ddp, error);

    for (int step = 1; code == CDDP_OK && step <= steps; step++) {
        numbers_t numbers = {.grads = {0, 0}};

        cddp_group_report(group, step, "step");
        cddp_ddp_begin(ddp);
        numbers.loss = gradients(rank, size, params, numbers.grads);
        code = send(group, ddp, &numbers, error);
        for (int view = 0; code == CDDP_OK && view < 2; view++)
            code = cddp_ddp_ready(ddp, view, error);
        if (code == CDDP_OK)
            code = cddp_ddp_wait(ddp, error);
        if (code == CDDP_OK)
            code = receive(group, ddp, &numbers, error);
        for (int p = 0; code == CDDP_OK && p < 2; p++)
            params[p] -= 0.7f * numbers.grads[p];
        if (code == CDDP_OK && rank == 0 && (step & (step - 1)) == 0) {
            printf("step %d loss %.3e\n", step,
                   numbers.loss); /* 1, 2, 4, 8 ... */
            fflush(stdout);
        }
    }
    if (code == CDDP_OK && rank == 0)
        printf("%d ranks: w %.3f b %.3f\n", size, params[0], params[1]);
    if (code == CDDP_OK)
        code = cddp_ddp_check(ddp, params, sizeof params, error);
    cddp_ddp_close(ddp);
    return code;
}

int main(int argc, char **argv)
{
    cddp_run_config_t config = {.device = "cpu"};
    int steps = 300;
    cddp_error_t error;
    cddp_code_t code = CDDP_UNAVAILABLE;

    while (argc > 2 && argv[1][0] == '-' && argv[1][1] == '-') {
        if (strcmp(argv[1], "--device") == 0)
            config.device = argv[2];
        else
            config.backend = argv[2]; /* --backend */
        argc -= 2;
        argv += 2;
    }
    if (argc > 1)
        config.local = atoi(argv[1]);
    if (argc > 2)
        steps = atoi(argv[2]);
    if (!cddp_version_check())
        fprintf(stderr, "built for cddp %s, but this is %s\n", CDDP_VERSION,
                cddp_version());
    else if ((code = cddp_run(&config, train, &steps, &error)) != CDDP_OK)
        fprintf(stderr, "own-loop: %s\n", error.text);
    if (code == CDDP_PEER)
        _Exit(code); /* the GPU may still wait for the rank that has failed */
    return code;
}
