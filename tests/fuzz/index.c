/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/little.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "hdf5io/catalogue.h"
#include "hdf5io/index.h"

#define NUMBER 8 /* bytes */
#define SHARDS_MAX 64

static const err_code_t allowed[] = {ERR_DATA, ERR_MEMORY, ERR_OK};

static uint64_t number_at(const void *packed, size_t bytes, size_t i)
{
    const unsigned char *from = packed;

    return (i + 1) * NUMBER <= bytes ? little_get(from + i * NUMBER, NUMBER)
                                     : 0;
}

/* An accepted section is unchanged after it is packed and merged again. */
static void pack_again(const hdf5io_catalogue_t *catalogue, char *const *paths,
                       int shards, int fields)
{
    hdf5io_catalogue_t *again = NULL;
    void *first = NULL, *second = NULL;
    size_t bytes = 0, other = 0;
    err_t err = ERR_INIT;

    if (hdf5io_catalogue_pack(catalogue, 0, 1, &first, &bytes, &err) ==
            ERR_OK &&
        hdf5io_catalogue_open(paths, shards, fields, &again, &err) == ERR_OK) {
        if (hdf5io_catalogue_merge(again, first, bytes, &err) != ERR_OK ||
            hdf5io_catalogue_pack(again, 0, 1, &second, &other, &err) !=
                ERR_OK ||
            bytes != other || memcmp(first, second, bytes) != 0) {
            fprintf(stderr, "fuzz: packed again: %s\n", err.text);
            abort();
        }
    }
    hdf5io_catalogue_close(again);
    mem_free(second);
    mem_free(first);
}

/* Merge a section into a catalogue of as many shards and fields as the section
 * says. */
static err_code_t section_merge(const index_section_t *section)
{
    const uint64_t shards = number_at(section->packed, section->bytes, 1);
    const uint64_t fields = number_at(section->packed, section->bytes, 2);
    char *paths[SHARDS_MAX], name[] = "a.h5";
    hdf5io_catalogue_t *catalogue = NULL;
    err_t err = ERR_INIT;
    err_code_t rc;

    if (shards < 1 || shards > SHARDS_MAX || fields < 1 ||
        fields > CATALOGUE_FIELDS_MAX)
        return ERR_DATA;
    for (uint64_t i = 0; i < shards; i++)
        paths[i] = name;
    rc = hdf5io_catalogue_open(paths, (int)shards, (int)fields, &catalogue,
                               &err);
    if (rc == ERR_OK)
        rc = hdf5io_catalogue_merge(catalogue, section->packed, section->bytes,
                                    &err);
    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK)
        pack_again(catalogue, paths, (int)shards, (int)fields);
    hdf5io_catalogue_close(catalogue);
    return rc;
}

/* The file is unchanged after it is printed again. */
static void print_again(const hdf5io_index_t *index, const void *data,
                        size_t bytes)
{
    void *again = NULL;
    size_t count = 0;
    err_t err = ERR_INIT;

    if (hdf5io_index_print(index, &again, &count, &err) == ERR_OK &&
        (count != bytes || memcmp(again, data, bytes) != 0)) {
        fprintf(stderr, "fuzz: printed again\n");
        abort();
    }
    mem_free(again);
}

err_code_t fuzz_index(const uint8_t *data, size_t bytes)
{
    const uint64_t hash = hash_bytes(data, bytes);
    uint8_t *sealed = malloc(bytes + NUMBER);
    hdf5io_index_t index = {0};
    err_t err = ERR_INIT;
    err_code_t rc;

    if (sealed == NULL)
        return ERR_MEMORY;
    if (bytes > 0)
        memcpy(sealed, data, bytes);
    little_put(sealed + bytes, hash, NUMBER);
    rc = hdf5io_index_parse(sealed, bytes + NUMBER, &index, &err);
    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK)
        print_again(&index, sealed, bytes + NUMBER);
    for (int i = 0; rc == ERR_OK && i < index.count; i++)
        rc = section_merge(&index.sections[i]);
    free(sealed);
    return rc;
}
