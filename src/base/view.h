/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* view: one parameter's place in an arena, as the reducer and the optimizer
 * see it (they know no layers), and runs of its elements. */
#ifndef CDDP_BASE_VIEW_H
#define CDDP_BASE_VIEW_H

#include <stddef.h>

typedef struct view {
    const char *name; /* "conv1.weight" */
    size_t offset;    /* elements */
    size_t count;
    int ndim;
    size_t rows; /* the first dimension; 0: not known, or no dimension */
    int unit;    /* neighbours with the same number are finished at the same
                    time (they are of one layer); 0: not known */
} view_t;

/* Elements [first, first + count) of an arena. */
typedef struct view_range {
    size_t first, count;
} view_range_t;

#endif
