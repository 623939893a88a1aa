/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reads event files with a reader of its own, which shares no code with the
 * writer: CRC32C bit by bit, and fields by the wire format of Protocol Buffers.
 * tests/python/check_tensorboard.py reads them with TensorBoard.
 */
#include "obs/tb.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "lib/facts.h"

static char home[] = "/tmp/cddp-tb-XXXXXX";
static char *directory;

static void setup(void)
{
    if (!obs_tb_built())
        cr_skip("this build has no libprotobuf-c or no ISA-L");
    cr_assert_not_null(mkdtemp(home));
    directory = str_printf("%s/tb", home);
}

static void teardown(void)
{
    err_t err = ERR_INIT;

    free(directory);
    cr_assert_eq(file_remove_tree(home, &err), ERR_OK, "%s", err.text);
}

TestSuite(tb, .init = setup, .fini = teardown);

/* ---- reading ------------------------------------------------------------- */

static uint32_t crc_slow(const uint8_t *bytes, size_t count)
{
    uint32_t crc = ~0U;

    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82f63b78U & -(crc & 1));
    }
    return ~crc;
}

static uint64_t number_at(const uint8_t *at, int bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

static void crc_expect(const uint8_t *bytes, size_t count, const uint8_t *crc)
{
    const uint32_t masked = (uint32_t)number_at(crc, 4) - 0xa282ead8U;

    cr_assert_eq((masked << 15) | (masked >> 17), crc_slow(bytes, count));
}

/* A field of a message: a number, or [bytes] of [length]. */
typedef struct field {
    int number;
    uint64_t value;
    const uint8_t *bytes;
    size_t length;
} field_t;

static uint64_t varint_take(const uint8_t **at)
{
    uint64_t value = 0;

    for (int shift = 0;; shift += 7) {
        const uint8_t byte = *(*at)++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static bool field_take(const uint8_t **at, const uint8_t *end, field_t *out)
{
    uint64_t key;

    if (*at >= end)
        return false;
    key = varint_take(at);
    *out = (field_t){.number = (int)(key >> 3)};
    switch (key & 7) {
    case 0:
        out->value = varint_take(at);
        break;
    case 1:
    case 5:
        out->length = (key & 7) == 1 ? 8 : 4;
        out->value = number_at(*at, (int)out->length);
        break;
    default:
        cr_assert_eq(key & 7, 2);
        out->length = varint_take(at);
    }
    out->bytes = *at;
    *at += out->length;
    cr_assert(*at <= end);
    return true;
}

/* Find field [number] in [bytes]; returns false if it is not there. */
static bool field_find(const uint8_t *bytes, size_t length, int number,
                       field_t *out)
{
    for (const uint8_t *at = bytes; field_take(&at, bytes + length, out);)
        if (out->number == number)
            return true;
    return false;
}

/* Append a value of a summary as "tag=1.5 ", "tag=tensor ". */
static void value_print(const field_t *value, str_buf_t *out)
{
    field_t tag, field;
    float number;
    uint32_t bits;

    cr_assert(field_find(value->bytes, value->length, 1, &tag));
    str_buf_add(out, "%.*s=", (int)tag.length, tag.bytes);
    if (!field_find(value->bytes, value->length, 2, &field)) {
        cr_assert(field_find(value->bytes, value->length, 8, &field));
        str_buf_add(out, "tensor ");
        return;
    }
    bits = (uint32_t)field.value;
    memcpy(&number, &bits, sizeof number);
    str_buf_add(out, "%g ", number);
}

/* Append an event as "STEP: WHAT\n". */
static void event_print(const uint8_t *bytes, size_t length, str_buf_t *out)
{
    field_t field;
    double wall;

    cr_assert(field_find(bytes, length, 1, &field));
    memcpy(&wall, &field.value, sizeof wall);
    cr_assert_lt(fabs(wall - clock_wall()), 600);
    str_buf_add(out, "%lld: ",
                field_find(bytes, length, 2, &field) ? (long long)field.value
                                                     : 0);
    if (field_find(bytes, length, 3, &field))
        str_buf_add(out, "%.*s", (int)field.length, field.bytes);
    if (field_find(bytes, length, 7, &field)) {
        cr_assert(field_find(field.bytes, field.length, 1, &field));
        str_buf_add(out, field.value == 1 ? "START" : "?");
    }
    if (field_find(bytes, length, 5, &field)) {
        const uint8_t *at = field.bytes, *end = at + field.length;

        while (field_take(&at, end, &field))
            value_print(&field, out);
    }
    str_buf_add(out, "\n");
}

/* The file of the start number [which], from 0, as the caller's text. */
static char *file_print(int which)
{
    struct dirent **entries;
    const int count = scandir(directory, &entries, NULL, alphasort);
    str_buf_t out = {0};
    err_t err = ERR_INIT;
    char *path, *text;
    size_t bytes;

    cr_assert_gt(count, which + 2);
    path = str_printf("%s/%s", directory, entries[which + 2]->d_name);
    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK, "%s", err.text);
    for (const uint8_t *at = (uint8_t *)text, *end = at + bytes; at < end;) {
        const size_t length = number_at(at, 8);

        crc_expect(at, 8, at + 8);
        cr_assert_leq(length + 16, (size_t)(end - at), "a part of a record");
        crc_expect(at + 12, length, at + 12 + length);
        event_print(at + 12, length, &out);
        at += 16 + length;
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    free(text);
    free(path);
    return out.text;
}

static void file_expect(int which, const char *expected)
{
    char *text = file_print(which);

    cr_assert_str_eq(text, expected);
    free(text);
}

/* ---- writing ------------------------------------------------------------- */

#define HEAD(start)                             \
    "0: brain.Event:2\n" start ": START\n"      \
    "0: _hparams_/session_start_info=tensor \n" \
    "0: run_file/text_summary=tensor \n"

static obs_tb_t *open_at(int64_t step)
{
    static const obs_tb_hparam_t hparams[] = {
        {.name = "train.batch", .number = 24}, {.name = "loss", .text = "mse"}};
    obs_tb_t *tb = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_tb_open(&(obs_tb_config_t){.directory = directory,
                                                .step = step,
                                                .every = 1e9,
                                                .run_file = "train:\n  a: b",
                                                .hparams = hparams,
                                                .hparam_count = 2},
                             &tb, &err),
                 ERR_OK, "%s", err.text);
    return tb;
}

static void put(obs_tb_t *tb, int64_t step)
{
    const obs_step_t row = {.step = step,
                            .loss = 0.5,
                            .lr = 0.25,
                            .grad_norm = NAN,
                            .samples_per_s = 64};

    obs_tb_step(tb, &row);
}

/* Bytes of the only file. */
static rlim_t file_size(void)
{
    struct dirent **entries;
    const int count = scandir(directory, &entries, NULL, alphasort);
    char *path;
    struct stat st;

    cr_assert_eq(count, 3);
    path = str_printf("%s/%s", directory, entries[2]->d_name);
    cr_assert_eq(stat(path, &st), 0);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    free(path);
    return (rlim_t)st.st_size;
}

Test(tb, crc_of_the_test_is_crc32c)
{
    cr_assert_eq(crc_slow((const uint8_t *)"123456789", 9), 0xe3069283U);
}

Test(tb, steps_and_evaluations_are_scalars)
{
    static const obs_value_t values[] = {{"top5", 0.75}, {"r2", NAN}};
    obs_tb_t *tb = open_at(0);

    put(tb, 1);
    obs_tb_eval(tb, &(obs_eval_t){.step = 1,
                                  .loss = 2,
                                  .accuracy = NAN,
                                  .values = values,
                                  .value_count = 2});
    file_expect(0, HEAD("0"));
    obs_tb_flush(tb);
    file_expect(0, HEAD("0") "1: loss=0.5 lr=0.25 samples_per_s=64 \n"
                             "1: valid/loss=2 valid/top5=0.75 \n");
    obs_tb_close(tb);
}

/* A file whose name has a later time, of a clock that was wrong. */
Test(tb, each_start_has_a_later_file_that_hides_what_it_repeats)
{
    obs_tb_t *tb = open_at(0);
    char *later;

    obs_tb_close(tb);
    later = str_printf("%s/events.out.tfevents.%010lld.host", directory,
                       (long long)clock_wall() + 1000);
    fclose(fopen(later, "w"));
    tb = open_at(7);
    put(tb, 8);
    obs_tb_back(tb, 5);
    put(tb, 6);
    obs_tb_close(tb);
    file_expect(0, HEAD("0"));
    file_expect(2, HEAD("8") "8: loss=0.5 lr=0.25 samples_per_s=64 \n"
                             "6: START\n"
                             "6: loss=0.5 lr=0.25 samples_per_s=64 \n");
    free(later);
}

Test(tb, many_steps_are_written_when_the_buffer_is_full)
{
    obs_tb_t *tb = open_at(0);
    char *text;
    int lines = 0;

    for (int step = 1; step <= 3000; step++)
        put(tb, step);
    obs_tb_close(tb);
    text = file_print(0);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    cr_assert_eq(lines, 3004);
    free(text);
}

/* Nothing follows a part of a record, and the failure is logged once. */
Test(tb, a_full_disk_leaves_whole_records)
{
    obs_tb_t *tb = open_at(0);
    struct rlimit old, tight;
    char *log = str_printf("%s/stderr", home), *told;
    const int out = dup(STDERR_FILENO);
    err_t err = ERR_INIT;

    cr_assert_not_null(freopen(log, "w", stderr));
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = file_size() + 20; /* a part of a record */
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int step = 1; step <= 8; step++) {
        put(tb, step);
        obs_tb_flush(tb);
    }
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    put(tb, 9);
    obs_tb_close(tb);
    dup2(out, STDERR_FILENO);
    close(out);
    file_expect(0, HEAD("0") "9: loss=0.5 lr=0.25 samples_per_s=64 \n");
    cr_assert_eq(file_read(log, &told, NULL, &err), ERR_OK);
    FACTS(told, directory);
    cr_assert_eq(strchr(told, '\n'), strrchr(told, '\n'), "%s", told);
    free(told);
    free(log);
}

Test(tb, a_directory_that_is_a_file_is_named)
{
    obs_tb_t *tb = NULL;
    err_t err = ERR_INIT;

    fclose(fopen(directory, "w"));
    cr_assert_neq(
        obs_tb_open(&(obs_tb_config_t){.directory = directory, .run_file = ""},
                    &tb, &err),
        ERR_OK);
    FACTS(err.text, directory);
    cr_assert_null(tb);
}
