/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/ckpt_map.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define LETTERS 2 /* i and j */
#define WORDS_MAX 4
/* Numbers in a pattern and in a name have at most this many digits. */
#define DIGITS_MAX 6

typedef struct line {
    const char *ours;   /* NULL: the tensors of [theirs] are left out */
    const char *theirs; /* with [ours] NULL: for fnmatch */
    bool transposed, leading, out_only, in_only;
} line_t;

struct cmd_map {
    char *text; /* of the file, cut into words */
    line_t *lines;
    int count;
};

/* {2i+1}: factor times letter plus offset. */
typedef struct number {
    int factor, letter, offset;
} number_t;

/* ---- patterns ------------------------------------------------------------ */

/* Read at most DIGITS_MAX digits; -1: there are none, or more. */
static int digits_take(const char **at)
{
    int value = 0, digits = 0;

    while (isdigit((unsigned char)**at) && digits <= DIGITS_MAX) {
        value = 10 * value + *(*at)++ - '0';
        digits++;
    }
    return digits == 0 || digits > DIGITS_MAX ? -1 : value;
}

/* Read the number at [*at], which begins with '{'. */
static bool number_take(const char **at, number_t *out)
{
    number_t number = {.factor = 1};

    ++*at;
    if (isdigit((unsigned char)**at))
        number.factor = digits_take(at);
    if (number.factor < 1 || (**at != 'i' && **at != 'j'))
        return false;
    number.letter = *(*at)++ - 'i';
    if (**at == '+') {
        ++*at;
        number.offset = digits_take(at);
    }
    if (number.offset < 0 || **at != '}')
        return false;
    ++*at;
    *out = number;
    return true;
}

/* Are all numbers of [pattern] well formed? *letters gets a bit for each letter
 * that it has. */
static bool pattern_good(const char *pattern, unsigned *letters)
{
    number_t number;

    for (*letters = 0; *pattern != '\0';) {
        if (*pattern == '}')
            return false;
        if (*pattern != '{') {
            pattern++;
            continue;
        }
        if (!number_take(&pattern, &number))
            return false;
        *letters |= 1u << number.letter;
    }
    return true;
}

/* Does [name] fit [pattern]? Then values[] are those of the letters; -1: not in
 * the pattern. */
static bool pattern_fits(const char *pattern, const char *name,
                         int values[LETTERS])
{
    for (int k = 0; k < LETTERS; k++)
        values[k] = -1;
    while (*pattern != '\0') {
        number_t number;
        int found;

        if (*pattern != '{') {
            if (*pattern++ != *name++)
                return false;
            continue;
        }
        if (!number_take(&pattern, &number))
            return false;
        found = digits_take(&name) - number.offset;
        if (found < 0 || found % number.factor != 0)
            return false;
        found /= number.factor;
        if (values[number.letter] >= 0 && values[number.letter] != found)
            return false;
        values[number.letter] = found;
    }
    return *name == '\0';
}

/* [pattern] with the values of its letters. The caller frees it. */
static char *pattern_fill(const char *pattern, const int values[LETTERS])
{
    str_buf_t out = {0};
    number_t number;

    while (*pattern != '\0')
        if (*pattern != '{' || !number_take(&pattern, &number))
            str_buf_add(&out, "%c", *pattern++);
        else
            str_buf_add(&out, "%d",
                        number.factor * values[number.letter] + number.offset);
    return out.text == NULL ? str_dup("") : out.text;
}

/* ---- reading ------------------------------------------------------------- */

/* Cut [text] into words, at most WORDS_MAX, up to a comment. Returns their
 * number. */
static int words_cut(char *text, char *words[WORDS_MAX])
{
    char *rest = NULL;
    int count = 0;

    text[strcspn(text, "#")] = '\0';
    for (char *word = strtok_r(text, " \t\r", &rest);
         word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " \t\r", &rest))
        words[count++] = word;
    return count;
}

