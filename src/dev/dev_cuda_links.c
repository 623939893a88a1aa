/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdio.h>

#include "dev/dev_cuda_priv.h"

/* NVLink is recognised by atomic operations between GPUs: NVLink always has
 * them, PCI only where the root complex passes them on. */
static err_code_t link_find(int from, int to, const char *what, dev_link_t *out,
                            err_t *err)
{
    int direct = 0, atomics = 0;

    CUDA_CHECK(cudaDeviceCanAccessPeer(&direct, from, to), what, err);
    if (direct)
        CUDA_CHECK(cudaDeviceGetP2PAttribute(
                       &atomics, cudaDevP2PAttrNativeAtomicSupported, from, to),
                   what, err);
    *out = !direct ? DEV_LINK_HOST : atomics ? DEV_LINK_NVLINK : DEV_LINK_PEER;
    return ERR_OK;
}

err_code_t dev_cuda_links(int index, dev_links_t *out, err_t *err)
{
    dev_links_t links = {.count = 0};
    char what[32];
    int count = 0, rdma = 0;
    err_code_t rc = dev_cuda_count(&count, err);

    if (rc != ERR_OK)
        return rc;
    snprintf(what, sizeof what, "GPU %d", index);
    CUDA_CHECK(
        cudaDeviceGetAttribute(&rdma, cudaDevAttrGPUDirectRDMASupported, index),
        what, err);
    links.rdma = rdma != 0;
    for (int to = 0; rc == ERR_OK && to < count && to < DEV_LINKS_MAX; to++) {
        if (to != index)
            rc = link_find(index, to, what, &links.to[to], err);
        links.count++;
    }
    if (rc == ERR_OK)
        *out = links;
    return rc;
}
