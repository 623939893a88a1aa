/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Rank 0 of 1. No library is touched: a PMIx client without a server makes a
 * later MPI_Init crash. */
#include "boot/boot_backend.h"

/* No exchange: boot_exchange copies when there is one rank. */
static const boot_backend_t solo_backend = {
    .name = "solo",
};

err_code_t boot_solo_open(boot_t **out, err_t *err)
{
    return boot_new(&solo_backend, NULL, out, err);
}
