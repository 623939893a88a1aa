/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/way.h"

#include <stddef.h>

static const struct {
    const char *name, *why;
} ways[HDF5IO_WAYS] = {
    [HDF5IO_WAY_PREAD] = {"pread", NULL},
    [HDF5IO_WAY_CHUNKS] = {"chunks", NULL},
    [HDF5IO_WAY_MANY] = {"chunks", "this HDF5 lists so many chunks "
                                   "slowly, so it reads their bytes"},
    [HDF5IO_WAY_MPI] = {"mpi", "data.io is mpi"},
    [HDF5IO_WAY_TYPE] = {"H5Dread", "HDF5 converts numbers of this type"},
    [HDF5IO_WAY_EXTERNAL] = {"H5Dread", "it is in several external files"},
    [HDF5IO_WAY_COMPACT] = {"H5Dread", "its layout is compact"},
    [HDF5IO_WAY_VIRTUAL] = {"H5Dread", "it is virtual"},
    [HDF5IO_WAY_UNWRITTEN] = {"H5Dread", "some of it was never written"},
    [HDF5IO_WAY_FILTER] = {"H5Dread", "only HDF5 undoes its filters"},
    [HDF5IO_WAY_LARGE] = {"H5Dread",
                          "its chunks, or rows of them, are very large"},
    [HDF5IO_WAY_EDGES] = {"H5Dread", "its chunks at the edges have no filters"},
    [HDF5IO_WAY_PLACES] = {"H5Dread", "HDF5 does not say where its chunks "
                                      "are"},
    [HDF5IO_WAY_ASKED] = {"H5Dread", NULL},
    [HDF5IO_WAY_ROWS] = {"pread in chunks", NULL},
};

bool hdf5io_way_decodes(hdf5io_way_t way)
{
    return way == HDF5IO_WAY_CHUNKS || way == HDF5IO_WAY_MANY;
}

const char *hdf5io_way_name(hdf5io_way_t way)
{
    return ways[way].name;
}

const char *hdf5io_way_why(hdf5io_way_t way)
{
    return ways[way].why;
}
