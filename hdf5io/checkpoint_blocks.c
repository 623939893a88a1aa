/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The manifest has the hashes of a file in one string without separators, so
 * that the manifest stays short: a checkpoint of one terabyte has 240,000
 * hashes. */
#include "hdf5io/checkpoint_blocks.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_io.h"

#define DIGITS ((size_t)HASH_TEXT_MAX - 1)

size_t hdf5io_blocks_count(const hdf5io_manifest_t *manifest, int file)
{
    return hdf5io_sums_count(manifest->files[file].bytes,
                             manifest->block_bytes);
}

err_code_t hdf5io_blocks_open(hdf5io_manifest_t *manifest, int file, err_t *err)
{
    const size_t count = hdf5io_blocks_count(manifest, file);
    hdf5io_manifest_file_t *f = &manifest->files[file];

    if (count == 0 || f->blocks != NULL)
        return ERR_OK;
    return mem_new(uint64_t, count, "a manifest", &f->blocks, err);
}

void hdf5io_blocks_size_print(const hdf5io_manifest_t *manifest, str_buf_t *out)
{
    if (manifest->version > 1)
        str_buf_add(out, " \"block_bytes\": %" PRIu64 ",\n",
                    manifest->block_bytes);
}

void hdf5io_blocks_print(const hdf5io_manifest_t *manifest, int file,
                         str_buf_t *out)
{
    const size_t count = hdf5io_blocks_count(manifest, file);
    const hdf5io_manifest_file_t *f = &manifest->files[file];
    char hash[HASH_TEXT_MAX];

    if (manifest->version < 2)
        return;
    check(count == 0 || f->blocks != NULL, "%s: %zu blocks have no hash",
          f->name, count);
    str_buf_add(out, ", \"blocks\": \"");
    for (size_t b = 0; b < count; b++)
        str_buf_add(out, "%s", hash_format(f->blocks[b], hash));
    str_buf_add(out, "\"");
}

err_code_t hdf5io_blocks_size_parse(json_t *root, hdf5io_manifest_t *out,
                                    err_t *err)
{
    const json_t *value = json_object_get(root, "block_bytes");
    const json_int_t bytes = json_integer_value(value);

    out->block_bytes = 0;
    if (out->version < 2)
        return ERR_OK;
    if (!json_is_integer(value) || bytes < (json_int_t)MANIFEST_BLOCK_LEAST ||
        bytes > (json_int_t)MANIFEST_BLOCK_MOST)
        return err_set(err, ERR_DATA,
                       "its member \"block_bytes\" is missing or no number "
                       "from %llu to %llu",
                       (unsigned long long)MANIFEST_BLOCK_LEAST,
                       (unsigned long long)MANIFEST_BLOCK_MOST);
    out->block_bytes = (uint64_t)bytes;
    return ERR_OK;
}

err_code_t hdf5io_blocks_parse(json_t *item, hdf5io_manifest_t *out, int file,
                               err_t *err)
{
    const char *text = json_string_value(json_object_get(item, "blocks"));
    const size_t count = hdf5io_blocks_count(out, file);
    hdf5io_manifest_file_t *f = &out->files[file];
    err_code_t rc;

    if (out->version < 2)
        return ERR_OK;
    /* Checked before memory is allocated, since [count] comes from the text and
     * may be wrong. */
    if (text == NULL || strlen(text) % DIGITS != 0 ||
        strlen(text) / DIGITS != count)
        return err_set(err, ERR_DATA,
                       "file %d: its member \"blocks\" is missing or has not "
                       "%zu hashes, one for each %llu of its %llu bytes",
                       file, count, (unsigned long long)out->block_bytes,
                       (unsigned long long)f->bytes);
    rc = hdf5io_blocks_open(out, file, err);
    for (size_t b = 0; b < count && rc == ERR_OK; b++) {
        char digits[HASH_TEXT_MAX] = "";

        memcpy(digits, text + b * DIGITS, DIGITS);
        if (!hash_parse(digits, &f->blocks[b]))
            rc = err_set(err, ERR_DATA,
                         "file %d: hash %zu of its member \"blocks\" is no "
                         "hash",
                         file, b);
    }
    return rc;
}
