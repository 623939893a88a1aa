/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ckpt_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "hdf5io/checkpoint_manifest.h"
#include "lib/entries.h"

/* Shared by the ranks of one run. */
typedef struct world {
    pthread_barrier_t barrier;
    int size;
    ckpt_body_t body;
    void *context;
    const void *boards[CKPT_RANKS_MAX];
} world_t;

typedef struct member {
    world_t *world;
    ckpt_rank_t *rank;
} member_t;

static err_code_t exchange(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err)
{
    member_t *member = context;
    world_t *world = member->world;

    (void)err;
    world->boards[member->rank->votes.rank] = mine;
    pthread_barrier_wait(&world->barrier);
    for (int r = 0; r < world->size; r++)
        if (bytes > 0)
            memcpy((char *)all + (size_t)r * bytes, world->boards[r], bytes);
    pthread_barrier_wait(&world->barrier);
    return ERR_OK;
}

bool ckpt_together;

static err_code_t refuse(void *context, void *data, const size_t *cuts,
                         err_t *err)
{
    (void)context;
    (void)data;
    (void)cuts;
    return err_set(err, ERR_IO, "a rank is to send parts of tensors");
}

/* Count a call; true: it must fail, and errno is set. */
static bool io_strikes(ckpt_io_t *io)
{
    if (++io->calls != io->fail_at)
        return false;
    if (io->error == 0)
        _exit(9);
    errno = io->error;
    return true;
}

static ssize_t faulty_write_at(void *context, int fd, const void *bytes,
                               size_t count, off_t offset)
{
    ckpt_io_t *io = context;

    if (io_strikes(io))
        return -1;
    if (io->half && count > 1)
        count /= 2;
    return pwrite(fd, bytes, count, offset);
}

static int faulty_sync(void *context, int fd)
{
    return io_strikes(context) ? -1 : fsync(fd);
}

static int faulty_reserve(void *context, int fd, off_t bytes)
{
    if (io_strikes(context))
        return -1;
    return hdf5io_io_system.reserve(NULL, fd, bytes);
}

static int faulty_rename(void *context, const char *from, const char *to,
                         unsigned flags)
{
    ckpt_io_t *io = context;

    if (io_strikes(io))
        return -1;
    if (io->no_exchange && flags != 0) {
        errno = EINVAL;
        return -1;
    }
    return hdf5io_io_system.rename(NULL, from, to, flags);
}

/* Count a call that reads; true: it must fail, and errno is set. */
static bool reading_strikes(ckpt_io_t *io)
{
    const int since = ++io->read_calls - io->read_fail_at;

    if (io->read_fail_at == 0 || since < 0 || since >= io->read_fails)
        return false;
    errno = io->read_error;
    return true;
}

static int faulty_open(void *context, const char *path, int flags)
{
    ckpt_io_t *io = context;

    io->lies = false;
    return reading_strikes(io) ? -1 : hdf5io_io_system.open(NULL, path, flags);
}

static ssize_t faulty_read_at(void *context, int fd, void *bytes, size_t count,
                              off_t offset)
{
    const ckpt_io_t *io = context;
    ssize_t got;

    if (reading_strikes(context))
        return -1;
    got = pread(fd, bytes, count, offset);
    if (io->lies && got > 0)
        ((char *)bytes)[got / 2] ^= 1;
    return got;
}

static void lying_forget(void *context, int fd)
{
    ckpt_io_t *io = context;

    (void)fd;
    io->lies = ++io->forgotten == io->lies_at;
}

void ckpt_io_init(ckpt_io_t *io)
{
    *io = (ckpt_io_t){.table = {.context = io,
                                .write_at = faulty_write_at,
                                .sync = faulty_sync,
                                .rename = faulty_rename,
                                .reserve = faulty_reserve,
                                .open = faulty_open,
                                .read_at = faulty_read_at,
                                .forget = lying_forget}};
}

static const hdf5io_tensor_t shapes[CKPT_TENSORS] = {
    {"model/conv1.weight", 4, {5, 2, 3, 3}, NULL, NULL, 0},
    {"model/conv1.bias", 1, {5}, NULL, NULL, 0},
    {"model/scale", 0, {0}, NULL, NULL, 0},
    {"model/none", 2, {0, 3}, NULL, NULL, 0},
    {"model/deep", 6, {2, 3, 2, 2, 3, 2}, NULL, NULL, 0},
    {"model/fc.weight", 2, {7, 45}, NULL, NULL, 0},
    {"optimizer/exp_avg/conv1.weight", 4, {5, 2, 3, 3}, NULL, NULL, 0},
    {"optimizer/exp_avg/fc.weight", 2, {7, 45}, NULL, NULL, 0},
};

