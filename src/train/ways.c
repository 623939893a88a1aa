/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/ways.h"

#include "hdf5io/dataset_tell.h"

/* Append the ways of a field: "pread: 5 of 8 shards; H5Dread, as only HDF5
 * undoes its filters: 3 of 8 shards". */
static void ways_add(const int counts[HDF5IO_WAYS], str_buf_t *text)
{
    bool first = true;
    int shards = 0;

    for (int w = 0; w < HDF5IO_WAYS; w++)
        shards += counts[w];
    for (int w = 0; w < HDF5IO_WAYS; w++) {
        const hdf5io_way_t way = (hdf5io_way_t)w;
        const char *why = hdf5io_way_why(way);

        if (counts[w] == 0)
            continue;
        str_buf_add(text, "%s%s", first ? "" : "; ", hdf5io_way_name(way));
        if (why != NULL)
            str_buf_add(text, ", as %s", why);
        if (counts[w] < shards)
            str_buf_add(text, ": %d of %d shards", counts[w], shards);
        first = false;
    }
}

/* Append the memory that the chunks in use at a time need. */
static void memory_add(const char *name, const train_data_t *data,
                       str_buf_t *text)
{
    const hdf5io_dataset_t *dataset = data->dataset;
    const uint64_t all = hdf5io_dataset_chunks_most(dataset);
    const uint64_t bound = hdf5io_dataset_chunks_bound(dataset);
    const int64_t units = hdf5io_sampler_units_used(data->sampler);
    const uint64_t need = hdf5io_dataset_units_most(dataset, units);
    char needed[32], there[32];

    if (need == 0)
        return;
    str_buf_add(text, "  %s chunks in use at a time: %s per rank (data.lanes)",
                name,
                str_bytes(all < bound && all < need ? all : need, needed,
                          sizeof needed));
    str_bytes(bound, there, sizeof there);
    if (need <= bound || all < bound)
        str_buf_add(text, "; data.memory holds %s\n", there);
    else
        str_buf_add(text,
                    ", but data.memory holds only %s: chunks are decoded "
                    "again; raise data.memory, or lower data.lanes\n",
                    there);
}

void train_ways_add(const char *name, const train_data_t *data, str_buf_t *text)
{
    const hdf5io_dataset_t *dataset = data->dataset;
    int counts[HDF5IO_WAYS], fields, inputs;

    if (dataset == NULL)
        return;
    inputs = hdf5io_dataset_inputs(dataset);
    fields = inputs + hdf5io_dataset_targets(dataset);
    for (int k = 0; k < fields; k++) {
        hdf5io_dataset_ways(dataset, k, counts);
        str_buf_add(text, "  %s %s %s: ", name, k < inputs ? "input" : "target",
                    hdf5io_dataset_path(dataset, k));
        ways_add(counts, text);
        hdf5io_dataset_transform_say(dataset, k, text);
        str_buf_add(text, "\n");
    }
    if (data->readers > 0)
        str_buf_add(text, "  %s: %d thread%s read%s ahead\n", name,
                    data->readers, data->readers == 1 ? "" : "s",
                    data->readers == 1 ? "s" : "");
    memory_add(name, data, text);
}
