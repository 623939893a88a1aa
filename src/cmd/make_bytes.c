/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Makes two passes over the files: the first finds the texts and hashes them,
 * the second reads the chosen texts. Texts are sorted by hash. This spreads the
 * texts of one folder over the whole stream, makes equal texts neighbours, and
 * lets a limit on the bytes choose a fair sample.
 */
#include "cmd/make_bytes.h"

#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/data_shard.h"

typedef struct document {
    char *path;
    uint64_t hash;
    int64_t bytes;
} document_t;

typedef struct documents {
    document_t *items;
    int64_t count, room;
} documents_t;

typedef struct stream {
    unsigned char *bytes;
    int64_t count;
} stream_t;

/* ---- finding ------------------------------------------------------------- */

static bool bytes_are_text(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] < ' ' && (bytes[i] < '\t' || bytes[i] > '\r') &&
            bytes[i] != '\033')
            return false;
    return count > 0;
}

static err_code_t documents_add(documents_t *all, const char *path,
                                uint64_t hash, int64_t bytes, err_t *err)
{
    int64_t room = all->room == 0 ? 1024 : 2 * all->room;
    document_t *more;

    if (all->count == all->room) {
        more = realloc(all->items, (size_t)room * sizeof *more);
        if (more == NULL)
            return err_set(err, ERR_MEMORY, "no memory for %lld documents",
                           (long long)room);
        all->items = more;
        all->room = room;
    }
    all->items[all->count++] =
        (document_t){.path = str_dup(path), .hash = hash, .bytes = bytes};
    return ERR_OK;
}

static void documents_free(documents_t *all)
{
    for (int64_t i = 0; i < all->count; i++)
        free(all->items[i].path);
    free(all->items);
}

/* Add the file at [path] if it is text. A file that cannot be read is skipped,
 * since whole trees are searched. */
static err_code_t file_look(documents_t *all, const char *path,
                            cmd_bytes_report_t *report, err_t *err)
{
    err_t none = ERR_INIT;
    err_code_t rc = ERR_OK;
    size_t bytes;
    char *text;

    if (file_read(path, &text, &bytes, &none) != ERR_OK) {
        report->skipped++;
        return ERR_OK;
    }
    if (bytes_are_text((const unsigned char *)text, bytes))
        rc = documents_add(all, path, hash_bytes(text, bytes), (int64_t)bytes,
                           err);
    else
        report->skipped++;
    free(text);
    return rc;
}

static err_code_t tree_walk(documents_t *all, const char *path,
                            cmd_bytes_report_t *report, err_t *err)
{
    char *const paths[] = {(char *)path, NULL};
    FTS *walk =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    err_code_t rc = ERR_OK;
    FTSENT *entry;

    if (walk == NULL)
        return err_set(err, ERR_IO, "cannot search %s: %s", path,
                       strerror(errno));
    while (rc == ERR_OK && (entry = fts_read(walk)) != NULL) {
        if (entry->fts_level == FTS_ROOTLEVEL && entry->fts_info == FTS_NS)
            rc = err_set(err, ERR_IO, "cannot read %s: %s", path,
                         strerror(entry->fts_errno));
        else if (entry->fts_info == FTS_F)
            rc = file_look(all, entry->fts_accpath, report, err);
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS)
            report->skipped++;
    }
    fts_close(walk);
    return rc;
}

/* ---- choosing ------------------------------------------------------------ */

static int document_compare(const void *one, const void *two)
{
    const document_t *a = one, *b = two;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return 0;
}

static bool document_is_valid(const document_t *document, int percent)
{
    /* The high bits of the hash give the order, so this uses the low bits. */
    return (int)(document->hash % 100) < percent;
}

/* Sort the documents. Keep one of equal ones, and as many as fit into
 * [bytes_most] bytes. */
static void documents_choose(documents_t *all, int64_t bytes_most,
                             cmd_bytes_report_t *report)
{
    int64_t kept = 0, bytes = 0;

    if (all->count > 0)
        qsort(all->items, (size_t)all->count, sizeof all->items[0],
              document_compare);
    for (int64_t i = 0; i < all->count; i++) {
        document_t *document = &all->items[i];

        if (kept > 0 && all->items[kept - 1].hash == document->hash)
            report->repeated++;
        else if (bytes + document->bytes + 1 <= bytes_most) {
            document_t swap = all->items[kept];

            bytes += document->bytes + 1;
            all->items[kept++] = *document;
            *document = swap;
        }
    }
    for (int64_t i = kept; i < all->count; i++)
        free(all->items[i].path);
    all->count = kept;
}

