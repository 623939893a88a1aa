/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Lines of a rank's buckets come behind those of its threads. */
#define TRACK_FIRST 1000

/* Add [text] in quotes. Layer names are the user's. */
static void text_add(const char *text, str_buf_t *out)
{
    str_buf_add(out, "\"");
    while (*text != '\0') {
        int plain = 0;

        while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' &&
               text[plain] != '\\')
            plain++;
        str_buf_add(out, "%.*s", plain, text);
        text += plain;
        if (*text != '\0')
            str_buf_add(out, "\\u%04x", (unsigned)*text++);
    }
    str_buf_add(out, "\"");
}

static void name_add(const char *kind, int rank, int line, const char *name,
                     str_buf_t *out)
{
    str_buf_add(out,
                ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
                "\"args\":{\"name\":",
                kind, rank, line);
    text_add(name, out);
    str_buf_add(out, "}}");
}

/* Microseconds with three digits, from whole nanoseconds. */
static void time_add(const char *key, int64_t ns, str_buf_t *out)
{
    const int64_t size = ns < 0 ? -ns : ns;

    str_buf_add(out, ",\"%s\":%s%" PRId64 ".%03d", key, ns < 0 ? "-" : "",
                size / 1000, (int)(size % 1000));
}

/* Both ends are rounded to the same grid, so spans stay nested. */
static void span_add(const obs_trace_rank_t *rank, int line,
                     const trace_span_t *span, str_buf_t *out)
{
    const double shift = rank->shift - rank->origin;
    const int64_t begin = (int64_t)llround(1e9 * (span->begin + shift));
    const int64_t end = (int64_t)llround(1e9 * (span->end + shift));

    str_buf_add(out, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d", rank->rank,
                line);
    time_add("ts", begin, out);
    time_add("dur", end - begin, out);
    str_buf_add(out, ",\"name\":");
    text_add(span->name, out);
    if (span->what != NULL)
        str_buf_add(out, ",\"cat\":\"%s\"", span->what);
    if (span->number != TRACE_NO_NUMBER)
        str_buf_add(out, ",\"args\":{\"number\":%" PRId64 "}", span->number);
    str_buf_add(out, "}");
}

/* Add the events of the thread that is line [line]. */
static void thread_add(const obs_trace_rank_t *rank, int line,
                       const trace_t *thread, str_buf_t *out)
{
    const size_t count = trace_count(thread);
    const trace_span_t *last = NULL; /* of the last track */
    int tracks = 0;
    char name[32];

    name_add("thread_name", rank->rank, line, thread->name, out);
    for (size_t i = 0; i < count; i++) {
        const trace_span_t *span = &thread->spans[i];
        const int at = span->track == 0 ? line : TRACK_FIRST + span->track;

        if (span->track > tracks) {
            tracks = span->track;
            last = span;
        }
        span_add(rank, at, span, out);
    }
    for (int t = 1; t <= tracks; t++) {
        snprintf(name, sizeof name, "bucket %d", t);
        if (t == tracks && last->number == TRACE_NO_NUMBER)
            snprintf(name, sizeof name, "%s", last->name);
        name_add("thread_name", rank->rank, TRACK_FIRST + t, name, out);
    }
}

void obs_trace_head(const char *about, str_buf_t *out)
{
    /* A first event, so that all others have a comma before them. */
    str_buf_add(out,
                "{\"displayTimeUnit\":\"ms\",\"otherData\":{%s},\n"
                "\"traceEvents\":[\n"
                "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,"
                "\"args\":{\"sort_index\":0}}",
                about);
}

void obs_trace_tail(str_buf_t *out)
{
    str_buf_add(out, "\n]}\n");
}

void obs_trace_events(const obs_trace_rank_t *rank, str_buf_t *out)
{
    char name[320];

    snprintf(name, sizeof name, "rank %d on %.250s", rank->rank, rank->host);
    name_add("process_name", rank->rank, 0, name, out);
    str_buf_add(out,
                ",\n{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%d,"
                "\"args\":{\"labels\":\"clock shifted by %.3f us\"}}",
                rank->rank, 1e6 * rank->shift);
    for (int t = 0; t < rank->count; t++)
        if (rank->threads[t] != NULL)
            thread_add(rank, t, rank->threads[t], out);
}

double obs_trace_first(const obs_trace_rank_t *rank)
{
    double first = INFINITY;

    for (int t = 0; t < rank->count; t++)
        for (size_t i = 0;
             rank->threads[t] != NULL && i < trace_count(rank->threads[t]); i++)
            first = fmin(first, rank->threads[t]->spans[i].begin);
    return first;
}
