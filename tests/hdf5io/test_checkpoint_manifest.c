/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Manifests with a correct hash but wrong content are refused with a message;
 * and no text crashes the parser. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rng.h"
#include "ckpt_fixture.h"
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_manifest.h"

#define SELF " \"manifest_xxh3\": \""
#define BYTES 100000 /* of each file */
#define ZEROS "0000000000000000"

/* Print a manifest of the fixture's tensors for 3 writing ranks. */
static str_buf_t manifest_text(const hdf5io_progress_t *progress)
{
    static const hdf5io_mark_t marks[] = {
        {(char *)"train", (char *)"a \"b\".h5", 1, 5, 1, UINT64_MAX, true},
        {(char *)"valid", (char *)"\xff.h5", 3, 0, 2, 0, false}};
    hdf5io_votes_t votes = {.size = 3};
    hdf5io_checkpoint_config_t config = {.votes = &votes,
                                         .config_text = "\"\\\n\t\xc3\xa4",
                                         .marks = marks,
                                         .mark_count = 2,
                                         .block_bytes = BYTES / 2,
                                         .versions = "oneDNN 2.6"};
    hdf5io_manifest_t m = {0};
    str_buf_t text = {0};
    ckpt_state_t state;
    int64_t used[4] = {0};

    ckpt_state_make(&state, 1);
    cr_assert_eq(hdf5io_manifest_build(&config, progress, state.tensors,
                                       state.count, &m, NULL),
                 ERR_OK);
    for (int i = 0; i < m.file_count; i++) {
        m.files[i].bytes = BYTES;
        cr_assert_eq(hdf5io_blocks_open(&m, i, NULL), ERR_OK);
    }
    for (int i = 0; i < m.piece_count; i++) {
        m.pieces[i].offset = 2048 + used[m.pieces[i].file];
        used[m.pieces[i].file] += m.pieces[i].count * 4;
    }
    cr_assert_eq(hdf5io_manifest_print(&m, &text, NULL), ERR_OK);
    hdf5io_manifest_free(&m);
    ckpt_state_free(&state);
    return text;
}

static err_code_t parse(const str_buf_t *text, err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    err_code_t code =
        hdf5io_manifest_parse(text->text, text->length, &m, &hash, err);

    hdf5io_manifest_free(&m);
    return code;
}

Test(checkpoint_manifest, comes_back_as_it_was)
{
    const double reals[] = {0.1,      -0.0,    DBL_MIN,      DBL_MAX,
                            INFINITY, 1.0 / 3, DBL_TRUE_MIN, -INFINITY};

    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        hdf5io_progress_t progress = {.step = INT64_MAX / 4,
                                      .updates = INT64_MAX / 4 - 1,
                                      .samples = 5,
                                      .seed = UINT64_MAX,
                                      .loss_sum = reals[i],
                                      .best = -reals[i]};
        str_buf_t text = manifest_text(&progress);
        hdf5io_manifest_t m = {0};
        uint64_t hash;

        cr_assert_eq(
            hdf5io_manifest_parse(text.text, text.length, &m, &hash, NULL),
            ERR_OK);
        cr_assert_arr_eq(&m.progress, &progress, sizeof progress);
        cr_assert_str_eq(m.config_text, "\"\\\n\t\xc3\xa4");
        cr_assert(strstr(m.versions, ", oneDNN 2.6"));
        cr_assert_eq(m.tensor_count, CKPT_TENSORS);
        cr_assert_eq(m.file_count, 4);
        cr_assert_eq(m.version, 2);
        cr_assert_eq(m.block_bytes, BYTES / 2);
        cr_assert_eq(hdf5io_blocks_count(&m, 3), 2);
        hdf5io_manifest_free(&m);
        str_buf_free(&text);
    }
}

static err_code_t marks_parse(const str_buf_t *text, hdf5io_manifest_t *m)
{
    uint64_t hash;

    *m = (hdf5io_manifest_t){0};
    return hdf5io_manifest_parse(text->text, text->length, m, &hash, NULL);
}

