/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nn/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/numeric.h"

err_code_t nn_fail_at(tree_place_t place, err_t *err, const char *format, ...)
{
    char at[NN_PLACE_TEXT], text[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    numeric_vprint(text, sizeof text, format, args);
    va_end(args);
    tree_place_format(place, at, sizeof at);
    return err_set(err, ERR_CONFIG, "%s: %s", at, text);
}
