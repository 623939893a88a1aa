/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/err.h"

/* The functions themselves are defined here, not the analyzer's macros. */
#undef err_set
#undef err_set_peer

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/numeric.h"
#include "base/str.h"

/* Format a sentence into [room] bytes at [out]. Names in it may come from
 * anywhere, so control characters are made visible here, once. */
__attribute__((format(printf, 3, 0))) static void
err_vprint(char *out, size_t room, const char *format, va_list args)
{
    char raw[ERR_TEXT_MAX];

    numeric_vprint(raw, sizeof raw, format, args);
    str_visible(raw, out, room, false);
}

__attribute__((format(printf, 4, 0))) static void
err_vfill(err_t *err, err_code_t code, int culprit, const char *format,
          va_list args)
{
    if (err == NULL)
        return;
    err->code = code;
    err->culprit = culprit;
    err->host[0] = '\0';
    err_vprint(err->text, sizeof err->text, format, args);
}

err_code_t err_set(err_t *err, err_code_t code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_vfill(err, code, -1, format, args);
    va_end(args);
    return code;
}

err_code_t err_set_peer(err_t *err, int culprit, const char *host,
                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_vfill(err, ERR_PEER, culprit, format, args);
    va_end(args);
    if (err != NULL && host != NULL)
        snprintf(err->host, sizeof err->host, "%s", host);
    return ERR_PEER;
}

err_code_t err_copy(err_t *err, const err_t *from)
{
    if (err != NULL)
        *err = *from;
    return from->code;
}

err_code_t err_prefix(err_t *err, const char *format, ...)
{
    char old[ERR_TEXT_MAX];
    va_list args;
    size_t length;

    if (err == NULL)
        return ERR_OK;
    memcpy(old, err->text, sizeof old);
    va_start(args, format);
    err_vprint(err->text, sizeof err->text, format, args);
    va_end(args);
    length = strlen(err->text);
    snprintf(err->text + length, sizeof err->text - length, ": %s", old);
    return err->code;
}

err_code_t err_suffix(err_t *err, const char *format, ...)
{
    size_t length;
    va_list args;

    if (err == NULL)
        return ERR_OK;
    length = strlen(err->text);
    if (length + 2 < sizeof err->text) {
        memcpy(err->text + length, "; ", 3);
        va_start(args, format);
        err_vprint(err->text + length + 2, sizeof err->text - length - 2,
                   format, args);
        va_end(args);
    }
    return err->code;
}

const char *err_code_text(err_code_t code)
{
    switch (code) {
#define ERR_CASE(name, status, requeue, text) \
    case ERR_##name:                          \
        return text;
        ERR_MAP(ERR_CASE)
#undef ERR_CASE
    }
    return "unknown status";
}

const char *err_code_name(err_code_t code)
{
    switch (code) {
#define ERR_CASE(name, status, requeue, text) \
    case ERR_##name:                          \
        return #name;
        ERR_MAP(ERR_CASE)
#undef ERR_CASE
    }
    return "?";
}

bool err_code_requeue(err_code_t code)
{
    switch (code) {
#define ERR_CASE(name, status, requeue, text) \
    case ERR_##name:                          \
        return requeue;
        ERR_MAP(ERR_CASE)
#undef ERR_CASE
    }
    return false;
}
