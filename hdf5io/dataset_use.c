/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Keeps shards open or closed. All of them are open as long as their chunk
 * caches together stay below a limit and the process has enough descriptors.
 * Beyond that, the least recently used shard is closed, and opened again when
 * it is needed. What is known about its columns stays in memory, and so do its
 * decoded chunks.
 *
 * The same code handles failing storage: a read that the system refuses is
 * repeated on a newly opened file, since the open file itself may be stale.
 *
 * With MPI-IO all ranks open files together, so files stay open, and an error
 * is final.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/retry.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/dataset_stage.h"
#include "hdf5io/h5.h"

const hdf5io_column_t *hdf5io_dataset_columns(const hdf5io_dataset_t *dataset,
                                              const hdf5io_shard_t *shard)
{
    check(shard->path != NULL && shard->shape < dataset->like_count,
          "a shard of shape %d of %d", shard->shape, dataset->like_count);
    return dataset->likes[shard->shape];
}

static bool use_is_system(err_code_t rc, int number)
{
    return rc == ERR_IO || rc == ERR_UNAVAILABLE ||
           (rc == ERR_DATA && retry_cause(number) == RETRY_FORBIDDEN);
}

/* Take [shard] out of the list of open shards. */
static void list_remove(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    if (shard->older != NULL)
        shard->older->newer = shard->newer;
    else
        dataset->oldest = shard->newer;
    if (shard->newer != NULL)
        shard->newer->older = shard->older;
    else
        dataset->newest = shard->older;
    shard->older = shard->newer = NULL;
}

/* Add [shard] to the list of open shards as the newest one. */
static void list_append(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    shard->older = dataset->newest;
    shard->newer = NULL;
    if (dataset->newest != NULL)
        dataset->newest->newer = shard;
    else
        dataset->oldest = shard;
    dataset->newest = shard;
}

void hdf5io_dataset_opened(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    list_append(dataset, shard);
    dataset->cached += shard->cached;
    dataset->open_count++;
}

/* Close the files of [shard] and keep what is known about it. */
static void use_rest(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    check(shard->open && dataset->open_count > 0 &&
              dataset->cached >= shard->cached,
          "%s rests: open %d, %d open, caches of %zu of %zu bytes", shard->path,
          shard->open, dataset->open_count, (size_t)shard->cached,
          (size_t)dataset->cached);
    list_remove(dataset, shard);
    hdf5io_shard_rest(shard);
    dataset->cached -= shard->cached;
    dataset->open_count--;
}

/* Are the counters of the dataset those of its list of open shards? */
static bool use_counted(const hdf5io_dataset_t *dataset)
{
    const hdf5io_shard_t *shard = dataset->oldest;
    size_t cached = 0;
    int open = 0;

    for (; shard != NULL && shard->open; shard = shard->newer) {
        cached += shard->cached;
        open++;
    }
    return shard == NULL && cached == dataset->cached &&
           open == dataset->open_count;
}

bool hdf5io_dataset_rest_oldest(hdf5io_dataset_t *dataset)
{
    hdf5io_shard_t *shard = dataset->oldest;

    while (shard != NULL && shard->readers > 0)
        shard = shard->newer;
    if (shard == NULL)
        return false;
    use_rest(dataset, shard);
    return true;
}

void hdf5io_dataset_trim(hdf5io_dataset_t *dataset, const hdf5io_shard_t *last)
{
    if (dataset->mpi != NULL)
        return;
    /* Other datasets of the process use the descriptors that this one frees, so
     * the limit of this dataset is lowered permanently. */
    if (last->crowded)
        dataset->open_max =
            dataset->open_count > 2 ? dataset->open_count - 1 : 1;
    while ((dataset->cached > dataset->cache_max ||
            dataset->open_count > dataset->open_max) &&
           hdf5io_dataset_rest_oldest(dataset))
        ;
    check(use_counted(dataset), "%d shards are open with caches of %zu bytes",
          dataset->open_count, dataset->cached);
}

static err_code_t use_changed(const hdf5io_dataset_t *dataset,
                              const hdf5io_shard_t *was,
                              const hdf5io_shard_t *now, err_t *err)
{
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, was);
    bool same = was->rows == now->rows && was->bytes == now->bytes;

    for (int k = 0; k < was->count && same; k++) {
        const hdf5io_column_t *a = &columns[k], *b = &now->columns[k];

        same = a->elems == b->elems && a->ndim == b->ndim &&
               a->type.kind == b->type.kind && a->type.swap == b->type.swap;
    }
    if (same)
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s was changed while it was in use: %" PRIu64
                   " bytes and %" PRId64 " samples before, %" PRIu64
                   " bytes and %" PRId64 " samples now",
                   was->path, was->bytes, was->rows, now->bytes, now->rows);
}

