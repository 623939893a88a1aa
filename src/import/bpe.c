/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reads the files of a byte-pair encoding. */
#include "import/bpe.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/bpe_priv.h"

/* Write the character that stands for [byte] in GPT-2's files to [out], as
 * UTF-8. A byte that is a visible character stands for itself. The other bytes,
 * in their order, are the characters from 256 on. */
static void byte_name(int byte, char out[3])
{
    int code = byte, hidden = 0;

    for (int b = 0; b <= byte; b++) {
        const bool seen =
            (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;

        if (b == byte && !seen)
            code = 256 + hidden;
        hidden += !seen;
    }
    if (code < 0x80) {
        out[0] = (char)code;
        out[1] = '\0';
        return;
    }
    out[0] = (char)(0xc0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3f));
    out[2] = '\0';
}

/* The number of [token]; -1: it is not in the vocabulary. */
static int64_t token_find(const json_t *vocab, const char *token)
{
    const json_t *number = json_object_get(vocab, token);

    return number == NULL ? -1 : (int64_t)json_integer_value(number);
}

static err_code_t vocab_read(const char *path, json_t **out, err_t *err)
{
    json_error_t why;
    const char *token;
    json_t *number, *vocab;
    char *text = NULL;
    size_t length = 0;
    err_code_t rc = file_read(path, &text, &length, err);

    if (rc != ERR_OK)
        return rc;
    vocab = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (!json_is_object(vocab)) {
        rc = err_set(err, ERR_DATA,
                     "%s:%d: expected a JSON object from tokens to numbers%s%s",
                     path, vocab == NULL ? why.line : 1,
                     vocab == NULL ? ": " : "", vocab == NULL ? why.text : "");
        json_decref(vocab);
        return rc;
    }
    json_object_foreach(vocab, token, number)
    {
        if (json_is_integer(number) && json_integer_value(number) >= 0 &&
            json_integer_value(number) < INT32_MAX)
            continue;
        rc = err_set(err, ERR_DATA,
                     "%s: token \"%s\": expected a number from 0 to %d", path,
                     token, INT32_MAX - 1);
        break;
    }
    if (rc == ERR_OK)
        *out = vocab;
    else
        json_decref(vocab);
    return rc;
}

static void vocab_use(const json_t *vocab, import_bpe_t *bpe)
{
    const char *token;
    json_t *number;
    char name[3];

    for (int b = 0; b < 256; b++) {
        byte_name(b, name);
        bpe->bytes[b] = token_find(vocab, name);
    }
    bpe->end = token_find(vocab, "<|endoftext|>");
    json_object_foreach((json_t *)vocab, token, number)
    {
        if (json_integer_value(number) > (json_int_t)bpe->most)
            bpe->most = (uint32_t)json_integer_value(number);
    }
}

/* Add the merge in [line], which is changed. */
static err_code_t line_take(const char *path, int number, char *line,
                            const json_t *vocab, import_bpe_t *bpe, err_t *err)
{
    char *space = strchr(line, ' '), *both;
    int64_t first = -1, second = -1, token = -1;

    if (space != NULL && strchr(space + 1, ' ') == NULL) {
        *space = '\0';
        first = token_find(vocab, line);
        second = token_find(vocab, space + 1);
        both = str_printf("%s%s", line, space + 1);
        token = token_find(vocab, both);
        free(both);
        *space = ' ';
    }
    if (first < 0 || second < 0 || token < 0)
        return err_set(err, ERR_DATA,
                       "%s:%d: \"%s\": expected two tokens with a space "
                       "between them; %s must have both, and the token that "
                       "they make together",
                       path, number, line, bpe->vocab);
    import_merges_add(
        &bpe->merges,
        &(bpe_merge_t){.pair = (uint64_t)first << 32 | (uint64_t)second,
                       .rank = (uint32_t)number,
                       .token = (uint32_t)token});
    return ERR_OK;
}

static err_code_t merges_read(const char *path, const json_t *vocab,
                              import_bpe_t *bpe, err_t *err)
{
    char *text = NULL, *rest, *line;
    size_t length = 0, lines = 1;
    int number = 0;
    err_code_t rc = file_read(path, &text, &length, err);

    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    rc = import_merges_open(lines, &bpe->merges, err);
    rest = text;
    while (rc == ERR_OK && (line = strsep(&rest, "\n")) != NULL) {
        const size_t end = strlen(line);

        number++;
        if (end > 0 && line[end - 1] == '\r')
            line[end - 1] = '\0';
        if (*line != '\0' && strncmp(line, "#version", 8) != 0)
            rc = line_take(path, number, line, vocab, bpe, err);
    }
    free(text);
    return rc;
}

err_code_t import_bpe_open(const char *vocab, const char *merges,
                           import_bpe_t **out, err_t *err)
{
    import_bpe_t *bpe = NULL;
    json_t *tokens = NULL;
    err_code_t rc = mem_new(import_bpe_t, 1, "a vocabulary", &bpe, err);

    if (rc != ERR_OK)
        return rc;
    bpe->vocab = vocab;
    bpe->cutter = import_cutter();
    if (bpe->cutter == NULL)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "%s: this build cannot use a vocabulary: install "
                     "libpcre2-dev (Debian, Ubuntu), then configure with "
                     "--with-pcre2 and build again; or leave out --vocab and "
                     "--merges: then a token is a byte",
                     vocab);
    else
        rc = bpe->cutter->open(&bpe->words, err);
    if (rc == ERR_OK)
        rc = vocab_read(vocab, &tokens, err);
    if (rc == ERR_OK) {
        vocab_use(tokens, bpe);
        rc = merges_read(merges, tokens, bpe, err);
    }
    json_decref(tokens);
    if (rc == ERR_OK)
        *out = bpe;
    else
        import_bpe_close(bpe);
    return rc;
}

void import_bpe_close(import_bpe_t *bpe)
{
    if (bpe == NULL)
        return;
    if (bpe->cutter != NULL)
        bpe->cutter->close(bpe->words);
    mem_free(bpe->merges.items);
    mem_free(bpe);
}

uint32_t import_bpe_most(const import_bpe_t *bpe)
{
    return bpe->most;
}

int64_t import_bpe_end(const import_bpe_t *bpe)
{
    return bpe->end;
}

err_code_t import_bpe_encode(import_bpe_t *bpe, const char *name,
                             const char *text, size_t bytes,
                             import_tokens_t *out, err_t *err)
{
    const unsigned char *all = (const unsigned char *)text;
    size_t at = 0, begin = 0, end = 0;
    err_code_t rc = ERR_OK;

    while (at < bytes && rc == ERR_OK) {
        rc = bpe->cutter->next(bpe->words, text, bytes, at, &begin, &end, err);
        if (rc != ERR_OK)
            return err_prefix(err, "%s", name);
        /* The cutter skips only bytes that are not UTF-8. */
        if (begin > at)
            rc = import_bpe_word(bpe, name, all + at, begin - at, out, err);
        if (rc == ERR_OK && end > begin)
            rc = import_bpe_word(bpe, name, all + begin, end - begin, out, err);
        at = end;
    }
    return rc;
}
