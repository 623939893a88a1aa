/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Printing a manifest as JSON, with one file or tensor per line. Doubles and
 * unsigned 64-bit numbers are strings, since JSON numbers cannot represent all
 * of them. The last member is the hash of all bytes before it, so it does not
 * depend on JSON's rules for order and white space.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/hash.h"
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_data.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_order.h"
#include "hdf5io/checkpoint_rollback.h"

/* Append ` "key": "text",` with the text quoted by JSON's rules. */
static err_code_t text_print(const char *key, const char *text, str_buf_t *out,
                             err_t *err)
{
    json_t *value = json_string(text);
    char *quoted = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY);

    json_decref(value);
    if (quoted == NULL)
        return err_set(err, ERR_CONFIG,
                       "the checkpoint's %s is not UTF-8 text, which its "
                       "manifest needs",
                       key);
    str_buf_add(out, " \"%s\": %s,\n", key, quoted);
    free(quoted);
    return ERR_OK;
}

static void progress_print(const hdf5io_manifest_t *m, str_buf_t *out)
{
    const hdf5io_progress_t *p = &m->progress;
    char hash[HASH_TEXT_MAX];

    str_buf_add(out,
                " \"step\": %" PRId64 ",\n \"updates\": %" PRId64
                ",\n \"epoch\": %" PRId64 ",\n \"epoch_step\": %" PRId64
                ",\n \"samples\": %" PRId64 ",\n",
                p->step, p->updates, p->epoch, p->epoch_step, p->samples);
    if (p->data_samples > 0)
        str_buf_add(out, " \"data_samples\": %" PRId64 ",\n", p->data_samples);
    hdf5io_order_print(&p->order, out);
    str_buf_add(out, " \"seed\": \"%" PRIu64 "\",\n", p->seed);
    str_buf_add(out, " \"loss_sum\": \"%.17g\",\n", p->loss_sum);
    str_buf_add(out,
                " \"loss_count\": %" PRId64 ",\n \"correct\": %" PRId64 ",\n",
                p->loss_count, p->correct);
    str_buf_add(out, " \"best\": \"%.17g\",\n", p->best);
    if (p->watch.step > 0)
        str_buf_add(out,
                    " \"watch\": {\"best\": \"%.17g\", \"step\": %" PRId64
                    ", \"seen\": %" PRId64 ", \"bad\": %" PRId64
                    ", \"rest\": %" PRId64 ", \"cuts\": %" PRId64 "},\n",
                    p->watch.best, p->watch.step, p->watch.seen, p->watch.bad,
                    p->watch.rest, p->watch.cuts);
    hdf5io_rollback_print(p, out);
    str_buf_add(out, " \"world_size\": %d,\n", m->world_size);
    str_buf_add(out, " \"config_hash\": \"%s\",\n",
                hash_format(m->config_hash, hash));
    str_buf_add(out, " \"model_hash\": \"%s\",\n",
                hash_format(m->model_hash, hash));
    str_buf_add(out, " \"build_hash\": \"%s\",\n",
                hash_format(m->build_hash, hash));
}

static void files_print(const hdf5io_manifest_t *m, str_buf_t *out)
{
    char hash[HASH_TEXT_MAX];

    str_buf_add(out, " \"files\": [");
    for (int i = 0; i < m->file_count; i++) {
        str_buf_add(out, "%s\n  {\"name\": \"%s\", \"bytes\": %" PRIu64,
                    i == 0 ? "" : ",", m->files[i].name, m->files[i].bytes);
        if (m->files[i].hashed)
            str_buf_add(out, ", \"xxh3\": \"%s\"",
                        hash_format(m->files[i].hash, hash));
        hdf5io_blocks_print(m, i, out);
        str_buf_add(out, "}");
    }
    str_buf_add(out, "\n ],\n");
}

static err_code_t tensors_print(const hdf5io_manifest_t *m, str_buf_t *out,
                                err_t *err)
{
    char shape[160];
    err_code_t rc;

    str_buf_add(out, " \"tensors\": [");
    for (int i = 0; i < m->tensor_count; i++) {
        const hdf5io_manifest_tensor_t *t = &m->tensors[i];

        str_buf_add(out, "%s\n  {", i == 0 ? "" : ",");
        rc = text_print("name", t->name, out, err);
        if (rc != ERR_OK)
            return rc;
        out->text[--out->length] = '\0'; /* remove the newline after the name */
        str_buf_add(out, " \"type\": \"float32\", \"shape\": %s, \"pieces\": [",
                    hdf5io_shape_format(t->ndim, t->dims, shape, sizeof shape));
        for (int j = t->piece; j < t->piece + t->pieces; j++)
            str_buf_add(out, "%s[%d, %" PRId64 ", %" PRId64 ", %" PRId64 "]",
                        j == t->piece ? "" : ", ", m->pieces[j].file,
                        m->pieces[j].first, m->pieces[j].count,
                        m->pieces[j].offset);
        str_buf_add(out, "]}");
    }
    str_buf_add(out, "\n ],\n");
    return ERR_OK;
}

err_code_t hdf5io_manifest_print(const hdf5io_manifest_t *manifest,
                                 str_buf_t *out, err_t *err)
{
    size_t start = out->length;
    char hash[HASH_TEXT_MAX];
    err_code_t rc;

    str_buf_add(out, "{\n \"format\": \"%s\",\n \"version\": %d,\n",
                MANIFEST_FORMAT, manifest->version);
    hdf5io_blocks_size_print(manifest, out);
    rc = text_print("created", manifest->created, out, err);
    progress_print(manifest, out);
    if (rc == ERR_OK)
        rc = text_print("versions", manifest->versions, out, err);
    if (rc == ERR_OK)
        rc = text_print("config", manifest->config_text, out, err);
    if (rc == ERR_OK)
        rc =
            hdf5io_marks_print(manifest->marks, manifest->mark_count, out, err);
    files_print(manifest, out);
    if (rc == ERR_OK)
        rc = tensors_print(manifest, out, err);
    hash_format(hash_bytes(out->text + start, out->length - start), hash);
    str_buf_add(out, MANIFEST_SELF_KEY "%s" MANIFEST_SELF_TAIL, hash);
    return rc;
}
