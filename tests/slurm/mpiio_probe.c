/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * mpiio_probe: the program that mpiio.t runs under srun. Every rank reads its
 * share of two shuffled epochs and prints a hash of the data. The exit status
 * is the err_code_t.
 *
 *   read PATTERN independent CLASSES   each rank reads alone, ahead of use
 *   read PATTERN mpi CLASSES           collective reads by MPI-IO
 *   write DIRECTORY links N            without ranks: write N samples as
 *                                      parts in files, as links to them, as
 *                                      a virtual dataset, and in one file
 *
 * In the last step of an epoch some ranks have no samples.
 */
#include <hdf5.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "boot/boot.h"
#include "hdf5io/loader.h"
#include "tests/slurm/probe_mpi.h"

#define ELEMS 12
#define BATCH 18

/* State of one rank. */
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

/* Share the outcome of a step among ranks, as the trainer does, so that all
 * ranks stop after the same step if one fails. */
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
        code = probe_mpi_open(&probe->boot, &probe->mpi, err);
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

/* ---- files over files ---------------------------------------------------- */

/* End the program unless [condition], the success of writing [what], is
 * true. */
static void need(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "cannot write %s\n", what);
    exit(ERR_IO);
}

/* Write [rows] samples from sample [first] on to [name] in [directory]; with
 * [gzip] in compressed chunks. */
static void part_write(const char *directory, const char *name, hsize_t first,
                       hsize_t rows, bool gzip)
{
    char path[512];
    hsize_t dims[2] = {rows, ELEMS}, chunk[2] = {7, ELEMS};
    int8_t(*spins)[ELEMS] = calloc(rows, sizeof *spins);
    int8_t *phase = calloc(rows, 1);
    hid_t file, space, set, list = H5Pcreate(H5P_DATASET_CREATE);

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (hsize_t r = 0; r < rows; r++) {
        phase[r] = (int8_t)((first + r) % 3);
        for (hsize_t e = 0; e < ELEMS; e++)
            spins[r][e] = (int8_t)((first + r) * 7 + e);
    }
    if (gzip) {
        H5Pset_chunk(list, 2, chunk);
        H5Pset_deflate(list, 1);
    }
    space = H5Screate_simple(2, dims, NULL);
    set = H5Dcreate2(file, "spins", H5T_STD_I8LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    need(H5Dwrite(set, H5T_NATIVE_INT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, spins) >=
             0,
         path);
    H5Dclose(set);
    H5Sclose(space);
    space = H5Screate_simple(1, dims, NULL);
    set = H5Dcreate2(file, "phase", H5T_STD_I8LE, space, H5P_DEFAULT,
                     H5P_DEFAULT, H5P_DEFAULT);
    need(H5Dwrite(set, H5T_NATIVE_INT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, phase) >=
             0,
         path);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(list);
    need(H5Fclose(file) >= 0, path);
    free(phase);
    free(spins);
}

/* Write [name], in which /spins is a virtual dataset over a.h5 and b.h5, of
 * [half] samples each, and /phase an external link to all.h5. */
static void master_write(const char *directory, const char *name, hsize_t half)
{
    char path[512];
    hsize_t dims[2] = {2 * half, ELEMS}, start[2] = {0};
    hsize_t block[2] = {half, ELEMS};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), file, set;
    hid_t space = H5Screate_simple(2, dims, NULL);
    hid_t source = H5Screate_simple(2, block, NULL);

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int k = 0; k < 2; k++) {
        start[0] = k == 0 ? 0 : half;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL);
        need(H5Pset_virtual(list, space, k == 0 ? "a.h5" : "b.h5", "/spins",
                            source) >= 0,
             path);
    }
    H5Sselect_all(space);
    set = H5Dcreate2(file, "spins", H5T_STD_I8LE, space, H5P_DEFAULT, list,
                     H5P_DEFAULT);
    need(set >= 0 && H5Lcreate_external("all.h5", "/phase", file, "phase",
                                        H5P_DEFAULT, H5P_DEFAULT) >= 0,
         path);
    H5Dclose(set);
    H5Sclose(source);
    H5Sclose(space);
    H5Pclose(list);
    need(H5Fclose(file) >= 0, path);
}

static int links_write(const char *directory, hsize_t half)
{
    char path[512];
    hid_t file;

    part_write(directory, "a.h5", 0, half, true);
    part_write(directory, "b.h5", half, half, false);
    part_write(directory, "all.h5", 0, 2 * half, true);
    master_write(directory, "virtual.h5", half);
    snprintf(path, sizeof path, "%s/links.h5", directory);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    need(H5Lcreate_external("all.h5", "/spins", file, "spins", H5P_DEFAULT,
                            H5P_DEFAULT) >= 0 &&
             H5Lcreate_external("virtual.h5", "/phase", file, "phase",
                                H5P_DEFAULT, H5P_DEFAULT) >= 0,
         path);
    need(H5Fclose(file) >= 0, path);
    return 0;
}

int main(int argc, char **argv)
{
    const boot_config_t config = {.timeout = 30};
    probe_t probe = {0};
    err_t err = ERR_INIT;
    err_code_t code;

    if (argc == 5 && strcmp(argv[1], "write") == 0)
        return links_write(argv[2], (hsize_t)atoi(argv[4]) / 2);
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
