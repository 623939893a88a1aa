/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_manifest as text: JSON with one file or tensor a line. Doubles and
 * unsigned 64-bit numbers are strings, since JSON numbers cannot carry all of
 * them. The last member is the hash of all the text before it, so the rules of
 * JSON (order, white space) do not matter for it: it hashes bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "hdf5io/checkpoint_manifest.h"

#define FORMAT_NAME "cddp-checkpoint"
#define FORMAT_VERSION 1
#define SELF_KEY " \"manifest_xxh3\": \""
#define SELF_TAIL "\"\n}\n"

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
                " \"step\": %" PRId64 ",\n \"epoch\": %" PRId64
                ",\n \"epoch_step\": %" PRId64 ",\n \"samples\": %" PRId64
                ",\n",
                p->step, p->epoch, p->epoch_step, p->samples);
    str_buf_add(out, " \"seed\": \"%" PRIu64 "\",\n", p->seed);
    str_buf_add(out, " \"loss_sum\": \"%.17g\",\n", p->loss_sum);
    str_buf_add(out,
                " \"loss_count\": %" PRId64 ",\n \"correct\": %" PRId64 ",\n",
                p->loss_count, p->correct);
    str_buf_add(out, " \"best\": \"%.17g\",\n", p->best);
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
    for (int i = 0; i < m->file_count; i++)
        str_buf_add(out,
                    "%s\n  {\"name\": \"%s\", \"bytes\": %" PRIu64
                    ", \"xxh3\": \"%s\"}",
                    i == 0 ? "" : ",", m->files[i].name, m->files[i].bytes,
                    hash_format(m->files[i].hash, hash));
    str_buf_add(out, "\n ],\n");
}

