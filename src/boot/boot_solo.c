/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The backend for rank 0 of 1. It calls no library: a PMIx client without a
 * server would make a later MPI_Init crash. */
#include "boot/boot_backend.h"

/* No exchange function: with one rank, boot_exchange copies by itself. */
static const boot_backend_t solo_backend = {
    .name = "solo",
};

err_code_t boot_solo_open(boot_t **out, err_t *err)
{
    return boot_new(&solo_backend, NULL, out, err);
}
