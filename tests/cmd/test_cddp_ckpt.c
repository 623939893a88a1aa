/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The command line of cddp-ckpt (run from the build folder): its output and its
 * exit statuses. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "cmd/ckpt_command.h"
#include "hdf5io/ckpt_fixture.h"
#include "hdf5io/safetensors.h"

static void text_write(const char *home, const char *name, const char *text)
{
    char *path = str_printf("%s/%s", home, name);

    cr_assert_eq(file_publish(path, text, strlen(text), NULL), ERR_OK);
    free(path);
}

Test(cddp_ckpt, usage)
{
    expect("", "--help", 0, TEXTS("usage: cddp-ckpt list RUNDIR"));
    expect("", "--version", 0, TEXTS("cddp-ckpt ", "HDF5 "));
    expect("", "", 64, TEXTS("a command is missing", "--help"));
    expect("", "verfy", 64, TEXTS("did you mean verify?"));
    expect("", "show", 64, TEXTS("show: name one checkpoint"));
    expect("", "diff a", 64, TEXTS("name two"));
    expect("", "list --all x", 64, TEXTS("unknown option --all"));
    expect("", "list /nowhere", 65, TEXTS("/nowhere has no checkpoint"));
    expect("", "list /dev/null", 65, TEXTS("/dev/null: cannot list: Not a"));
    expect("", "show /nowhere", 65, TEXTS("/nowhere", "no such directory"));
}

Test(cddp_ckpt, list_and_show)
{
    char *home = ckpt_home_make();
    char *checkpoints = str_printf("%s/checkpoints", home);

    ckpt_write(checkpoints, 2, 10);
    ckpt_write(checkpoints, 3, 20);
    expect(home, "list @", 0,
           TEXTS("step-0000000020 ", "step-0000000010 ", "12345"));
    expect(home, "list @/checkpoints", 0, TEXTS("step-0000000020 "));
    text_write(checkpoints, "best.json",
               "{\"metric\": \"valid_loss\", \"value\": 0.5, \"step\": 10}");
    expect(home, "list @", 0, TEXTS("step-0000000010 ", ", best\n"));
    expect(home, "show @", 0,
           TEXTS("step         20", "3 ranks", "model/fc.weight", "[7, 45]",
                 "shard-2.h5", "seed         18446744073709551610",
                 "run: {name:"));
    expect(home, "show @/checkpoints/step-0000000010", 0,
           TEXTS("step         10"));
    free(checkpoints);
    ckpt_home_remove(home);
}

/* A save that is killed while it replaces a checkpoint may leave complete
 * checkpoints under temporary names only. */
Test(cddp_ckpt, whole_debris_is_a_checkpoint)
{
    char *home = ckpt_home_make();
    char *from = str_printf("%s/checkpoints/step-0000000020", home);
    char *to = str_printf(
        "%s/checkpoints/.tmp-step-0000000020-00000000000000aa", home);
    char *checkpoints = str_printf("%s/checkpoints", home);

    ckpt_write(checkpoints, 2, 20);
    cr_assert_eq(rename(from, to), 0);
    expect(home, "list @", 0,
           TEXTS("\n.tmp-step-0000000020-00000000000000aa ",
                 ", left by an interrupted save\n"));
    expect(home, "show @", 0, TEXTS("step         20"));
    expect(home, "verify @", 0, TEXTS("ok ", ".tmp-step-0000000020"));
    flip(home, "checkpoints/.tmp-step-0000000020-00000000000000aa/shard-0.h5");
    expect(home, "list @", 65, TEXTS("has no checkpoint"));
    free(checkpoints);
    free(to);
    free(from);
    ckpt_home_remove(home);
}

/* ---- pruning ------------------------------------------------------------- */

