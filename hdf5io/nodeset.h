/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * nodeset: a checkpoint on the nodes of a run, in memory or on local disks
 * (docs/FORMATS.md, "Local checkpoints"). Each node has a directory
 * HOME/step-%010d-NONCE with MANIFEST.json, the part that each of its ranks
 * writes (rank-R.f32), and copies of the parts of the partner's ranks. The
 * directories of one name on all nodes are a set. The set is whole if each part
 * has an intact copy on some node.
 *
 * A set is written under the temporary name .tmp-step-... . The ranks vote
 * before the directories get their names. Nothing is synced to a disk: a set is
 * for a restart after processes or nodes have died. The hashes show what is
 * damaged.
 *
 * Thread rule: one thread per call. Votes go through the callbacks.
 */
#ifndef CDDP_HDF5IO_NODESET_H
#define CDDP_HDF5IO_NODESET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint.h"

typedef struct hdf5io_nodeset {
    const char *home; /* of this run on this rank's node */
    /* Its votes, share, io, hashes and texts are used; not its directory. */
    const hdf5io_checkpoint_config_t *checkpoint;
    const int *nodes; /* [size]: the number of each rank's node */
    /* (optional) Votes among the partners: the ranks of two or three nodes that
     * send each other their parts. NULL: there are no copies. */
    const hdf5io_votes_t *partners;
    const int *members; /* [partners->size]: the partners, ascending */
    /* The nonce of the set that stays while a new one is written; 0: none. */
    uint64_t keep;
} hdf5io_nodeset_t;

/*
 * Write and publish a set. All sets in HOME, except for [keep], are deleted
 * first. *nonce becomes the nonce of the new set, which all nodes have
 * published then. After ERR_IO nothing was published, and [keep] is unchanged.
 * Collective; every rank gets the same result.
 */
err_code_t hdf5io_nodeset_write(const hdf5io_nodeset_t *set,
                                const hdf5io_progress_t *progress,
                                const hdf5io_tensor_t *tensors, int count,
                                uint64_t *nonce, err_t *err);

/* The set that was read. */
typedef struct hdf5io_nodeset_found {
    bool found;
    int teller; /* the lowest rank whose node has an intact manifest of it */
    uint64_t nonce;
} hdf5io_nodeset_found_t;

/*
 * Read [tensors] from the newest whole set of step [least] or later. out->found
 * is false if there is none; the tensors are then unchanged. Rank 0 logs one
 * line for each set that is not whole, and for each damaged part that another
 * copy replaces. info->path is the directory on this rank's node, which need
 * not exist there. The numbers of ranks and nodes may differ from those of the
 * run that wrote the set.
 *
 * ERR_CONFIG: the set belongs to another model. ERR_IO, ERR_DATA: a part that
 * was intact can no longer be read. After ERR_IO and ERR_DATA the tensors are
 * undefined. Collective; every rank gets the same result.
 */
err_code_t hdf5io_nodeset_read(const hdf5io_nodeset_t *set, int64_t least,
                               const hdf5io_tensor_t *tensors, int count,
                               hdf5io_nodeset_found_t *out,
                               hdf5io_checkpoint_info_t *info, err_t *err);

/* Delete all in [home] except for the set [keep] (0: none); a missing directory
 * is no failure. A failure is logged. Local; one rank of a node calls it. */
void hdf5io_nodeset_clean(const char *home, uint64_t keep);

/* ---- parts of the implementation ----------------------------------------- */

/* Bytes of the name of a set with NUL. */
#define HDF5IO_NODESET_NAME 64
/* A set by its name. */
typedef struct hdf5io_nodeset_name {
    int64_t step;
    uint64_t nonce;
} hdf5io_nodeset_name_t;

/* Write "step-%010d-NONCE" to [out]. Parse it; false: it is another name. */
void hdf5io_nodeset_print(hdf5io_nodeset_name_t name,
                          char out[HDF5IO_NODESET_NAME]);
bool hdf5io_nodeset_parse(const char *text, hdf5io_nodeset_name_t *out);

/* Is [home] a directory of this user, and no link? Otherwise a set in it is
 * not trusted. */
bool hdf5io_nodeset_own(const char *home);

/* The place of [rank] among the ranks of its node, from 0 on. *count becomes
 * the number of ranks of this node. */
int hdf5io_nodeset_place(const hdf5io_nodeset_t *set, int rank, int *count);

/* Name of the file with the part of [rank]; free() it. */
char *hdf5io_nodeset_part(int rank);

#endif
