/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stddef.h>

#include "ddp/ddp.h"

static const char *const ddp_backends[] = {"auto", "self", "threads",
                                           "ucx",  "nccl", NULL};

static const char *const ddp_zeros[] = {"0", "1", NULL};

#define LOCAL(field) offsetof(ddp_config_t, local_sgd.field)

/* Like those of all sections, these offsets count from the start of
 * ddp_config_t. */
static const opt_row_t local_rows[] = {
    {.name = "period",
     .type = OPT_INT,
     .offset = LOCAL(period),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .unit = "steps",
     .help = "average parameters and optimizer state every N steps; 0: no "
             "local SGD"},
    {.name = "start",
     .type = OPT_INT,
     .offset = LOCAL(start),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .unit = "steps",
     .help = "number of updates of the run before local SGD begins"},
    {.name = NULL}};

const opt_row_t ddp_options[] = {
    {.name = "backend",
     .type = OPT_CHOICE,
     .offset = offsetof(ddp_config_t, backend),
     .fallback = "auto",
     .choices = ddp_backends,
     .free = true,
     .help = "how ranks communicate; auto: threads with --local, else ucx, and "
             "on GPUs nccl for gradients. On GPUs ucx is slower: gradients "
             "pass through the host"},
    {.name = "comm_table",
     .type = OPT_TEXT,
     .offset = offsetof(ddp_config_t, comm_table),
     .fallback = "",
     .free = true,
     .help = "table that chooses the algorithms of collectives, as written by "
             "'cddp-bench allreduce --tune'; empty: the built-in table"},
    {.name = "bucket_cap_mb",
     .type = OPT_REAL,
     .offset = offsetof(ddp_config_t, bucket_cap_mb),
     .fallback = "25",
     .min = 0.001,
     .max = 4096,
     .unit = "MiB",
     .free = true,
     .help = "largest bucket; a larger parameter is a bucket of its own"},
    {.name = "first_bucket_mb",
     .type = OPT_REAL,
     .offset = offsetof(ddp_config_t, first_bucket_mb),
     .fallback = "1",
     .min = 0.001,
     .max = 4096,
     .unit = "MiB",
     .free = true,
     .help = "largest first bucket; a small one starts its reduction early, "
             "overlapped with backward"},
    {.name = "last_bucket_mb",
     .type = OPT_REAL,
     .offset = offsetof(ddp_config_t, last_bucket_mb),
     .fallback = "1",
     .min = 0.001,
     .max = 4096,
     .unit = "MiB",
     .free = true,
     .help = "largest last bucket; the bucket before it may be twice as "
             "large, and so on. The last reduction cannot be overlapped with "
             "backward"},
    {.name = "check_every",
     .type = OPT_EVERY,
     .offset = offsetof(ddp_config_t, check_every),
     .fallback = "never",
     .free = true,
     .help = "compare the ranks' parameters every N steps ('100 steps'), and "
             "stop if they differ"},
    {.name = "local_sgd",
     .type = OPT_SECTION,
     .fallback = "",
     .rows = local_rows,
     .help = "ranks update with their own gradients, and average parameters "
             "every few steps"},
    {.name = "hook",
     .type = OPT_TREE,
     .offset = offsetof(ddp_config_t, hook),
     .fallback = "",
     .help = "comm hook: what is reduced instead of the plain gradients; "
             "absent: none (see the tables of comm hooks)"},
    {.name = "zero",
     .type = OPT_CHOICE,
     .offset = offsetof(ddp_config_t, zero),
     .fallback = "0",
     .choices = ddp_zeros,
     .free = true,
     .help = "1: each rank keeps and updates only its share of the optimizer's "
             "state (ZeRO stage 1)"},
    {.name = NULL}};

const char *ddp_backend_name(const ddp_config_t *config)
{
    return ddp_backends[config->backend];
}
