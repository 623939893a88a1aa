/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The host's view of arenas, on the CPU and on the test device: on the latter,
 * pull and push are what moves numbers, every error of the device is returned,
 * and checkpoints have the bytes of those of the CPU and move to and fro.
 */
#include "train/mirror.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dev/dev_far.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/ckpt_fixture.h"

enum { ARENAS = 2 };

static const size_t elems[ARENAS] = {1000, 37};

/* Two arenas of a device, which hold numbers, and their mirror. */
typedef struct rig {
    dev_device_t *dev;
    dev_stream_t *stream;
    float *arenas[ARENAS];
    train_mirror_t *mirror;
} rig_t;

static float number(int arena, size_t i)
{
    return (float)(1000 * arena) + (float)i * 0.25f;
}

static rig_t rig_open(const char *name, int index)
{
    rig_t rig;
    err_t err = ERR_INIT;

    cr_assert_eq(dev_open(name, index, &rig.dev, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(
        dev_stream_open(rig.dev, DEV_STREAM_COMPUTE, &rig.stream, &err),
        ERR_OK);
    cr_assert_eq(train_mirror_open(rig.dev, rig.stream, &rig.mirror, &err),
                 ERR_OK);
    for (int a = 0; a < ARENAS; a++) {
        void *block = NULL;

        cr_assert_eq(dev_alloc(rig.dev, elems[a] * sizeof(float), "a test",
                               &block, &err),
                     ERR_OK);
        rig.arenas[a] = block;
        cr_assert_eq(train_mirror_add(rig.mirror, rig.arenas[a], elems[a],
                                      "a test", &err),
                     ERR_OK);
    }
    return rig;
}

static void rig_close(rig_t *rig)
{
    train_mirror_close(rig->mirror);
    for (int a = 0; a < ARENAS; a++)
        dev_free(rig->dev, rig->arenas[a]);
    dev_stream_close(rig->stream);
    dev_close(rig->dev);
}

/* The host's address of an arena. */
static float *host(const rig_t *rig, int arena)
{
    return train_mirror_host(rig->mirror, rig->arenas[arena]);
}

/* Write the numbers where the host sees the arenas. */
static void numbers_write(const rig_t *rig)
{
    for (int a = 0; a < ARENAS; a++)
        for (size_t i = 0; i < elems[a]; i++)
            host(rig, a)[i] = number(a, i);
}

static void numbers_check(const rig_t *rig, const char *what)
{
    for (int a = 0; a < ARENAS; a++)
        for (size_t i = 0; i < elems[a]; i++)
            cr_assert_eq(host(rig, a)[i], number(a, i), "%s: %g at %zu", what,
                         (double)host(rig, a)[i], i);
}

static void host_clear(const rig_t *rig)
{
    for (int a = 0; a < ARENAS; a++)
        memset(host(rig, a), 0, elems[a] * sizeof(float));
}

Test(mirror, of_the_host_is_the_arena)
{
    rig_t rig = rig_open("cpu", 0);
    err_t err = ERR_INIT;

    for (int a = 0; a < ARENAS; a++) {
        cr_expect_eq(host(&rig, a), rig.arenas[a]);
        cr_expect_eq(train_mirror_host(rig.mirror, rig.arenas[a] + 7),
                     rig.arenas[a] + 7);
    }
    cr_expect_eq(train_mirror_bytes(rig.mirror), 0);
    numbers_write(&rig);
    cr_expect_eq(train_mirror_push(rig.mirror, &err), ERR_OK);
    cr_expect_eq(train_mirror_pull(rig.mirror, &err), ERR_OK);
    numbers_check(&rig, "cpu");
    rig_close(&rig);
}

/* Pull the share of rank [rank] of [ranks] of both arenas. Its numbers are
 * there; with many ranks, others are not copied. */
static void check_share(int rank, int ranks)
{
    rig_t rig = rig_open("far", 0);
    const hdf5io_tensor_t tensors[ARENAS] = {
        {.name = "a", .ndim = 1, .dims = {1000}, .data = host(&rig, 0)},
        {.name = "b", .ndim = 1, .dims = {37}, .data = host(&rig, 1)}};
    hdf5io_share_t *share = NULL;
    int64_t copied = 0;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_share_open(tensors, ARENAS, rank, ranks, &share, &err),
                 ERR_OK);
    numbers_write(&rig);
    cr_assert_eq(train_mirror_push(rig.mirror, &err), ERR_OK);
    host_clear(&rig);
    cr_assert_eq(train_mirror_pull_share(rig.mirror, share, &err), ERR_OK, "%s",
                 err.text);
    for (int i = 0; i < hdf5io_share_runs(share); i++) {
        const hdf5io_run_t run = hdf5io_share_run(share, i);

        for (int64_t e = 0; e < run.count; e++)
            cr_assert_eq(run.data[e],
                         number(run.tensor, (size_t)(run.first + e)));
    }
    for (int a = 0; a < ARENAS; a++)
        for (size_t i = 0; i < elems[a]; i++)
            copied += host(&rig, a)[i] != 0;
    /* The first number of the first arena is 0 in any case. */
    if (ranks > 2)
        cr_expect_leq(copied, hdf5io_share_elems(share));
    else
        cr_expect_eq(copied, (int64_t)(elems[0] + elems[1]) - 1);
    hdf5io_share_close(share);
    rig_close(&rig);
}

Test(mirror, of_a_device_pulls_a_share)
{
    check_share(0, 1);
    for (int rank = 0; rank < 4; rank++)
        check_share(rank, 4);
}

/* The state of a comm hook is in no mirror: it stays as it is. */
Test(mirror, of_a_device_leaves_other_memory)
{
    enum { OTHER = 40, RANKS = 8 };
    rig_t rig = rig_open("far", 0);
    float other[OTHER];
    const hdf5io_tensor_t tensors[ARENAS + 1] = {
        {.name = "a", .ndim = 1, .dims = {1000}, .data = host(&rig, 0)},
        {.name = "b", .ndim = 1, .dims = {37}, .data = host(&rig, 1)},
        {.name = "c", .ndim = 1, .dims = {OTHER}, .data = other}};
    err_t err = ERR_INIT;

    for (int i = 0; i < OTHER; i++)
        other[i] = (float)i;
    numbers_write(&rig);
    cr_assert_eq(train_mirror_push(rig.mirror, &err), ERR_OK);
    host_clear(&rig);
    for (int rank = 0; rank < RANKS; rank++) {
        hdf5io_share_t *share = NULL;

        cr_assert_eq(
            hdf5io_share_open(tensors, ARENAS + 1, rank, RANKS, &share, &err),
            ERR_OK);
        cr_assert_eq(train_mirror_pull_share(rig.mirror, share, &err), ERR_OK,
                     "%s", err.text);
        hdf5io_share_close(share);
    }
    numbers_check(&rig, "shares of all ranks");
    for (int i = 0; i < OTHER; i++)
        cr_expect_eq(other[i], (float)i);
    rig_close(&rig);
}

static void check_round(int order)
{
    rig_t rig = rig_open("far", order);
    err_t err = ERR_INIT;

    cr_expect_eq(train_mirror_bytes(rig.mirror),
                 (elems[0] + elems[1]) * sizeof(float));
    cr_expect_eq(train_mirror_host(rig.mirror, rig.arenas[1] + 7),
                 host(&rig, 1) + 7);
    numbers_write(&rig);
    cr_assert_eq(train_mirror_push(rig.mirror, &err), ERR_OK, "%s", err.text);
    /* The copy to the device has been made: later changes do not matter. */
    host_clear(&rig);
    cr_assert_eq(train_mirror_pull(rig.mirror, &err), ERR_OK, "%s", err.text);
    numbers_check(&rig, "pulled");
    /* The pull comes after the work that the stream has already. */
    for (int a = 0; a < ARENAS; a++)
        cr_assert_eq(dev_fill(rig.stream, rig.arenas[a], 0,
                              elems[a] * sizeof(float), &err),
                     ERR_OK);
    cr_assert_eq(train_mirror_pull(rig.mirror, &err), ERR_OK);
    cr_expect_eq(host(&rig, 0)[999], 0);
    cr_expect_eq(host(&rig, 1)[36], 0);
    rig_close(&rig);
}

Test(mirror, of_a_device_is_a_copy)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        check_round(order);
}

