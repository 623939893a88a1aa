/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * boot_probe: the program that boot.t runs under srun. Each mode is a small
 * test of boot.h; the exit status is the err_code_t.
 *
 *   exchange          exchange and check blobs of many lengths; print
 *                     rank and host
 *   agree - RANK      RANK has another configuration hash
 *   absent SEC RANK   RANK misses an exchange limited to SEC seconds
 *   unequal           rank 1 contributes another number of bytes
 *   die DIR           rank 1 is killed after boot_close (process id in DIR)
 *   die-open DIR      rank 1 is killed while boot is open
 *   mpi-inside        boot open, MPI (h5mpi) started and ended, boot closed
 *   mpi-outside       MPI started, boot opened and closed, MPI ended
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_PARALLEL_HDF5
#include <mpi.h>
#endif

#include "base/log.h"
#include "base/str.h"
#include "boot/boot.h"
#include "hdf5io/h5mpi.h"
#include "tests/slurm/probe_mpi.h"

#define BYTES_MAX 100000

typedef struct probe {
    boot_t *boot;
    const char *argument; /* second word of the command line, or NULL */
    double number;        /* third word of the command line */
} probe_t;

/* Byte [k] of the contribution of [rank] to round [round]. */
static unsigned char blob_byte(int rank, int round, size_t k)
{
    return (unsigned char)((size_t)rank * 31 + (size_t)round * 7 + k);
}

/* Exchange [bytes] bytes and check them; ERR_DATA if a byte is wrong. */
static err_code_t exchange_round(boot_t *boot, int round, size_t bytes,
                                 err_t *err)
{
    size_t size = (size_t)boot_size(boot);
    unsigned char *mine = malloc(bytes + 1);
    unsigned char *all = malloc(size * bytes + 1);
    err_code_t code;

    if (mine == NULL || all == NULL) {
        code = err_set(err, ERR_MEMORY, "out of memory");
        goto out;
    }
    for (size_t k = 0; k < bytes; k++)
        mine[k] = blob_byte(boot_rank(boot), round, k);
    code = boot_exchange(boot, mine, bytes, all, err);
    for (size_t i = 0; code == ERR_OK && i < size * bytes; i++)
        if (all[i] != blob_byte((int)(i / bytes), round, i % bytes))
            code =
                err_set(err, ERR_DATA, "round %d: byte %zu is wrong", round, i);
out:
    free(all);
    free(mine);
    return code;
}

static err_code_t run_exchange(probe_t *probe, err_t *err)
{
    static const size_t lengths[] = {8, 0, 1, 4096, 64, BYTES_MAX, 200};
    err_code_t code = ERR_OK;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        if (code == ERR_OK)
            code = exchange_round(probe->boot, (int)i, lengths[i], err);
    return code;
}

static err_code_t run_agree(probe_t *probe, err_t *err)
{
    bool odd = boot_rank(probe->boot) == (int)probe->number;
    err_code_t code = boot_agree(probe->boot, "build", 4711, err);

    if (code != ERR_OK)
        return code;
    return boot_agree(probe->boot, "configuration", odd ? 1 : 2, err);
}

static err_code_t run_absent(probe_t *probe, err_t *err)
{
    err_code_t code = exchange_round(probe->boot, 0, 8, err);

    if (code != ERR_OK)
        return code;
    /* The rank hangs but does not die, so only the limit ends the exchange. */
    while (boot_rank(probe->boot) == (int)probe->number)
        pause();
    return exchange_round(probe->boot, 1, 8, err);
}

static err_code_t run_unequal(probe_t *probe, err_t *err)
{
    return exchange_round(probe->boot, 0, boot_rank(probe->boot) == 1 ? 16 : 8,
                          err);
}

/* Write [text] to the file DIR/NAME.RANK. */
static void mark(const probe_t *probe, const char *name, int rank, long text)
{
    char *path = str_printf("%s/%s.%d", probe->argument, name, rank);
    FILE *file = fopen(path, "w");

    if (file != NULL) {
        fprintf(file, "%ld\n", text);
        fclose(file);
    }
    free(path);
}

/* Wait until the test makes DIR/release. A shared file system reports no
 * events, hence polling; alarm() ends a rank that is left over. */
static void wait_release(const probe_t *probe)
{
    char *path = str_printf("%s/release", probe->argument);

    alarm(60);
    while (access(path, F_OK) != 0)
        usleep(50000);
    free(path);
}