/* Manifests of versions without marks are accepted, too. */
Test(checkpoint_manifest, what_the_data_held_comes_back)
{
    const hdf5io_progress_t progress = {.step = 1};
    str_buf_t text = manifest_text(&progress), older;
    hdf5io_manifest_t m;

    cr_assert_eq(marks_parse(&text, &m), ERR_OK);
    cr_assert_eq(m.mark_count, 2);
    cr_assert_str_eq(m.marks[0].split, "train");
    cr_assert_str_eq(m.marks[0].name, "a \"b\".h5");
    cr_assert_eq(m.marks[0].samples, 5);
    cr_assert_eq(m.marks[0].quick, 1);
    cr_assert(m.marks[0].whole);
    cr_assert_eq(m.marks[0].full, UINT64_MAX);
    cr_assert_str_eq(m.marks[1].name, "?.h5", "what is not UTF-8");
    cr_assert_eq(m.marks[1].shards, 3);
    cr_assert_not(m.marks[1].whole);
    hdf5io_manifest_free(&m);
    older = ckpt_manifest_edited(text.text, "\"data\": [", "\"date\": [");
    cr_assert_eq(marks_parse(&older, &m), ERR_OK);
    cr_assert_eq(m.mark_count, 0);
    hdf5io_manifest_free(&m);
    str_buf_free(&older);
    str_buf_free(&text);
}

/* Members that this version of cddp does not know are ignored wherever they
 * are. So are the blocks in a manifest of version 1. */
Test(checkpoint_manifest, other_members_are_ignored)
{
    static const char *const rows[][2] = {
        {"\"step\"", "\"other\": {\"x\": [1]}, \"step\""},
        {"\"step\"", "\"requires\": [], \"step\""},
        {"{\"name\": \"shard-0.h5\"", "{\"x\": 1, \"name\": \"shard-0.h5\""},
        {"\"name\": \"model/", "\"x\": 1, \"name\": \"model/"},
        {"\"version\": 2", "\"version\": 1"},
    };
    hdf5io_progress_t progress = {.step = 9};
    str_buf_t text = manifest_text(&progress);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_buf_t more =
            ckpt_manifest_edited(text.text, rows[i][0], rows[i][1]);
        err_t err = ERR_INIT;

        cr_expect_eq(parse(&more, &err), ERR_OK, "%s: %s", rows[i][1],
                     err.text);
        str_buf_free(&more);
    }
    str_buf_free(&text);
}

/* As an older version wrote it. */
Test(checkpoint_manifest, without_updates_each_step_is_one)
{
    hdf5io_progress_t progress = {.step = 9, .updates = 7};
    str_buf_t text = manifest_text(&progress);
    str_buf_t old = ckpt_manifest_edited(text.text, " \"updates\": 7,\n", "");
    hdf5io_manifest_t m = {0};
    uint64_t hash;

    cr_assert_eq(hdf5io_manifest_parse(old.text, old.length, &m, &hash, NULL),
                 ERR_OK);
    cr_assert_eq(m.progress.step, 9);
    cr_assert_eq(m.progress.updates, 9);
    hdf5io_manifest_free(&m);
    str_buf_free(&old);
    str_buf_free(&text);
}

Test(checkpoint_manifest, a_loss_that_is_no_number_comes_back)
{
    hdf5io_progress_t progress = {.loss_sum = NAN};
    str_buf_t text = manifest_text(&progress);
    hdf5io_manifest_t m = {0};
    uint64_t hash;

    cr_assert_eq(hdf5io_manifest_parse(text.text, text.length, &m, &hash, NULL),
                 ERR_OK);
    cr_assert(isnan(m.progress.loss_sum));
    hdf5io_manifest_free(&m);
    str_buf_free(&text);
}

