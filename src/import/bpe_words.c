/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Cuts a text into words, by PCRE2. If PCRE2 has made machine code of the
 * pattern (JIT), each call of pcre2_match gets the whole text. Without machine
 * code, each call first searches its whole text for bytes that are not UTF-8.
 * So the call gets only a window of the text. The window grows until the word
 * ends well within the window.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "import/bpe_cutter.h"

/* The characters with Unicode's property White_Space, which are those of \s in
 * Python's module regex. */
#define SPACE                                                        \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}" \
    "\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

/* GPT-2's pattern, with this class in place of \s. */
static const char pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE
    "\\p{L}\\p{N}]+|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+";

#define WINDOW ((size_t)256) /* bytes */
/* The pattern looks at less than this number of bytes behind the end of a
 * word. */
#define BEHIND ((size_t)16)

typedef struct words {
    pcre2_code *code;
    pcre2_match_data *match;
    bool compiled; /* to machine code */
} words_t;

static void words_close(void *state)
{
    words_t *words = state;

    if (words == NULL)
        return;
    pcre2_match_data_free(words->match);
    pcre2_code_free(words->code);
    mem_free(words);
}

/* Open without machine code. */
static err_code_t words_open_plain(void **state, err_t *err)
{
    words_t *words = NULL;
    int number = 0;
    size_t at = 0;
    err_code_t rc = mem_new(words_t, 1, "a pattern", &words, err);

    if (rc != ERR_OK)
        return rc;
    words->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &number, &at, NULL);
    if (words->code != NULL)
        words->match = pcre2_match_data_create_from_pattern(words->code, NULL);
    if (words->match == NULL) {
        words_close(words);
        return err_set(err, ERR_UNAVAILABLE,
                       "PCRE2 cannot compile the pattern of words (error %d "
                       "at byte %zu)",
                       number, at);
    }
    *state = words;
    return ERR_OK;
}

static err_code_t words_open(void **state, err_t *err)
{
    const err_code_t rc = words_open_plain(state, err);
    words_t *words;

    if (rc != ERR_OK)
        return rc;
    words = *state;
    /* This may fail: then PCRE2 interprets the pattern. */
    words->compiled = pcre2_jit_compile(words->code, PCRE2_JIT_COMPLETE) == 0;
    return ERR_OK;
}

/* The end of a window of [window] bytes at [at]. If it would cut a character
 * into two, it is moved to the start of the character. */
static size_t window_end(const char *text, size_t bytes, size_t at,
                         size_t window)
{
    size_t end = at + window;

    if (window >= bytes - at)
        return bytes;
    for (int i = 0; i < 3 && ((unsigned char)text[end] & 0xc0) == 0x80; i++)
        end--;
    return end;
}

/* Match in windows from *at on. Returns the result of pcre2_match; *at becomes
 * the start of the last window, from which the place of the match is counted.
 * Each character is in some word, so a window without a match has only bytes
 * that are not UTF-8. */
static int windows_match(const words_t *words, const char *text, size_t bytes,
                         size_t *at)
{
    const size_t *place = pcre2_get_ovector_pointer(words->match);
    size_t window = WINDOW;

    for (;;) {
        const size_t end = window_end(text, bytes, *at, window);
        const int found = pcre2_match(words->code, (PCRE2_SPTR)(text + *at),
                                      end - *at, 0, 0, words->match, NULL);

        if (end < bytes && found == PCRE2_ERROR_NOMATCH) {
            *at = end;
            window = WINDOW;
        } else if (end < bytes && found > 0 && place[1] + BEHIND > end - *at) {
            window *= 2;
        } else {
            return found;
        }
    }
}

static err_code_t words_next(void *state, const char *text, size_t bytes,
                             size_t at, size_t *begin, size_t *end, err_t *err)
{
    const words_t *words = state;
    const size_t *place = pcre2_get_ovector_pointer(words->match);
    size_t from = at, base = 0;
    int found;

    if (words->compiled) {
        found = pcre2_match(words->code, (PCRE2_SPTR)text, bytes, at, 0,
                            words->match, NULL);
    } else {
        found = windows_match(words, text, bytes, &from);
        base = from;
    }
    if (found <= 0 && found != PCRE2_ERROR_NOMATCH)
        return err_set(err, ERR_DATA,
                       "PCRE2 finds no word after byte %zu (error %d)", at,
                       found);
    *begin = found > 0 ? base + place[0] : bytes;
    *end = found > 0 ? base + place[1] : bytes;
    return ERR_OK;
}

const bpe_cutter_t import_cutter_pcre2 = {
    .open = words_open, .close = words_close, .next = words_next};
const bpe_cutter_t import_cutter_plain = {
    .open = words_open_plain, .close = words_close, .next = words_next};
