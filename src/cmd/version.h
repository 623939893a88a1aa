/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What `--version` of every command prints. */
#ifndef CDDP_CMD_VERSION_H
#define CDDP_CMD_VERSION_H

/* Print to standard output: version and build id of [command], features, and
 * the versions of the libraries as they are loaded now. */
void cmd_version_print(const char *command);

/* Libraries and CPU model on one line, for the manifest of checkpoints; the
 * caller frees with free(). */
char *cmd_version_line(void);

#endif
