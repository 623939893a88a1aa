/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Each file is encoded twice: first to count its tokens, then to write them. So
 * only the tokens of one file are in memory. If a file has another number of
 * tokens the second time, the conversion ends with an error. Several processes
 * divide the files when they count, and the tokens when they write. */
#include "import/text.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "import/bpe.h"
#include "import/stream.h"

typedef struct text {
    import_source_t source;
    const import_config_t *config;
    import_bpe_t *bpe;      /* NULL: tokens are bytes */
    int next;               /* file that is encoded next */
    int64_t *counts;        /* [words]: tokens of each file; -1: not known */
    import_tokens_t tokens; /* of the current file */
    int64_t at;             /* the next of them */
} text_t;

/* Read the rest of [stream] to *out, which the caller frees by mem_free. */
static err_code_t stream_whole(import_stream_t *stream, char **out,
                               size_t *bytes, err_t *err)
{
    size_t room = (size_t)import_stream_size(stream) + 1, count = 0, got = 0;
    char *all = NULL;
    err_code_t rc = mem_alloc(room, "a text", (void **)&all, err);

    while (rc == ERR_OK) {
        void *more = NULL;

        rc = import_stream_read(stream, all + count, room - count, &got, err);
        count += got;
        if (rc != ERR_OK || count < room)
            break;
        rc = mem_alloc(2 * room, "a text", &more, err);
        if (rc != ERR_OK)
            break;
        memcpy(more, all, count);
        mem_free(all);
        all = more;
        room *= 2;
    }
    if (rc != ERR_OK) {
        mem_free(all);
        return rc;
    }
    *out = all;
    *bytes = count;
    return ERR_OK;
}

static err_code_t bytes_encode(const char *text, size_t bytes,
                               import_tokens_t *out, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (size_t i = 0; i < bytes && rc == ERR_OK; i++)
        rc = import_tokens_add(out, (unsigned char)text[i], err);
    return rc;
}

/* Encode file number [file]. */
static err_code_t file_encode(text_t *self, int file, err_t *err)
{
    const char *path = self->config->words[file];
    const int64_t end = self->bpe == NULL ? 0 : import_bpe_end(self->bpe);
    import_stream_t *stream = NULL;
    char *text = NULL;
    size_t bytes = 0;
    err_code_t rc = import_stream_open(path, true, &stream, err);

    self->next = file + 1;
    self->tokens.count = 0;
    self->at = 0;
    if (rc != ERR_OK)
        return rc;
    rc = stream_whole(stream, &text, &bytes, err);
    import_stream_close(stream);
    if (rc == ERR_OK && self->bpe == NULL)
        rc = bytes_encode(text, bytes, &self->tokens, err);
    else if (rc == ERR_OK)
        rc =
            import_bpe_encode(self->bpe, path, text, bytes, &self->tokens, err);
    if (rc == ERR_OK && bytes > 0 && end >= 0)
        rc = import_tokens_add(&self->tokens, (uint32_t)end, err);
    mem_free(text);
    if (rc == ERR_OK && self->counts[file] >= 0 &&
        self->tokens.count != self->counts[file])
        rc = err_set(err, ERR_DATA,
                     "%s: this text was changed during the conversion: it had "
                     "%" PRId64 " tokens, and has %" PRId64
                     " now: convert texts when no program writes to them",
                     path, self->counts[file], self->tokens.count);
    self->counts[file] = self->tokens.count;
    return rc;
}

static void text_close(import_source_t *source)
{
    text_t *self = (text_t *)source;

    import_bpe_close(self->bpe);
    mem_free(self->tokens.items);
    mem_free(self->counts);
    mem_free(self);
}

static err_code_t vocab_open(text_t *self, err_t *err)
{
    const import_config_t *config = self->config;

    if (config->vocab == NULL && config->merges == NULL)
        return ERR_OK;
    if (config->vocab == NULL || config->merges == NULL)
        return err_set(err, ERR_USAGE,
                       "text: --vocab and --merges belong together: give both, "
                       "or none");
    return import_bpe_open(config->vocab, config->merges, &self->bpe, err);
}

/* See import_count_t. */
static err_code_t file_count(void *context, int file, int64_t *out, err_t *err)
{
    text_t *self = context;
    err_code_t rc = file_encode(self, file, err);

    *out = self->tokens.count;
    return rc;
}

