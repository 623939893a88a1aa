/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* For all backends: make a handle, and list ranks in a message. */
#include <stdio.h>

#include "base/mem.h"
#include "boot/boot_backend.h"

/* Maximum number of ranks named in one message; further ones are only counted.
 */
#define RANKS_NAMED 8

err_code_t boot_new(const boot_backend_t *backend, const boot_config_t *config,
                    boot_t **out, err_t *err)
{
    boot_t *boot = NULL;
    err_code_t rc = mem_new(boot_t, 1, "start-up", &boot, err);

    if (rc != ERR_OK)
        return rc;
    boot->backend = backend;
    boot->size = 1;
    boot->timeout = config == NULL ? 0 : config->timeout;
    *out = boot;
    return ERR_OK;
}

int boot_rank_list(const bool *odd, int size, char *out, size_t room)
{
    size_t used = 0;
    int count = 0, named = 0;

    for (int rank = 0; rank < size; rank++)
        count += odd[rank];
    out[0] = '\0';
    for (int rank = 0; rank < size && named < RANKS_NAMED; rank++) {
        if (!odd[rank])
            continue;
        const char *before = named > 0 ? ", " : count == 1 ? "rank " : "ranks ";
        int length = snprintf(out + used, room - used, "%s%d", before, rank);
        if (length < 0 || (size_t)length >= room - used)
            return count;
        used += (size_t)length;
        named++;
    }
    if (count > named)
        snprintf(out + used, room - used, " and %d more", count - named);
    return count;
}
