/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/relay.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

err_code_t train_relay(comm_group_t *group, void *data, const size_t *cuts,
                       err_t *err)
{
    const size_t size = (size_t)comm_group_size(group);
    size_t *elems = NULL;
    err_code_t rc;

    rc = mem_new(size_t, size + 1, "reading a checkpoint", &elems, err);
    if (rc != ERR_OK) {
        comm_group_fail(group, err);
        return rc;
    }
    for (size_t r = 0; r <= size; r++) {
        check(cuts[r] % sizeof(int32_t) == 0, "a range begins at byte %zu",
              cuts[r]);
        elems[r] = cuts[r] / sizeof(int32_t);
    }
    rc = comm_allgather_ranges(group, data, elems, COMM_INT32, err);
    mem_free(elems);
    return rc;
}

bool train_relay_together(const comm_group_t *group)
{
    return strcmp(comm_group_backend(group), "threads") == 0;
}
