/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/retry.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

/* A read that fails [failures] times with errno [number]. */
typedef struct ill {
    int number, failures, calls;
    err_code_t code;
} ill_t;

static err_code_t ill_read(void *context, int *number, err_t *err)
{
    ill_t *ill = context;

    cr_assert_eq(*number, 0);
    if (++ill->calls > ill->failures)
        return ERR_OK;
    *number = ill->number;
    return err_set(err, ill->code, "/data/x: read failed: %s",
                   strerror(ill->number));
}

typedef struct waits {
    int count;
    double seconds[8];
} waits_t;

static void waits_note(void *context, double seconds)
{
    waits_t *waits = context;

    waits->seconds[waits->count++] = seconds;
}

static void quiet(void)
{
    log_level_set(LOG_ERROR);
}

TestSuite(retry, .init = quiet);

Test(retry, numbers_have_causes)
{
    const int storage[] = {EIO,    ESTALE,    ETIMEDOUT, EMFILE,   ENFILE,
                           ENOMEM, EHOSTDOWN, ENOTCONN,  EREMOTEIO};

    for (size_t i = 0; i < sizeof storage / sizeof *storage; i++)
        cr_assert_eq(retry_cause(storage[i]), RETRY_STORAGE, "%s",
                     strerror(storage[i]));
    cr_assert_eq(retry_cause(ENOENT), RETRY_ABSENT);
    cr_assert_eq(retry_cause(ENOTDIR), RETRY_ABSENT);
    cr_assert_eq(retry_cause(0), RETRY_ABSENT);
    cr_assert_eq(retry_cause(EACCES), RETRY_FORBIDDEN);
}

Test(retry, what_comes_back_is_read)
{
    waits_t waits = {0};
    retry_t retry = {.seconds = 70, .wait = waits_note, .context = &waits};
    ill_t ill = {.number = EIO, .failures = RETRY_TRIES, .code = ERR_IO};
    retry_cause_t cause = RETRY_FORBIDDEN;
    err_t err = ERR_INIT;

    cr_assert_eq(retry_run(&retry, "/data/x", ill_read, &ill, &cause, &err),
                 ERR_OK);
    cr_assert_eq(ill.calls, 1 + RETRY_TRIES);
    cr_assert_eq(err.code, ERR_OK);
    cr_assert_eq(cause, RETRY_FORBIDDEN);
    cr_assert_eq(waits.count, RETRY_TRIES);
    cr_assert_eq(waits.seconds[0], 10);
    cr_assert_eq(waits.seconds[1], 20);
    cr_assert_eq(waits.seconds[2], 40);
}

Test(retry, what_stays_ill_is_storage_and_not_damage)
{
    waits_t waits = {0};
    retry_t retry = {.seconds = 150, .wait = waits_note, .context = &waits};
    ill_t ill = {.number = ESTALE, .failures = 99, .code = ERR_DATA};
    retry_cause_t cause = RETRY_ABSENT;
    err_t err = ERR_INIT;

    cr_assert_eq(retry_run(&retry, "/data/x", ill_read, &ill, &cause, &err),
                 ERR_IO);
    cr_assert_eq(ill.calls, 1 + RETRY_TRIES);
    cr_assert_eq(cause, RETRY_STORAGE);
    cr_assert(strstr(err.text, "/data/x: read failed: "), "%s", err.text);
    cr_assert(strstr(err.text, strerror(ESTALE)), "%s", err.text);
    cr_assert(strstr(err.text, "3 more times within 150 s"), "%s", err.text);
    /* A quarter of a short fault.io_timeout is not rounded to 0 s. */
    retry.seconds = 0.5;
    cr_assert_eq(retry_run(&retry, "/data/x", ill_read, &ill, &cause, &err),
                 ERR_IO);
    cr_assert(strstr(err.text, "3 more times within 0.5 s"), "%s", err.text);
}

