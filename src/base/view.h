/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* view: the place of one parameter in an arena, as the reducer and the
 * optimizer see it (they know no layers), and ranges of elements. */
#ifndef CDDP_BASE_VIEW_H
#define CDDP_BASE_VIEW_H

#include <stddef.h>

typedef struct view {
    const char *name; /* "conv1.weight" */
    size_t offset;    /* in elements */
    size_t count;
    int ndim;
    size_t rows; /* size of the first dimension; 0: unknown, or a scalar */
    int unit; /* consecutive views with the same number belong to one layer, so
                 their gradients are finished at the same time; 0: unknown */
} view_t;

/* Elements [first, first + count) of an arena. */
typedef struct view_range {
    size_t first, count;
} view_range_t;

#endif
