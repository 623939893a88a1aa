/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The interface of boot backends and their selection. Internal to this folder
 * and its tests. */
#ifndef CDDP_BOOT_BOOT_BACKEND_H
#define CDDP_BOOT_BOOT_BACKEND_H

#include "boot/boot.h"

typedef struct boot_backend {
    const char *name;

    /* See boot_exchange. Only called with size > 1. */
    err_code_t (*exchange)(boot_t *boot, const void *mine, size_t bytes,
                           void *all, err_t *err);

    /* Leave the job and free boot->state; the caller frees [boot]. */
    void (*close)(boot_t *boot);
} boot_backend_t;

struct boot {
    const boot_backend_t *backend;
    int rank;
    int size;
    double timeout;
    void *state; /* owned by the backend */
};

/* Make a handle; the backend fills the remaining fields. ERR_MEMORY. */
err_code_t boot_new(const boot_backend_t *backend, const boot_config_t *config,
                    boot_t **out, err_t *err);

typedef enum boot_kind {
    BOOT_KIND_SOLO,
    BOOT_KIND_PMIX,
    BOOT_KIND_SPAWN
} boot_kind_t;

/* Select the backend by environment variables, which [lookup] reads. ERR_CONFIG
 * if a step of several tasks was started without PMIx. */
err_code_t boot_choose(const char *(*lookup)(const char *name),
                       boot_kind_t *out, err_t *err);

/* Write a list of the ranks for which [odd] ([size] elements) is true to [out]:
 * "rank 3", or "ranks 1, 3, 5 and 7 more". Returns their number. */
int boot_rank_list(const bool *odd, int size, char *out, size_t room);

#endif