Test(checkpoint_manifest, what_is_wrong_is_said)
{
    static const char *const rows[][3] = {
        {"\"version\": 2", "\"version\": 0", "version 0, this cddp reads"},
        {"\"block_bytes\"", "\"blocks\"", "\"block_bytes\" is missing"},
        {"\"block_bytes\": 50000", "\"block_bytes\": 0", "\"block_bytes\""},
        {"\"block_bytes\": 50000", "\"block_bytes\": 4611686018427387904",
         "\"block_bytes\""},
        {"\"block_bytes\": 50000", "\"block_bytes\": 49999",
         "file 0: its member \"blocks\" is missing or has not 3 hashes"},
        {"\"bytes\": 100000", "\"bytes\": 9223372036854775807", "has not "},
        {"\"blocks\": \"", "\"block\": \"", "file 0: its member \"blocks\""},
        {"\"blocks\": \"" ZEROS, "\"blocks\": \"", "has not 2 hashes"},
        {"\"blocks\": \"0", "\"blocks\": \"", "has not 2 hashes"},
        {"\"blocks\": \"" ZEROS ZEROS "\"", "\"blocks\": 7", "has not 2"},
        {"\"blocks\": \"" ZEROS "0", "\"blocks\": \"" ZEROS "x",
         "file 0: hash 1 of its member \"blocks\" is no hash"},
        {"\"type\": \"float32\"", "\"type\": \"float\"", "expected float32"},
        {"[0, 0, 5, 2408]", "[0, 0, 5, 2404]", "pieces share bytes"},
        {"[0, 0, 5, 2408]", "[0, 0, 5, 2048]", "pieces share bytes"},
        {"cddp-checkpoint", "other", "it is other"},
        {"\"step\"", "\"stop\"", "step"},
        {"\"data\": [", "\"data\": 7, \"x\": [", "\"data\" is no list"},
        {"\"sample_xxh3\"", "\"sample\"", "entry 0 of its member \"data\""},
        {"\"shards\": 3", "\"shards\": 0", "entry 1 of its member \"data\""},
        {"\"samples\": 5, ", "\"samples\": -5, ", "entry 0 of its"},
        {"\"updates\": 0", "\"updates\": 1", "\"updates\" is 1"},
        {"\"updates\": 0", "\"updates\": -1", "updates"},
        {"\"epoch\": 0", "\"epoch\": \"0\"", "epoch"},
        {"\"step\": 0", "\"step\": 9223372036854775807", "any run"},
        {"\"step\": 0", "\"step\": 4611686018427387904", "any run"},
        {"\"epoch\": 0", "\"epoch\": 9223372036854775807", "any run"},
        {"\"samples\": 0", "\"samples\": 9223372036854775806", "any run"},
        {"\"epoch_step\": 0", "\"epoch_step\": 9223372036854775807", "any run"},
        {"\"loss_count\": 0", "\"loss_count\": 9223372036854775807", "any run"},
        {"\"correct\": 0", "\"correct\": 9223372036854775807", "any run"},
        {"\"seed\": \"0\"", "\"seed\": \"-1\"", "\"seed\""},
        {"\"seed\": \"0\"", "\"seed\": \"99999999999999999999\"", "number"},
        {"\"loss_sum\": \"0\"", "\"loss_sum\": \"0x\"", "\"loss_sum\""},
        {"\"world_size\": 3", "\"world_size\": 0", "world_size"},
        {"\"config_hash\": \"0", "\"config_hash\": \"x", "\"config_hash\""},
        {"\"xxh3\": \"", "\"xxh3\": \"x", "file 0"},
        {"\"shard-0.h5\"", "\"../shard-0.h5\"", "file 0"},
        {"\"shard-0.h5\"", "\"\"", "file 0"},
        {"\"shard-0.h5\"", "\"shard\\r0.h5\"", "file 0"},
        {"\"shard-0.h5\"", "\"shard\\\"0.h5\"", "file 0"},
        {"\"bytes\": 100000", "\"bytes\": -1", "file 0"},
        {"\"bytes\": 100000", "\"bytes\": 100", "has not 1 hashes"},
        {"[5, 2, 3, 3]", "[5, 2, 3, 4]", "do not cover"},
        {"[5, 2, 3, 3]", "[5, 2, 3, 2]", "do not cover"},
        {"[5, 2, 3, 3]", "[5, 2, -3, -3]", "shape"},
        {"[5, 2, 3, 3]", "[4000000000, 4000000000, 3]", "shape"},
        {"[5, 2, 3, 3]", "[5, 2, 3, \"3\"]", "shape"},
        {"[5, 2, 3, 3]", "[1, 1, 1, 5, 2, 3, 3]", "7 dimensions"},
        {"[0, 0, 90, 2048]", "[0, 1, 89, 2048]", "do not cover"},
        {"[0, 0, 90, 2048]", "[9, 0, 90, 2048]", "do not cover"},
        {"[0, 0, 90, 2048]", "[0, 0, 90, -1]", "do not cover"},
        {"[0, 0, 90, 2048]", "[0, 0, 90, 99999]", "do not cover"},
        {"[0, 0, 90, 2048]", "[0, 0, 90]", "model/conv1.weight"},
        {"[0, 0, 90, 2048]", "", "do not cover"},
        {"\"model/conv1.bias\"", "\"model/conv1.weight\"",
         "tensor model/conv1.weight is named twice"},
        {"\"optimizer/exp_avg/fc.weight\"", "\"model/conv1.weight\"",
         "tensor model/conv1.weight is named twice"},
        {"\"shard-1.h5\"", "\"shard-0.h5\"", "file shard-0.h5 is named twice"},
        {"\"epoch\": 0,", "\"epoch\": 0", "line "},
        {"\"epoch\": 0,", "\"epoch\": 0, \"epoch\": 0,", "line "},
    };
    hdf5io_progress_t progress = {0};
    str_buf_t text = manifest_text(&progress);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_buf_t bad = ckpt_manifest_edited(text.text, rows[i][0], rows[i][1]);
        err_t err = ERR_INIT;

        cr_assert_eq(parse(&bad, &err), ERR_DATA, "%s", rows[i][1]);
        cr_assert(strstr(err.text, rows[i][2]), "%s: %s", rows[i][1], err.text);
        str_buf_free(&bad);
    }
    str_buf_free(&text);
}

