/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Random trees must survive printing and parsing. Random damage to a run file
 * may at worst cause an error message. All seeds are fixed. */
#include "conf/conf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static const tree_place_t nowhere = {.file = "random"};

/* A text with all characters that are special in YAML, except the byte 0. */
static void random_text(rng_t *rng, char *out, size_t most)
{
    static const char *const pieces[] = {
        "a",  "Z",  "9",    "-",    " ",  ":",  ": ", " #", "#",   "'",
        "\"", "\\", "\n",   "\t",   "[",  "]",  "{",  "}",  ",",   "&",
        "*",  "!",  "null", "~",    "%",  "@",  "`",  "?",  "|",   ">",
        ".",  "é",  "\x01", "true", "\r", "- ", "= ", "<<", "\x7f"};
    size_t count = (size_t)rng_below(rng, most), i, length = 0;
    const char *piece;

    out[0] = '\0';
    for (i = 0; i < count; i++) {
        piece = pieces[rng_below(rng, sizeof pieces / sizeof pieces[0])];
        memcpy(out + length, piece, strlen(piece) + 1);
        length += strlen(piece);
    }
}

static tree_t *random_tree(rng_t *rng, int depth, bool map_wanted)
{
    uint64_t kind = map_wanted ? 3 : rng_below(rng, depth > 0 ? 5 : 2);
    char text[128];
    uint64_t count, i;
    tree_t *tree;

    if (kind == 0)
        return tree_new(TREE_NULL, NULL, nowhere);
    if (kind < 3 && !(kind == 2 && depth > 0)) {
        random_text(rng, text, 12);
        return tree_new(TREE_SCALAR, text, nowhere);
    }
    tree = tree_new(kind == 2 ? TREE_LIST : TREE_MAP, NULL, nowhere);
    count = rng_below(rng, 5);
    for (i = 0; i < count; i++) {
        if (kind == 2) {
            tree_add(tree, random_tree(rng, depth - 1, false));
            continue;
        }
        random_text(rng, text, 6);
        if (tree_get(tree, text) == NULL)
            tree_put(tree, text, nowhere, random_tree(rng, depth - 1, false));
    }
    return tree;
}

static bool equal(const tree_t *a, const tree_t *b)
{
    size_t i;

    if (tree_kind(a) != tree_kind(b) || tree_count(a) != tree_count(b))
        return false;
    if (tree_kind(a) == TREE_SCALAR)
        return strcmp(tree_text(a), tree_text(b)) == 0;
    for (i = 0; i < tree_count(a); i++) {
        if (tree_kind(a) == TREE_MAP &&
            strcmp(tree_key(a, i), tree_key(b, i)) != 0)
            return false;
        if (!equal(tree_at(a, i), tree_at(b, i)))
            return false;
    }
    return true;
}

Test(roundtrip, what_is_printed_reads_back_the_same)
{
    err_t err = ERR_INIT;
    tree_t *tree, *again;
    str_buf_t out;
    rng_t rng;
    int i;

    for (i = 0; i < 3000; i++) {
        rng_open(&rng, 11, RNG_INIT, (uint64_t)i, 0);
        tree = random_tree(&rng, 4, true);
        out = (str_buf_t){0};
        tree_print(tree, 0, &out);
        cr_assert_eq(conf_parse("printed", out.text, &again, &err), ERR_OK,
                     "%d: %s\n%s", i, err.text, out.text);
        cr_assert(equal(tree, again), "%d:\n%s", i, out.text);
        tree_free(again);
        tree_free(tree);
        str_buf_free(&out);
    }
}

static const char sample[] = "run: {name: ising, dir: runs/ising, seed: 1}\n"
                             "data:\n"
                             "  train: \"data/ising/train-*.h5\"   # shards\n"
                             "  input:  {path: /spins, cast: float32}\n"
                             "model:\n"
                             "  input: [1, 32, 32]\n"
                             "  layers:\n"
                             "    - conv: {out: 32, kernel: 3}\n"
                             "    - relu\n"
                             "    - {name: skip, maxpool: {kernel: 2}}\n"
                             "train: {epochs: 5, eval_every: 1 epoch}\n";

/* Replace, delete or duplicate some bytes. */
static void damage(rng_t *rng, char *text)
{
    size_t length = strlen(text), at, span;
    uint64_t count = 1 + rng_below(rng, 6);

    for (; count > 0 && length > 0; count--) {
        at = (size_t)rng_below(rng, length);
        span = 1 + (size_t)rng_below(rng, 8);
        switch (rng_below(rng, 3)) {
        case 0:
            text[at] = (char)(1 + rng_below(rng, 255));
            break;
        case 1:
            span = span < length - at ? span : length - at;
            memmove(text + at, text + at + span, length - at - span + 1);
            break;
        default:
            memmove(text + at + span, text + at, length - at + 1);
            break;
        }
        length = strlen(text);
    }
}

Test(roundtrip, a_damaged_file_gets_a_sentence_with_a_place)
{
    char text[sizeof sample + 64];
    int i, refused = 0;
    tree_t *tree;
    rng_t rng;

    for (i = 0; i < 5000; i++) {
        err_t err = ERR_INIT;

        rng_open(&rng, 12, RNG_INIT, (uint64_t)i, 0);
        memcpy(text, sample, sizeof sample);
        damage(&rng, text);
        if (conf_parse("run.yaml", text, &tree, &err) == ERR_OK) {
            tree_free(tree);
            continue;
        }
        refused++;
        cr_assert_eq(err.code, ERR_CONFIG);
        cr_assert_eq(strncmp(err.text, "run.yaml:", 9), 0, "%s", err.text);
    }
    cr_assert_gt(refused, 1000);
}