static int64_t elems_of(const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    return elems;
}

void ckpt_state_make(ckpt_state_t *state, int64_t seed)
{
    rng_t rng;

    rng_open(&rng, (uint64_t)seed, RNG_INIT, 0, 0);
    state->count = CKPT_TENSORS;
    for (int i = 0; i < CKPT_TENSORS; i++) {
        int64_t elems = elems_of(&shapes[i]);

        state->tensors[i] = shapes[i];
        state->tensors[i].data = calloc((size_t)elems + 1, sizeof(float));
        for (int64_t e = 0; e < elems; e++) {
            uint32_t bits =
                rng_u32(&rng); /* any bits, including NaNs and subnormals */

            memcpy(&state->tensors[i].data[e], &bits, sizeof bits);
        }
    }
    state->progress = (hdf5io_progress_t){.step = seed,
                                          .epoch = 3,
                                          .samples = 12345,
                                          .epoch_step = 17,
                                          .seed = UINT64_MAX - 5,
                                          .loss_sum = 0.1 + (double)seed / 3,
                                          .loss_count = 4096,
                                          .correct = 77,
                                          .best = 1.0 / 3};
}

void ckpt_state_clear(ckpt_state_t *state)
{
    for (int i = 0; i < state->count; i++)
        for (int64_t e = 0; e < elems_of(&state->tensors[i]); e++)
            state->tensors[i].data[e] = 0;
}

bool ckpt_state_same(const ckpt_state_t *a, const ckpt_state_t *b)
{
    for (int i = 0; i < a->count; i++)
        if (memcmp(a->tensors[i].data, b->tensors[i].data,
                   (size_t)elems_of(&a->tensors[i]) * sizeof(float)) != 0)
            return false;
    return a->count == b->count;
}

void ckpt_state_free(ckpt_state_t *state)
{
    for (int i = 0; i < CKPT_TENSORS; i++)
        free(state->tensors[i].data);
}

char *ckpt_home_make(void)
{
    const char *base = getenv("TMPDIR");
    char *home = str_printf("%s/ckpt-XXXXXX", base == NULL ? "/tmp" : base);

    log_level_set(LOG_ERROR);
    cr_assert_not_null(mkdtemp(home));
    return home;
}

void ckpt_home_remove(char *home)
{
    cr_assert_eq(file_remove_tree(home, NULL), ERR_OK);
    free(home);
}

static void *member_main(void *argument)
{
    member_t *member = argument;

    member->world->body(member->rank, member->world->context);
    return NULL;
}

static void rank_init(ckpt_rank_t *rank, const char *home, int number, int size,
                      int64_t seed, member_t *member)
{
    *rank = (ckpt_rank_t){.err = ERR_INIT};
    rank->votes = (hdf5io_votes_t){.context = member,
                                   .rank = number,
                                   .size = size,
                                   .exchange = exchange,
                                   .spread = ckpt_together ? refuse : NULL,
                                   .together = ckpt_together};
    ckpt_io_init(&rank->io);
    ckpt_state_make(&rank->state, seed);
    rank->config =
        (hdf5io_checkpoint_config_t){.directory = home,
                                     .votes = &rank->votes,
                                     .keep = 3,
                                     .config_hash = 1,
                                     .block_bytes = CKPT_BLOCK,
                                     .window_bytes = CKPT_WINDOW,
                                     .model_hash = 0xabcdefull << 40,
                                     .build_hash = UINT64_MAX,
                                     .config_text = "run: {name: \"a\\b\"}\n",
                                     .io = &rank->io.table};
}

ckpt_rank_t *ckpt_ranks_run(const char *home, int size, int64_t seed,
                            ckpt_body_t body, void *context)
{
    pthread_t threads[CKPT_RANKS_MAX];
    member_t members[CKPT_RANKS_MAX];
    world_t world = {.size = size, .body = body, .context = context};
    ckpt_rank_t *ranks = calloc((size_t)size, sizeof *ranks);

    pthread_barrier_init(&world.barrier, NULL, (unsigned)size);
    for (int r = 0; r < size; r++) {
        members[r] = (member_t){&world, &ranks[r]};
        rank_init(&ranks[r], home, r, size, seed, &members[r]);
    }
    for (int r = 0; r < size; r++)
        pthread_create(&threads[r], NULL, member_main, &members[r]);
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
    pthread_barrier_destroy(&world.barrier);
    return ranks;
}

