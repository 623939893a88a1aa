/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "dev/far_queue.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

struct far_op {
    far_line_t *line;
    int64_t next; /* the line's next operation; -1: none */
    /* An operation is a call ([run]), a record of an event ([record]) or a wait
     * for a record ([await]); the other two are NULL. */
    dev_far_run_fn *run;
    size_t arg; /* of [run]: offset in far_queue_t.args */
    far_mark_t *record;
    const far_mark_t *await;
    int64_t number; /* of the record, counted from 1 for each event */
};

void far_queue_free(far_queue_t *queue)
{
    mem_free(queue->ops);
    mem_free(queue->args);
}

void far_queue_add(far_queue_t *queue, far_line_t *line)
{
    *line = (far_line_t){.first = -1, .last = -1, .next = queue->lines};
    queue->lines = line;
}

void far_queue_remove(far_queue_t *queue, far_line_t *line)
{
    far_line_t **at = &queue->lines;

    check(line->first < 0, "a stream is closed that was not waited for");
    while (*at != line)
        at = &(*at)->next;
    *at = line->next;
}

/* ---- enqueueing ---------------------------------------------------------- */

/* Enlarge the array *block from *space to at least [need] elements. */
static err_code_t grow(size_t size, size_t need, size_t *space, void **block,
                       err_t *err)
{
    const size_t more = need > 2 * *space ? need : 2 * *space;
    void *fresh = NULL;
    err_code_t rc;

    if (need <= *space)
        return ERR_OK;
    rc = mem_alloc(size * more, "operations of a stream", &fresh, err);
    if (rc != ERR_OK)
        return rc;
    if (*block != NULL)
        memcpy(fresh, *block, size * *space);
    mem_free(*block);
    *block = fresh;
    *space = more;
    return ERR_OK;
}

static err_code_t queue_add(far_queue_t *queue, const far_op_t *op, err_t *err)
{
    size_t space = (size_t)queue->space;
    void *ops = queue->ops;
    far_line_t *line = op->line;
    err_code_t rc =
        grow(sizeof *op, (size_t)queue->count + 1, &space, &ops, err);

    if (rc != ERR_OK)
        return rc;
    queue->ops = ops;
    queue->space = (int64_t)space;
    queue->ops[queue->count] = *op;
    queue->ops[queue->count].next = -1;
    if (line->first < 0)
        line->first = queue->count;
    else
        queue->ops[line->last].next = queue->count;
    line->last = queue->count++;
    queue->pending++;
    return ERR_OK;
}

err_code_t far_queue_push(far_queue_t *queue, far_line_t *line,
                          dev_far_run_fn *run, const void *arg, size_t bytes,
                          err_t *err)
{
    const size_t at = queue->args_bytes;
    void *args = queue->args;
    err_code_t rc =
        grow(1, at + mem_round(bytes), &queue->args_space, &args, err);

    queue->args = args;
    if (rc != ERR_OK)
        return rc;
    memcpy(queue->args + at, arg, bytes);
    queue->args_bytes += mem_round(bytes);
    return queue_add(queue, &(far_op_t){.line = line, .run = run, .arg = at},
                     err);
}

err_code_t far_queue_record(far_queue_t *queue, far_line_t *line,
                            far_mark_t *mark, err_t *err)
{
    const far_op_t op = {
        .line = line, .record = mark, .number = mark->asked + 1};
    err_code_t rc = queue_add(queue, &op, err);

    if (rc == ERR_OK)
        mark->asked++;
    return rc;
}

err_code_t far_queue_await(far_queue_t *queue, far_line_t *line,
                           const far_mark_t *mark, err_t *err)
{
    return queue_add(
        queue, &(far_op_t){.line = line, .await = mark, .number = mark->asked},
        err);
}

/* ---- executing ----------------------------------------------------------- */

static bool op_ready(const far_op_t *op)
{
    return op->await == NULL || op->await->done >= op->number;
}

/* Remove the oldest operation of [line] from the pending ones. */
static const far_op_t *line_pop(far_queue_t *queue, far_line_t *line)
{
    const far_op_t *op = &queue->ops[line->first];

    check(op_ready(op), "an operation runs ahead of the event it waits for");
    line->first = op->next;
    queue->pending--;
    if (op->record != NULL)
        op->record->done = op->number;
    return op;
}

