/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* dev_links: how a GPU reaches the others that are visible. */
#ifndef CDDP_DEV_DEV_LINKS_H
#define CDDP_DEV_DEV_LINKS_H

#include "dev/dev.h"

#define DEV_LINKS_MAX 16 /* links to further GPUs are left out */

typedef enum dev_link {
    DEV_LINK_HOST,  /* through the host's memory */
    DEV_LINK_PEER,  /* directly over PCI */
    DEV_LINK_NVLINK /* directly over NVLink */
} dev_link_t;

typedef struct dev_links {
    int count;                    /* of [to] */
    dev_link_t to[DEV_LINKS_MAX]; /* to the GPU with this index */
    bool rdma; /* a network card can access its memory (GPUDirect) */
} dev_links_t;

/* Find the links of device [index] of [backend], without opening the device.
 * ERR_UNAVAILABLE: there is no such device, or the backend knows no links. */
err_code_t dev_links_find(const char *backend, int index, dev_links_t *out,
                          err_t *err);

#endif