Test(cddp_ckpt, prune_removes_what_no_run_reads)
{
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);

    expect(home, "list @", 0,
           TEXTS("step-0000000020 ", "\n1 superseded, 2 left by interrupted "));
    expect(home, "prune @ --dry-run", 0,
           TEXTS(OLD, TMP, TRASH, "would be removed\n", "\n3 would be removed",
                 "the newest intact checkpoint is step-0000000020\n"));
    cr_expect_eq(ckpt_count(checkpoints, ""), 4);
    expect(home, "prune @", 0, TEXTS(OLD, TMP, TRASH, "\n3 removed, "));
    cr_expect_eq(ckpt_count(checkpoints, ""), 1);
    ckpt_expect(checkpoints, 2, 20);
    expect(home, "prune @/checkpoints", 0, TEXTS("0 removed, 0 B;"));
    expect(home, "prune", 64, TEXTS("name one run directory"));
    expect(home, "prune @ --force", 64, TEXTS("--force"));
    expect(home, "prune /nowhere", 65, TEXTS("nothing is removed"));
    free(checkpoints);
    ckpt_home_remove(home);
}

/* A run may be writing what looks like debris. */
Test(cddp_ckpt, prune_leaves_a_run_its_files)
{
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);
    const int fd = lock_take(home);

    expect(home, "prune @", 0,
           TEXTS("kept: a run may be writing it", "\n1 removed, "));
    cr_expect_eq(ckpt_count(checkpoints, "superseded-"), 0);
    cr_expect_eq(ckpt_count(checkpoints, "."), 2);
    close(fd);
    expect(home, "prune @", 0, TEXTS(TMP, TRASH, "\n2 removed, "));
    cr_expect_eq(ckpt_count(checkpoints, ""), 1);
    free(checkpoints);
    ckpt_home_remove(home);
}

/* checkpoints may be a link to other storage, and so may a superseded one: the
 * lock is that of the run, and what such a link leads to stays. */
Test(cddp_ckpt, prune_follows_no_links)
{
    char *home = ckpt_home_make(), *archive = ckpt_home_make();
    char *checkpoints = leftovers_make(home);
    char *elsewhere = str_printf("%s/deep/store", archive);
    char *deep = str_printf("%s/deep", archive);
    char *old = str_printf("%s/" OLD, elsewhere);
    char *kept = str_printf("%s/kept", archive);
    char *manifest = str_printf("%s/MANIFEST.json", kept);
    const int fd = lock_take(home);

    cr_assert_eq(mkdir(deep, 0700), 0);
    cr_assert_eq(rename(checkpoints, elsewhere), 0);
    cr_assert_eq(symlink(elsewhere, checkpoints), 0);
    cr_assert_eq(rename(old, kept), 0);
    cr_assert_eq(symlink(kept, old), 0);
    expect(home, "prune @", 0,
           TEXTS("kept: a run may be writing it", "\n1 removed, "));
    cr_expect_eq(ckpt_count(checkpoints, "."), 2);
    cr_expect_eq(ckpt_count(checkpoints, "superseded-"), 0);
    cr_expect_eq(access(manifest, F_OK), 0, "the archived manifest is gone");
    close(fd);
    free(manifest);
    free(kept);
    free(old);
    free(deep);
    free(elsewhere);
    free(checkpoints);
    ckpt_home_remove(archive);
    ckpt_home_remove(home);
}

/* Intact debris that is newer than all is what the run would resume from; and
 * without an intact checkpoint a superseded one may be the last. */
Test(cddp_ckpt, prune_keeps_the_last_one)
{
    char *home = ckpt_home_make();
    char *checkpoints = leftovers_make(home);
    char *from = str_printf("%s/step-0000000020", checkpoints);
    char *to =
        str_printf("%s/.tmp-step-0000000020-00000000000000ad", checkpoints);

    flip(home, "checkpoints/step-0000000020/shard-0.h5");
    expect(home, "prune @", 65,
           TEXTS("nothing is removed", "none of its 1 checkpoints is intact"));
    cr_expect_eq(ckpt_count(checkpoints, ""), 4);
    flip(home, "checkpoints/step-0000000020/shard-0.h5");
    cr_assert_eq(rename(from, to), 0);
    expect(home, "prune @", 0,
           TEXTS("\n3 removed, ", "checkpoint is .tmp-step-0000000020-"));
    cr_expect_eq(ckpt_count(checkpoints, ""), 1);
    ckpt_expect(checkpoints, 2, 20);
    free(to);
    free(from);
    free(checkpoints);
    ckpt_home_remove(home);
}

