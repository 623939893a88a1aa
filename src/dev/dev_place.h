/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * dev_place: which cores and which network cards are near a GPU, as the kernel
 * tells below /sys. Tests name another folder than /sys by $CDDP_SYSFS.
 */
#ifndef CDDP_DEV_DEV_PLACE_H
#define CDDP_DEV_DEV_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#define DEV_PLACE_NICS 16 /* further network cards are left out */

/* From near to far. */
typedef enum dev_near {
    DEV_NEAR_SWITCH,  /* below the same PCI switch */
    DEV_NEAR_NUMA,    /* on the same NUMA node */
    DEV_NEAR_MACHINE, /* elsewhere in the machine, or not known */
} dev_near_t;

typedef struct dev_nic {
    char name[32]; /* "mlx5_0" */
    int numa;      /* -1: not known */
    dev_near_t near;
} dev_nic_t;

typedef struct dev_place {
    int numa;       /* NUMA node; -1: not known, or only one */
    char cpus[256]; /* near cores, such as "0-15,32-47"; "": not known */
    dev_nic_t nics[DEV_PLACE_NICS]; /* InfiniBand cards, by name */
    int nic_count;
    bool peermem; /* the kernel lets network cards access GPUs (nvidia_peermem)
                   */
} dev_place_t;

/* Describe the place of the GPU at the PCI address [bus] ("0000:17:00.0"). What
 * /sys does not tell stays unknown. */
void dev_place_find(const char *bus, dev_place_t *out);

#endif
