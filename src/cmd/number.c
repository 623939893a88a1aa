/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/number.h"

#include <stdint.h>

#include "base/str.h"

err_code_t cmd_number_take(const char *option, const char *what, int least,
                           int most, const char *text, int *out, err_t *err)
{
    int64_t number;

    if (!str_to_int(text, &number) || number < least || number > most)
        return err_set(err, ERR_USAGE,
                       "%s: expected a number of %s from %d to %d, found "
                       "\"%s\"",
                       option, what, least, most, text);
    *out = (int)number;
    return ERR_OK;
}
