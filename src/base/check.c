/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

void check_failed(const char *file, int line, const char *condition,
                  const char *format, ...)
{
    char text[ERR_TEXT_MAX], sentence[2 * ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(sentence, sizeof sentence, "%s:%d: check failed: %s: %s\n", file,
             line, condition, text);
    /* A single write, since other threads print, too. */
    (void)!write(STDERR_FILENO, sentence, strlen(sentence));
    abort();
}
