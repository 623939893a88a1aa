/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to the files bpe*.c. */
#ifndef CDDP_IMPORT_BPE_PRIV_H
#define CDDP_IMPORT_BPE_PRIV_H

#include <stdbool.h>

#include "import/bpe.h"
#include "import/bpe_cutter.h"

/* Two neighbours (pair: first << 32 | second), which become [token]. The merge
 * with the smallest rank is done first. */
typedef struct bpe_merge {
    uint64_t pair;
    uint32_t rank, token;
    bool used;
} bpe_merge_t;

typedef struct bpe_merges {
    bpe_merge_t *items; /* [slots], a power of two; free by mem_free */
    size_t slots;
} bpe_merges_t;

struct import_bpe {
    const char *vocab;  /* name of the file, not owned */
    int64_t bytes[256]; /* the token of each byte; -1: none */
    int64_t end;        /* see import_bpe_end */
    uint32_t most;
    bpe_merges_t merges;
    const bpe_cutter_t *cutter;
    void *words; /* its state */
};

/* An empty table for [count] merges. ERR_MEMORY. */
err_code_t import_merges_open(size_t count, bpe_merges_t *out, err_t *err);
/* Add a merge. If the table has a merge of this pair already, that one stays.
 */
void import_merges_add(bpe_merges_t *merges, const bpe_merge_t *merge);
/* NULL: the two do not merge. */
const bpe_merge_t *import_merges_find(const bpe_merges_t *merges, uint32_t a,
                                      uint32_t b);

#endif
