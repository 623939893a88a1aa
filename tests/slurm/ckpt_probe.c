/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * ckpt_probe: the program that ckpt_mpiio.t runs under srun. All ranks have
 * equal tensors, made from a counter. The exit status is the err_code_t.
 *
 *   write DIR shards   write a checkpoint, a shard for each rank
 *   write DIR mpi      write a checkpoint, one shared file by MPI-IO
 *   read DIR           read the checkpoint and compare every bit
 *   names DIR          print "NAME ELEMENTS FIRST LAST" of every tensor
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "boot/boot.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/h5mpi.h"
#include "tests/slurm/probe_mpi.h"

#define TENSORS 5

/* Sizes that no number of ranks divides; a scalar is among them. */
static const hdf5io_tensor_t shapes[TENSORS] = {
    {"model/conv.weight", 4, {67, 13, 3, 3}, NULL, NULL, 0},
    {"model/conv.bias", 1, {67}, NULL, NULL, 0},
    {"model/fc.weight", 2, {1001, 517}, NULL, NULL, 0},
    {"model/scale", 0, {0}, NULL, NULL, 0},
    {"optimizer/exp_avg/fc.weight", 2, {1001, 517}, NULL, NULL, 0},
};

static size_t elems_of(const hdf5io_tensor_t *tensor)
{
    size_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= (size_t)tensor->dims[d];
    return elems;
}

static err_code_t tensors_make(hdf5io_tensor_t *tensors, err_t *err)
{
    for (int i = 0; i < TENSORS; i++) {
        size_t elems = elems_of(&shapes[i]);
        rng_t rng;

        tensors[i] = shapes[i];
        tensors[i].data = malloc(elems * sizeof(float));
        if (tensors[i].data == NULL)
            return err_set(err, ERR_MEMORY, "no memory for %s",
                           tensors[i].name);
        rng_open(&rng, 7, RNG_INIT, (uint64_t)i, 0);
        for (size_t e = 0; e < elems; e++)
            tensors[i].data[e] = (float)rng_normal(&rng);
    }
    return ERR_OK;
}

static uint64_t tensors_hash(const hdf5io_tensor_t *tensors)
{
    hash_state_t *state = hash_state_open();
    uint64_t hash;

    for (int i = 0; i < TENSORS; i++)
        hash_state_add(state, tensors[i].data,
                       elems_of(&tensors[i]) * sizeof(float));
    hash = hash_state_value(state);
    hash_state_free(state);
    return hash;
}

/* Number of bytes that this process has passed to write calls so far. */
static int64_t passed(void)
{
    char line[128];
    int64_t bytes = 0;
    FILE *file = fopen("/proc/self/io", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "wchar: ", 7) == 0)
            bytes = strtoll(line + 7, NULL, 10);
    if (file != NULL)
        fclose(file);
    return bytes;
}

static err_code_t run_write(const hdf5io_checkpoint_config_t *config,
                            const hdf5io_tensor_t *tensors, err_t *err)
{
    const hdf5io_progress_t progress = {.step = 5, .loss_sum = 0.1};
    hdf5io_checkpoint_info_t info;
    int64_t before = passed();
    err_code_t code = hdf5io_checkpoint_write(config, &progress, tensors,
                                              TENSORS, &info, err);

    if (code == ERR_OK)
        printf("rank %d wrote %" PRId64 " bytes of its share, %" PRId64
               " in all\n",
               config->votes->rank, info.bytes_written, passed() - before);
    return code;
}

static err_code_t run_read(const hdf5io_checkpoint_config_t *config,
                           const hdf5io_tensor_t *tensors, err_t *err)
{
    uint64_t hash = tensors_hash(tensors);
    bool found = false;
    err_code_t code;

    for (int i = 0; i < TENSORS; i++)
        memset(tensors[i].data, 0, elems_of(&tensors[i]) * sizeof(float));
    code = hdf5io_checkpoint_read(config, NULL, tensors, TENSORS, &found, NULL,
                                  err);
    if (code == ERR_OK && (!found || tensors_hash(tensors) != hash))
        code = err_set(err, ERR_DATA, "other bits came back");
    if (code == ERR_OK)
        printf("rank %d read the same bits\n", config->votes->rank);
    return code;
}

static void run_names(const hdf5io_tensor_t *tensors)
{
    for (int i = 0; i < TENSORS; i++)
        printf("%s %zu %a %a\n", tensors[i].name, elems_of(&tensors[i]),
               (double)tensors[i].data[0],
               (double)tensors[i].data[elems_of(&tensors[i]) - 1]);
}

static err_code_t run(boot_t **boot, char **words, err_t *err)
{
    hdf5io_votes_t votes = {.rank = boot_rank(*boot),
                            .size = boot_size(*boot),
                            .exchange = boot_exchange_call};
    hdf5io_checkpoint_config_t config = {
        .directory = words[2], .votes = &votes, .keep = 2};
    hdf5io_tensor_t tensors[TENSORS] = {{0}};
    err_code_t code = tensors_make(tensors, err);

    if (code == ERR_OK && words[3] != NULL && strcmp(words[3], "mpi") == 0)
        code = probe_mpi_open(boot, &config.mpi, err);
    votes.context = *boot;
    if (code == ERR_OK && strcmp(words[1], "write") == 0)
        code = run_write(&config, tensors, err);
    else if (code == ERR_OK && strcmp(words[1], "read") == 0)
        code = run_read(&config, tensors, err);
    else if (code == ERR_OK)
        run_names(tensors);
    h5mpi_close(config.mpi);
    for (int i = 0; i < TENSORS; i++)
        free(tensors[i].data);
    return code;
}

int main(int argc, char **argv)
{
    const boot_config_t config = {.timeout = 30};
    boot_t *boot = NULL;
    err_t err = ERR_INIT;
    err_code_t code;

    if (argc < 3)
        return ERR_USAGE;
    code = boot_open(&config, &boot, &err);
    if (code == ERR_OK)
        code = run(&boot, argv, &err);
    if (code != ERR_OK)
        fprintf(stderr, "%s\n", err.text);
    boot_close(boot);
    return (int)code;
}
