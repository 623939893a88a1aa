/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard_alike: opens shards without HDF5, if only their numbers differ from
 * those of a shard that HDF5 has opened. A program that writes many shards of
 * the same shape often gives them the same headers.
 *
 * Thread rule: one thread at a time.
 */
#ifndef CDDP_HDF5IO_SHARD_ALIKE_H
#define CDDP_HDF5IO_SHARD_ALIKE_H

#include "hdf5io/shard.h"

/* A shard, and all bytes of its file that are not numbers of its columns. */
typedef struct hdf5io_alike hdf5io_alike_t;

/* Remember [shard], which HDF5 has opened, if no shard is remembered. *alike is
 * NULL at first. Reads up to 64 KiB of the file. Nothing is remembered if the
 * shard has other columns than contiguous ones in its own file, or too many
 * other bytes. The caller frees *alike by hdf5io_alike_close. Needs no HDF5,
 * and does not fail: without it, HDF5 opens all shards. */
void hdf5io_alike_learn(const hdf5io_shard_t *shard, hdf5io_alike_t **alike);

/* Open the file [path], a name that outlives the shard, if it is a file of the
 * same size, and its bytes that are not numbers are the remembered ones: then
 * HDF5 would find the same columns at the same places. False: nothing is open,
 * and hdf5io_shard_look must be called, which also finds what is wrong with the
 * file. If the file has the same size but other bytes, it was opened in vain.
 * Then the remembered shard is forgotten, and after the second such file none
 * is remembered any more. [alike] may be NULL. */
bool hdf5io_alike_open(hdf5io_alike_t *alike,
                       const hdf5io_shard_config_t *config, const char *path,
                       hdf5io_shard_t *out);

void hdf5io_alike_close(hdf5io_alike_t *alike); /* NULL allowed */

#endif