Test(retry, as_often_as_asked)
{
    waits_t waits = {0};
    retry_t retry = {
        .tries = 1, .seconds = 70, .wait = waits_note, .context = &waits};
    ill_t ill = {.number = ETIMEDOUT, .failures = 99, .code = ERR_IO};
    err_t err = ERR_INIT;

    cr_assert_eq(retry_run(&retry, "/data/x", ill_read, &ill, NULL, &err),
                 ERR_IO);
    cr_assert_eq(ill.calls, 2);
    cr_assert_eq(waits.count, 1);
    cr_assert_eq(waits.seconds[0], 70);
    cr_assert(strstr(err.text, "1 more times within 70 s"), "%s", err.text);
}

Test(retry, what_is_absent_or_damaged_is_not_tried_again)
{
    const int numbers[] = {0, ENOENT};

    for (int i = 0; i < 2; i++) {
        waits_t waits = {0};
        retry_t retry = {.seconds = 70, .wait = waits_note, .context = &waits};
        ill_t ill = {.number = numbers[i], .failures = 99, .code = ERR_DATA};
        retry_cause_t cause = RETRY_STORAGE;
        err_t err = ERR_INIT;

        cr_assert_eq(retry_run(&retry, "/data/x", ill_read, &ill, &cause, &err),
                     ERR_DATA);
        cr_assert_eq(ill.calls, 1);
        cr_assert_eq(waits.count, 0);
        cr_assert_eq(cause, RETRY_ABSENT);
        cr_assert_eq(err.code, ERR_DATA);
        cr_assert(strstr(err.text, "/data/x: read failed"), "%s", err.text);
    }
}

/* A missing permission is reported with the file's owner, after seconds, not
 * minutes. */
Test(retry, a_refused_permission_names_the_owner)
{
    char path[] = "/tmp/cddp-retry-XXXXXX";
    char *owner = str_printf("uid %u", (unsigned)geteuid());
    waits_t waits = {0};
    retry_t retry = {.seconds = 150, .wait = waits_note, .context = &waits};
    ill_t ill = {.number = EACCES, .failures = 99, .code = ERR_IO};
    retry_cause_t cause = RETRY_ABSENT;
    err_t err = ERR_INIT;
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(fchmod(fd, 0240), 0);
    close(fd);
    cr_assert_eq(retry_run(&retry, path, ill_read, &ill, &cause, &err),
                 ERR_DATA);
    cr_assert_eq(cause, RETRY_FORBIDDEN);
    cr_assert_eq(waits.count, RETRY_TRIES);
    cr_assert_leq(waits.seconds[0] + waits.seconds[1] + waits.seconds[2], 3.01);
    cr_assert(strstr(err.text, path), "%s", err.text);
    cr_assert(strstr(err.text, "it belongs to "), "%s", err.text);
    cr_assert(strstr(err.text, owner), "%s", err.text);
    cr_assert(strstr(err.text, "has mode 0240"), "%s", err.text);
    cr_assert_eq(unlink(path), 0);
    free(owner);
}

/* If the file cannot be seen, the directory that hides it is named. */
Test(retry, a_hidden_file_names_its_directory)
{
    char home[] = "/tmp/cddp-retry-XXXXXX";
    retry_t retry = {0};
    ill_t ill = {.number = EACCES, .failures = 99, .code = ERR_IO};
    err_t err = ERR_INIT;
    char *path, *want;

    cr_assert_not_null(mkdtemp(home));
    path = str_printf("%s/deeper/file", home);
    want = str_printf("the directory %s belongs to ", home);
    cr_assert_eq(retry_run(&retry, path, ill_read, &ill, NULL, &err), ERR_DATA);
    cr_assert(strstr(err.text, want), "%s", err.text);
    cr_assert_eq(rmdir(home), 0);
    free(want);
    free(path);
}

static void sign(void *context)
{
    ++*(int *)context;
}

/* A real wait of a fraction of a second calls [alive]. */
Test(retry, a_wait_shows_signs_of_life)
{
    int signs = 0;
    retry_t retry = {.seconds = 0.07, .alive = sign, .context = &signs};
    ill_t ill = {.number = EIO, .failures = RETRY_TRIES, .code = ERR_IO};
    err_t err = ERR_INIT;

    cr_assert_eq(retry_run(&retry, "/data/x", ill_read, &ill, NULL, &err),
                 ERR_OK);
    cr_assert_geq(signs, RETRY_TRIES);
}
