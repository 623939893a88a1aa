/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/retry.h"

#include <errno.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define FORBIDDEN_SECONDS 3.0 /* maximum of all waits together */
#define NAP 0.5               /* seconds between two calls of [alive] */
#define OWNER_MAX 80

retry_cause_t retry_cause(int number)
{
    switch (number) {
    case 0:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO: /* a socket */
        return RETRY_ABSENT;
    case EACCES:
    case EPERM:
        return RETRY_FORBIDDEN;
    default:
        return RETRY_STORAGE;
    }
}

static void nap(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};

    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        continue;
}

/* Sleep, since no event signals that storage works again. */
static void wait_real(const retry_t *retry, double seconds)
{
    const double end = clock_now() + seconds;
    double left = seconds;

    while (left > 0) {
        nap(left < NAP ? left : NAP);
        if (retry->alive != NULL)
            retry->alive(retry->context);
        left = end - clock_now();
    }
}

/* Total wait in seconds for failures of [cause]. */
static double budget_of(const retry_t *retry, retry_cause_t cause)
{
    if (cause == RETRY_FORBIDDEN && retry->seconds > FORBIDDEN_SECONDS)
        return FORBIDDEN_SECONDS;
    return retry->seconds;
}

static int tries_of(const retry_t *retry)
{
    return retry->tries > 0 ? retry->tries : RETRY_TRIES;
}

/* Wait before repetition number [again] (from 1). Waits double: with 3 tries
 * they are 1/7, 2/7 and 4/7 of the total. */
static void wait_before(const retry_t *retry, int again, retry_cause_t cause,
                        const char *text)
{
    const double parts = (double)((1 << tries_of(retry)) - 1);
    double seconds =
        budget_of(retry, cause) * (double)(1 << (again - 1)) / parts;

    log_warn("base", "%s: trying again in %.1f s (%d of %d)", text, seconds,
             again, tries_of(retry));
    if (retry->wait != NULL)
        retry->wait(retry->context, seconds);
    else
        wait_real(retry, seconds);
}

/* Write "alice (uid 1001)", or only the number if the name is unknown. */
static const char *owner_name(uid_t uid, char out[OWNER_MAX])
{
    char text[4096];
    struct passwd entry, *found = NULL;

    if (getpwuid_r(uid, &entry, text, sizeof text, &found) == 0 &&
        found != NULL)
        snprintf(out, OWNER_MAX, "%s (uid %u)", found->pw_name, (unsigned)uid);
    else
        snprintf(out, OWNER_MAX, "uid %u", (unsigned)uid);
    return out;
}

/* Find [path], or the nearest parent directory that stat can see, which is the
 * one with the missing permission. The caller frees it; NULL: none can be
 * seen. */
static char *visible(const char *path, struct stat *st)
{
    char *at = str_dup(path), *up;

    while (stat(at, st) != 0) {
        /* dirname changes [at], and its result may be a part of it. */
        up = str_dup(dirname(at));
        if (strcmp(up, "/") == 0 || strcmp(up, ".") == 0) {
            free(at);
            at = up;
            if (stat(at, st) == 0)
                return at;
            free(at);
            return NULL;
        }
        free(at);
        at = up;
    }
    return at;
}

static err_code_t forbidden_set(const char *path, int number, err_t *err)
{
    char owner[OWNER_MAX], me[OWNER_MAX];
    struct stat st;
    char *at = visible(path, &st);
    err_code_t rc;

    owner_name(geteuid(), me);
    if (at == NULL)
        return err_set(err, ERR_DATA,
                       "cannot read %s: %s, as %s: make it readable", path,
                       strerror(number), me);
    rc = err_set(
        err, ERR_DATA,
        "cannot read %s: %s: %s%s belongs to %s, has mode %04o, and "
        "this process runs as %s: let its owner make it readable",
        path, strerror(number), S_ISDIR(st.st_mode) ? "the directory " : "",
        strcmp(at, path) == 0 && !S_ISDIR(st.st_mode) ? "it" : at,
        owner_name(st.st_uid, owner), (unsigned)(st.st_mode & 07777), me);
    free(at);
    return rc;
}

/* Set the error after the last try. */
static err_code_t give_up(const retry_t *retry, const char *path, int number,
                          const err_t *why, err_t *err)
{
    if (retry_cause(number) == RETRY_FORBIDDEN)
        return forbidden_set(path, number, err);
    return err_set(
        err, ERR_IO,
        "%s; it was opened and read %d more times within %g s, without "
        "success: that is storage, not damage: start again when "
        "storage works",
        why->text, tries_of(retry), retry->seconds);
}

err_code_t retry_run(const retry_t *retry, const char *path,
                     retry_attempt_t attempt, void *context,
                     retry_cause_t *cause, err_t *err)
{
    for (int again = 1;; again++) {
        err_t why = ERR_INIT;
        int number = 0;
        err_code_t rc = attempt(context, &number, &why);
        retry_cause_t found = retry_cause(number);

        if (rc == ERR_OK)
            return ERR_OK;
        if (found != RETRY_ABSENT && again <= tries_of(retry)) {
            wait_before(retry, again, found, why.text);
            continue;
        }
        if (cause != NULL)
            *cause = found;
        if (found != RETRY_ABSENT)
            return give_up(retry, path, number, &why, err);
        return err_copy(err, &why);
    }
}
