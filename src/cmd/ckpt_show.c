/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/ckpt_show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "hdf5io/checkpoint_find.h"
#include "hdf5io/checkpoint_io.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_prune.h"

static void paths_free(char **paths, int count)
{
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

static uint64_t bytes_of(const hdf5io_manifest_t *m)
{
    uint64_t bytes = 0;

    for (int i = 0; i < m->file_count; i++)
        bytes += m->files[i].bytes;
    return bytes;
}

static void line_print(const char *path, int64_t best, str_buf_t *out)
{
    hdf5io_manifest_t m = {0};
    const char *name = strrchr(path, '/');
    char bytes[32];
    uint64_t hash;
    err_t err = ERR_INIT;

    name = name == NULL ? path : name + 1;
    if (hdf5io_manifest_load(path, &m, &hash, &err) != ERR_OK) {
        str_buf_add(out, "%-16s %s: %s\n", name,
                    err.code == ERR_CONFIG ? "of a later version" : "damaged",
                    err.text);
        return;
    }
    str_buf_add(out, "%-16s %6" PRId64 " %10" PRId64 " %5d %5d %10s  %s%s\n",
                name, m.progress.epoch, m.progress.samples, m.world_size,
                m.file_count, str_bytes(bytes_of(&m), bytes, sizeof bytes),
                m.created,
                name[0] == '.'            ? ", left by an interrupted save"
                : m.progress.step == best ? ", best"
                                          : "");
    hdf5io_manifest_free(&m);
}

/* Count what no run reads any more. */
static err_code_t leftovers_print(const char *run, str_buf_t *out, err_t *err)
{
    char *home = hdf5io_checkpoint_home(run), size[32];
    hdf5io_leftover_t *list = NULL;
    uint64_t bytes = 0;
    int count = 0, superseded = 0;
    err_code_t rc = hdf5io_prune_list(home, &list, &count, err);

    for (int i = 0; i < count; i++) {
        superseded += list[i].superseded;
        bytes += list[i].bytes;
    }
    if (count > 0)
        str_buf_add(out,
                    "%d superseded, %d left by interrupted saves or being "
                    "written: %s (cddp-ckpt prune)\n",
                    superseded, count - superseded,
                    str_bytes(bytes, size, sizeof size));
    free(list);
    free(home);
    return rc;
}

err_code_t cmd_ckpt_list(const char *run, str_buf_t *out, err_t *err)
{
    char **paths, *home;
    hdf5io_best_t best;
    int count;
    err_code_t rc = hdf5io_checkpoint_list_of(run, &paths, &count, err);

    if (rc != ERR_OK)
        return rc;
    home = hdf5io_checkpoint_home(run);
    rc = hdf5io_best_read(&hdf5io_io_system, home, &best, err);
    free(home);
    str_buf_add(out, "%-16s %6s %10s %5s %5s %10s  %s\n", "checkpoint", "epoch",
                "samples", "ranks", "files", "size", "written");
    for (int i = 0; i < count; i++)
        line_print(paths[i], best.step, out);
    paths_free(paths, count);
    return rc == ERR_OK ? leftovers_print(run, out, err) : rc;
}

static void head_print(const char *path, const hdf5io_manifest_t *m,
                       str_buf_t *out)
{
    const hdf5io_progress_t *p = &m->progress;
    char hash[HASH_TEXT_MAX];

    str_buf_add(out, "checkpoint   %s\nwritten      %s by %d ranks\n", path,
                m->created, m->world_size);
    str_buf_add(out, "step         %" PRId64, p->step);
    if (p->updates != p->step)
        str_buf_add(out, ", with %" PRId64 " updates", p->updates);
    str_buf_add(out, "\n");
    str_buf_add(out,
                "epoch        %" PRId64 ", %" PRId64 " steps and %" PRId64
                " samples into it\n",
                p->epoch, p->epoch_step, p->samples);
    str_buf_add(out, "seed         %" PRIu64 "\n", p->seed);
    if (p->loss_count > 0)
        str_buf_add(out, "mean loss    %.6g, accuracy %.4f, this epoch\n",
                    p->loss_sum / (double)p->loss_count,
                    (double)p->correct / (double)p->loss_count);
    if (p->best >= 0)
        str_buf_add(out, "best         %.6g on the validation set\n", p->best);
    for (int64_t i = 0; i < p->skip_count; i++)
        str_buf_add(out,
                    "left out     %" PRId64 " samples from %" PRId64
                    " on of epoch %" PRId64 ", after a rollback\n",
                    p->skips[i].count, p->skips[i].first, p->skips[i].epoch);
    str_buf_add(out, "versions     %s\n", m->versions);
    str_buf_add(out, "config hash  %s\n", hash_format(m->config_hash, hash));
    str_buf_add(out, "model hash   %s\n", hash_format(m->model_hash, hash));
    str_buf_add(out, "build hash   %s\n", hash_format(m->build_hash, hash));
}

static void files_print(const hdf5io_manifest_t *m, str_buf_t *out)
{
    char hash[HASH_TEXT_MAX];

    str_buf_add(out, "\n%-24s %14s  %s\n", "file", "bytes", "xxh3");
    for (int i = 0; i < m->file_count; i++)
        str_buf_add(out, "%-24s %14" PRIu64 "  %s\n", m->files[i].name,
                    m->files[i].bytes,
                    m->files[i].hashed ? hash_format(m->files[i].hash, hash)
                                       : "of each block");
}

static void tensors_print(const hdf5io_manifest_t *m, str_buf_t *out)
{
    char shape[160];
    int64_t elems = 0;

    str_buf_add(out, "\n%-40s %-20s %12s\n", "tensor", "shape", "elements");
    for (int i = 0; i < m->tensor_count; i++) {
        const hdf5io_manifest_tensor_t *t = &m->tensors[i];

        str_buf_add(out, "%-40s %-20s %12" PRId64 "\n", t->name,
                    hdf5io_shape_format(t->ndim, t->dims, shape, sizeof shape),
                    t->elems);
        elems += t->elems;
    }
    str_buf_add(out, "%-40s %-20s %12" PRId64 "\n", "total", "", elems);
}

err_code_t cmd_ckpt_show(const char *path, str_buf_t *out, err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    err_code_t rc = hdf5io_manifest_load(path, &m, &hash, err);

    if (rc != ERR_OK)
        return rc;
    head_print(path, &m, out);
    files_print(&m, out);
    tensors_print(&m, out);
    if (m.config_text[0] != '\0')
        str_buf_add(out, "\nrun file:\n%s", m.config_text);
    hdf5io_manifest_free(&m);
    return ERR_OK;
}

err_code_t cmd_ckpt_verify(const char *path, str_buf_t *out, err_t *err)
{
    hdf5io_manifest_t m = {0};
    char bytes[32];
    uint64_t hash;
    err_code_t rc = hdf5io_checkpoint_verify(path, NULL, err);

    if (rc == ERR_OK)
        rc = hdf5io_manifest_load(path, &m, &hash, err);
    if (rc != ERR_OK)
        return rc;
    str_buf_add(out, "ok   %s: step %" PRId64 ", %d files, %s\n", path,
                m.progress.step, m.file_count + 1,
                str_bytes(bytes_of(&m), bytes, sizeof bytes));
    hdf5io_manifest_free(&m);
    return ERR_OK;
}
