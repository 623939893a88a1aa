/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * nodeset_copy: copies of the parts of a node set on partner nodes. If two
 * nodes are partners, each node keeps a copy of the parts of the other node. If
 * three nodes are partners, each node keeps a copy of the parts of the node
 * before it. So, if a node is lost, another node has its parts. Part of
 * nodeset.
 */
#ifndef CDDP_HDF5IO_NODESET_COPY_H
#define CDDP_HDF5IO_NODESET_COPY_H

#include "base/err.h"
#include "hdf5io/checkpoint_io.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_share.h"
#include "hdf5io/nodeset.h"

typedef struct hdf5io_nodeset_copy {
    const hdf5io_nodeset_t *set; /* with partners */
    const hdf5io_io_t *io;
    const char *directory; /* of the set, on this rank's node */
    /* Names, sizes and hashes of all parts are known. */
    const hdf5io_manifest_t *manifest;
    const hdf5io_share_t *share;
} hdf5io_nodeset_copy_t;

/* Send this rank's part to the partners, and write copies of the parts that
 * this rank keeps for them. ERR_IO also if a part arrives with another hash.
 * Collective over the partners; a rank with an error takes part in all
 * exchanges. */
err_code_t hdf5io_nodeset_copy(const hdf5io_nodeset_copy_t *copy, err_t *err);

/* Does the rank members[keeper] keep a copy of the part of members[member]?
 * Pure. */
bool hdf5io_nodeset_keeps(const hdf5io_nodeset_t *set, int keeper, int member);

#endif
