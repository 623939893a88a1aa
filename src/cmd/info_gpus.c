/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/info_gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "dev/dev_links.h"
#include "dev/dev_place.h"

#define GPU "cuda"

/* All that is known of the GPUs that this rank sees. */
typedef struct gpus {
    int count; /* number of GPUs described below */
    dev_info_t info[DEV_LINKS_MAX];
    dev_place_t place[DEV_LINKS_MAX];
    dev_links_t links[DEV_LINKS_MAX];
} gpus_t;

static void numa_add(str_buf_t *text, int numa)
{
    if (numa < 0)
        str_buf_add(text, ", numa unknown");
    else
        str_buf_add(text, ", numa %d", numa);
}

/* ---- one GPU ------------------------------------------------------------- */

static void nics_add(const dev_place_t *place, str_buf_t *text)
{
    static const char *const near[] = {"same switch", "same numa node", "far"};

    for (int i = 0; i < place->nic_count; i++)
        str_buf_add(text, "%s%s (%s)", i == 0 ? ", nic " : ", ",
                    place->nics[i].name, near[place->nics[i].near]);
    if (place->nic_count == 0)
        str_buf_add(text, ", no InfiniBand card");
}

static void gpu_add(const gpus_t *gpus, int i, str_buf_t *text)
{
    const dev_info_t *info = &gpus->info[i];
    const dev_place_t *place = &gpus->place[i];

    str_buf_add(text, "    gpu %d: %s, %s, %s", i, info->name, info->uuid,
                info->bus);
    numa_add(text, place->numa);
    nics_add(place, text);
    str_buf_add(text, ", GPUDirect RDMA %s\n",
                !gpus->links[i].rdma ? "no"
                : place->peermem     ? "yes"
                                     : "only by dma-buf: nvidia_peermem is not "
                                       "loaded");
    if (info->lacks[0] != '\0')
        str_buf_add(text, "    gpu %d cannot be used: %s\n", i, info->lacks);
}

/* ---- links --------------------------------------------------------------- */

/* Add one line for each kind of link: one for each pair of 16 GPUs would be 120
 * lines. */
static void links_add(const gpus_t *gpus, str_buf_t *text)
{
    static const char *const kinds[] = {"through the host", "direct by PCI",
                                        "direct by NVLink"};

    for (int kind = DEV_LINK_NVLINK; kind >= DEV_LINK_HOST; kind--) {
        int pairs = 0;

        for (int a = 0; a < gpus->count; a++)
            for (int b = a + 1; b < gpus->count; b++)
                if ((int)gpus->links[a].to[b] == kind)
                    str_buf_add(text, "%s%d-%d",
                                pairs++ == 0 ? "    gpus " : " ", a, b);
        if (pairs > 0)
            str_buf_add(text, ": %s\n", kinds[kind]);
    }
}

/* Add the transports that NCCL can choose from here. NCCL itself looks for them
 * when it is opened; with NCCL_DEBUG=INFO it prints its choice. */
static void nccl_add(const gpus_t *gpus, str_buf_t *text)
{
    bool nvlink = false, pci = false, cards = false, rdma = false;

    for (int a = 0; a < gpus->count; a++) {
        for (int b = 0; b < gpus->count; b++) {
            nvlink = nvlink || gpus->links[a].to[b] == DEV_LINK_NVLINK;
            pci = pci || gpus->links[a].to[b] == DEV_LINK_PEER;
        }
        cards = cards || gpus->place[a].nic_count > 0;
        rdma = rdma || gpus->links[a].rdma;
    }
    str_buf_add(text, "    nccl: on this node %s; to others %s\n",
                nvlink             ? "P2P by NVLink"
                : pci              ? "P2P by PCI"
                : gpus->count == 1 ? "SHM, as this rank sees one GPU only"
                                   : "SHM",
                !cards ? "NET/Socket"
                : rdma ? "NET/IB with GPUDirect"
                       : "NET/IB through the host");
}

/* ---- all GPUs ------------------------------------------------------------ */

/* Find everything; *count is the number of visible GPUs. */
static err_code_t gpus_find(gpus_t *gpus, int *count, err_t *err)
{
    err_code_t rc = dev_list(GPU, gpus->info, DEV_LINKS_MAX, count, err);

    if (rc != ERR_OK)
        return rc;
    gpus->count = *count < DEV_LINKS_MAX ? *count : DEV_LINKS_MAX;
    for (int i = 0; rc == ERR_OK && i < gpus->count; i++) {
        dev_place_find(gpus->info[i].bus, &gpus->place[i]);
        rc = dev_links_find(GPU, i, &gpus->links[i], err);
    }
    return rc;
}

void info_gpus(char *out, size_t room)
{
    gpus_t *gpus = calloc(1, sizeof *gpus);
    str_buf_t text = {0};
    int count = 0;
    err_t err = ERR_INIT;

    if (gpus == NULL) {
        snprintf(out, room, "    gpus: out of memory\n");
        return;
    }
    if (gpus_find(gpus, &count, &err) != ERR_OK) {
        str_buf_add(&text, "    no gpu: %s\n", err.text);
    } else {
        for (int i = 0; i < gpus->count; i++)
            gpu_add(gpus, i, &text);
        if (count > gpus->count)
            str_buf_add(&text, "    and %d more gpus\n", count - gpus->count);
        links_add(gpus, &text);
        nccl_add(gpus, &text);
    }
    snprintf(out, room, "%s", text.text != NULL ? text.text : "");
    str_buf_free(&text);
    free(gpus);
}
