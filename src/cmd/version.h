/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Version and build: the output of `--version` of every command. */
#ifndef CDDP_CMD_VERSION_H
#define CDDP_CMD_VERSION_H

/* Print version and build id of [command], the features, and the versions of
 * the libraries as loaded to standard output. */
void cmd_version_print(const char *command);

/* The id of this build: equal ids, equal sources, configuration and compilers.
 */
const char *cmd_version_build(void);

/* One line with the versions of oneDNN and UCX, the CPU model and the
 * instruction set, for the manifest of checkpoints. The caller frees it with
 * free(). */
char *cmd_version_line(void);

#endif
