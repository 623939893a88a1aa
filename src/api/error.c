/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Errors and versions. Public and internal error codes have the same numbers,
 * since both are exit statuses. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "cddp/version.h"

_Static_assert((int)CDDP_OK == (int)ERR_OK && (int)CDDP_USAGE == ERR_USAGE &&
                   (int)CDDP_DATA == ERR_DATA &&
                   (int)CDDP_UNAVAILABLE == ERR_UNAVAILABLE &&
                   (int)CDDP_DIVERGED == ERR_DIVERGED &&
                   (int)CDDP_MEMORY == ERR_MEMORY &&
                   (int)CDDP_BUSY == ERR_BUSY && (int)CDDP_IO == ERR_IO &&
                   (int)CDDP_REQUEUE == ERR_REQUEUE &&
                   (int)CDDP_PEER == ERR_PEER && (int)CDDP_CONFIG == ERR_CONFIG,
               "the codes of both sides are one");
_Static_assert(CDDP_TEXT_MAX == ERR_TEXT_MAX && CDDP_HOST_MAX == ERR_HOST_MAX,
               "sentences are copied whole");

/* A library prints nothing unless the program asks for it, so log lines are
 * dropped from the moment at which it is loaded. The constructor is in this
 * file because every call that can fail needs this file, so the linker always
 * includes it. */
__attribute__((constructor)) static void silent_begin(void)
{
    api_log_drop();
}

cddp_code_t api_answer(err_code_t rc, const err_t *err, cddp_error_t *error)
{
    if (rc != ERR_OK && error != NULL) {
        error->code = (cddp_code_t)rc;
        error->culprit = err->culprit;
        memcpy(error->host, err->host, sizeof error->host);
        memcpy(error->text, err->text, sizeof error->text);
    }
    return (cddp_code_t)rc;
}

err_code_t api_question(cddp_code_t code, const cddp_error_t *error, err_t *err)
{
    if (code == CDDP_OK)
        return ERR_OK;
    err_set(err, (err_code_t)code, "%s",
            error->text[0] != '\0' ? error->text : cddp_code_text(code));
    if (err != NULL) {
        err->culprit = error->culprit;
        memcpy(err->host, error->host, sizeof err->host);
    }
    return (err_code_t)code;
}

const char *cddp_code_text(cddp_code_t code)
{
    return err_code_text((err_code_t)code);
}

cddp_code_t cddp_error_set(cddp_error_t *error, cddp_code_t code,
                           const char *format, ...)
{
    va_list args;

    if (error == NULL)
        return code;
    error->code = code;
    error->culprit = -1;
    error->host[0] = '\0';
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return code;
}

const char *cddp_version(void)
{
    return PACKAGE_VERSION;
}

int cddp_version_fits(int major, int minor, int patch)
{
    if (major != CDDP_VERSION_MAJOR || minor > CDDP_VERSION_MINOR)
        return 0;
    if (major == 0 && minor != CDDP_VERSION_MINOR)
        return 0;
    return minor < CDDP_VERSION_MINOR || patch <= CDDP_VERSION_PATCH;
}
