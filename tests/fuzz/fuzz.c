/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

void fuzz_check(err_code_t rc, const err_t *err, const err_code_t *allowed)
{
    bool known = rc == ERR_OK;

    for (int i = 0; allowed[i] != ERR_OK; i++)
        known = known || rc == allowed[i];
    if (known && (rc == ERR_OK || (err->code == rc && err->text[0] != '\0')))
        return;
    fprintf(stderr, "fuzz: status %d, of the error %d with the sentence '%s'\n",
            (int)rc, (int)err->code, err->text);
    abort();
}
