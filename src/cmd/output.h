/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Standard output of a command. */
#ifndef CDDP_CMD_OUTPUT_H
#define CDDP_CMD_OUTPUT_H

#include "base/err.h"

/* Call this at the end of a command whose result is [code]. If [code] is ERR_OK
 * and any of its output could not be written, sets and returns ERR_IO;
 * otherwise returns [code]. */
err_code_t cmd_output_finish(err_code_t code, err_t *err);

#endif