/* Free the chunks and bands in the pool that were read from [shard] before it
 * was closed. */
static void use_forget(const hdf5io_dataset_t *dataset,
                       const hdf5io_shard_t *shard)
{
    for (int k = 0; k < dataset->field_count; k++)
        hdf5io_pool_forget(dataset->pool,
                           hdf5io_dataset_owner(dataset, shard, k));
}

/* If the file of [shard] is another one, or was written, since somebody looked
 * at it, compare the digests of its numbers, if they were found then. [now]:
 * the shard, opened again. */
static err_code_t use_replaced(const hdf5io_dataset_t *dataset,
                               const hdf5io_shard_t *shard,
                               const catalogue_facts_t *facts,
                               const hdf5io_shard_t *now, err_t *err)
{
    err_code_t rc = ERR_OK;
    uint64_t value;

    if (facts->changed == now->changed && facts->inode == now->inode)
        return ERR_OK;
    use_forget(dataset, shard);
    if (!facts->digested)
        return ERR_OK;
    for (int k = 0; k < now->count && rc == ERR_OK; k++) {
        rc = hdf5io_shard_digest(now, k, dataset->count, &value, err);
        if (rc != ERR_OK || value == facts->digests[k])
            continue;
        errno = 0;
        rc = err_set(err, ERR_DATA,
                     "%s was replaced while it was in use: %s holds other "
                     "numbers than at the start",
                     now->path, now->columns[k].path);
    }
    return rc;
}

/* Reopen [shard]. Lock held. */
static err_code_t use_wake(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                           err_t *err)
{
    catalogue_facts_t facts;
    hdf5io_shard_t now;
    int number;
    bool known;
    err_code_t rc;

    check(!shard->open && shard->fd < 0 && shard->file < 0,
          "%s is opened while it is open: descriptor %d", shard->path,
          shard->fd);
    known = hdf5io_catalogue_get(dataset->catalogue,
                                 (int)(shard - dataset->shards), &facts);
    check(known, "nothing is known of %s", shard->path);
    if (known && (hdf5io_dataset_copy_open(dataset, &facts, shard) ||
                  hdf5io_shard_reopen(&dataset->how, &facts, -1, shard))) {
        hdf5io_dataset_opened(dataset, shard);
        return ERR_OK;
    }
    do
        rc = hdf5io_shard_open(&dataset->how, shard->path,
                               hdf5io_dataset_owner(dataset, shard, 0), &now,
                               err);
    while (rc == ERR_UNAVAILABLE && errno == EMFILE &&
           hdf5io_dataset_rest_oldest(dataset));
    if (rc != ERR_OK)
        return rc;
    errno = 0;
    rc = use_changed(dataset, shard, &now, err);
    if (rc == ERR_OK && known)
        rc = use_replaced(dataset, shard, &facts, &now, err);
    number = errno;
    if (rc == ERR_OK) {
        hdf5io_shard_adopt(shard, &now);
        hdf5io_dataset_opened(dataset, shard);
    }
    hdf5io_shard_rest(&now);
    errno = number;
    return rc;
}

/* Arguments and state of hdf5io_dataset_use over its tries. */
typedef struct use_call {
    hdf5io_dataset_t *dataset;
    hdf5io_shard_t *shard;
    dataset_work_t work;
    void *context;
    bool again;
    bool copied; /* this try reads, or has read, the copy of the shard */
} use_call_t;

/* There is a copy of the open shard: exchange the descriptor, or close the
 * shard, so that the copy is opened next. Lock held. */
static void use_copy(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    if (shard->file < 0 && shard->fd >= 0)
        hdf5io_dataset_copy_take(dataset, shard);
    else if (shard->readers == 0)
        use_rest(dataset, shard);
}

/* Open the shard if it is closed, and hold it open for one try. If a try failed
 * before, close it first, unless another thread reads it now: the files that
 * are open may be stale. A thread that waits for its next try holds nothing of
 * the shard. Lock held. */