Test(cddp_ckpt, verify)
{
    char *home = ckpt_home_make();

    ckpt_write(home, 2, 10);
    ckpt_write(home, 2, 20);
    expect(home, "verify @/step-0000000010 @/step-0000000020", 0,
           TEXTS("ok ", "step 20", "4 files"));
    flip(home, "step-0000000020/shard-0.h5");
    expect(home, "verify @/step-0000000010 @/step-0000000020", 65,
           TEXTS("ok ", "BAD ", "shard-0.h5", "1 of 2 checkpoints"));
    flip(home, "step-0000000010/MANIFEST.json");
    expect(home, "verify @/step-0000000010", 65, TEXTS("MANIFEST.json"));
    expect(home, "list @", 0, TEXTS("step-0000000010  damaged"));
    expect(home, "show @/step-0000000010", 65, TEXTS("MANIFEST.json"));
    ckpt_home_remove(home);
}

/* A checkpoint of a later version is listed, and the list says what it
 * requires. No command removes or renames it. */
Test(cddp_ckpt, a_later_version_is_no_damage)
{
    char *home = ckpt_home_make();
    char *checkpoints = str_printf("%s/checkpoints", home);
    char *newest = str_printf("%s/step-0000000020", checkpoints);
    char *tmp =
        str_printf("%s/.tmp-step-0000000020-00000000000000aa", checkpoints);

    ckpt_write(checkpoints, 2, 10);
    ckpt_write(checkpoints, 2, 20);
    ckpt_manifest_edit(newest, "\"version\": 2", "\"version\": 3");
    expect(
        home, "list @", 0,
        TEXTS("step-0000000020  of a later version: ", "\nstep-0000000010 "));
    expect(home, "show @", 78,
           TEXTS("MANIFEST.json: ", "version 3", "the cddp that wrote it"));
    expect(home, "verify @", 78, TEXTS("BAD ", "version 3"));
    cr_assert_eq(rename(newest, tmp), 0);
    expect(home, "list @", 0,
           TEXTS(".tmp-step-0000000020-00000000000000aa of a later version: "));
    expect(home, "prune @", 0, TEXTS("0 removed, "));
    expect(home, "repair @", 0, TEXTS(": not adopted: ", "version 3"));
    expect(home, "repair @ .tmp-step-0000000020-00000000000000aa", 78,
           TEXTS("version 3", "0 adopted\n"));
    cr_expect_eq(ckpt_count(checkpoints, ".tmp-"), 1);
    cr_expect_eq(ckpt_count(checkpoints, "superseded-"), 0);
    free(tmp);
    free(newest);
    free(checkpoints);
    ckpt_home_remove(home);
}

static void body_change(ckpt_rank_t *rank, void *context)
{
    (void)context;
    rank->state.tensors[5].data[3] = 1.5f;
    rank->state.tensors[1].name = "model/conv1.offset";
    rank->state.tensors[4].ndim = 5;
    rank->state.tensors[4].dims[4] = 6;
    rank->state.progress.correct = 78;
    rank->state.progress.best = 0.5;
    ckpt_body_write(rank, NULL);
}

Test(cddp_ckpt, diff)
{
    char *home = ckpt_home_make();
    char *other = str_printf("%s/other", home);

    ckpt_write(home, 2, 10);
    ckpt_write(other, 3, 10); /* equal tensors, cut into other shards */
    expect(home, "diff @/step-0000000010 @/other", 0, TEXTS("identical: "));
    ckpt_ranks_free(ckpt_ranks_run(other, 3, 10, body_change, NULL), 3);
    expect(home, "diff @/step-0000000010 @/other/step-0000000010", 1,
           TEXTS("model/fc.weight: 1 of 315 elements", "correct: 77, 78",
                 "\nlargest difference: ", ", in model/fc.weight\n",
                 "best: 0.33333333333333331, 0.5", "model/conv1.bias: only in",
                 "model/conv1.offset: only in",
                 "model/deep: shape [2, 3, 2, 2, 3, 2], [2, 3, 2, 2, 6]"));
    expect(home, "diff @/step-0000000010 @/none", 65, TEXTS("/none"));
    free(other);
    ckpt_home_remove(home);
}

