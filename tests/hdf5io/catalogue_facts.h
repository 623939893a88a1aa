/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* catalogue_facts: compares the facts of a shard that two catalogues have. */
#ifndef CDDP_TESTS_HDF5IO_CATALOGUE_FACTS_H
#define CDDP_TESTS_HDF5IO_CATALOGUE_FACTS_H

#include <criterion/criterion.h>

#include "hdf5io/catalogue.h"

static inline void catalogue_column_compare(const catalogue_column_t *got,
                                            const catalogue_column_t *want)
{
    cr_assert_eq(got->type.kind, want->type.kind);
    cr_assert_eq(got->type.swap, want->type.swap);
    cr_assert_eq(got->ndim, want->ndim);
    cr_assert_eq(got->band, want->band);
    cr_assert_eq(got->way, want->way);
    cr_assert_eq(got->located, want->located);
    cr_assert_eq(got->linked, want->linked);
    for (int d = 0; d < want->ndim; d++)
        cr_assert_eq(got->dims[d], want->dims[d]);
}

/* Assert that [got] and [want] are equal, of a shard with [fields] columns. */
static inline void catalogue_facts_compare(const catalogue_facts_t *got,
                                           const catalogue_facts_t *want,
                                           int fields)
{
    cr_assert_eq(got->bytes, want->bytes);
    cr_assert_eq(got->changed, want->changed);
    cr_assert_eq(got->inode, want->inode);
    cr_assert_eq(got->place, want->place);
    cr_assert_eq(got->rows, want->rows);
    cr_assert_eq(got->cached, want->cached);
    cr_assert_eq(got->digested, want->digested);
    for (int k = 0; k < fields; k++) {
        cr_assert_eq(got->offsets[k], want->offsets[k]);
        if (want->digested)
            cr_assert_eq(got->digests[k], want->digests[k]);
        catalogue_column_compare(&got->columns[k], &want->columns[k]);
    }
}

#endif