/* Tested in version 1: in version 2 the blocks would limit the bytes of a file.
 */
Test(checkpoint_manifest, the_bytes_of_all_files_are_a_count)
{
    hdf5io_progress_t progress = {0};
    str_buf_t text = manifest_text(&progress);
    str_buf_t old =
        ckpt_manifest_edited(text.text, "\"version\": 2", "\"version\": 1");
    str_buf_t most = ckpt_manifest_edited(old.text, "\"bytes\": 100000",
                                          "\"bytes\": 9223372036854475807");
    str_buf_t more = ckpt_manifest_edited(old.text, "\"bytes\": 100000",
                                          "\"bytes\": 9223372036854475808");
    err_t err = ERR_INIT;

    cr_expect_eq(parse(&most, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(parse(&more, &err), ERR_DATA);
    cr_expect_not_null(strstr(err.text, "its first 4 files have more than"),
                       "%s", err.text);
    str_buf_free(&more);
    str_buf_free(&most);
    str_buf_free(&old);
    str_buf_free(&text);
}

/* The manifest of a later version is whole, so the message does not call it
 * damaged. */
Test(checkpoint_manifest, what_a_later_version_wrote_is_told_from_damage)
{
    static const char *const rows[][3] = {
        {"\"version\": 2", "\"version\": 3", "version 3, this cddp reads"},
        {"\"step\"", "\"requires\": [\"zstd\"], \"step\"",
         "it requires \"zstd\" of its reader"},
        {"\"step\"", "\"requires\": [7], \"step\"", "it requires "},
        {"\"step\"", "\"requires\": 7, \"step\"", "it requires "},
        {"\"type\": \"float32\"", "\"type\": \"bfloat16\"", "only float32"},
        {"\"type\": \"float32\"", "\"type\": \"float64\"", "float64"},
    };
    hdf5io_progress_t progress = {0};
    str_buf_t text = manifest_text(&progress);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_buf_t later =
            ckpt_manifest_edited(text.text, rows[i][0], rows[i][1]);
        err_t err = ERR_INIT;

        cr_expect_eq(parse(&later, &err), ERR_CONFIG, "%s", rows[i][1]);
        cr_expect_not_null(strstr(err.text, rows[i][2]), "%s: %s", rows[i][1],
                           err.text);
        cr_expect_not_null(strstr(err.text, "--resume"), "%s", err.text);
        str_buf_free(&later);
    }
    str_buf_free(&text);
}

/* The state of a schedule is restored, may be absent, and is refused if
 * damaged. */
Test(checkpoint_manifest, what_a_schedule_has_seen)
{
    static const char *const rows[][3] = {
        {"\"watch\": {", "\"watch\": 7, \"x\": {",
         "watch: its member \"best\""},
        {"{\"best\": \"0.5\"", "{\"best\": \"half\"", "watch: its member"},
        {"{\"best\": \"0.5\"", "{\"best\": 0.5", "watch: its member"},
        {"\"bad\": 3, ", "", "watch: its member \"bad\""},
        {"\"cuts\": 1", "\"cuts\": -1", "watch: its member \"cuts\""},
        {"\"cuts\": 1", "\"cuts\": 4611686018427387904", "watch: "},
        {"\"rest\": 2", "\"rest\": \"2\"", "watch: its member \"rest\""},
        {"\"step\": 8, \"seen\"", "\"step\": 11, \"seen\"",
         "watch: its member \"step\" is 11, but the checkpoint is of step 10"},
    };
    const hdf5io_progress_t progress = {
        .step = 10,
        .updates = 10,
        .watch = {
            .best = 0.5, .step = 8, .seen = 1, .bad = 3, .rest = 2, .cuts = 1}};
    str_buf_t text = manifest_text(&progress), without;
    hdf5io_manifest_t m = {0};

    cr_assert_eq(marks_parse(&text, &m), ERR_OK);
    cr_expect_arr_eq(&m.progress, &progress, sizeof progress);
    hdf5io_manifest_free(&m);
    without = ckpt_manifest_edited(text.text, "\"watch\"", "\"other\"");
    cr_assert_eq(marks_parse(&without, &m), ERR_OK);
    cr_expect_eq(m.progress.watch.step, 0);
    cr_expect_eq(m.progress.watch.cuts, 0);
    hdf5io_manifest_free(&m);
    str_buf_free(&without);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_buf_t bad = ckpt_manifest_edited(text.text, rows[i][0], rows[i][1]);
        err_t err = ERR_INIT;

        cr_expect_eq(parse(&bad, &err), ERR_DATA, "%s", rows[i][1]);
        cr_expect_not_null(strstr(err.text, rows[i][2]), "%s: %s", rows[i][1],
                           err.text);
        str_buf_free(&bad);
    }
    str_buf_free(&text);
}