/* Calls of the device fail one after the other; each time the error is
 * returned. A copy that succeeds later is whole. */
Test(mirror, returns_every_error_of_the_device)
{
    int failed = 0;

    for (int call = 1;; call++) {
        rig_t rig = rig_open("far", DEV_FAR_LAST_FIRST);
        err_t err = ERR_INIT;
        err_code_t rc;

        numbers_write(&rig);
        dev_far_fail(rig.dev, call);
        rc = train_mirror_push(rig.mirror, &err);
        if (rc == ERR_OK)
            rc = train_mirror_pull(rig.mirror, &err);
        if (rc != ERR_OK) {
            cr_expect_eq(rc, ERR_UNAVAILABLE, "call %d: %s", call, err.text);
            failed++;
        }
        rig_close(&rig);
        if (rc == ERR_OK)
            break;
    }
    /* two copies and a wait, each way */
    cr_expect_eq(failed, 6);
}

/* ---- checkpoints --------------------------------------------------------- */

static err_code_t alone(void *context, const void *mine, size_t bytes,
                        void *all, err_t *err)
{
    (void)context;
    (void)err;
    memcpy(all, mine, bytes);
    return ERR_OK;
}

typedef struct saved {
    char *home;
    hdf5io_votes_t votes;
    hdf5io_checkpoint_config_t config;
    hdf5io_checkpoint_info_t info;
    hdf5io_tensor_t tensors[ARENAS];
} saved_t;

