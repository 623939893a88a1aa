/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Standard output of a command. */
#ifndef CDDP_CMD_OUTPUT_H
#define CDDP_CMD_OUTPUT_H

#include "base/err.h"

/* At the end of a command whose outcome is [code]: has all that it printed been
 * taken, from the first line on? [code]; ERR_IO with a sentence if that was
 * ERR_OK and it has not. */
err_code_t cmd_output_finish(err_code_t code, err_t *err);

#endif
