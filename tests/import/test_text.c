/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Texts as streams of tokens. The vocabulary of the tests has the 256 bytes,
 * each with its own number, and what the merges below make. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "import/bpe_cutter.h"
#include "import/import_fixture.h"
#include "lib/facts.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TestSuite(text, .init = fixture_make, .fini = fixture_remove);

/* Convert to one shard; [vocab]: with the files vocab and merges. */
static err_code_t convert(const char *const *words, bool vocab, err_t *err)
{
    char *files[] = {fixture_path("vocab"), fixture_path("merges")};
    const import_config_t config = {.vocab = vocab ? files[0] : NULL,
                                    .merges = vocab ? files[1] : NULL};
    const import_sink_config_t with = {.shards = 1};
    import_sink_report_t report = {0};
    const err_code_t rc =
        fixture_convert("text", words, &config, &with, &report, err);

    free(files[0]);
    free(files[1]);
    return rc;
}

static void expect_tokens(const double *tokens, int count, const char *what)
{
    double found[512];

    cr_assert_eq(fixture_read("train-00.h5", "/tokens", found, 512), count,
                 "%s", what);
    for (int i = 0; i < count; i++)
        cr_expect_eq(found[i], tokens[i], "%s: token %d is %g, not %g", what, i,
                     found[i], tokens[i]);
}

Test(text, bytes_and_a_zero_after_each_text)
{
    static const double tokens[] = {'a', 0xc3, 0xa9, '\n', 0, 'x', 0};
    err_t err = ERR_INIT;

    fixture_write("a.txt", "a\xc3\xa9\n", 4);
    fixture_write("empty.txt", "", 0);
    fixture_gzip("b.txt.gz", "x", 1);
    cr_assert_eq(convert(WORDS("a.txt", "empty.txt", "b.txt.gz"), false, &err),
                 ERR_OK, "%s", err.text);
    expect_tokens(tokens, 7, "bytes");
    fixture_refused("text", WORDS("empty.txt"), &(import_config_t){0}, ERR_DATA,
                    "empty.txt", "no text");
    fixture_refused("text", WORDS("a.txt"), &(import_config_t){.vocab = "v"},
                    ERR_USAGE, "--vocab", "--merges");
}

/* Convert two texts, the first of which becomes [now] after they were counted;
 * that must fail. */
