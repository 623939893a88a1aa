/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Parsing a manifest. The hash at its end is checked first, so text that is
 * refused after that was written incorrectly, or by another version. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_data.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_order.h"
#include "hdf5io/checkpoint_read.h"
#include "hdf5io/checkpoint_rollback.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
/* Maximum of any counter, so that a resumed run can count further without
 * overflow. The reducer has the same limit (DDP_STEP_MAX). */
#define COUNT_MAX (INT64_MAX / 4)
/* The end of sentences about a checkpoint that a later version of cddp wrote.
 * Such a checkpoint is not damaged, so no older one is read instead: the run
 * would then replace the newer checkpoint. */
#define LATER_MEND                                                            \
    ": read it with the cddp that wrote it or a later one, or go on from an " \
    "older checkpoint (--resume PATH)"

/* Check that the text ends with the hash of everything before it. */
static err_code_t self_check(const char *text, size_t bytes, uint64_t *hash,
                             err_t *err)
{
    const size_t key = strlen(MANIFEST_SELF_KEY),
                 tail = strlen(MANIFEST_SELF_TAIL);
    const size_t end = key + HASH_TEXT_MAX - 1 + tail;
    char digits[HASH_TEXT_MAX] = "";
    const char *self;

    if (bytes < end)
        return err_set(err, ERR_DATA, "it is cut off");
    self = text + bytes - end;
    memcpy(digits, self + key, HASH_TEXT_MAX - 1);
    if (memcmp(self, MANIFEST_SELF_KEY, key) != 0 ||
        memcmp(text + bytes - tail, MANIFEST_SELF_TAIL, tail) != 0 ||
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

    *out = numeric_parse(text, &end);
    return end != text && *end == '\0';
}

static bool unsigned_parse(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

/* Copy the string member [key]. The caller frees it. */
static err_code_t text_get(json_t *root, const char *key, char **out,
                           err_t *err)
{
    json_t *value = json_object_get(root, key);

    if (!json_is_string(value))
        return err_set(err, ERR_DATA, "its member \"%s\" is missing or no text",
                       key);
    *out = str_dup(json_string_value(value));
    return ERR_OK;
}

static err_code_t count_get(json_t *root, const char *key, int64_t *out,
                            err_t *err)
{
    json_t *value = json_object_get(root, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return err_set(err, ERR_DATA,
                       "its member \"%s\" is missing or no count", key);
    if (json_integer_value(value) > COUNT_MAX)
        return err_set(err, ERR_DATA,
                       "its member \"%s\" is %lld, more than any run can "
                       "have counted (at most %lld)",
                       key, (long long)json_integer_value(value),
                       (long long)COUNT_MAX);
    *out = json_integer_value(value);
    return ERR_OK;
}

typedef enum number { NUMBER_UNSIGNED, NUMBER_REAL, NUMBER_HASH } number_t;

/* Parse a number that is stored as a string. [out] is a uint64_t or a double,
 * as [kind] says. */
static err_code_t number_get(json_t *root, const char *key, number_t kind,
                             void *out, err_t *err)
{
    const char *text = json_string_value(json_object_get(root, key));
    bool good = text != NULL;

    if (good && kind == NUMBER_UNSIGNED)
        good = unsigned_parse(text, out);
    else if (good && kind == NUMBER_REAL)
        good = real_parse(text, out);
    else if (good)
        good = hash_parse(text, out);
    if (!good)
        return err_set(err, ERR_DATA,
                       "its member \"%s\" is missing or no number", key);
    return ERR_OK;
}

/* The member "requires" lists what a reader must know to read the checkpoint
 * correctly. This version knows no such thing: it refuses any list that is not
 * empty. */
static err_code_t requires_check(json_t *root, err_t *err)
{
    const json_t *list = json_object_get(root, "requires");
    const char *what = json_string_value(json_array_get(list, 0));

    if (list == NULL || (json_is_array(list) && json_array_size(list) == 0))
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "it requires \"%s\" of its reader, which this cddp does not "
                   "know" LATER_MEND,
                   what == NULL ? "?" : what);
}

static err_code_t version_check(const char *format, int64_t version, err_t *err)
{
    const bool ours = strcmp(format, MANIFEST_FORMAT) == 0;
    const bool later = ours && version > MANIFEST_VERSION;

    if (ours && !later && version >= 1)
        return ERR_OK;
    return err_set(err, later ? ERR_CONFIG : ERR_DATA,
                   "it is %s version %lld, this cddp reads %s versions 1 to "
                   "%d%s",
                   format, (long long)version, MANIFEST_FORMAT,
                   MANIFEST_VERSION, later ? LATER_MEND : "");
}

static err_code_t format_check(json_t *root, int *out, err_t *err)
{
    char *format;
    int64_t version;
    err_code_t rc = text_get(root, "format", &format, err);

    if (rc != ERR_OK)
        return rc;
    rc = count_get(root, "version", &version, err);
    if (rc == ERR_OK)
        rc = version_check(format, version, err);
    if (rc == ERR_OK)
        rc = requires_check(root, err);
    if (rc == ERR_OK)
        *out = (int)version;
    free(format);
    return rc;
}

/* Parse the state of the schedule; NULL: there is none. */
static err_code_t watch_parse(json_t *watch, hdf5io_progress_t *p, err_t *err)
{
    const struct {
        const char *key;
        int64_t *out;
    } counts[] = {
        {"step", &p->watch.step}, {"seen", &p->watch.seen},
        {"bad", &p->watch.bad},   {"rest", &p->watch.rest},
        {"cuts", &p->watch.cuts},
    };
    err_code_t rc;

    if (watch == NULL)
        return ERR_OK;
    rc = number_get(watch, "best", NUMBER_REAL, &p->watch.best, err);
    for (size_t i = 0; i < COUNT_OF(counts) && rc == ERR_OK; i++)
        rc = count_get(watch, counts[i].key, counts[i].out, err);
    if (rc == ERR_OK && p->watch.step > p->step)
        rc = err_set(err, ERR_DATA,
                     "its member \"step\" is %lld, but the checkpoint is of "
                     "step %lld",
                     (long long)p->watch.step, (long long)p->step);
    if (rc != ERR_OK)
        err_prefix(err, "watch");
    return rc;
}

/* Parse the optional member "updates". Older versions, which do not write it,
 * counted each step as an update. */
static err_code_t updates_get(json_t *root, hdf5io_progress_t *p, err_t *err)
{
    err_code_t rc;

    p->updates = p->step;
    if (json_object_get(root, "updates") == NULL)
        return ERR_OK;
    rc = count_get(root, "updates", &p->updates, err);
    if (rc == ERR_OK && p->updates > p->step)
        rc = err_set(err, ERR_DATA,
                     "its member \"updates\" is %lld, but it is of step "
                     "%lld",
                     (long long)p->updates, (long long)p->step);
    return rc;
}

static err_code_t head_parse(json_t *root, hdf5io_manifest_t *m, err_t *err)
{
    hdf5io_progress_t *p = &m->progress;
    int64_t world = 0;
    const struct {
        const char *key;
        int64_t *out;
    } counts[] = {
        {"step", &p->step},
        {"epoch", &p->epoch},
        {"epoch_step", &p->epoch_step},
        {"samples", &p->samples},
        {"loss_count", &p->loss_count},
        {"correct", &p->correct},
        {"world_size", &world},
    };
    const struct {
        const char *key;
        number_t kind;
        void *out;
    } numbers[] = {
        {"seed", NUMBER_UNSIGNED, &p->seed},
        {"loss_sum", NUMBER_REAL, &p->loss_sum},
        {"best", NUMBER_REAL, &p->best},
        {"config_hash", NUMBER_HASH, &m->config_hash},
        {"model_hash", NUMBER_HASH, &m->model_hash},
        {"build_hash", NUMBER_HASH, &m->build_hash},
    };
    err_code_t rc = format_check(root, &m->version, err);

    if (rc == ERR_OK && json_object_get(root, "data_samples") != NULL)
        rc = count_get(root, "data_samples", &p->data_samples, err);
    for (size_t i = 0; i < COUNT_OF(counts) && rc == ERR_OK; i++)
        rc = count_get(root, counts[i].key, counts[i].out, err);
    if (rc == ERR_OK)
        rc = updates_get(root, p, err);
    for (size_t i = 0; i < COUNT_OF(numbers) && rc == ERR_OK; i++)
        rc = number_get(root, numbers[i].key, numbers[i].kind, numbers[i].out,
                        err);
    if (rc == ERR_OK && (world < 1 || world > INT_MAX))
        rc = err_set(err, ERR_DATA, "its member \"world_size\" is %lld",
                     (long long)world);
    m->world_size = (int)world;
    if (rc == ERR_OK)
        rc = watch_parse(json_object_get(root, "watch"), p, err);
    if (rc == ERR_OK)
        rc = hdf5io_order_parse(root, &p->order, err);
    if (rc == ERR_OK)
        rc = hdf5io_rollback_parse(root, p, err);
    if (rc == ERR_OK)
        rc = text_get(root, "created", &m->created, err);
    if (rc == ERR_OK)
        rc = text_get(root, "versions", &m->versions, err);
    if (rc == ERR_OK)
        rc = text_get(root, "config", &m->config_text, err);
    if (rc == ERR_OK)
        rc = hdf5io_marks_parse(json_object_get(root, "data"), &m->marks,
                                &m->mark_count, err);
    return rc;
}

/* Is it a name that a writer of checkpoints chooses: printable ASCII without
 * characters that are special in paths or JSON? */
static bool file_name_is_ours(const char *name)
{
    const char *c = name;

    while (*c > ' ' && *c <= '~' && strchr("/\"\\", *c) == NULL)
        c++;
    return *c == '\0' && name[0] != '\0' && name[0] != '.';
}

static err_code_t files_parse(json_t *list, hdf5io_manifest_t *m, err_t *err)
{
    json_t *item;
    size_t i;
    int64_t total = 0;
    json_error_t why;
    err_code_t rc = mem_new(hdf5io_manifest_file_t, json_array_size(list),
                            "a manifest", &m->files, err);

    if (rc != ERR_OK)
        return rc;
    json_array_foreach(list, i, item)
    {
        const char *name, *hash = NULL;
        json_int_t bytes;
        hdf5io_manifest_file_t *f = &m->files[i];

        /* In version 2 the hash of the file may be absent, as its blocks have
         * hashes. */
        if (json_unpack_ex(item, &why, 0,
                           m->version < 2 ? "{s:s, s:I, s:s}"
                                          : "{s:s, s:I, s?s}",
                           "name", &name, "bytes", &bytes, "xxh3", &hash) != 0)
            return err_set(err, ERR_DATA, "file %zu: %s", i, why.text);
        f->hashed = hash != NULL;
        if (!file_name_is_ours(name) || bytes < 0 ||
            (bytes == 0 && hash == NULL) ||
            (hash != NULL && !hash_parse(hash, &f->hash)))
            return err_set(err, ERR_DATA, "file %zu has no valid entry", i);
        if (__builtin_add_overflow(total, (int64_t)bytes, &total))
            return err_set(err, ERR_DATA,
                           "its first %zu files have more than %lld bytes "
                           "together",
                           i + 1, (long long)INT64_MAX);
        f->bytes = (uint64_t)bytes;
        f->name = str_dup(name);
        m->file_count++;
        rc = hdf5io_blocks_parse(item, m, (int)i, err);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

/* Parse [piece], whose tensor and first element are set. */
static err_code_t piece_parse(json_t *item, const hdf5io_manifest_t *m,
                              hdf5io_manifest_piece_t *piece, err_t *err)
{
    const hdf5io_manifest_tensor_t *tensor = &m->tensors[piece->tensor];
    int file;
    json_int_t first, count, offset;
    json_error_t why;

    if (json_unpack_ex(item, &why, 0, "[i, I, I, I]", &file, &first, &count,
                       &offset) != 0)
        return err_set(err, ERR_DATA, "%s: %s", tensor->name, why.text);
    if (file < 0 || file >= m->file_count || first != piece->first ||
        count < 1 || count > tensor->elems - first || offset < 0 ||
        (uint64_t)offset > m->files[file].bytes ||
        m->files[file].bytes - (uint64_t)offset < (uint64_t)count * 4)
        return err_set(err, ERR_DATA,
                       "%s: its pieces do not cover it within the files",
                       tensor->name);
    piece->file = file;
    piece->count = count;
    piece->offset = offset;
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

/* FORMATS.md reserves the names of other types for later versions of cddp: a
 * tensor with such a type is not damaged. */
static err_code_t type_check(const char *name, const char *type, err_t *err)
{
    static const char *const later[] = {"float16", "bfloat16", "float64",
                                        "int32",   "int64",    "uint8"};

    if (strcmp(type, "float32") == 0)
        return ERR_OK;
    for (size_t i = 0; i < COUNT_OF(later); i++)
        if (strcmp(type, later[i]) == 0)
            return err_set(err, ERR_CONFIG,
                           "%s: its type is %s, but this cddp reads only "
                           "float32" LATER_MEND,
                           name, type);
    return err_set(err, ERR_DATA, "%s: its type is %s, expected float32", name,
                   type);
}

static err_code_t tensor_parse(json_t *item, hdf5io_manifest_t *m, int i,
                               err_t *err)
{
    hdf5io_manifest_tensor_t *t = &m->tensors[i];
    const char *name, *type;
    json_t *shape, *pieces;
    json_error_t why;
    int64_t at = 0;
    err_code_t rc;

    if (json_unpack_ex(item, &why, 0, "{s:s, s:s, s:o, s:o}", "name", &name,
                       "type", &type, "shape", &shape, "pieces", &pieces) != 0)
        return err_set(err, ERR_DATA, "tensor %d: %s", i, why.text);
    t->name = str_dup(name);
    m->tensor_count = i + 1;
    rc = type_check(name, type, err);
    if (rc != ERR_OK)
        return rc;
    rc = shape_parse(shape, t, err);
    t->piece = m->piece_count;
    t->pieces = (int)json_array_size(pieces);
    for (int j = 0; rc == ERR_OK && j < t->pieces; j++) {
        hdf5io_manifest_piece_t *piece = &m->pieces[m->piece_count++];

        piece->tensor = i;
        piece->first = at;
        rc = piece_parse(json_array_get(pieces, (size_t)j), m, piece, err);
        at += piece->count;
    }
    if (rc == ERR_OK && at != t->elems)
        rc = err_set(err, ERR_DATA,
                     "%s: its pieces do not cover it within the files", name);
    return rc;
}

static err_code_t tensors_parse(json_t *list, hdf5io_manifest_t *m, err_t *err)
{
    json_t *item;
    size_t i, pieces = 0;
    err_code_t rc = ERR_OK;

    json_array_foreach(list, i, item) pieces +=
        json_array_size(json_object_get(item, "pieces"));
    rc = mem_new(hdf5io_manifest_tensor_t, json_array_size(list), "a manifest",
                 &m->tensors, err);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_manifest_piece_t, pieces, "a manifest", &m->pieces,
                     err);
    if (rc != ERR_OK)
        return rc;
    json_array_foreach(list, i, item)
    {
        rc = tensor_parse(item, m, (int)i, err);
        if (rc != ERR_OK)
            break;
    }
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuse names that occur twice, since a reader would find only one of the two.
 * Sorts [names]. */
static err_code_t names_check(const char **names, int count, const char *what,
                              err_t *err)
{
    if (count > 1)
        qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return err_set(err, ERR_DATA, "%s %s is named twice", what,
                           names[i]);
    return ERR_OK;
}

static err_code_t twice_check(const hdf5io_manifest_t *m, err_t *err)
{
    const int tensors = m->tensor_count, files = m->file_count;
    const size_t most = (size_t)(tensors > files ? tensors : files);
    const char **names = NULL;
    err_code_t rc = mem_new(const char *, most, "a manifest", &names, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < tensors; i++)
        names[i] = m->tensors[i].name;
    rc = names_check(names, tensors, "tensor", err);
    for (int i = 0; i < files; i++)
        names[i] = m->files[i].name;
    if (rc == ERR_OK)
        rc = names_check(names, files, "file", err);
    mem_free(names);
    return rc;
}

err_code_t hdf5io_manifest_parse(const char *text, size_t bytes,
                                 hdf5io_manifest_t *out, uint64_t *hash,
                                 err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t self;
    json_error_t why;
    json_t *root = NULL;
    err_code_t rc = self_check(text, bytes, &self, err);

    if (rc != ERR_OK)
        return rc;
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL)
        return err_set(err, ERR_DATA, "line %d: %s", why.line, why.text);
    rc = head_parse(root, &m, err);
    if (rc == ERR_OK)
        rc = hdf5io_blocks_size_parse(root, &m, err);
    if (rc == ERR_OK)
        rc = files_parse(json_object_get(root, "files"), &m, err);
    if (rc == ERR_OK)
        rc = tensors_parse(json_object_get(root, "tensors"), &m, err);
    if (rc == ERR_OK)
        rc = twice_check(&m, err);
    if (rc == ERR_OK && !hdf5io_manifest_disjoint(&m))
        rc =
            err_set(err, ERR_DATA, "two of its %d pieces share bytes of a file",
                    m.piece_count);
    json_decref(root);
    if (rc != ERR_OK) {
        hdf5io_manifest_free(&m);
        return rc;
    }
    *out = m;
    *hash = self;
    return ERR_OK;
}

err_code_t hdf5io_checkpoint_text(const hdf5io_io_t *io, const char *directory,
                                  char **text, size_t *bytes,
                                  retry_cause_t *cause, err_t *err)
{
    char *path = str_printf("%s/%s", directory, MANIFEST_NAME);
    err_code_t rc;

    *cause = RETRY_ABSENT;
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
        rc = err_set(err, ERR_DATA,
                     "'%s' is no checkpoint, as it has no " MANIFEST_NAME
                     ": a checkpoint is a directory such as "
                     "RUNDIR/checkpoints/step-0000000100",
                     directory);
    else
        rc = hdf5io_io_load(io, path, text, bytes, cause, err);
    free(path);
    return rc;
}

err_code_t hdf5io_checkpoint_parse(const char *directory, const char *text,
                                   size_t bytes, hdf5io_manifest_t *out,
                                   uint64_t *hash, err_t *err)
{
    err_t why = ERR_INIT;

    if (hdf5io_manifest_parse(text, bytes, out, hash, &why) == ERR_OK)
        return ERR_OK;
    err_prefix(&why, "%s/%s", directory, MANIFEST_NAME);
    return err_copy(err, &why);
}

err_code_t hdf5io_checkpoint_manifest(const hdf5io_io_t *io,
                                      const char *directory,
                                      hdf5io_manifest_t *out, uint64_t *hash,
                                      retry_cause_t *cause, err_t *err)
{
    char *text = NULL;
    size_t bytes = 0;
    err_code_t rc =
        hdf5io_checkpoint_text(io, directory, &text, &bytes, cause, err);

    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_parse(directory, text, bytes, out, hash, err);
    free(text);
    return rc;
}

err_code_t hdf5io_manifest_load(const char *directory, hdf5io_manifest_t *out,
                                uint64_t *hash, err_t *err)
{
    retry_cause_t cause;

    return hdf5io_checkpoint_manifest(&hdf5io_io_system, directory, out, hash,
                                      &cause, err);
}