static void saved_open(saved_t *saved, const rig_t *rig)
{
    static const char *const names[ARENAS] = {"model/a", "optimizer/b"};

    *saved = (saved_t){.home = ckpt_home_make(),
                       .votes = {.size = 1, .exchange = alone}};
    saved->config = (hdf5io_checkpoint_config_t){.directory = saved->home,
                                                 .votes = &saved->votes,
                                                 .keep = 1,
                                                 .config_text = ""};
    for (int a = 0; a < ARENAS; a++)
        saved->tensors[a] = (hdf5io_tensor_t){.name = names[a],
                                              .ndim = 1,
                                              .dims = {(int64_t)elems[a]},
                                              .data = host(rig, a)};
}

/* The numbers of [from] go to its device, from there into a checkpoint, from
 * there to the device of [to], and back to the host. *bytes and *count:
 * the file with its tensors. */
static void travel(rig_t *from, rig_t *to, const char *what, char **bytes,
                   size_t *count)
{
    const hdf5io_progress_t progress = {.step = 3};
    hdf5io_tensor_t read[ARENAS];
    char path[4200];
    bool found = false;
    saved_t saved;
    err_t err = ERR_INIT;

    saved_open(&saved, from);
    numbers_write(from);
    cr_assert_eq(train_mirror_push(from->mirror, &err), ERR_OK);
    if (train_mirror_bytes(from->mirror) > 0)
        host_clear(from);
    cr_assert_eq(train_mirror_pull(from->mirror, &err), ERR_OK);
    cr_assert_eq(hdf5io_checkpoint_write(&saved.config, &progress,
                                         saved.tensors, ARENAS, &saved.info,
                                         &err),
                 ERR_OK, "%s: %s", what, err.text);
    snprintf(path, sizeof path, "%s/shard-0.h5", saved.info.path);
    cr_assert_eq(file_read(path, bytes, count, &err), ERR_OK, "%s", err.text);
    memcpy(read, saved.tensors, sizeof read);
    for (int a = 0; a < ARENAS; a++)
        read[a].data = host(to, a);
    cr_assert_eq(hdf5io_checkpoint_read(&saved.config, NULL, read, ARENAS,
                                        &found, &saved.info, &err),
                 ERR_OK, "%s: %s", what, err.text);
    cr_assert(found);
    cr_assert_eq(train_mirror_push(to->mirror, &err), ERR_OK);
    if (train_mirror_bytes(to->mirror) > 0)
        host_clear(to);
    cr_assert_eq(train_mirror_pull(to->mirror, &err), ERR_OK);
    numbers_check(to, what);
    ckpt_home_remove(saved.home);
}

Test(mirror, checkpoints_move_between_devices)
{
    rig_t cpu[2] = {rig_open("cpu", 0), rig_open("cpu", 0)};
    rig_t far = rig_open("far", DEV_FAR_NEEDED_ONLY);
    char *bytes[2];
    size_t counts[2];

    travel(&cpu[0], &far, "cpu to far", &bytes[0], &counts[0]);
    travel(&far, &cpu[1], "far to cpu", &bytes[1], &counts[1]);
    cr_expect_gt(counts[0], (elems[0] + elems[1]) * sizeof(float) - 1);
    cr_assert_eq(counts[0], counts[1]);
    cr_expect_arr_eq(bytes[0], bytes[1], counts[0], "other bytes from far");
    for (int i = 0; i < 2; i++) {
        free(bytes[i]);
        rig_close(&cpu[i]);
    }
    rig_close(&far);
}
