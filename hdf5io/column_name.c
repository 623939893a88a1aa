/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* How error sentences name a column: its file and the shape of a sample. */
#include <stdio.h>

#include "hdf5io/column.h"

char *hdf5io_column_shape(const hdf5io_column_t *column, char *out, size_t room)
{
    int length = snprintf(out, room, "[");

    for (int i = 0; i < column->ndim && (size_t)length < room; i++)
        length +=
            snprintf(out + length, room - (size_t)length, "%s%llu",
                     i == 0 ? "" : ", ", (unsigned long long)column->dims[i]);
    if ((size_t)length < room)
        snprintf(out + length, room - (size_t)length, "]");
    return out;
}

const char *hdf5io_column_source(const hdf5io_column_t *column)
{
    return column->source != NULL ? column->source : column->file;
}
