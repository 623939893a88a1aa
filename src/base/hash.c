/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* XXH3 of libxxhash is compiled for the oldest processors. Some builds of the
 * library also have a dispatcher, which chooses the vector instructions that
 * the processor has. We use the dispatcher if there is one. The hashes are the
 * same. */
#include "config.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef XXHASH_DISPATCH
#include <xxh_x86dispatch.h> /* renames XXH3_64bits and XXH3_64bits_update */
#else
#include <xxhash.h>
#endif

#include "base/file.h"

#define HASH_CHUNK ((size_t)1 << 20)

/* hash_state_t is the library's state under another name. */
static XXH3_state_t *hash_inner(hash_state_t *state)
{
    return (XXH3_state_t *)(void *)state;
}

uint64_t hash_bytes(const void *bytes, size_t count)
{
    return XXH3_64bits(bytes, count);
}

hash_state_t *hash_state_open(void)
{
    XXH3_state_t *inner = XXH3_createState();

    if (inner == NULL)
        abort();
    XXH3_64bits_reset(inner);
    return (hash_state_t *)(void *)inner;
}

void hash_state_add(hash_state_t *state, const void *bytes, size_t count)
{
    XXH3_64bits_update(hash_inner(state), bytes, count);
}

uint64_t hash_state_value(const hash_state_t *state)
{
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)state);
}

void hash_state_reset(hash_state_t *state)
{
    XXH3_64bits_reset(hash_inner(state));
}

void hash_state_free(hash_state_t *state)
{
    XXH3_freeState(hash_inner(state));
}

/* Add all bytes of [fd] to [state]; false with errno set on failure. */
static bool hash_feed(int fd, char *chunk, hash_state_t *state, uint64_t *bytes)
{
    ssize_t got;

    *bytes = 0;
    for (;;) {
        got = read(fd, chunk, HASH_CHUNK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        hash_state_add(state, chunk, (size_t)got);
        *bytes += (uint64_t)got;
    }
}

err_code_t hash_file(const char *path, uint64_t *hash, uint64_t *bytes,
                     err_t *err)
{
    hash_state_t *state = NULL;
    char *chunk = NULL;
    uint64_t count;
    err_code_t rc;
    int fd;

    rc = file_open_regular(path, O_RDONLY, FILE_LINKS, &fd, err);
    if (rc != ERR_OK)
        return rc;
    chunk = malloc(HASH_CHUNK);
    if (chunk == NULL) {
        rc = err_set(err, ERR_MEMORY, "no memory left to hash %s", path);
        goto out;
    }
    state = hash_state_open();
    if (!hash_feed(fd, chunk, state, &count)) {
        rc = err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
        goto out;
    }
    *hash = hash_state_value(state);
    *bytes = count;
out:
    if (state != NULL)
        hash_state_free(state);
    free(chunk);
    close(fd);
    return rc;
}

char *hash_format(uint64_t hash, char out[HASH_TEXT_MAX])
{
    snprintf(out, HASH_TEXT_MAX, "%016" PRIx64, hash);
    return out;
}

bool hash_parse(const char *text, uint64_t *hash)
{
    if (strlen(text) != HASH_TEXT_MAX - 1 ||
        strspn(text, "0123456789abcdefABCDEF") != HASH_TEXT_MAX - 1)
        return false;
    *hash = strtoull(text, NULL, 16);
    return true;
}
