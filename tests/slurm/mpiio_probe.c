/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * mpiio_probe: what mpiio.t runs under srun. Every rank reads its share of two
 * shuffled epochs and prints a hash of all that it got. The exit status is the
 * err_code_t.
 *
 *   read PATTERN independent CLASSES   each rank by itself, read ahead
 *   read PATTERN mpi CLASSES           collective, by MPI-IO
 *
 * The last step of an epoch is so short that some ranks have no sample in it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "boot/boot.h"
#include "hdf5io/loader.h"

#define ELEMS 12
#define BATCH 18

/* One rank's part of the test. */
typedef struct probe {
    boot_t *boot;
    h5mpi_t *mpi;
    hdf5io_dataset_t *dataset;
    hdf5io_sampler_t *sampler;
    hdf5io_loader_t *loader;
} probe_t;

static err_code_t probe_open(probe_t *probe, char **words, err_t *err)
{
    hdf5io_field_t input = {.path = (char *)"/spins", .scale = 0.1, .shift = 3};
    hdf5io_field_t target = {.path = (char *)"/phase", .scale = 1};
    opt_texts_t shards = {.count = 1, .items = &words[2]};
    hdf5io_dataset_config_t data = {
        .shards = &shards,
        .inputs[0] = {.field = &input, .elems = ELEMS, .shape = "[12]"},
        .targets[0] = {.field = &target,
                       .as = HDF5IO_AS_CLASSES,
                       .limit = atoi(words[4]),
                       .elems = 1},
        .mpi = probe->mpi};
    hdf5io_sampler_config_t order = {.batch = BATCH,
                                     .rank = boot_rank(probe->boot),
                                     .size = boot_size(probe->boot),
                                     .shuffle = HDF5IO_SHUFFLE_FULL,
                                     .seed = 3};
    hdf5io_loader_config_t ahead = {.prefetch = 4, .epochs = 2};
    err_code_t code = hdf5io_dataset_open(&data, &probe->dataset, err);

    if (code != ERR_OK)
        return code;
    order.samples = hdf5io_dataset_samples(probe->dataset);
    code = hdf5io_sampler_open(&order, &probe->sampler, err);
    if (code != ERR_OK)
        return code;
    ahead.dataset = probe->dataset;
    ahead.sampler = probe->sampler;
    return hdf5io_loader_open(&ahead, &probe->loader, err);
}

/* Go on after a failed step, as long as others do: the outcome is shared, as
 * the trainer shares it, and all ranks stop after the same step. */
static err_code_t step_shared(probe_t *probe, err_code_t own, err_t *err)
{
    int mine = (int)own, all[64] = {0};
    err_code_t code;

    code = boot_exchange(probe->boot, &mine, sizeof mine, all,
                         own == ERR_OK ? err : NULL);
    if (code != ERR_OK || own != ERR_OK)
        return own != ERR_OK ? own : code;
    for (int rank = 0; rank < boot_size(probe->boot); rank++)
        if (all[rank] != ERR_OK)
            return err_set_peer(err, rank, NULL, "rank %d failed", rank);
    return ERR_OK;
}

static err_code_t probe_read(probe_t *probe, err_t *err)
{
    hash_state_t *state = hash_state_open();
    err_code_t code = ERR_OK;
    hdf5io_batch_t *batch;
    int64_t samples = 0, empty = 0;

    for (;;) {
        code = hdf5io_loader_next(probe->loader, &batch, err);
        code = step_shared(probe, code, err);
        if (code != ERR_OK || batch == NULL)
            break;
        hash_state_add(state, batch->sample_ids,
                       (size_t)batch->count * sizeof *batch->sample_ids);
        hash_state_add(state, batch->input,
                       (size_t)batch->count * ELEMS * sizeof(float));
        hash_state_add(state, batch->target,
                       (size_t)batch->count * sizeof(int64_t));
        samples += batch->count;
        empty += batch->count == 0;
    }
    if (code == ERR_OK)
        printf("rank %d samples %" PRId64 " empty %" PRId64 " bytes %" PRId64
               " hash %016" PRIx64 "\n",
               boot_rank(probe->boot), samples, empty,
               hdf5io_dataset_bytes_read(probe->dataset),
               hash_state_value(state));
    fprintf(stderr, "rank %d: %d files, read in %" PRId64 " turns\n",
            boot_rank(probe->boot), hdf5io_dataset_shards(probe->dataset),
            hdf5io_dataset_shards_read(probe->dataset));
    hash_state_free(state);
    return code;
}

static err_code_t run(probe_t *probe, char **words, err_t *err)
{
    err_code_t code = ERR_OK;

    if (strcmp(words[3], "mpi") == 0)
        code = h5mpi_open(boot_rank(probe->boot), boot_size(probe->boot),
                          &probe->mpi, err);
    if (code == ERR_OK)
        code = probe_open(probe, words, err);
    if (code == ERR_OK)
        code = probe_read(probe, err);
    hdf5io_loader_close(probe->loader);
    hdf5io_sampler_close(probe->sampler);
    hdf5io_dataset_close(probe->dataset);
    h5mpi_close(probe->mpi);
    return code;
}

int main(int argc, char **argv)
{
    const boot_config_t config = {.timeout = 30};
    probe_t probe = {0};
    err_t err = ERR_INIT;
    err_code_t code;

    if (argc != 5 || strcmp(argv[1], "read") != 0)
        return ERR_USAGE;
    code = boot_open(&config, &probe.boot, &err);
    if (code == ERR_OK)
        code = run(&probe, argv, &err);
    if (code != ERR_OK)
        fprintf(stderr, "%s\n", err.text);
    boot_close(probe.boot);
    return (int)code;
}
