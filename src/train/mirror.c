/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The copies are plain memory, and not pinned: it is used between steps only,
 * and pinning all of it would take longer than the copies of a run.
 */
#include "train/mirror.h"

#include "base/check.h"
#include "base/mem.h"

typedef struct mirrored {
    float *arena; /* memory of the device */
    float *host;  /* [arena] itself if the host can access it */
    size_t elems;
} mirrored_t;

struct train_mirror {
    dev_device_t *dev;
    dev_stream_t *stream;
    mirrored_t list[TRAIN_MIRROR_MAX]; /* [count] */
    int count;
};

err_code_t train_mirror_open(dev_device_t *dev, dev_stream_t *stream,
                             train_mirror_t **out, err_t *err)
{
    train_mirror_t *mirror = NULL;
    err_code_t rc = mem_new(train_mirror_t, 1, "a mirror", &mirror, err);

    if (rc != ERR_OK)
        return rc;
    mirror->dev = dev;
    mirror->stream = stream;
    *out = mirror;
    return ERR_OK;
}

size_t train_mirror_bytes(const train_mirror_t *mirror)
{
    size_t bytes = 0;

    for (int i = 0; i < mirror->count; i++)
        if (mirror->list[i].host != mirror->list[i].arena)
            bytes += mirror->list[i].elems * sizeof(float);
    return bytes;
}

void train_mirror_close(train_mirror_t *mirror)
{
    if (mirror == NULL)
        return;
    /* After an error, copies may still be pending. */
    if (train_mirror_bytes(mirror) > 0)
        dev_stream_wait(mirror->stream, NULL);
    for (int i = 0; i < mirror->count; i++)
        if (mirror->list[i].host != mirror->list[i].arena)
            mem_free(mirror->list[i].host);
    mem_free(mirror);
}

err_code_t train_mirror_add(train_mirror_t *mirror, float *arena, size_t elems,
                            const char *what, err_t *err)
{
    float *host = arena;
    err_code_t rc = ERR_OK;

    check(mirror->count < TRAIN_MIRROR_MAX, "%d arenas", mirror->count);
    if (!dev_host_visible(mirror->dev))
        rc = mem_new(float, elems, what, &host, err);
    if (rc == ERR_OK)
        mirror->list[mirror->count++] = (mirrored_t){arena, host, elems};
    return rc;
}

float *train_mirror_host(const train_mirror_t *mirror, const float *at)
{
    for (int i = 0; i < mirror->count; i++) {
        const mirrored_t *own = &mirror->list[i];

        if (at == own->arena ||
            (at > own->arena && at < own->arena + own->elems))
            return own->host + (at - own->arena);
    }
    check(false, "%p is in none of %d arenas", (const void *)at, mirror->count);
    return NULL;
}

/* Copy all arenas in one direction, and wait. */
static err_code_t copy_all(train_mirror_t *mirror, dev_copy_kind_t kind,
                           err_t *err)
{
    err_code_t rc = ERR_OK;

    if (train_mirror_bytes(mirror) == 0)
        return ERR_OK;
    for (int i = 0; i < mirror->count && rc == ERR_OK; i++) {
        const mirrored_t *own = &mirror->list[i];
        const bool out = kind == DEV_HOST_TO_DEV;

        if (own->elems > 0)
            rc = dev_copy(mirror->stream, out ? own->arena : own->host,
                          out ? own->host : own->arena,
                          own->elems * sizeof(float), kind, err);
    }
    return rc == ERR_OK ? dev_stream_wait(mirror->stream, err) : rc;
}

err_code_t train_mirror_pull(train_mirror_t *mirror, err_t *err)
{
    return copy_all(mirror, DEV_DEV_TO_HOST, err);
}

err_code_t train_mirror_push(train_mirror_t *mirror, err_t *err)
{
    return copy_all(mirror, DEV_HOST_TO_DEV, err);
}

static bool copy_has(const mirrored_t *own, const float *at)
{
    return at >= own->host && at < own->host + own->elems;
}

/* The arena whose copy has the number at [at]; NULL: it is in no mirror. */
static const mirrored_t *copy_find(const train_mirror_t *mirror,
                                   const float *at)
{
    for (int i = 0; i < mirror->count; i++)
        if (copy_has(&mirror->list[i], at))
            return &mirror->list[i];
    return NULL;
}

err_code_t train_mirror_pull_share(train_mirror_t *mirror,
                                   const hdf5io_share_t *share, err_t *err)
{
    const size_t bytes = (size_t)hdf5io_share_elems(share) * sizeof(float);
    const int runs = hdf5io_share_runs(share);
    err_code_t rc = ERR_OK;

    /* A few large copies are faster than most of their bytes in many. */
    if (2 * bytes > train_mirror_bytes(mirror))
        return train_mirror_pull(mirror, err);
    for (int i = 0; i < runs && rc == ERR_OK; i++) {
        const hdf5io_run_t run = hdf5io_share_run(share, i);
        const mirrored_t *own = copy_find(mirror, run.data);
        ptrdiff_t at;

        /* These numbers are the state of a comm hook in the host's memory, and
         * need no copy. */
        if (own == NULL)
            continue;
        at = run.data - own->host;
        rc = dev_copy(mirror->stream, own->host + at, own->arena + at,
                      (size_t)run.count * sizeof(float), DEV_DEV_TO_HOST, err);
    }
    return rc == ERR_OK ? dev_stream_wait(mirror->stream, err) : rc;
}