static err_code_t use_hold(use_call_t *call, int *number, err_t *err)
{
    hdf5io_dataset_t *dataset = call->dataset;
    hdf5io_shard_t *shard = call->shard;
    err_code_t rc;

    if (call->again && shard->open && shard->readers == 0)
        use_rest(dataset, shard);
    if (shard->open && hdf5io_dataset_copy_due(dataset, shard))
        use_copy(dataset, shard);
    call->copied = shard->copied;
    if (shard->open) {
        list_remove(dataset, shard);
        list_append(dataset, shard);
        shard->readers++;
        return ERR_OK;
    }
    rc = use_wake(dataset, shard, err);
    call->copied = shard->copied;
    if (rc != ERR_OK) {
        *number = use_is_system(rc, errno) ? errno : 0;
        return rc;
    }
    shard->readers++;
    hdf5io_dataset_trim(dataset, shard);
    return ERR_OK;
}

static err_code_t use_once(use_call_t *call, int *number, err_t *err)
{
    hdf5io_dataset_t *dataset = call->dataset;
    hdf5io_shard_t *shard = call->shard;
    err_code_t rc;

    pthread_mutex_lock(&dataset->lock);
    rc = use_hold(call, number, err);
    pthread_mutex_unlock(&dataset->lock);
    call->again = true;
    if (rc != ERR_OK)
        return rc;
    errno = 0;
    rc = call->work(call->context, err);
    if (rc != ERR_OK && use_is_system(rc, errno))
        *number = errno;
    pthread_mutex_lock(&dataset->lock);
    check(shard->readers > 0, "%s has %d readers", shard->path, shard->readers);
    shard->readers--;
    /* Another thread may have exchanged the descriptor meanwhile. */
    call->copied = call->copied || shard->copied;
    pthread_mutex_unlock(&dataset->lock);
    return rc;
}

/* One try. If it fails on the copy of the shard, the shard itself is read. */
static err_code_t use_attempt(void *context, int *number, err_t *err)
{
    use_call_t *call = context;
    hdf5io_dataset_t *dataset = call->dataset;
    err_t own = ERR_INIT;
    err_code_t rc;

    if (call->again)
        atomic_fetch_add(&dataset->retries, 1);
    rc = use_once(call, number, &own);
    if (rc != ERR_OK && call->copied) {
        pthread_mutex_lock(&dataset->lock);
        hdf5io_dataset_copy_leave(dataset, call->shard, &own);
        pthread_mutex_unlock(&dataset->lock);
        *number = 0;
        rc = use_once(call, number, &own);
        /* Other threads keep the copy open, so the copy was read again, and the
         * error says nothing about the shard. The next try may close the copy.
         */
        if (rc != ERR_OK && call->copied && *number == 0)
            *number = EIO;
    }
    return rc == ERR_OK ? ERR_OK : err_copy(err, &own);
}

err_code_t hdf5io_dataset_use(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                              dataset_work_t work, void *context, err_t *err)
{
    use_call_t call = {
        .dataset = dataset, .shard = shard, .work = work, .context = context};

    if (dataset->mpi != NULL)
        return work(context, err);
    return retry_run(&dataset->retry, shard->path, use_attempt, &call, NULL,
                     err);
}

/* May one more shard be opened? Lock held. */
static bool use_room(const hdf5io_dataset_t *dataset)
{
    return dataset->open_count < dataset->open_max &&
           dataset->cached < dataset->cache_max;
}

void hdf5io_dataset_try(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                        bool opens, dataset_work_t work, void *context)
{
    const int number = errno;
    err_t err = ERR_INIT;
    bool held;

    pthread_mutex_lock(&dataset->lock);
    held = shard->open;
    if (!held && opens && use_room(dataset) &&
        use_wake(dataset, shard, &err) == ERR_OK) {
        held = true;
        shard->readers++;
        hdf5io_dataset_trim(dataset, shard);
    } else if (held) {
        shard->readers++;
    }
    pthread_mutex_unlock(&dataset->lock);
    if (held) {
        work(context, &err);
        pthread_mutex_lock(&dataset->lock);
        shard->readers--;
        pthread_mutex_unlock(&dataset->lock);
    }
    errno = number;
}

static err_code_t rows_work(void *context, err_t *err)
{
    const dataset_rows_t *rows = context;
    const column_rows_t from = {.runs = rows->runs,
                                .count = rows->count,
                                .fd = rows->shard->fd,
                                .transfer = rows->dataset->transfer,
                                .slots = rows->slots,
                                .slow = &rows->dataset->slow};

    return hdf5io_column_read(&rows->shard->columns[rows->column], &from,
                              rows->out, err);
}

err_code_t hdf5io_dataset_rows(dataset_rows_t *rows, err_t *err)
{
    return hdf5io_dataset_use(rows->dataset, rows->shard, rows_work, rows, err);
}