/* NULL, or what is wrong with the words of a line. */
static const char *line_parse(char *words[WORDS_MAX], int count, line_t *line)
{
    unsigned ours, theirs;

    if (count < 2)
        return "expected our name and their name";
    *line = (line_t){.ours = words[0], .theirs = words[1]};
    if (strcmp(words[0], "-") == 0) {
        line->ours = NULL;
        return count == 2 ? NULL : "expected nothing after their name";
    }
    for (int w = 2; w < count; w++)
        if (strcmp(words[w], "transposed") == 0)
            line->transposed = true;
        else if (strcmp(words[w], "leading") == 0)
            line->leading = true;
        else if (strcmp(words[w], "out") == 0)
            line->out_only = true;
        else if (strcmp(words[w], "in") == 0)
            line->in_only = true;
        else
            return "after the names, expected transposed, leading, in or "
                   "out";
    if (line->transposed && line->leading)
        return "transposed and leading exclude each other";
    if (!pattern_good(line->ours, &ours) ||
        !pattern_good(line->theirs, &theirs))
        return "expected numbers like {i}, {i+1}, {2j+1}";
    return ours == theirs ? NULL
                          : "both names must have the same letters in braces";
}

static int newlines(const char *text)
{
    int count = 1;

    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static err_code_t lines_parse(cmd_map_t *map, const char *path, err_t *err)
{
    char *next = map->text, *text, *words[WORDS_MAX];

    for (int number = 1; (text = strsep(&next, "\n")) != NULL; number++) {
        const int count = words_cut(text, words);
        const char *wrong =
            count == 0 ? NULL
                       : line_parse(words, count, &map->lines[map->count]);

        if (wrong != NULL)
            return err_set(err, ERR_CONFIG, "%s:%d: %s", path, number, wrong);
        map->count += count > 0;
    }
    return ERR_OK;
}

/* The directory of the maps that come with cddp. */
static const char *shipped_directory(void)
{
    const char *other = getenv("CDDP_MAPS");

    return other != NULL && other[0] != '\0' ? other : PKGDATADIR "/maps";
}

/* The path of the map [name]. The caller frees it. */
static char *map_path(const char *name)
{
    return strchr(name, '/') != NULL || access(name, F_OK) == 0
               ? str_dup(name)
               : str_printf("%s/%s.map", shipped_directory(), name);
}

static err_code_t map_load(const char *name, const char *path, char **text,
                           err_t *err)
{
    if (strcmp(name, path) != 0 && access(path, F_OK) != 0)
        return err_set(err, ERR_IO,
                       "--map %s: there is neither such a file nor a map of "
                       "this name in %s",
                       name, shipped_directory());
    return file_read(path, text, NULL, err);
}

err_code_t cmd_map_read(const char *name, cmd_map_t **out, err_t *err)
{
    char *path = map_path(name);
    cmd_map_t *map = NULL;
    err_code_t rc = mem_new(cmd_map_t, 1, "a map of names", &map, err);

    if (rc == ERR_OK)
        rc = map_load(name, path, &map->text, err);
    if (rc == ERR_OK)
        rc = mem_new(line_t, (size_t)newlines(map->text), "a map of names",
                     &map->lines, err);
    if (rc == ERR_OK)
        rc = lines_parse(map, path, err);
    if (rc == ERR_OK)
        *out = map;
    else
        cmd_map_free(map);
    free(path);
    return rc;
}

void cmd_map_free(cmd_map_t *map)
{
    if (map == NULL)
        return;
    free(map->text);
    mem_free(map->lines);
    mem_free(map);
}

/* ---- looking up ---------------------------------------------------------- */

static bool line_hit(const line_t *line, cmd_map_way_t way, const char *name,
                     cmd_map_hit_t *out)
{
    int values[LETTERS];

    if (line->ours == NULL) {
        *out = (cmd_map_hit_t){0};
        return way == CMD_MAP_IN && fnmatch(line->theirs, name, 0) == 0;
    }
    if (line->in_only && way == CMD_MAP_OUT)
        return false;
    if (!pattern_fits(way == CMD_MAP_OUT ? line->ours : line->theirs, name,
                      values))
        return false;
    *out = (cmd_map_hit_t){.transposed = line->transposed,
                           .leading = line->leading};
    if (way == CMD_MAP_OUT)
        out->name = pattern_fill(line->theirs, values);
    else if (!line->out_only)
        out->name = pattern_fill(line->ours, values);
    return true;
}

bool cmd_map_find(const cmd_map_t *map, cmd_map_way_t way, const char *name,
                  int *at, cmd_map_hit_t *out)
{
    while (*at < map->count)
        if (line_hit(&map->lines[(*at)++], way, name, out))
            return true;
    return false;
}
