/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-srun, and those that it makes of it. */
#ifndef CDDP_CMD_SRUN_ARGS_H
#define CDDP_CMD_SRUN_ARGS_H

#include <stdbool.h>

#include "base/err.h"
#include "slurm/nodes.h"

#define SRUN_OPTIONS_MOST 64

/* Seconds for which srun may wait for busy nodes when a step is started
 * again. */
#define SRUN_BUSY_PATIENCE "10"

typedef struct srun_args {
    bool help, version;
    const char *program;                    /* "cddp-train", or --program */
    const char *options[SRUN_OPTIONS_MOST]; /* of srun: each --srun */
    int option_count;
    char **rest; /* arguments of the program */
    int rest_count;
} srun_args_t;

/* Parse [argv]: options of cddp-srun come first, and everything from the first
 * other word or unknown option on goes to the program. Texts point into
 * [argv]. ERR_USAGE. */
err_code_t srun_args_parse(int argc, char **argv, srun_args_t *out, err_t *err);

/* A command line that grows; texts are copies. */
typedef struct srun_line {
    char **args; /* ended by NULL */
    int count;
} srun_line_t;

void srun_line_free(srun_line_t *line);

/* `program --print-rundir ARGUMENTS`. */
srun_line_t srun_line_rundir(const srun_args_t *args);

/* How a step is started. */
typedef struct srun_size {
    const slurm_nodes_t *nodes; /* of the allocation */
    int tasks_per_node;         /* 0: srun decides, and all nodes are used */
    bool again;                 /* not the first step of this life of the job */
} srun_size_t;

/* `srun --mpi=pmix OPTIONS program ARGUMENTS`, without the nodes to avoid. */
srun_line_t srun_line_step(const srun_args_t *args, const srun_size_t *size);

extern const char srun_args_help[];

#endif
