/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * shard_alike: opens a shard without HDF5 if it differs only in its numbers
 * from a shard that HDF5 has opened. A program that writes many shards of the
 * same shape often gives them the same headers.
 *
 * Thread rule: one thread at a time.
 */
#ifndef CDDP_HDF5IO_SHARD_ALIKE_H
#define CDDP_HDF5IO_SHARD_ALIKE_H

#include "hdf5io/shard.h"

/* A shard, and all bytes of its file that are not numbers of its columns. */
typedef struct hdf5io_alike hdf5io_alike_t;

/* Remember [shard], which HDF5 has opened, if no shard is remembered. *alike is
 * NULL at first. Reads up to 64 KiB of the file. A shard is not remembered if a
 * column is not contiguous or is in another file, or if more than 64 KiB of the
 * file are outside of the columns. The caller frees *alike by
 * hdf5io_alike_close. Needs no HDF5. Does not fail: if no shard is remembered,
 * HDF5 opens all shards. */
void hdf5io_alike_learn(const hdf5io_shard_t *shard, hdf5io_alike_t **alike);

/* Open the file [path] if it has the size of the remembered shard, and the same
 * bytes outside of the columns: then HDF5 would find the same columns at the
 * same places. The text [path] must outlive the shard. False: nothing is open,
 * and the caller calls hdf5io_shard_look, which also finds what is wrong with
 * the file. If the file has the same size but other bytes, it was opened in
 * vain, and the remembered shard is forgotten. After the second such file, no
 * shard is remembered any more. [alike] may be NULL. */
bool hdf5io_alike_open(hdf5io_alike_t *alike,
                       const hdf5io_shard_config_t *config, const char *path,
                       hdf5io_shard_t *out);

void hdf5io_alike_close(hdf5io_alike_t *alike); /* NULL allowed */

#endif