/* The samples that a run leaves out, and its recent losses, are read back with
 * every bit. Manifests of earlier versions, without these members, are also
 * accepted. */
Test(checkpoint_manifest, rollbacks_come_back)
{
    static const char *const rows[][3] = {
        {"[[2, 48, 24]", "[[2, 48]", "item 0 of its member \"skipped\""},
        {"[3, 0, 1]]", "[3, 0, 0]]", "item 1 of its member \"skipped\""},
        {"[3, 0, 1]]", "[3, -1, 1]]", "item 1 of its member \"skipped\""},
        {"[3, 0, 1]]", "[3, 9223372036854775807, 1]]", "\"skipped\""},
        {"[[2, 48, 24], [3, 0, 1]]", "{}", "\"skipped\" is no list"},
        {"\"0.25\"]", "0.25]", "item 2 of its member \"losses\""},
        {"\"0.25\"]", "\"nan\"]", "item 2 of its member \"losses\""},
        {"\"0.25\"]", "\"0.25x\"]", "item 2 of its member \"losses\""},
    };
    const hdf5io_progress_t progress = {.step = 10,
                                        .updates = 8,
                                        .skips = {{2, 48, 24}, {3, 0, 1}},
                                        .skip_count = 2,
                                        .losses = {0.1, -1.0 / 3, 0.25},
                                        .loss_recent = 3};
    str_buf_t text = manifest_text(&progress), without;
    hdf5io_manifest_t m = {0};

    cr_assert_eq(marks_parse(&text, &m), ERR_OK);
    cr_expect_arr_eq(&m.progress, &progress, sizeof progress);
    hdf5io_manifest_free(&m);
    without = ckpt_manifest_edited(text.text, "\"skipped\"", "\"other\"");
    cr_assert_eq(marks_parse(&without, &m), ERR_OK);
    cr_expect_eq(m.progress.skip_count, 0);
    cr_expect_eq(m.progress.loss_recent, 3);
    hdf5io_manifest_free(&m);
    str_buf_free(&without);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_buf_t bad = ckpt_manifest_edited(text.text, rows[i][0], rows[i][1]);
        err_t err = ERR_INIT;

        cr_expect_eq(parse(&bad, &err), ERR_DATA, "%s", rows[i][1]);
        cr_expect_not_null(strstr(err.text, rows[i][2]), "%s: %s", rows[i][1],
                           err.text);
        str_buf_free(&bad);
    }
    str_buf_free(&text);
}

