/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

err_code_t cmd_output_finish(err_code_t rc, err_t *err)
{
    errno = 0;
    /* After an earlier write failed, fflush may have nothing to write and
     * succeed, but ferror still reports the failure. */
    if ((fflush(stdout) == 0 && !ferror(stdout)) || rc != ERR_OK)
        return rc;
    return err_set(err, ERR_IO, "cannot write to standard output%s%s",
                   errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
}