/* After an error: nothing that is pending is executed any more. */
static void drop_all(far_queue_t *queue)
{
    for (int64_t i = 0; i < queue->count; i++)
        if (queue->ops[i].record != NULL &&
            queue->ops[i].record->done < queue->ops[i].number)
            queue->ops[i].record->done = queue->ops[i].number;
    for (far_line_t *line = queue->lines; line != NULL; line = line->next)
        line->first = -1;
    queue->pending = 0;
}

/* The line whose oldest operation is ready and was enqueued last. */
static far_line_t *newest_ready(const far_queue_t *queue)
{
    far_line_t *best = NULL;

    for (far_line_t *line = queue->lines; line != NULL; line = line->next)
        if (line->first >= 0 && op_ready(&queue->ops[line->first]) &&
            (best == NULL || line->first > best->first))
            best = line;
    return best;
}

/* The line that will record number [number] of [mark]. */
static far_line_t *recorder(const far_queue_t *queue, const far_mark_t *mark,
                            int64_t number)
{
    int64_t i = queue->count - 1;

    while (i >= 0 &&
           (queue->ops[i].record != mark || queue->ops[i].number != number))
        i--;
    check(i >= 0, "nobody records the event");
    return queue->ops[i].line;
}

/* The line whose oldest operation has to run next for [line] to make progress.
 * The loop ends, as a wait is enqueued after the record that it waits for. */
static far_line_t *needed(const far_queue_t *queue, far_line_t *line)
{
    while (!op_ready(&queue->ops[line->first])) {
        const far_op_t *op = &queue->ops[line->first];

        line = recorder(queue, op->await, op->number);
    }
    return line;
}

static err_code_t advance(far_queue_t *queue, far_line_t *towards, err_t *err)
{
    far_line_t *line = queue->order == DEV_FAR_LAST_FIRST
                           ? newest_ready(queue)
                           : needed(queue, towards);
    const far_op_t *op = line_pop(queue, line);
    err_code_t rc =
        op->run == NULL ? ERR_OK : op->run(queue->args + op->arg, err);

    if (rc != ERR_OK)
        drop_all(queue);
    return rc;
}

/* If nothing is pending, use the memory of executed operations again. */
static void forget(far_queue_t *queue)
{
    if (queue->pending == 0) {
        queue->count = 0;
        queue->args_bytes = 0;
    }
}

err_code_t far_queue_finish(far_queue_t *queue, far_line_t *line, err_t *err)
{
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && line->first >= 0)
        rc = advance(queue, line, err);
    forget(queue);
    return rc;
}

err_code_t far_queue_reach(far_queue_t *queue, const far_mark_t *mark,
                           err_t *err)
{
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && mark->done < mark->asked)
        rc = advance(queue, recorder(queue, mark, mark->asked), err);
    forget(queue);
    return rc;
}

/* ---- queues whose operations are kept ------------------------------------ */

/* Make all operations pending. */
static void rewind_all(far_queue_t *queue)
{
    for (far_line_t *line = queue->lines; line != NULL; line = line->next)
        line->first = -1;
    for (int64_t i = 0; i < queue->count; i++) {
        const far_op_t *op = &queue->ops[i];

        if (op->line->first < 0)
            op->line->first = i;
        if (op->record != NULL)
            op->record->done = 0;
    }
    queue->pending = queue->count;
}

err_code_t far_queue_replay(far_queue_t *queue, err_t *err)
{
    err_code_t rc = ERR_OK;

    rewind_all(queue);
    for (far_line_t *line = queue->lines; line != NULL; line = line->next)
        while (rc == ERR_OK && line->first >= 0)
            rc = advance(queue, line, err);
    return rc;
}

bool far_queue_joined(far_queue_t *queue, far_line_t *line)
{
    rewind_all(queue);
    while (line->first >= 0)
        line_pop(queue, needed(queue, line));
    for (line = queue->lines; line != NULL; line = line->next)
        for (int64_t i = line->first; i >= 0; i = queue->ops[i].next)
            if (queue->ops[i].run != NULL)
                return false;
    return true;
}
