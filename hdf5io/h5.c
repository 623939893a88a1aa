/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One process-wide lock for HDF5: common builds of it (all parallel ones) are
 * not thread-safe, and prefetch, checkpoints and ranks that are threads share
 * the process. HDF5 has one error stack per thread in thread-safe builds and a
 * single one otherwise, so its error printing is off while the lock is held.
 */
#include "hdf5io/h5.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/numeric.h"
#include "base/retry.h"

/* Objects of at least this size start at multiples of H5_ALIGNMENT, so that
 * large reads and writes match page and stripe boundaries. */
#define H5_ALIGNMENT_THRESHOLD 65536
#define H5_ALIGNMENT 4096

/* global: the library that it protects is one per process, too. It keeps the
 * program's error printing while the lock is held. */
static struct h5_guard {
    pthread_mutex_t lock;
    _Atomic(uintptr_t) owner; /* thread that holds the lock, 0: none */
    bool begun;
    bool kept;
    H5E_auto2_t print;
    void *context;
} h5_guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uintptr_t h5_self(void)
{
    return (uintptr_t)pthread_self();
}

void h5_lock_host(void)
{
    check(atomic_load(&h5_guard.owner) != h5_self(),
          "a thread takes the lock of HDF5 twice");
    pthread_mutex_lock(&h5_guard.lock);
    atomic_store(&h5_guard.owner, h5_self());
}

void h5_unlock_host(void)
{
    h5_lock_check();
    atomic_store(&h5_guard.owner, 0);
    pthread_mutex_unlock(&h5_guard.lock);
}

void h5_lock_check(void)
{
    check(atomic_load(&h5_guard.owner) == h5_self(),
          "the lock of HDF5 is not held by this thread, but by %#lx",
          (unsigned long)atomic_load(&h5_guard.owner));
}

void h5_lock(void)
{
    h5_lock_host();
    if (!h5_guard.begun) {
        /* HDF5 opens the source files of virtual datasets by itself, and older
         * versions then ignore our access list, which turns file locking off.
         * They refuse to open a file twice with different settings, and the
         * data reads as fill values. This variable applies to all files if it
         * is set before the first HDF5 call. */
        setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
        /* No clean-up at exit: a file whose close failed (full disk) stays in
         * HDF5's tables as a dangling entry, and cleaning it up would end the
         * process by a signal instead of our exit status. This call must come
         * before any other HDF5 call. All files are closed explicitly. */
        H5dont_atexit();
        h5_guard.begun = true;
    }
    h5_guard.kept =
        H5Eget_auto2(H5E_DEFAULT, &h5_guard.print, &h5_guard.context) >= 0;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void h5_unlock(void)
{
    const int number = errno; /* set by h5_err_set */

    if (h5_guard.kept)
        H5Eset_auto2(H5E_DEFAULT, h5_guard.print, h5_guard.context);
    h5_unlock_host();
    errno = number;
}

/* Destination of the innermost error text. */
typedef struct h5_text {
    char *out;
    size_t room;
} h5_text_t;

/* A driver's text contains the system's reason among its own variables: "file
 * write failed: time = ..., error message = 'No space left on device', buf =
 * ...". Keep only the failed operation and the reason. */
static void h5_reason(const char *text, char *out, size_t room)
{
    static const char mark[] = "error message = '";
    const char *reason = strstr(text, mark);

    if (reason == NULL) {
        snprintf(out, room, "%s", text);
        return;
    }
    reason += sizeof mark - 1;
    snprintf(out, room, "%.*s: %.*s", (int)strcspn(text, ":"), text,
             (int)strcspn(reason, "'"), reason);
}

/* Keep the first entry, which is the innermost one in an upward walk. */
static herr_t h5_innermost(unsigned depth, const H5E_error2_t *entry,
                           void *context)
{
    h5_text_t *text = context;

    if (depth == 0 && entry->desc != NULL)
        snprintf(text->out, text->room, "%s", entry->desc);
    /* Drivers use several lines; our sentences have one. */
    for (char *c = text->out; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return 0;
}

char *h5_err_text(char *out, size_t room)
{
    h5_text_t text = {out, room};

    h5_lock_check();
    out[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, h5_innermost, &text);
    H5Eclear2(H5E_DEFAULT);
    return out;
}

static int h5_number(const char *text)
{
    const char *number = strstr(text, "errno = ");

    return number == NULL ? 0 : atoi(number + strlen("errno = "));
}

int h5_err_number(void)
{
    char text[ERR_TEXT_MAX] = "";
    h5_text_t first = {text, sizeof text};

    h5_lock_check();
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, h5_innermost, &first);
    return h5_number(text);
}

err_code_t h5_err_set(err_t *err, err_code_t code, const char *format, ...)
{
    char sentence[ERR_TEXT_MAX];
    char text[ERR_TEXT_MAX], cause[ERR_TEXT_MAX];
    va_list args;
    int number;

    va_start(args, format);
    numeric_vprint(sentence, sizeof sentence, format, args);
    va_end(args);
    h5_reason(h5_err_text(text, sizeof text), cause, sizeof cause);
    number = h5_number(text);
    if (retry_cause(number) == RETRY_STORAGE)
        code = ERR_IO;
    if (cause[0] == '\0')
        code = err_set(err, code, "%s", sentence);
    else
        code = err_set(err, code, "%s (HDF5: %s)", sentence, cause);
    errno = number;
    return code;
}

hid_t h5_access_list(void)
{
    hid_t list;
    herr_t status = 0;

    h5_lock_check();
    list = H5Pcreate(H5P_FILE_ACCESS);
    if (list < 0)
        return list;
    status |= H5Pset_libver_bounds(list, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110);
    status |= H5Pset_alignment(list, H5_ALIGNMENT_THRESHOLD, H5_ALIGNMENT);
#if H5_VERSION_GE(1, 10, 7)
    status |= H5Pset_file_locking(list, false, true);
#endif
    if (status < 0) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}
