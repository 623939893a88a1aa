/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/lives.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static char dir[] = "/tmp/cddp-lives-XXXXXX";
static const obs_lives_start_t start = {
    .job = "12_3", .step_id = "15.0", .nodes = "n[1-2]", .attempt = 2};

static void setup(void)
{
    cr_assert_not_null(mkdtemp(dir));
}

static void teardown(void)
{
    cr_assert_eq(file_remove_tree(dir, NULL), ERR_OK);
}

TestSuite(lives, .init = setup, .fini = teardown);

static void append(obs_lives_line_t line)
{
    err_t err = ERR_INIT;

    cr_assert_eq(obs_lives_append(dir, &start, &line, &err), ERR_OK, "%s",
                 err.text);
}

static void raw_append(const char *text)
{
    char *path = str_printf("%s/lives.jsonl", dir);
    FILE *file = fopen(path, "ae");

    cr_assert_not_null(file);
    cr_assert(fputs(text, file) >= 0);
    cr_assert_eq(fclose(file), 0);
    free(path);
}

typedef struct seen {
    int count;
    obs_lives_event_t events[8];
    int64_t steps[8];
} seen_t;

static void see(void *context, const obs_lives_read_t *read)
{
    seen_t *seen = context;

    cr_assert_lt(seen->count, 8);
    seen->events[seen->count] = read->line.event;
    seen->steps[seen->count++] = read->line.step;
}

static seen_t read_all(int *skipped)
{
    seen_t seen = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(obs_lives_read(dir, see, &seen, skipped, &err), ERR_OK, "%s",
                 err.text);
    return seen;
}

static void see_whole(void *context, const obs_lives_read_t *read)
{
    *(int *)context += 1;
    cr_assert_str_eq(read->start.job, "12_3");
    cr_assert_str_eq(read->start.step_id, "15.0");
    cr_assert_str_eq(read->start.nodes, "n[1-2]");
    cr_assert_eq(read->start.restart, 0);
    cr_assert_eq(read->start.attempt, 2);
    cr_assert_eq(read->line.event, OBS_LIVES_FAULT);
    cr_assert_eq(read->line.step, 77);
    cr_assert_float_eq(read->line.seconds, 1.5, 1e-9);
    cr_assert_float_eq(read->line.bytes, 1e12, 1.0);
    cr_assert_eq(read->line.status, 76);
    cr_assert_eq(read->line.culprit, 3);
    cr_assert_str_eq(read->line.host, "n2");
    cr_assert_str_eq(read->line.detail, "rank 3 \"died\"\nsuddenly");
    cr_assert_eq(strlen(read->time), strlen("2026-01-01T00:00:00Z"), "%s",
                 read->time);
}

Test(lives, a_line_holds_every_value)
{
    obs_lives_line_t line = obs_lives_line(OBS_LIVES_FAULT, 77);
    int count = 0, skipped = -1;
    err_t err = ERR_INIT;

    line.seconds = 1.5;
    line.bytes = 1e12;
    line.status = 76;
    line.culprit = 3;
    line.host = "n2";
    line.detail = "rank 3 \"died\"\nsuddenly";
    append(line);
    cr_assert_eq(obs_lives_read(dir, see_whole, &count, &skipped, &err), ERR_OK,
                 "%s", err.text);
    cr_assert_eq(count, 1);
    cr_assert_eq(skipped, 0);
}

Test(lives, no_file_has_no_lines)
{
    int skipped = -1;

    cr_assert_eq(read_all(&skipped).count, 0);
}

/* A crash in the middle of a write loses this line only. */
Test(lives, a_line_that_was_cut_off_spoils_no_other)
{
    int skipped = -1;
    seen_t seen;

    append(obs_lives_line(OBS_LIVES_BEGIN, 4));
    raw_append("{\"event\":\"check");
    append(obs_lives_line(OBS_LIVES_CHECKPOINT, 9));
    raw_append("\n[1]\n{\"event\":\"of later\",\"step\":11}\n");
    seen = read_all(&skipped);
    cr_assert_eq(skipped, 2);
    cr_assert_eq(seen.count, 3);
    cr_assert_eq(seen.events[0], OBS_LIVES_BEGIN);
    cr_assert_eq(seen.events[1], OBS_LIVES_CHECKPOINT);
    cr_assert_eq(seen.steps[1], 9);
    cr_assert_eq(seen.events[2], OBS_LIVES_OTHER);
}

Test(lives, what_cannot_be_written_or_read_is_an_error)
{
    char *path = str_printf("%s/lives.jsonl", dir);
    const obs_lives_line_t line = obs_lives_line(OBS_LIVES_END, -1);
    seen_t seen = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(obs_lives_append(dir, &start, &line, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "lives.jsonl"));
    cr_assert_eq(obs_lives_read(dir, see, &seen, NULL, &err), ERR_DATA);
    cr_assert_eq(obs_lives_append("/dev/null/no", &start, &line, &err), ERR_IO);
    free(path);
}

/* ---- what the time was spent on ------------------------------------------ */

static void spent_see(void *context, const obs_lives_read_t *read)
{
    obs_spent_t *seen = context;

    if (read->line.spent != NULL)
        *seen = *read->line.spent;
    else
        seen->mark += 1;
}

Test(lives, spent_time_is_read_as_it_was_written)
{
    const obs_spent_t spent = {
        .seconds = {[OBS_SPENT_START] = 1.5, [OBS_SPENT_OTHER] = 604800.5},
        .wall = 1795838400.125};
    obs_lives_line_t line = obs_lives_line(OBS_LIVES_CHECKPOINT, 7);
    obs_spent_t seen = {0};
    err_t err = ERR_INIT;

    line.spent = &spent;
    append(line);
    cr_assert_eq(obs_lives_read(dir, spent_see, &seen, NULL, &err), ERR_OK);
    cr_expect_eq(seen.wall, 1795838400.125);
    cr_expect_eq(seen.seconds[OBS_SPENT_START], 1.5);
    cr_expect_float_eq(seen.seconds[OBS_SPENT_OTHER], 604800.5, 1);
    seen.mark = 0;
    append(obs_lives_line(OBS_LIVES_CHECKPOINT, 8));
    raw_append("{\"event\": \"checkpoint\", \"spent\": {\"until_ms\": 1}}\n");
    raw_append("{\"event\": \"checkpoint\", \"spent\": 3}\n");
    cr_assert_eq(obs_lives_read(dir, spent_see, &seen, NULL, &err), ERR_OK);
    cr_expect_eq(seen.mark, 3, "lines without these numbers");
}
