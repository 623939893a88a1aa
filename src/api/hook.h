/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Comm hooks of a program, converted to tables for the reducer. */
#ifndef CDDP_API_HOOK_H
#define CDDP_API_HOOK_H

#include "cddp/hook.h"
#include "ddp/hook.h"
#include "dev/dev.h"

/* A program's hook, and the device of the reducer; NULL: the CPU. */
typedef struct api_hook {
    const cddp_hook_t *hook;
    const dev_device_t *dev;
} api_hook_t;

typedef struct api_hooks {
    api_hook_t *hooks;
    ddp_hook_ops_t *tables;
    const ddp_hook_ops_t **list; /* ended by NULL; NULL: there are none */
} api_hooks_t;

/* Wrap [hooks] (ended by NULL; NULL: none) in tables for the reducer, which
 * works on [dev]. [hooks], [dev] and [out] must outlive the reducer. Free [out]
 * with api_hooks_close. */
err_code_t api_hooks_open(const cddp_hook_t *const *hooks,
                          const dev_device_t *dev, api_hooks_t *out,
                          err_t *err);
void api_hooks_close(api_hooks_t *hooks);

#endif
