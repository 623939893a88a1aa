/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "hdf5io/checkpoint_blocks.h"

static const err_code_t allowed[] = {ERR_DATA, ERR_CONFIG, ERR_MEMORY, ERR_OK};

/* Copy the bytes before the manifest's own hash, and append their correct hash.
 * The caller frees the copy of [*length] bytes. */
static char *seal(const uint8_t *data, size_t bytes, size_t *length)
{
    const size_t key = strlen(MANIFEST_SELF_KEY);
    char digits[HASH_TEXT_MAX], *copy, *end;
    const uint8_t *self;

    while ((self = memmem(data, bytes, MANIFEST_SELF_KEY, key)) != NULL)
        bytes = (size_t)(self - data);
    hash_format(hash_bytes(data, bytes), digits);
    end = str_printf(MANIFEST_SELF_KEY "%s" MANIFEST_SELF_TAIL, digits);
    *length = bytes + strlen(end);
    copy = malloc(*length + 1);
    if (copy == NULL)
        abort();
    memcpy(copy, data, bytes);
    memcpy(copy + bytes, end, strlen(end) + 1);
    free(end);
    return copy;
}

static bool same_blocks(const hdf5io_manifest_t *a, const hdf5io_manifest_t *b)
{
    if (a->block_bytes != b->block_bytes)
        return false;
    for (int f = 0; f < a->file_count; f++) {
        const size_t count = hdf5io_blocks_count(a, f);

        if (count != hdf5io_blocks_count(b, f) ||
            (count > 0 && memcmp(a->files[f].blocks, b->files[f].blocks,
                                 count * sizeof *a->files[f].blocks) != 0))
            return false;
    }
    return true;
}

/* An accepted manifest must be accepted again after printing. */
static void print_and_parse(const hdf5io_manifest_t *manifest)
{
    hdf5io_manifest_t again = {0};
    str_buf_t text = {0};
    err_t err = ERR_INIT;
    uint64_t hash;

    if (hdf5io_manifest_print(manifest, &text, &err) != ERR_OK ||
        hdf5io_manifest_parse(text.text, text.length, &again, &hash, &err) !=
            ERR_OK ||
        again.tensor_count != manifest->tensor_count ||
        again.piece_count != manifest->piece_count ||
        again.file_count != manifest->file_count ||
        again.version != manifest->version || !same_blocks(manifest, &again) ||
        again.progress.step != manifest->progress.step) {
        fprintf(stderr, "fuzz: not what it was: %s\n%s\n", err.text,
                text.text == NULL ? "" : text.text);
        abort();
    }
    hdf5io_manifest_free(&again);
    str_buf_free(&text);
}

err_code_t fuzz_manifest(const uint8_t *data, size_t bytes)
{
    hdf5io_manifest_t manifest = {0};
    err_t err = ERR_INIT;
    uint64_t hash;
    size_t length;
    char *text = seal(data, bytes, &length);
    err_code_t rc;

    rc = hdf5io_manifest_parse(text, length, &manifest, &hash, &err);
    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK) {
        print_and_parse(&manifest);
        hdf5io_manifest_free(&manifest);
    }
    free(text);
    return rc;
}