void ckpt_ranks_free(ckpt_rank_t *ranks, int size)
{
    for (int r = 0; r < size; r++)
        ckpt_state_free(&ranks[r].state);
    free(ranks);
}

void ckpt_body_write(ckpt_rank_t *rank, void *context)
{
    (void)context;
    rank->code = hdf5io_checkpoint_write(&rank->config, &rank->state.progress,
                                         rank->state.tensors, rank->state.count,
                                         &rank->info, &rank->err);
}

void ckpt_body_write_old(ckpt_rank_t *rank, void *context)
{
    rank->config.format = 1;
    ckpt_body_write(rank, context);
}

const int ckpt_heads_together[CKPT_RANKS_MAX];

void ckpt_body_write_together(ckpt_rank_t *rank, void *context)
{
    rank->config.heads = ckpt_heads_together;
    ckpt_body_write(rank, context);
}

void ckpt_body_read(ckpt_rank_t *rank, void *context)
{
    ckpt_state_clear(&rank->state);
    rank->code = hdf5io_checkpoint_read(&rank->config, context,
                                        rank->state.tensors, rank->state.count,
                                        &rank->found, &rank->info, &rank->err);
}

void ckpt_write(const char *home, int size, int64_t seed)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, size, seed, ckpt_body_write, NULL);

    for (int r = 0; r < size; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "rank %d: %s", r,
                     ranks[r].err.text);
    ckpt_ranks_free(ranks, size);
}

void ckpt_expect(const char *home, int size, int64_t seed)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, size, seed, ckpt_body_read, NULL);
    ckpt_state_t want;

    ckpt_state_make(&want, seed);
    for (int r = 0; r < size; r++) {
        cr_assert_eq(ranks[r].code, ERR_OK, "rank %d: %s", r,
                     ranks[r].err.text);
        cr_assert(ranks[r].found);
        cr_assert_eq(ranks[r].info.progress.step, seed);
        cr_assert(ckpt_state_same(&ranks[r].state, &want));
    }
    ckpt_state_free(&want);
    ckpt_ranks_free(ranks, size);
}

bool ckpt_is(const char *home, int size, int64_t seed, int64_t step)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, size, seed, ckpt_body_read, NULL);
    ckpt_state_t want;
    bool same = true;

    ckpt_state_make(&want, seed);
    for (int r = 0; r < size; r++) {
        cr_assert_eq(ranks[r].code, ERR_OK, "rank %d: %s", r,
                     ranks[r].err.text);
        cr_assert(ranks[r].found);
        cr_assert_eq(ranks[r].info.progress.step, step);
        same = same && ckpt_state_same(&ranks[r].state, &want);
    }
    ckpt_state_free(&want);
    ckpt_ranks_free(ranks, size);
    return same;
}

str_buf_t ckpt_manifest_edited(const char *text, const char *old,
                               const char *new)
{
    const char *at = strstr(text, old), *self;
    char digits[HASH_TEXT_MAX];
    str_buf_t out = {0}, sealed = {0};

    cr_assert_not_null(at, "%s", old);
    str_buf_add(&out, "%.*s%s%s", (int)(at - text), text, new,
                at + strlen(old));
    self = strstr(out.text, MANIFEST_SELF_KEY);
    cr_assert_not_null(self);
    str_buf_add(
        &sealed, "%.*s" MANIFEST_SELF_KEY "%s" MANIFEST_SELF_TAIL,
        (int)(self - out.text), out.text,
        hash_format(hash_bytes(out.text, (size_t)(self - out.text)), digits));
    str_buf_free(&out);
    return sealed;
}

void ckpt_manifest_edit(const char *checkpoint, const char *old,
                        const char *new)
{
    char *path = str_printf("%s/" MANIFEST_NAME, checkpoint), *text = NULL;
    str_buf_t edited;

    cr_assert_eq(file_read(path, &text, NULL, NULL), ERR_OK);
    edited = ckpt_manifest_edited(text, old, new);
    cr_assert_eq(file_publish(path, edited.text, edited.length, NULL), ERR_OK);
    str_buf_free(&edited);
    free(text);
    free(path);
}

int ckpt_count(const char *home, const char *prefix)
{
    return entries_begin(home, prefix);
}