/* Count the tokens of all files. [rc]: the outcome so far. */
static err_code_t files_count(text_t *self, err_code_t rc, err_t *err)
{
    const import_config_t *config = self->config;

    rc = import_share_count(config->share, config->word_count, file_count, self,
                            rc, self->counts, err);
    for (int i = 0; i < config->word_count && rc == ERR_OK; i++)
        self->source.rows += self->counts[i];
    self->next = 0;
    self->tokens.count = 0;
    self->at = 0;
    return rc;
}

static err_code_t text_open(const import_config_t *config,
                            import_source_t **out, err_t *err)
{
    import_field_t *field;
    text_t *self = NULL;
    err_code_t rc = mem_new(text_t, 1, "a source", &self, err);

    if (rc != ERR_OK)
        return rc;
    self->config = config;
    self->source.kind = &import_text;
    self->source.field_count = 1;
    rc = mem_new(int64_t, (size_t)config->word_count, "a source", &self->counts,
                 err);
    for (int i = 0; i < config->word_count && rc == ERR_OK; i++)
        self->counts[i] = -1;
    if (rc == ERR_OK)
        rc = vocab_open(self, err);
    rc = files_count(self, rc, err);
    if (rc == ERR_OK && self->source.rows == 0)
        rc = err_set(err, ERR_DATA, "%s%s: there is no text in %s",
                     config->words[0], config->word_count > 1 ? ", ..." : "",
                     config->word_count > 1 ? "these files" : "this file");
    field = self->source.fields;
    *field = (import_field_t){.name = "tokens", .type = IMPORT_UINT8};
    if (self->bpe != NULL)
        field->type = import_bpe_most(self->bpe) <= UINT16_MAX ? IMPORT_UINT16
                                                               : IMPORT_UINT32;
    if (rc == ERR_OK)
        *out = &self->source;
    else
        text_close(&self->source);
    return rc;
}

/* Copy [count] tokens to [out], in the type of the field: the first one is
 * number self->at of the file, and becomes element [to] of [out]. */
static void tokens_put(text_t *self, int64_t count, int64_t to, void *out)
{
    const uint32_t *from = self->tokens.items + self->at;

    for (int64_t i = 0; i < count; i++)
        if (self->source.fields[0].type == IMPORT_UINT8)
            ((uint8_t *)out)[to + i] = (uint8_t)from[i];
        else if (self->source.fields[0].type == IMPORT_UINT16)
            ((uint16_t *)out)[to + i] = (uint16_t)from[i];
        else
            ((uint32_t *)out)[to + i] = from[i];
    self->at += count;
}

static err_code_t text_read(import_source_t *source, int64_t rows,
                            void *const *out, err_t *err)
{
    text_t *self = (text_t *)source;
    int64_t done = 0;
    err_code_t rc = ERR_OK;

    while (done < rows && rc == ERR_OK) {
        int64_t take = self->tokens.count - self->at;

        take = take < rows - done ? take : rows - done;
        check(take > 0 || self->next < self->config->word_count,
              "all texts are read, but %" PRId64 " tokens are missing",
              rows - done);
        if (take == 0)
            rc = file_encode(self, self->next, err);
        else
            tokens_put(self, take, done, out[0]);
        done += take;
    }
    return rc;
}

/* A file whose tokens are all passed over is not read. */
static err_code_t text_skip(import_source_t *source, int64_t rows, err_t *err)
{
    text_t *self = (text_t *)source;
    err_code_t rc = ERR_OK;

    while (rows > 0 && rc == ERR_OK) {
        const int64_t left = self->tokens.count - self->at;

        check(left > 0 || self->next < self->config->word_count,
              "%" PRId64 " tokens are missing behind the last text", rows);
        if (left > 0) {
            self->at += left < rows ? left : rows;
            rows -= left < rows ? left : rows;
        } else if (self->counts[self->next] <= rows) {
            rows -= self->counts[self->next++];
        } else {
            rc = file_encode(self, self->next, err);
        }
    }
    return rc;
}

const import_kind_t import_text = {.name = "text",
                                   .takes = IMPORT_TAKES_VOCAB,
                                   .open = text_open,
                                   .read = text_read,
                                   .skip = text_skip,
                                   .close = text_close};