static void check_changed(const char *now)
{
    char *words[] = {fixture_path("a.txt"), fixture_path("b.txt")};
    const import_config_t config = {.words = (const char *const *)words,
                                    .word_count = 2};
    const import_kind_t *kind = import_kind_find("text");
    import_source_t *source = NULL;
    uint8_t tokens[16];
    void *const out[] = {tokens};
    err_t err = ERR_INIT;

    fixture_write("a.txt", "abc", 3);
    fixture_write("b.txt", "de", 2);
    cr_assert_eq(kind->open(&config, &source, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(source->rows, 7);
    fixture_write("a.txt", now, strlen(now));
    cr_expect_eq(kind->read(source, source->rows, out, &err), ERR_DATA);
    FACTS(err.text, "a.txt", "was changed during the conversion", "4 tokens");
    kind->close(source);
    free(words[0]);
    free(words[1]);
}

Test(text, one_that_changes_between_both_reads_is_refused)
{
    check_changed("abcd");
    check_changed("ab");
    check_changed("");
}

/* ---- parts --------------------------------------------------------------- */

enum { TEXTS = 5, PARTS = 2 };

/* Number of tokens of each text of texts_write. Each text that is not empty is
 * followed by a token 0. */
static const int64_t text_tokens[TEXTS] = {4, 0, 3, 1025, 2};

/* What a process gets from the other processes of [PARTS]. */
typedef struct rounds {
    import_share_t share;
    int next;        /* the file that process 0 counts in the next round */
    int counted;     /* files that this process has counted */
    err_code_t fail; /* the error of another process */
} rounds_t;

static err_code_t rounds_gather(void *context, int64_t mine, err_code_t rc,
                                int64_t *out, int count, err_t *err)
{
    rounds_t *rounds = context;
    const int part = rounds->share.part;

    cr_assert_eq(count,
                 rounds->next + PARTS > TEXTS ? TEXTS - rounds->next : PARTS);
    if (rc != ERR_OK)
        return rc;
    if (rounds->fail != ERR_OK)
        return err_set(err, rounds->fail, "%s", "");
    if (part < count)
        cr_expect_eq(mine, text_tokens[rounds->next + part]);
    rounds->counted += part < count;
    for (int i = 0; i < count; i++)
        out[i] = text_tokens[rounds->next + i];
    rounds->next += PARTS;
    return ERR_OK;
}

static void texts_write(char *words[TEXTS])
{
    static const char *const names[TEXTS] = {"a", "b", "c", "d.gz", "e"};
    char large[1024];

    memset(large, 'x', sizeof large);
    large[7] = 'y';
    fixture_write("a", "abc", 3);
    fixture_write("b", "", 0);
    fixture_write("c", "de", 2);
    fixture_gzip("d.gz", large, sizeof large);
    fixture_write("e", "f", 1);
    for (int i = 0; i < TEXTS; i++)
        words[i] = fixture_path(names[i]);
}

/* Read the [count] tokens from [first] on as one of [PARTS] processes. */
static void part_read(const import_config_t *config, int64_t first,
                      int64_t count, uint8_t *out)
{
    const import_kind_t *kind = import_kind_find("text");
    void *const outs[] = {out};
    import_source_t *source = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(kind->open(config, &source, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(source->rows, 1034);
    cr_assert_eq(kind->skip(source, first, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(kind->read(source, count, outs, &err), ERR_OK, "%s", err.text);
    kind->close(source);
}

Test(text, each_process_counts_some_of_the_files)
{
    static const int64_t firsts[] = {0, 1, 3, 4, 6, 7, 8, 1031, 1032, 1033};
    static uint8_t whole[1034], some[1034];
    char *words[TEXTS];
    import_config_t config = {.words = (const char *const *)words,
                              .word_count = TEXTS};

    texts_write(words);
    part_read(&config, 0, 1034, whole);
    cr_expect_eq(whole[7 + 7], 'y');
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++)
        for (int part = 0; part < PARTS; part++) {
            const int64_t count = 1034 - firsts[i];
            rounds_t rounds = {.share = {part, PARTS, rounds_gather, &rounds}};

            config.share = &rounds.share;
            part_read(&config, firsts[i], count, some);
            cr_expect_eq(rounds.counted, part == 0 ? 3 : 2);
            cr_expect_arr_eq(some, whole + firsts[i], (size_t)count);
        }
    for (int i = 0; i < TEXTS; i++)
        free(words[i]);
}

/* If another process has an error, no process opens its source. */
Test(text, an_error_of_another_process_ends_all_processes)
{
    const import_kind_t *kind = import_kind_find("text");
    rounds_t rounds = {.share = {1, PARTS, rounds_gather, &rounds},
                       .fail = ERR_IO};
    char *words[TEXTS];
    const import_config_t config = {.words = (const char *const *)words,
                                    .word_count = TEXTS,
                                    .share = &rounds.share};
    import_source_t *source = NULL;
    err_t err = ERR_INIT;

    texts_write(words);
    cr_expect_eq(kind->open(&config, &source, &err), ERR_IO);
    for (int i = 0; i < TEXTS; i++)
        free(words[i]);
}

#ifdef HAVE_PCRE2

/* The character of GPT-2's table for a byte, as UTF-8. */
static char *name_of(int byte)
{
    const int code = byte <= 32                   ? 0x100 + byte
                     : byte >= 127 && byte <= 160 ? 0x121 + byte - 127
                     : byte == 173                ? 0x143
                                                  : byte;

    if (byte == '"' || byte == '\\')
        return str_printf("\\%c", byte);
    return code < 0x80
               ? str_printf("%c", code)
               : str_printf("%c%c", 0xc0 | code >> 6, 0x80 | (code & 0x3f));
}

/* The tokens from 256 on, and the merges that make them, the first one first.
 * Merges of a letter with a space, a digit or an apostrophe are never used, as
 * such pairs are in different words. */
static const char *const merges[][2] = {
    {"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {"Ġ", "Ġ"},
    {"Ġ", "t"}, {"Ċ", "Ċ"}, {"b", "c"},   {"a", "b"},    {"Ã", "©"},
    {"'", "s"}, {"t", "'"}, {"a", "1"},   {"s", "Ġ"},    {"ÿ", "þ"},
    {"a", "Â"}, {"!", "!"}, {"Ġ", "!!"},  {"x", "y"},    {"xy", "xy"}};
enum {
    HE = 256,
    LL,
    HELL,
    HELLO,
    SPACES,
    SPACE_T,
    LINES,
    BC,
    AB,
    ACUTE,
    OWN,
    T_QUOTE,
    A_ONE,
    S_SPACE,
    FF_FE,
    A_NBSP,
    LOUD,
    SPACE_LOUD,
    XY,
    XYXY,
    END
};

static void vocab_write(void)
{
    str_buf_t vocab = {0}, list = {0};

    str_buf_add(&vocab, "{");
    for (int b = 0; b < 256; b++) {
        char *name = name_of(b);

        str_buf_add(&vocab, "\"%s\": %d, ", name, b);
        free(name);
    }
    str_buf_add(&list, "#version: 0.2\n");
    for (int i = 0; i < END - HE; i++) {
        str_buf_add(&vocab, "\"%s%s\": %d, ", merges[i][0], merges[i][1],
                    HE + i);
        str_buf_add(&list, "%s %s\n", merges[i][0], merges[i][1]);
    }
    str_buf_add(&vocab, "\"<|endoftext|>\": %d}", END);
    fixture_write("vocab", vocab.text, vocab.length);
    fixture_write("merges", list.text, list.length);
    str_buf_free(&vocab);
    str_buf_free(&list);
}

static void check_text(const char *text, const double *tokens, int count)
{
    err_t err = ERR_INIT;

    fixture_write("t.txt", text, strlen(text));
    cr_assert_eq(convert(WORDS("t.txt"), true, &err), ERR_OK, "%s", err.text);
    expect_tokens(tokens, count, text);
}
#define CHECK(text, ...)                                   \
    check_text((text), (const double[]){__VA_ARGS__, END}, \
               (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)) + 1)

Test(text, words_are_merged_in_the_order_of_the_list)
{
    vocab_write();
    CHECK("hello hello", HELLO, ' ', HELLO);
    CHECK("help", HE, 'l', 'p');
    CHECK("abc", 'a', BC);
    CHECK("abab", AB, AB);
    CHECK("xyxyxy", XYXY, XY);
    CHECK("lll", LL, 'l');
    CHECK("hell!! !!", HELL, LOUD, SPACE_LOUD);
}

Test(text, texts_are_cut_into_words_as_gpt2_does)
{
    vocab_write();
    CHECK("s  t", 's', ' ', SPACE_T);
    CHECK("s\n\n t", 's', LINES, SPACE_T);
    CHECK("s  ", 's', SPACES);
    CHECK("it's", 'i', 't', OWN);
    CHECK("a1", 'a', '1');
    CHECK("\xc3\xa9", ACUTE);
    CHECK("a\xc2\xa0z", 'a', 0xc2, 0xa0, 'z'); /* a space, not broken */
    CHECK("a\xff\xfez", 'a', FF_FE, 'z');      /* no UTF-8 */
    CHECK("\x7f\xc2\xad", 0x7f, 0xc2, 0xad);
}

Test(text, files_that_are_no_vocabulary_are_refused)
{
    static const struct {
        const char *vocab, *merges, *part, *other;
    } bad[] = {
        {"{", "", "vocab:1", "JSON"},
        {"[]", "", "vocab", "JSON object"},
        {"{\"a\": -1}", "", "vocab", "\"a\""},
        {"{\"a\": \"b\"}", "", "vocab", "number"},
        {"{\"a\": 1, \"b\": 2}", "#version: 0.2\na b\n", "merges:2", "a b"},
        {"{\"a\": 1, \"aa\": 2}", "a a\na\n", "merges:2", "two tokens"},
        {"{\"a\": 1}", "", "t.txt", "0x62"}};
    char *files[] = {fixture_path("vocab"), fixture_path("merges")};
    const import_config_t config = {.vocab = files[0], .merges = files[1]};

    fixture_write("t.txt", "ab", 2);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fixture_write("vocab", bad[i].vocab, strlen(bad[i].vocab));
        fixture_write("merges", bad[i].merges, strlen(bad[i].merges));
        fixture_refused("text", WORDS("t.txt"), &config, ERR_DATA, bad[i].part,
                        bad[i].other);
    }
    free(files[0]);
    free(files[1]);
}

#endif

/* ---- without machine code -------------------------------------------------
 */

#ifdef HAVE_PCRE2
/* Random texts are made of these pieces: letters and spaces of 1 to 4 bytes,
 * marks, digits, and bytes that are no characters. */
static const char *const pieces[] = {"a",
                                     "Z",
                                     " ",
                                     "\n",
                                     "'",
                                     "'s",
                                     "'ll",
                                     "'x",
                                     "7",
                                     "\xc3\xa9",
                                     "\xe2\x80\x83",
                                     "\xf0\x9f\x98\x80",
                                     "\xff",
                                     "\x80",
                                     "\xe2\x80",
                                     "\xf0",
                                     "!",
                                     ".",
                                     "\xc2\xa0",
                                     "\t"};

/* A random text of [bytes] bytes at [text]. */
static void text_make(uint64_t seed, char *text, size_t bytes)
{
    size_t at = 0;
    rng_t rng;

    rng_open(&rng, seed, RNG_INIT, 0, 0);
    while (at < bytes) {
        const char *piece =
            pieces[rng_below(&rng, sizeof pieces / sizeof *pieces)];
        size_t times = rng_below(&rng, 16) == 0 ? 1 + rng_below(&rng, 700) : 1;

        for (; times > 0; times--)
            for (const char *c = piece; *c != '\0' && at < bytes; c++)
                text[at++] = *c;
    }
}

/* The next word by [cutter]. */
static void word_next(const bpe_cutter_t *cutter, void *state, const char *text,
                      size_t bytes, size_t place[2])
{
    err_t err = ERR_INIT;

    cr_assert_eq(
        cutter->next(state, text, bytes, place[1], &place[0], &place[1], &err),
        ERR_OK, "%s", err.text);
}

Test(text, words_are_the_same_without_machine_code)
{
    enum { BYTES = 5000 };
    const bpe_cutter_t *cutters[] = {&import_cutter_pcre2,
                                     &import_cutter_plain};
    static char text[BYTES];
    void *states[2] = {NULL};
    err_t err = ERR_INIT;
    int words = 0;

    for (int i = 0; i < 2; i++)
        cr_assert_eq(cutters[i]->open(&states[i], &err), ERR_OK);
    for (uint64_t seed = 0; seed < 40; seed++) {
        const size_t bytes = BYTES - (size_t)seed;
        size_t a[2] = {0}, b[2] = {0};

        text_make(seed, text, bytes);
        while (a[1] < bytes) {
            word_next(cutters[0], states[0], text, bytes, a);
            word_next(cutters[1], states[1], text, bytes, b);
            cr_assert(a[0] == b[0] && a[1] == b[1],
                      "text %d: %zu to %zu, not %zu to %zu", (int)seed, b[0],
                      b[1], a[0], a[1]);
            words++;
        }
    }
    cr_assert_gt(words, 40 * 100);
    for (int i = 0; i < 2; i++)
        cutters[i]->close(states[i]);
}

/* CPU seconds to cut a text of [bytes] bytes. */
static double cut_seconds(size_t bytes)
{
    const bpe_cutter_t *cutter = &import_cutter_plain;
    struct timespec begin, end;
    size_t place[2] = {0};
    void *state = NULL;
    char *text = NULL;

    cr_assert_eq(cutter->open(&state, NULL), ERR_OK);
    cr_assert_eq(mem_new(char, bytes, "a text", &text, NULL), ERR_OK);
    for (size_t i = 0; i < bytes; i++)
        text[i] = i % 5 == 4 ? ' ' : 'a';
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    while (place[1] < bytes)
        word_next(cutter, state, text, bytes, place);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    mem_free(text);
    cutter->close(state);
    return (double)(end.tv_sec - begin.tv_sec) +
           1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

/* A text of 16 times the length takes 16 times as long, not 256 times. */
Test(text, long_texts_take_no_square_of_their_length)
{
    const double one = cut_seconds((size_t)1 << 16);

    cr_expect_lt(cut_seconds((size_t)1 << 20), 64 * one);
}
#endif
