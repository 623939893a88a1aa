/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Turns words into tokens. A hash table has the token that two neighbouring
 * tokens become. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/bpe_priv.h"

static size_t slot_of(const bpe_merges_t *merges, uint64_t pair)
{
    return (size_t)hash_bytes(&pair, sizeof pair) & (merges->slots - 1);
}

err_code_t import_merges_open(size_t count, bpe_merges_t *out, err_t *err)
{
    size_t slots = 64;

    while (slots < 2 * count)
        slots *= 2;
    out->slots = slots;
    return mem_new(bpe_merge_t, slots, "merges", &out->items, err);
}

void import_merges_add(bpe_merges_t *merges, const bpe_merge_t *merge)
{
    size_t at = slot_of(merges, merge->pair);

    while (merges->items[at].used && merges->items[at].pair != merge->pair)
        at = (at + 1) & (merges->slots - 1);
    if (merges->items[at].used)
        return; /* the first one counts */
    merges->items[at] = *merge;
    merges->items[at].used = true;
}

const bpe_merge_t *import_merges_find(const bpe_merges_t *merges, uint32_t a,
                                      uint32_t b)
{
    const uint64_t pair = (uint64_t)a << 32 | b;
    size_t at = slot_of(merges, pair);

    while (merges->items[at].used && merges->items[at].pair != pair)
        at = (at + 1) & (merges->slots - 1);
    return merges->items[at].used ? &merges->items[at] : NULL;
}

err_code_t import_tokens_add(import_tokens_t *tokens, uint32_t token,
                             err_t *err)
{
    uint32_t *more = NULL;
    err_code_t rc = ERR_OK;

    if (tokens->count == tokens->room) {
        const int64_t room = tokens->room == 0 ? 4096 : 2 * tokens->room;

        rc = mem_new(uint32_t, (size_t)room, "tokens", &more, err);
        if (rc != ERR_OK)
            return rc;
        if (tokens->count > 0)
            memcpy(more, tokens->items, (size_t)tokens->count * sizeof *more);
        mem_free(tokens->items);
        tokens->items = more;
        tokens->room = room;
    }
    tokens->items[tokens->count++] = token;
    return rc;
}

/* Replace all pairs [merge] among [count] tokens; returns their new number. */
static int64_t pairs_replace(uint32_t *tokens, int64_t count,
                             const bpe_merge_t *merge)
{
    int64_t to = 0;

    for (int64_t i = 0; i < count; i++)
        if (i + 1 < count &&
            ((uint64_t)tokens[i] << 32 | tokens[i + 1]) == merge->pair) {
            tokens[to++] = merge->token;
            i++;
        } else {
            tokens[to++] = tokens[i];
        }
    return to;
}

err_code_t import_bpe_word(import_bpe_t *bpe, const char *name,
                           const unsigned char *word, size_t bytes,
                           import_tokens_t *out, err_t *err)
{
    const int64_t first = out->count;
    const bpe_merge_t *best = NULL;
    err_code_t rc = ERR_OK;

    for (size_t i = 0; i < bytes && rc == ERR_OK; i++) {
        if (bpe->bytes[word[i]] < 0)
            return err_set(err, ERR_DATA,
                           "%s: the byte 0x%02x is no token of %s", name,
                           word[i], bpe->vocab);
        rc = import_tokens_add(out, (uint32_t)bpe->bytes[word[i]], err);
    }
    while (rc == ERR_OK) {
        best = NULL;
        for (int64_t i = first; i + 1 < out->count; i++) {
            const bpe_merge_t *merge = import_merges_find(
                &bpe->merges, out->items[i], out->items[i + 1]);

            if (merge != NULL && (best == NULL || merge->rank < best->rank))
                best = merge;
        }
        if (best == NULL)
            break;
        out->count =
            first + pairs_replace(out->items + first, out->count - first, best);
    }
    return rc;
}