static err_code_t tensors_print(const hdf5io_manifest_t *m, str_buf_t *out,
                                err_t *err)
{
    char shape[160];
    err_code_t code;

    str_buf_add(out, " \"tensors\": [");
    for (int i = 0; i < m->tensor_count; i++) {
        const hdf5io_manifest_tensor_t *t = &m->tensors[i];

        str_buf_add(out, "%s\n  {", i == 0 ? "" : ",");
        code = text_print("name", t->name, out, err);
        if (code != ERR_OK)
            return code;
        out->text[--out->length] = '\0'; /* the name ends no line */
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
    err_code_t code;

    str_buf_add(out, "{\n \"format\": \"%s\",\n \"version\": %d,\n",
                FORMAT_NAME, FORMAT_VERSION);
    code = text_print("created", manifest->created, out, err);
    progress_print(manifest, out);
    if (code == ERR_OK)
        code = text_print("versions", manifest->versions, out, err);
    if (code == ERR_OK)
        code = text_print("config", manifest->config_text, out, err);
    files_print(manifest, out);
    if (code == ERR_OK)
        code = tensors_print(manifest, out, err);
    hash_format(hash_bytes(out->text + start, out->length - start), hash);
    str_buf_add(out, SELF_KEY "%s" SELF_TAIL, hash);
    return code;
}

/* The text must end with the hash of what stands before that member. */
static err_code_t self_check(const char *text, size_t bytes, uint64_t *hash,
                             err_t *err)
{
    const size_t key = strlen(SELF_KEY), tail = strlen(SELF_TAIL);
    const size_t end = key + HASH_TEXT_MAX - 1 + tail;
    char digits[HASH_TEXT_MAX] = "";
    const char *self;

    if (bytes < end)
        return err_set(err, ERR_DATA, "it is cut off");
    self = text + bytes - end;
    memcpy(digits, self + key, HASH_TEXT_MAX - 1);
    if (memcmp(self, SELF_KEY, key) != 0 ||
        memcmp(text + bytes - tail, SELF_TAIL, tail) != 0 ||
        !hash_parse(digits, hash))
        return err_set(err, ERR_DATA,
                       "it does not end with its own hash, so it is cut off "
                       "or damaged");
    if (hash_bytes(text, bytes - end) != *hash)
        return err_set(err, ERR_DATA,
                       "its text does not have the hash %s that it ends with, "
                       "so it is damaged",
                       digits);
    return ERR_OK;
}

static bool real_parse(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

static bool unsigned_parse(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static err_code_t head_parse(json_t *root, hdf5io_manifest_t *m, err_t *err)
{
    const char *format, *created, *seed, *loss, *best, *versions, *config;
    const char *hashes[3];
    json_int_t n[7];
    int version, world;
    json_error_t why;
    hdf5io_progress_t *p = &m->progress;

    if (json_unpack_ex(root, &why, 0, "{s:s, s:i}", "format", &format,
                       "version", &version) != 0)
        return err_set(err, ERR_DATA, "%s", why.text);
    if (strcmp(format, FORMAT_NAME) != 0 || version != FORMAT_VERSION)
        return err_set(err, ERR_DATA,
                       "it is %s version %d, this cddp reads %s version %d",
                       format, version, FORMAT_NAME, FORMAT_VERSION);
    if (json_unpack_ex(root, &why, 0,
                       "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, "
                       "s:I, s:I, s:i, s:s, s:s, s:s}",
                       "created", &created, "seed", &seed, "loss_sum", &loss,
                       "best", &best, "versions", &versions, "config", &config,
                       "step", &n[0], "epoch", &n[1], "epoch_step", &n[2],
                       "samples", &n[3], "loss_count", &n[4], "correct", &n[5],
                       "world_size", &world, "config_hash", &hashes[0],
                       "model_hash", &hashes[1], "build_hash", &hashes[2]) != 0)
        return err_set(err, ERR_DATA, "%s", why.text);
    if (!unsigned_parse(seed, &p->seed) || !real_parse(loss, &p->loss_sum) ||
        !real_parse(best, &p->best) ||
        !hash_parse(hashes[0], &m->config_hash) ||
        !hash_parse(hashes[1], &m->model_hash) ||
        !hash_parse(hashes[2], &m->build_hash) || world < 1)
        return err_set(err, ERR_DATA, "a number in it cannot be read");
    p->step = n[0], p->epoch = n[1], p->epoch_step = n[2], p->samples = n[3];
    p->loss_count = n[4], p->correct = n[5];
    m->world_size = world;
    m->created = str_dup(created);
    m->versions = str_dup(versions);
    m->config_text = str_dup(config);
    return ERR_OK;
}

static err_code_t files_parse(json_t *list, hdf5io_manifest_t *m, err_t *err)
{
    json_t *item;
    size_t i;
    json_error_t why;

    m->files = calloc(json_array_size(list) + 1, sizeof *m->files);
    if (m->files == NULL)
        return err_set(err, ERR_MEMORY, "no memory for the manifest");
    json_array_foreach(list, i, item)
    {
        const char *name, *hash;
        json_int_t bytes;
        hdf5io_manifest_file_t *f = &m->files[i];

        if (json_unpack_ex(item, &why, 0, "{s:s, s:I, s:s}", "name", &name,
                           "bytes", &bytes, "xxh3", &hash) != 0)
            return err_set(err, ERR_DATA, "file %zu: %s", i, why.text);
        if (strchr(name, '/') != NULL || name[0] == '.' || name[0] == '\0' ||
            bytes < 0 || !hash_parse(hash, &f->hash))
            return err_set(err, ERR_DATA, "file %zu has no valid entry", i);
        f->bytes = (uint64_t)bytes;
        f->name = str_dup(name);
        m->file_count++;
    }
    return ERR_OK;
}

/* The next piece of tensor [t] must go on at element [at]. */
static err_code_t piece_parse(json_t *item, const hdf5io_manifest_t *m, int t,
                              int64_t at, hdf5io_manifest_piece_t *piece,
                              err_t *err)
{
    int file;
    json_int_t first, count, offset;
    json_error_t why;

    if (json_unpack_ex(item, &why, 0, "[i, I, I, I]", &file, &first, &count,
                       &offset) != 0)
        return err_set(err, ERR_DATA, "%s: %s", m->tensors[t].name, why.text);
    if (file < 0 || file >= m->file_count || first != at || count < 1 ||
        count > m->tensors[t].elems - at || offset < 0 ||
        (uint64_t)offset > m->files[file].bytes ||
        m->files[file].bytes - (uint64_t)offset < (uint64_t)count * 4)
        return err_set(err, ERR_DATA,
                       "%s: its pieces do not cover it within the files",
                       m->tensors[t].name);
    *piece = (hdf5io_manifest_piece_t){.tensor = t,
                                       .file = file,
                                       .first = first,
                                       .count = count,
                                       .offset = offset};
    return ERR_OK;
}

static err_code_t shape_parse(json_t *shape, hdf5io_manifest_tensor_t *t,
                              err_t *err)
{
    t->ndim = (int)json_array_size(shape);
    t->elems = 1;
    if (t->ndim > MANIFEST_DIMS_MAX)
        return err_set(err, ERR_DATA, "%s: it has %d dimensions", t->name,
                       t->ndim);
    for (int d = 0; d < t->ndim; d++) {
        json_t *item = json_array_get(shape, (size_t)d);

        t->dims[d] = json_integer_value(item);
        if (!json_is_integer(item) || t->dims[d] < 0 ||
            __builtin_mul_overflow(t->elems, t->dims[d], &t->elems) ||
            t->elems > INT64_MAX / 8)
            return err_set(err, ERR_DATA, "%s: its shape is not valid",
                           t->name);
    }
    return ERR_OK;
}

static err_code_t tensor_parse(json_t *item, hdf5io_manifest_t *m, int i,
                               err_t *err)
{
    hdf5io_manifest_tensor_t *t = &m->tensors[i];
    const char *name, *type;
    json_t *shape, *pieces;
    json_error_t why;
    int64_t at = 0;
    err_code_t code;

    if (json_unpack_ex(item, &why, 0, "{s:s, s:s, s:o, s:o}", "name", &name,
                       "type", &type, "shape", &shape, "pieces", &pieces) != 0)
        return err_set(err, ERR_DATA, "tensor %d: %s", i, why.text);
    t->name = str_dup(name);
    m->tensor_count = i + 1;
    if (strcmp(type, "float32") != 0)
        return err_set(err, ERR_DATA, "%s: its type is %s, not float32", name,
                       type);
    code = shape_parse(shape, t, err);
    t->piece = m->piece_count;
    t->pieces = (int)json_array_size(pieces);
    for (int j = 0; code == ERR_OK && j < t->pieces; j++) {
        hdf5io_manifest_piece_t *piece = &m->pieces[m->piece_count++];

        code = piece_parse(json_array_get(pieces, (size_t)j), m, i, at, piece,
                           err);
        at += piece->count;
    }
    if (code == ERR_OK && at != t->elems)
        code = err_set(err, ERR_DATA,
                       "%s: its pieces do not cover it within the files", name);
    return code;
}

static err_code_t tensors_parse(json_t *list, hdf5io_manifest_t *m, err_t *err)
{
    json_t *item;
    size_t i, pieces = 0;
    err_code_t code = ERR_OK;

    json_array_foreach(list, i, item) pieces +=
        json_array_size(json_object_get(item, "pieces"));
    m->tensors = calloc(json_array_size(list) + 1, sizeof *m->tensors);
    m->pieces = calloc(pieces + 1, sizeof *m->pieces);
    if (m->tensors == NULL || m->pieces == NULL)
        return err_set(err, ERR_MEMORY, "no memory for the manifest");
    json_array_foreach(list, i, item)
    {
        code = tensor_parse(item, m, (int)i, err);
        if (code != ERR_OK)
            break;
    }
    return code;
}

err_code_t hdf5io_manifest_parse(const char *text, size_t bytes,
                                 hdf5io_manifest_t *out, uint64_t *hash,
                                 err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t self;
    json_error_t why;
    json_t *root = NULL;
    err_code_t code = self_check(text, bytes, &self, err);

    if (code != ERR_OK)
        return code;
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL)
        return err_set(err, ERR_DATA, "line %d: %s", why.line, why.text);
    code = head_parse(root, &m, err);
    if (code == ERR_OK)
        code = files_parse(json_object_get(root, "files"), &m, err);
    if (code == ERR_OK)
        code = tensors_parse(json_object_get(root, "tensors"), &m, err);
    json_decref(root);
    if (code != ERR_OK) {
        hdf5io_manifest_free(&m);
        return code;
    }
    *out = m;
    *hash = self;
    return ERR_OK;
}

err_code_t hdf5io_manifest_load(const char *directory, hdf5io_manifest_t *out,
                                uint64_t *hash, err_t *err)
{
    char *path = str_printf("%s/%s", directory, MANIFEST_NAME), *text = NULL;
    size_t bytes;
    err_code_t code = file_read(path, &text, &bytes, err);

    if (code == ERR_OK) {
        code = hdf5io_manifest_parse(text, bytes, out, hash, err);
        if (code != ERR_OK)
            err_prefix(err, "%s", path);
    }
    free(text);
    free(path);
    return code;
}