static void check_order(const hdf5io_order_t *order)
{
    const hdf5io_progress_t progress = {.order = *order};
    str_buf_t text = manifest_text(&progress);
    hdf5io_manifest_t m = {0};

    cr_assert_eq(marks_parse(&text, &m), ERR_OK);
    cr_expect_arr_eq(&m.progress.order, order, sizeof *order);
    hdf5io_manifest_free(&m);
    str_buf_free(&text);
}

Test(checkpoint_manifest, the_order_of_the_epoch_comes_back)
{
    static const char *const bad[][2] = {
        {"\"version\": 2, \"shuffle\"", "\"version\": 0, \"shuffle\""},
        {"\"version\": 2, \"shuffle\"", "\"version\": \"2\", \"shuffle\""},
        {"\"chunk\"", "\"chunks\""},
        {"\"lanes\": 64", "\"lanes\": 0"},
        {"\"lanes\": 64", "\"lanes\": 257"},
        {"\"units\"", "\"other\""},
        {"\"units\": \"0", "\"units\": \"x"}};
    const hdf5io_order_t orders[] = {
        {0}, /* a program that does not know: no member */
        {1, HDF5IO_SHUFFLE_CHUNK, 0, 0, 0},
        {2, HDF5IO_SHUFFLE_NONE, 0, 0, 0},
        {2, HDF5IO_SHUFFLE_FULL, 0, 0, 0},
        {2, HDF5IO_SHUFFLE_CHUNK, 256, 64, 7}};
    const hdf5io_progress_t progress = {.order = orders[4]};
    str_buf_t text = manifest_text(&progress), later;
    hdf5io_manifest_t m = {0};

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        check_order(&orders[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        str_buf_t wrong = ckpt_manifest_edited(text.text, bad[i][0], bad[i][1]);
        err_t err = ERR_INIT;

        cr_expect_eq(parse(&wrong, &err), ERR_DATA, "%s", bad[i][1]);
        cr_expect_not_null(strstr(err.text, "\"order\""), "%s", err.text);
        str_buf_free(&wrong);
    }
    /* What a later version says is not understood, but it can be refused
     * where it matters. */
    later = ckpt_manifest_edited(text.text,
                                 "{\"version\": 2, \"shuffle\": \"chunk\"",
                                 "{\"version\": 3, \"shuffle\": \"spiral\"");
    cr_assert_eq(marks_parse(&later, &m), ERR_OK);
    cr_expect_eq(m.progress.order.version, 3);
    hdf5io_manifest_free(&m);
    str_buf_free(&later);
    str_buf_free(&text);
}

/* Any byte is replaced by any other, with a correct hash: the manifest is
 * refused or read, without a crash (under sanitizers, too). */
Test(checkpoint_manifest, any_text_is_survived)
{
    hdf5io_progress_t progress = {
        .order = {2, HDF5IO_SHUFFLE_CHUNK, 256, 64, 7}};
    str_buf_t text = manifest_text(&progress);
    size_t body = (size_t)(strstr(text.text, SELF) - text.text);
    rng_t rng;
    int refused = 0;

    rng_open(&rng, 3, RNG_INIT, 0, 0);
    for (int round = 0; round < 20000; round++) {
        size_t at = (size_t)rng_below(&rng, body);
        char kept = text.text[at], digits[HASH_TEXT_MAX];
        static const char bytes[] = "0129-\"[]{},:ex \n\t\\\x80";

        text.text[at] = bytes[rng_below(&rng, sizeof bytes - 1)];
        hash_format(hash_bytes(text.text, body), digits);
        memcpy(text.text + body + strlen(SELF), digits, HASH_TEXT_MAX - 1);
        refused += parse(&text, NULL) != ERR_OK;
        text.text[at] = kept;
    }
    cr_assert_gt(refused, 1000);
    str_buf_free(&text);
}

Test(checkpoint_manifest, a_cut_text_is_refused)
{
    hdf5io_progress_t progress = {0};
    str_buf_t text = manifest_text(&progress);
    size_t length = text.length;

    for (text.length = 0; text.length < length; text.length++)
        cr_assert_eq(parse(&text, NULL), ERR_DATA);
    cr_assert_eq(parse(&text, NULL), ERR_OK);
    str_buf_free(&text);
}

Test(checkpoint_manifest, a_run_file_that_is_not_text_is_refused)
{
    hdf5io_votes_t votes = {.size = 1};
    hdf5io_checkpoint_config_t config = {.votes = &votes,
                                         .config_text = "\xff\xfe"};
    hdf5io_progress_t progress = {0};
    hdf5io_manifest_t m = {0};
    str_buf_t text = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_manifest_build(&config, &progress, NULL, 0, &m, NULL),
                 ERR_OK);
    cr_assert_eq(hdf5io_manifest_print(&m, &text, &err), ERR_CONFIG);
    cr_assert(strstr(err.text, "config is not UTF-8"), "%s", err.text);
    hdf5io_manifest_free(&m);
    str_buf_free(&text);
}

/* A path that is not a checkpoint, such as a run directory or a typing
 * error. */
Test(checkpoint_manifest, what_is_no_checkpoint_is_told_from_one)
{
    char directory[] = "/tmp/cddp-manifest-XXXXXX";
    const char *const paths[] = {directory, "/nowhere", "/dev/null", ""};

    cr_assert_not_null(mkdtemp(directory));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        hdf5io_manifest_t manifest;
        err_t err = ERR_INIT;
        uint64_t hash;

        cr_expect_eq(hdf5io_manifest_load(paths[i], &manifest, &hash, &err),
                     ERR_DATA);
        cr_expect_not_null(strstr(err.text, paths[i]));
        cr_expect_not_null(strstr(err.text, "such as RUNDIR/checkpoints/step-"),
                           "%s", err.text);
    }
    rmdir(directory);
}
