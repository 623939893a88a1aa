/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/copy.h"

#include "base/mem.h"

#define SLAB_BYTES (INT64_C(16) << 20)
/* Number of slabs between two rounds. To copy them takes much longer than a
 * round of messages, and much less than the 60 s for which Slurm's PMIx waits
 * for a late task. */
#define ROUND_SLABS 4

int64_t import_copy_rows(const import_source_t *source)
{
    int64_t each = 0, rows;

    for (int i = 0; i < source->field_count; i++)
        each += (int64_t)import_field_bytes(&source->fields[i]);
    rows = each > 0 && each < SLAB_BYTES ? SLAB_BYTES / each : 1;
    return rows < source->rows ? rows : source->rows;
}

/* A copy in progress. */
typedef struct copy {
    import_source_t *source;
    import_sink_t *sink;
    int64_t slab;       /* samples that are read at a time */
    int64_t next, last; /* the samples that are left */
    void *data[IMPORT_FIELDS_MAX];
} copy_t;

/* Allocate memory, and pass over the samples of earlier parts. The caller calls
 * copy_free, also after an error. */
static err_code_t copy_begin(import_source_t *source, import_sink_t *sink,
                             copy_t *copy, err_t *err)
{
    err_code_t rc = ERR_OK;

    *copy = (copy_t){
        .source = source, .sink = sink, .slab = import_copy_rows(source)};
    import_sink_range(sink, &copy->next, &copy->last);
    for (int i = 0; i < source->field_count && rc == ERR_OK; i++)
        rc = mem_alloc((size_t)copy->slab *
                           import_field_bytes(&source->fields[i]),
                       "samples", &copy->data[i], err);
    if (rc != ERR_OK || copy->next == 0 || copy->next == copy->last)
        return rc;
    return source->kind->skip(source, copy->next, err);
}

static void copy_free(copy_t *copy)
{
    for (int i = 0; i < copy->source->field_count; i++)
        mem_free(copy->data[i]);
}

/* Copy up to [slabs] slabs. */
static err_code_t copy_some(copy_t *copy, int64_t slabs, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int64_t i = 0; i < slabs && copy->next < copy->last && rc == ERR_OK;
         i++) {
        const int64_t left = copy->last - copy->next;
        const int64_t rows = copy->slab < left ? copy->slab : left;

        rc = copy->source->kind->read(copy->source, rows, copy->data, err);
        if (rc == ERR_OK)
            rc = import_sink_write(copy->sink, rows, copy->data, err);
        copy->next += rows;
    }
    return rc;
}

err_code_t import_copy(import_source_t *source, import_sink_t *sink, err_t *err)
{
    copy_t copy;
    err_code_t rc = copy_begin(source, sink, &copy, err);

    if (rc == ERR_OK)
        rc = copy_some(&copy, INT64_MAX, err);
    copy_free(&copy);
    return rc;
}

err_code_t import_copy_part(import_source_t *source, import_sink_t *sink,
                            const import_round_t *round, err_t *err)
{
    const int64_t each = ROUND_SLABS * import_copy_rows(source);
    const int64_t rounds = (import_sink_most(sink) + each - 1) / each;
    int64_t first, last;
    copy_t copy;
    err_code_t rc = copy_begin(source, sink, &copy, err);

    import_sink_range(sink, &first, &last);
    rc = round->meet(round->context, 0, rc, err);
    for (int64_t i = 0; i < rounds && rc == ERR_OK; i++) {
        rc = copy_some(&copy, ROUND_SLABS, err);
        rc = round->meet(round->context, copy.next - first, rc, err);
    }
    copy_free(&copy);
    return rc;
}
