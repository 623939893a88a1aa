/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * index: the content of .cddp-index, the file beside shards that keeps their
 * facts (catalogue.h), so that a later start need not open them.
 * docs/FORMATS.md specifies it. A section has the facts of one dataset: some
 * shards and some fields of them. Pure functions.
 */
#ifndef CDDP_HDF5IO_INDEX_H
#define CDDP_HDF5IO_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define INDEX_NAME ".cddp-index"
#define INDEX_SECTIONS_MAX 16

typedef struct index_section {
    uint64_t key;
    const void *packed; /* see hdf5io_catalogue_pack; not owned */
    size_t bytes;
} index_section_t;

typedef struct hdf5io_index {
    index_section_t sections[INDEX_SECTIONS_MAX];
    int count;
} hdf5io_index_t;

/* Find the sections of a file of [bytes] bytes at [data], into which the
 * sections point. Any bytes may be given; the content of a section is not
 * checked. ERR_DATA: the file is damaged, or no index; the sentence calls the
 * file "it". */
err_code_t hdf5io_index_parse(const void *data, size_t bytes,
                              hdf5io_index_t *out, err_t *err);

/* The section with [key]; NULL: there is none. */
const index_section_t *hdf5io_index_find(const hdf5io_index_t *index,
                                         uint64_t key);

/* Make [section] the first one. It replaces the section with the same key. If
 * there is no such section and no room, it replaces the last section. */
void hdf5io_index_put(hdf5io_index_t *index, const index_section_t *section);

/* Drop sections, beginning with those that were written first, until the file
 * has at most [most] bytes, or no section is left. */
void hdf5io_index_shorten(hdf5io_index_t *index, size_t most);

/* The bytes of a file with these sections; the caller frees them with mem_free.
 * ERR_MEMORY. */
err_code_t hdf5io_index_print(const hdf5io_index_t *index, void **out,
                              size_t *bytes, err_t *err);

#endif
