/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a backend of boot provides, and how one is chosen. For files of this
 * folder and their tests only. */
#ifndef CDDP_BOOT_BOOT_BACKEND_H
#define CDDP_BOOT_BOOT_BACKEND_H

#include "boot/boot.h"

typedef struct boot_backend {
    const char *name;

    /* See boot_exchange. Called with size > 1 only. */
    err_code_t (*exchange)(boot_t *boot, const void *mine, size_t bytes,
                           void *all, err_t *err);

    /* Leave and free what [boot->state] holds; [boot] itself is freed by the
     * caller. */
    void (*close)(boot_t *boot);
} boot_backend_t;

struct boot {
    const boot_backend_t *backend;
    int rank;
    int size;
    double timeout;
    void *state; /* the backend's own */
};

/* Make a handle; ERR_MEMORY. The backend fills in the rest. */
err_code_t boot_new(const boot_backend_t *backend, const boot_config_t *config,
                    boot_t **out, err_t *err);

typedef enum boot_kind { BOOT_KIND_SOLO, BOOT_KIND_PMIX } boot_kind_t;

/* Which backend does the environment that [lookup] reads ask for? ERR_CONFIG if
 * a step of several tasks was started without PMIx. */
err_code_t boot_choose(const char *(*lookup)(const char *name),
                       boot_kind_t *out, err_t *err);

/* Append "rank 3", or "ranks 1, 3, 5 and 7 more": those of [size] ranks for
 * which [odd] is true. Returns how many there are. */
int boot_rank_list(const bool *odd, int size, char *out, size_t room);

#endif