/* One number of model/scale is not finite in one of the two; model/fc.weight
 * differs, too. */
static void body_hurt(ckpt_rank_t *rank, void *context)
{
    const float *scale = context;

    rank->state.tensors[2].data[0] = *scale;
    rank->state.tensors[5].data[3] = scale[1];
    ckpt_body_write(rank, NULL);
}

Test(cddp_ckpt, diff_of_what_is_not_finite)
{
    float whole[] = {1, 2}, ill[] = {NAN, 3e38f}, zero[] = {0, 2},
          minus[] = {-0.0f, 2};
    char *home = ckpt_home_make(), *other = str_printf("%s/other", home);

    ckpt_ranks_free(ckpt_ranks_run(home, 2, 10, body_hurt, whole), 2);
    ckpt_ranks_free(ckpt_ranks_run(other, 2, 10, body_hurt, ill), 2);
    expect(home, "diff @/step-0000000010 @/other", 1,
           TEXTS("model/scale: 1 of 1 elements, largest difference inf\n",
                 "model/fc.weight: 1 of 315 elements, largest difference 3",
                 "\nlargest difference: inf, in model/scale\n"));
    expect(home, "diff @/other @/step-0000000010", 1,
           TEXTS("\nlargest difference: inf, in model/scale\n"));
    ckpt_ranks_free(ckpt_ranks_run(home, 2, 10, body_hurt, zero), 2);
    ckpt_ranks_free(ckpt_ranks_run(other, 2, 10, body_hurt, minus), 2);
    expect(home, "diff @/step-0000000010 @/other", 1,
           TEXTS("\nlargest difference: 0, in model/scale\n"));
    free(other);
    ckpt_home_remove(home);
}

static bool same_bytes(const char *home, const char *a, const char *b)
{
    char *x = str_printf("%s/%s", home, a), *y = str_printf("%s/%s", home, b);
    char *one, *two;
    size_t bytes, others;
    bool same;

    cr_assert_eq(file_read(x, &one, &bytes, NULL), ERR_OK);
    cr_assert_eq(file_read(y, &two, &others, NULL), ERR_OK);
    same = bytes == others && memcmp(one, two, bytes) == 0;
    free(two);
    free(one);
    free(y);
    free(x);
    return same;
}