/* ---- writing ------------------------------------------------------------- */

static err_code_t stream_fill(const documents_t *all, bool valid, int percent,
                              stream_t *out, err_t *err)
{
    int64_t most = 0;
    unsigned char *block = NULL;
    err_code_t rc;

    for (int64_t i = 0; i < all->count; i++)
        if (document_is_valid(&all->items[i], percent) == valid)
            most += all->items[i].bytes + 1;
    rc = mem_new(unsigned char, (size_t)most + 1, "text", &block, err);
    if (rc != ERR_OK)
        return rc;
    *out = (stream_t){.bytes = block};
    for (int64_t i = 0; i < all->count && rc == ERR_OK; i++) {
        const document_t *document = &all->items[i];
        size_t bytes;
        char *text;

        if (document_is_valid(document, percent) != valid)
            continue;
        rc = file_read(document->path, &text, &bytes, err);
        if (rc != ERR_OK)
            break;
        if ((int64_t)bytes != document->bytes)
            rc = err_set(err, ERR_IO, "%s changed while it was read",
                         document->path);
        else
            memcpy(out->bytes + out->count, text, bytes);
        /* the block was zeroed, so a 0 byte follows the text */
        out->count += document->bytes + 1;
        free(text);
    }
    return rc;
}

static err_code_t stream_write(const stream_t *stream, const char *directory,
                               const char *name, int shards, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int shard = 0; shard < shards && rc == ERR_OK; shard++) {
        int64_t first = stream->count * shard / shards;
        int64_t end = stream->count * (shard + 1) / shards;
        const cmd_shard_field_t field = {.name = "/tokens",
                                         .type = CMD_SHARD_UINT8,
                                         .data = stream->bytes + first};
        const cmd_shard_t content = {.rows = end - first,
                                     .fields = &field,
                                     .field_count = 1,
                                     .bound = NAN};

        rc = cmd_shards_put(directory, name, shard, &content, NULL, err);
    }
    return rc;
}

static err_code_t streams_write(const cmd_bytes_config_t *config,
                                const documents_t *all,
                                cmd_bytes_report_t *report, err_t *err)
{
    stream_t train = {0}, valid = {0};
    err_code_t rc;

    rc = stream_fill(all, false, config->valid_percent, &train, err);
    if (rc == ERR_OK)
        rc = stream_fill(all, true, config->valid_percent, &valid, err);
    if (rc == ERR_OK && (train.count < config->shards || valid.count == 0))
        rc = err_set(err, ERR_DATA,
                     "found %lld documents: too few for a part that is "
                     "trained with and one that is not; name more files or "
                     "folders",
                     (long long)all->count);
    if (rc == ERR_OK)
        rc = stream_write(&train, config->directory, "train", config->shards,
                          err);
    if (rc == ERR_OK)
        rc = stream_write(&valid, config->directory, "valid", 1, err);
    report->train = train.count;
    report->valid = valid.count;
    mem_free(train.bytes);
    mem_free(valid.bytes);
    return rc;
}

err_code_t cmd_make_bytes(const cmd_bytes_config_t *config,
                          cmd_bytes_report_t *report, err_t *err)
{
    cmd_bytes_report_t result = {0};
    documents_t all = {0};
    err_code_t rc = cmd_shards_begin(config->directory, config->force, err);

    for (int i = 0; i < config->path_count && rc == ERR_OK; i++)
        rc = tree_walk(&all, config->paths[i], &result, err);
    if (rc == ERR_OK) {
        documents_choose(&all, config->bytes_most, &result);
        result.documents = all.count;
        rc = streams_write(config, &all, &result, err);
    }
    if (rc == ERR_OK)
        rc = file_sync(config->directory, err);
    documents_free(&all);
    if (rc == ERR_OK)
        *report = result;
    return rc;
}
