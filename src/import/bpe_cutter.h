/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* bpe_cutter: cuts texts into words, by a library that a build may lack. */
#ifndef CDDP_IMPORT_BPE_CUTTER_H
#define CDDP_IMPORT_BPE_CUTTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct bpe_cutter {
    err_code_t (*open)(void **state, err_t *err);
    void (*close)(void *state); /* NULL allowed */
    /* Find the first word of [text] that begins at byte [at] or later:
     * text[*begin .. *end - 1]. If there is none, *begin and *end are set to
     * [bytes]. ERR_DATA. */
    err_code_t (*next)(void *state, const char *text, size_t bytes, size_t at,
                       size_t *begin, size_t *end, err_t *err);
} bpe_cutter_t;

/* NULL: this build has none. Defined in registry.c. */
const bpe_cutter_t *import_cutter(void);

extern const bpe_cutter_t import_cutter_pcre2;
/* The same without machine code; for tests. On some systems PCRE2 cannot make
 * machine code (SELinux, some processors). */
extern const bpe_cutter_t import_cutter_plain;

#endif