static err_code_t run_die(probe_t *probe, bool open, err_t *err)
{
    int rank = boot_rank(probe->boot);
    err_code_t code = exchange_round(probe->boot, 0, 8, err);

    if (code != ERR_OK)
        return code;
    if (!open) {
        boot_close(probe->boot);
        probe->boot = NULL;
    }
    mark(probe, "pid", rank, (long)getpid());
    if (rank == 1)
        raise(SIGKILL);
    wait_release(probe);
    mark(probe, "alive", rank, (long)getpid());
    return ERR_OK;
}

static err_code_t run_mpi_inside(probe_t *probe, err_t *err)
{
    h5mpi_t *mpi;
    err_code_t code = ERR_OK;

    if (h5mpi_wants_boot())
        code = exchange_round(probe->boot, 0, 8, err);
    if (code == ERR_OK)
        code = probe_mpi_open(&probe->boot, &mpi, err);
    if (code != ERR_OK)
        return code;
    code = exchange_round(probe->boot, 1, 100, err);
    h5mpi_close(mpi);
    if (code == ERR_OK)
        code = exchange_round(probe->boot, 2, 8, err);
    return code;
}

static err_code_t run_mode(const char *mode, probe_t *probe, err_t *err)
{
    if (strcmp(mode, "exchange") == 0 || strcmp(mode, "mpi-outside") == 0)
        return run_exchange(probe, err);
    if (strcmp(mode, "agree") == 0)
        return run_agree(probe, err);
    if (strcmp(mode, "absent") == 0)
        return run_absent(probe, err);
    if (strcmp(mode, "unequal") == 0)
        return run_unequal(probe, err);
    if (strcmp(mode, "die") == 0 || strcmp(mode, "die-open") == 0)
        return run_die(probe, strcmp(mode, "die-open") == 0, err);
    if (strcmp(mode, "mpi-inside") == 0)
        return run_mpi_inside(probe, err);
    return err_set(err, ERR_USAGE, "unknown mode %s", mode);
}

/* For mpi-outside: start MPI before boot, and use it. */
static err_code_t mpi_start(err_t *err)
{
#ifdef HAVE_PARALLEL_HDF5
    int provided;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) !=
        MPI_SUCCESS)
        return err_set(err, ERR_UNAVAILABLE, "MPI_Init failed");
    return ERR_OK;
#else
    return err_set(err, ERR_UNAVAILABLE, "built without MPI");
#endif
}

static err_code_t mpi_finish(err_t *err)
{
#ifdef HAVE_PARALLEL_HDF5
    int one = 1, sum = 0, size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size)
        return err_set(err, ERR_DATA, "MPI sums to %d of %d", sum, size);
    MPI_Finalize();
#endif
    (void)err;
    return ERR_OK;
}

static err_code_t probe_run(const char *mode, probe_t *probe, err_t *err)
{
    boot_config_t config = {.timeout = 30};
    bool outside = strcmp(mode, "mpi-outside") == 0;
    err_code_t code = ERR_OK;
    char host[64] = "?";

    if (strcmp(mode, "absent") == 0 && probe->argument != NULL)
        config.timeout = strtod(probe->argument, NULL);
    if (outside)
        code = mpi_start(err);
    if (code == ERR_OK)
        code = boot_open(&config, &probe->boot, err);
    if (code != ERR_OK)
        return code;
    gethostname(host, sizeof host - 1);
    log_rank_set(boot_rank(probe->boot));
    printf("rank %d of %d on %s by %s\n", boot_rank(probe->boot),
           boot_size(probe->boot), host, boot_name(probe->boot));
    fflush(stdout);
    code = run_mode(mode, probe, err);
    boot_close(probe->boot);
    if (outside && code == ERR_OK)
        code = mpi_finish(err);
    return code;
}

int main(int argc, char **argv)
{
    probe_t probe = {0};
    err_t err = ERR_INIT;

    if (argc < 2) {
        log_error("probe", "usage: boot_probe MODE [ARGUMENT [NUMBER]]");
        return ERR_USAGE;
    }
    probe.argument = argc > 2 ? argv[2] : NULL;
    probe.number = argc > 3 ? strtod(argv[3], NULL) : -1;
    if (probe_run(argv[1], &probe, &err) != ERR_OK)
        log_error("probe", "%s", err.text);
    return (int)err.code;
}