/* The bits of the model, and nothing else. */
static void exported_check(const char *home, const char *name)
{
    char *path = str_printf("%s/%s", home, name);
    hdf5io_safe_t file;
    ckpt_state_t state;
    err_t err = ERR_INIT;

    ckpt_state_make(&state, 20);
    cr_assert_eq(hdf5io_safe_open(path, &file, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(file.count, 6);
    for (int i = 0; i < 6; i++) {
        const hdf5io_tensor_t *tensor = &state.tensors[i];
        const int at = hdf5io_safe_find(&file, strchr(tensor->name, '/') + 1);
        float read[512];

        cr_assert_geq(at, 0, "%s", tensor->name);
        cr_assert_eq(file.tensors[at].ndim, tensor->ndim);
        cr_assert_leq(file.tensors[at].bytes, sizeof read);
        cr_assert_eq(hdf5io_safe_read(&file, at, read, &err), ERR_OK);
        cr_assert_arr_eq(read, tensor->data, file.tensors[at].bytes, "%s",
                         tensor->name);
    }
    hdf5io_safe_close(&file);
    ckpt_state_free(&state);
    free(path);
}

Test(cddp_ckpt, export)
{
    char *home = ckpt_home_make();

    ckpt_write(home, 3, 20);
    expect(home, "export @ @/a", 0, TEXTS("/a: 6 tensors, 555 numbers"));
    exported_check(home, "a");
    expect(home, "export @ @/a", 64, TEXTS("/a exists", "--force"));
    text_write(home, "a", "");
    expect(home, "export --force @ @/a", 0, TEXTS(""));
    exported_check(home, "a");
    expect(home, "export @ @/b --average", 65, TEXTS("no moving average"));
    expect(home, "export @", 64, TEXTS("name two"));
    expect(home, "export @ @/b --mop", 64, TEXTS("--mop"));
    flip(home, "step-0000000020/shard-0.h5");
    expect(home, "export @/step-0000000020 @/b", 65, TEXTS("shard-0.h5"));
    expect(home, "list @/b", 65, TEXTS("no checkpoint"));
    ckpt_home_remove(home);
}

static const char map[] = "# two layers\n"
                          "conv{i}.weight  layers.{2i+1}.weight\n"
                          "conv{i}.bias    layers.{2i+1}.bias  # its bias\n"
                          "\n"
                          "scale           scale               leading\n"
                          "none            none\tout\n"
                          "deep            deep\n"
                          "fc.weight       head.kernel         transposed\n"
                          "fc.weight       tied.weight         out\n"
                          "-               *.unknown\n";

/* What goes out through a map comes back through it with the same bits. */
Test(cddp_ckpt, map_and_back)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/out", home);
    hdf5io_safe_t file;
    err_t err = ERR_INIT;

    ckpt_write(home, 2, 20);
    text_write(home, "map", map);
    expect(home, "export @ @/plain", 0, TEXTS(""));
    expect(home, "export @ @/out --map @/map", 0, TEXTS("7 tensors"));
    cr_assert_eq(hdf5io_safe_open(path, &file, &err), ERR_OK, "%s", err.text);
    cr_assert_geq(hdf5io_safe_find(&file, "layers.3.weight"), 0);
    cr_assert_geq(hdf5io_safe_find(&file, "tied.weight"), 0);
    cr_assert_eq(file.tensors[hdf5io_safe_find(&file, "head.kernel")].dims[0],
                 45);
    hdf5io_safe_close(&file);
    expect(home, "import @/out @/in --map @/map", 0, TEXTS("5 tensors"));
    text_write(home, "but_none",
               "none none\n- tied.*\nconv{i}.weight layers.{2i+1}.weight\n"
               "conv{j}.bias layers.{2j+1}.bias\nscale scale leading\n"
               "deep deep\n"
               "fc.weight head.kernel transposed\n");
    expect(home, "import @/out @/in --map @/but_none", 64, TEXTS("exists"));
    expect(home, "import @/out @/in --map @/but_none --force", 0,
           TEXTS("6 tensors"));
    cr_assert(same_bytes(home, "plain", "in"));
    free(path);
    ckpt_home_remove(home);
}

Test(cddp_ckpt, maps_that_do_not_fit)
{
    static const struct {
        const char *map, *word;
    } bad[] = {{"conv1.weight\n", "map:1: expected our name"},
               {"\na b turned\n", "map:2: after the names"},
               {"a{k} b{k}\n", "map:1: expected numbers"},
               {"a{i b{i}\n", "map:1: expected numbers"},
               {"a{0i} b{i}\n", "map:1: expected numbers"},
               {"a{i} b{j}\n", "map:1: both names"},
               {"a b transposed leading\n", "map:1: transposed and leading"},
               {"- a out\n", "map:1: expected nothing"},
               {"conv{i}.weight a{i}\n", "no line for tensor conv1.bias"},
               {"conv1.weight a transposed\n", "conv1.weight, which has 4"},
               {"conv1.weight a\nconv1.bias a\nscale b\nnone c\ndeep d\n"
                "fc.weight e\n",
                "two tensors have the name a"}};
    char *home = ckpt_home_make();

    ckpt_write(home, 2, 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text_write(home, "map", bad[i].map);
        expect(home, "export @ @/out --map @/map", 78, TEXTS(bad[i].word));
    }
    expect(home, "import @/x @/y", 64, TEXTS("--map MAP is missing"));
    expect(home, "import @/map @/y --map @/none", 74, TEXTS("/none"));
    expect(home, "import @/map @/y --map @/map", 65, TEXTS("no safetensors"));
    ckpt_home_remove(home);
}
