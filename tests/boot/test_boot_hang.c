/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* PMIx_Init that fails, or that hangs as with a PMIx plugin of Slurm that does
 * not answer. This program has a PMIx_Init of its own, which is called instead
 * of the library's. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "boot/boot_wire.h"

/* global: what PMIx_Init does */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs;
    pmix_status_t status;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER};

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
    (void)info;
    (void)ninfo;
    pthread_mutex_lock(&server.lock);
    while (server.hangs)
        pthread_cond_wait(&server.changed, &server.lock);
    pthread_mutex_unlock(&server.lock);
    memset(proc, 0, sizeof *proc);
    proc->rank = 3;
    return server.status;
}

/* global: points to a state that is never freed, so that the leak checker does
 * not report this state; volatile, as nobody reads it */
static boot_wire_t *volatile late;

static boot_wire_t *wire_make(void)
{
    boot_wire_t *wire = NULL;

    cr_assert_eq(boot_wire_new(&wire, NULL), ERR_OK);
    return wire;
}

Test(boot_open, sets_who_we_are)
{
    boot_wire_t *wire = wire_make();
    err_t err = ERR_INIT;

    cr_assert_eq(boot_wire_open(wire, 600, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(wire->self.rank, 3);
    boot_wire_free(wire);
}

Test(boot_open, a_failure_has_its_name)
{
    boot_wire_t *wire = wire_make();
    err_t err = ERR_INIT;

    server.status = PMIX_ERR_UNREACH;
    cr_assert_eq(boot_wire_open(wire, 600, &err), ERR_UNAVAILABLE);
    cr_expect_not_null(strstr(err.text, PMIx_Error_string(PMIX_ERR_UNREACH)),
                       "%s", err.text);
    boot_wire_free(wire);
}

/* After the deadline PMIx_Init may still write to the state, so the state is
 * not freed (if it were, the address sanitizer would report the write). */
Test(boot_open, what_hangs_ends_with_a_sentence, .timeout = 600)
{
    boot_wire_t *wire = wire_make();
    eventfd_t returned = 0;
    err_t err = ERR_INIT;

    late = wire;
    server.hangs = true;
    cr_assert_eq(boot_wire_open(wire, 0.05, &err), ERR_UNAVAILABLE);
    cr_expect_not_null(strstr(err.text, "did not return within 0.05 s"), "%s",
                       err.text);
    cr_expect_not_null(strstr(err.text, "Slurm 25.11.2"), "%s", err.text);
    boot_wire_free(wire);
    pthread_mutex_lock(&server.lock);
    server.hangs = false;
    pthread_cond_signal(&server.changed);
    pthread_mutex_unlock(&server.lock);
    cr_assert_eq(eventfd_read(wire->opened, &returned), 0);
    pthread_mutex_lock(&wire->lock);
    cr_expect_eq(wire->self.rank, 3);
    pthread_mutex_unlock(&wire->lock);
}
