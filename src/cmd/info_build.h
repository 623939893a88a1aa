/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* How this build was made, and what Slurm offers it, for cddp-info. */
#ifndef CDDP_CMD_INFO_BUILD_H
#define CDDP_CMD_INFO_BUILD_H

#include "base/str.h"

/* Print the arguments of configure, compiler, prefix, and the plugins that
 * `srun --mpi=list` names. Blocks for at most 3 seconds, if srun hangs. */
void info_build_print(void);

/* Append the names in [said], the output of `srun --mpi=list`, to [out], with
 * blanks between them: "none pmix pmix_v4". Pure. */
void info_build_plugins(const char *said, str_buf_t *out);

#endif
