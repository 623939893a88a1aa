/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One bit of one file of a checkpoint is flipped, or the file is cut at any
 * byte, or the file is removed. Then the checkpoint before it is read, with all
 * its bits. If there is no other checkpoint, the start is refused, and the
 * message names the file. CDDP_LONG=1 tests more bits.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "ckpt_fixture.h"
#include "crash_scenes.h"

#define SHORT_FLIPS 6
#define LONG_FLIPS 200
/* Of each group of this number of cases, one cuts the file. The last case of
 * all removes it. */
#define CUT_EVERY 4

/* Two directories: one with checkpoints of the states 10 and 20, one with a
 * checkpoint of 20 alone. */
typedef struct places {
    char *beside, *alone;
} places_t;

static void file_write(const char *path, const char *bytes, size_t count)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    cr_assert(fd >= 0 && file_write_all(fd, bytes, count), "%s", path);
    close(fd);
}

/* Case [i] of [count]: write the content [bytes] to the file [path], with one
 * damage. */
static void damage(const char *path, const char *bytes, size_t size, int i,
                   int count)
{
    char *copy = malloc(size);
    rng_t rng;
    uint64_t bit;

    rng_open(&rng, (uint64_t)i, RNG_INIT, size, 0);
    bit = rng_below(&rng, size * 8);
    memcpy(copy, bytes, size);
    if (i == count - 1)
        cr_assert_eq(unlink(path), 0);
    else if (i % CUT_EVERY == CUT_EVERY - 1)
        file_write(path, copy, bit / 8);
    else {
        copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
        file_write(path, copy, size);
    }
    free(copy);
}

static void judge(const places_t *places, const char *file, int i)
{
    err_t err = ERR_INIT;
    err_code_t code;
    crash_state_t found = crash_find(places->beside, &code, &err);

    cr_assert(code == ERR_OK && found.step == 10, "%s, case %d: %d: %s", file,
              i, (int)code, err.text);
    crash_find(places->alone, &code, &err);
    cr_assert(code == ERR_DATA && strstr(err.text, file) != NULL,
              "%s, case %d: %d: %s", file, i, (int)code, err.text);
}

/* Damage [file] of the newest checkpoint in both places, [count] times. */
static void file_judge(const places_t *places, const char *file, int count)
{
    char *one = str_printf("%s/step-0000000020/%s", places->beside, file);
    char *other = str_printf("%s/step-0000000020/%s", places->alone, file);
    char *bytes[2];
    size_t sizes[2];

    cr_assert_eq(file_read(one, &bytes[0], &sizes[0], NULL), ERR_OK);
    cr_assert_eq(file_read(other, &bytes[1], &sizes[1], NULL), ERR_OK);
    for (int i = 0; i < count; i++) {
        damage(one, bytes[0], sizes[0], i, count);
        damage(other, bytes[1], sizes[1], i, count);
        judge(places, file, i);
    }
    file_write(one, bytes[0], sizes[0]);
    file_write(other, bytes[1], sizes[1]);
    free(bytes[1]);
    free(bytes[0]);
    free(other);
    free(one);
}

static void save_by(const char *home, int64_t seed, ckpt_body_t body)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, 2, seed, body, NULL);

    cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
    ckpt_ranks_free(ranks, 2);
}

Test(checkpoint_flips, are_found_in_any_file_and_the_one_before_is_read)
{
    static const char *const files[] = {"shard-0.h5", "shard-1.h5",
                                        "checkpoint.h5", "MANIFEST.json"};
    const ckpt_body_t bodies[] = {ckpt_body_write, ckpt_body_write_old};
    const int count = getenv("CDDP_LONG") == NULL ? SHORT_FLIPS : LONG_FLIPS;
    int cases = 0;

    for (int b = 0; b < 2; b++) {
        places_t places = {crash_root_make(), crash_root_make()};

        save_by(places.beside, 10, bodies[b]);
        save_by(places.beside, 20, bodies[b]);
        save_by(places.alone, 20, bodies[b]);
        for (int f = 0; f < 4; f++, cases += count)
            file_judge(&places, files[f], count);
        ckpt_expect(places.beside, 2, 20);
        ckpt_expect(places.alone, 2, 20);
        ckpt_home_remove(places.alone);
        ckpt_home_remove(places.beside);
    }
    fprintf(stderr, "checkpoint_flips: %d cases\n", cases);
}
