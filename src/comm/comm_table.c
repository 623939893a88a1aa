/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Reads, writes and searches the table of algorithms. */
#include "comm/comm_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"

#define HEADER "cddp comm table 1"
/* Bytes of the longest word of a row, with its terminating zero. */
#define WORD 24
#define WORD_FORMAT "%23s"

enum { TYPES_WIDE = 1, TYPES_HALF = 2, RANKS_POWER = -1 };

/* Found by measurement; to be tuned with cddp-bench allreduce --tune. */
static const char builtin[] = HEADER "\n"
                                     "allreduce arena any any any node\n"
                                     "allreduce slice any any 32K doubling\n"
                                     "allreduce slice any 2^n any halving\n"
                                     "allreduce slice any any 1M halving\n"
                                     "allreduce slice any any any ring\n"
                                     "allreduce local any any 4K shot\n"
                                     "allreduce local any any any stage\n"
                                     "allreduce net half any any direct\n"
                                     "allreduce net any any 32K doubling\n"
                                     "allreduce net any any any ring\n"
                                     "reduce-scatter arena any any any node\n"
                                     "reduce-scatter local any any any direct\n"
                                     "reduce-scatter net any any 64K direct\n"
                                     "reduce-scatter net any any any ring\n"
                                     "gather-ranges arena any any any node\n"
                                     "gather-ranges local any any 64K direct\n"
                                     "gather-ranges local any any any ring\n"
                                     "gather-ranges net any any 64K direct\n"
                                     "gather-ranges net any any any ring\n"
                                     "allgather local any any 4K bruck\n"
                                     "allgather local any any any ring\n"
                                     "allgather net any any 4K bruck\n"
                                     "allgather net any any any ring\n";

static const char *const algorithms[COMM_ALGORITHMS + 1] = {
    [COMM_BY_NODE] = "node",         [COMM_BY_FLAT] = "flat",
    [COMM_BY_SHOT] = "shot",         [COMM_BY_STAGE] = "stage",
    [COMM_BY_DOUBLING] = "doubling", [COMM_BY_HALVING] = "halving",
    [COMM_BY_RING] = "ring",         [COMM_BY_DIRECT] = "direct",
    [COMM_BY_BRUCK] = "bruck"};
static const char *const choices[COMM_CHOICES + 1] = {
    [COMM_CHOICE_ALLREDUCE] = "allreduce",
    [COMM_CHOICE_REDUCE_SCATTER] = "reduce-scatter",
    [COMM_CHOICE_GATHER_RANGES] = "gather-ranges",
    [COMM_CHOICE_ALLGATHER] = "allgather"};
static const char *const wheres[COMM_WHERES + 1] = {
    [COMM_WHERE_ARENA] = "arena",
    [COMM_WHERE_SLICE] = "slice",
    [COMM_WHERE_LOCAL] = "local",
    [COMM_WHERE_NET] = "net"};
/* Indexed by the bits of comm_row_t.types. */
static const char *const types[] = {"none", "wide", "half", "any", NULL};

const char *comm_algorithm_name(comm_algorithm_t algorithm)
{
    return algorithms[algorithm];
}

const char *comm_choice_name(comm_choice_t choice)
{
    return choices[choice];
}

const char *comm_where_name(comm_where_t where)
{
    return wheres[where];
}

bool comm_algorithm_fits(comm_algorithm_t algorithm, comm_choice_t choice,
                         comm_where_t where)
{
    const unsigned node = 1u << COMM_BY_NODE, flat = 1u << COMM_BY_FLAT,
                   shot = 1u << COMM_BY_SHOT, stage = 1u << COMM_BY_STAGE,
                   doubling = 1u << COMM_BY_DOUBLING,
                   halving = 1u << COMM_BY_HALVING, ring = 1u << COMM_BY_RING,
                   direct = 1u << COMM_BY_DIRECT, bruck = 1u << COMM_BY_BRUCK;
    unsigned fit = direct | ring;

    if (choice == COMM_CHOICE_ALLREDUCE)
        fit = where == COMM_WHERE_ARENA   ? node | flat
              : where == COMM_WHERE_SLICE ? doubling | halving | ring
              : where == COMM_WHERE_LOCAL
                  ? shot | stage | doubling | ring | direct
                  : doubling | ring | direct;
    else if (choice == COMM_CHOICE_ALLGATHER)
        fit = where >= COMM_WHERE_LOCAL ? bruck | ring : 0;
    else if (where < COMM_WHERE_LOCAL)
        fit = where == COMM_WHERE_ARENA ? node | flat : 0;
    return (fit >> algorithm & 1u) != 0;
}

void comm_table_force(comm_table_t *table, comm_algorithm_t algorithm)
{
    for (int i = 0; i < table->count; i++) {
        comm_row_t *row = &table->rows[i];

        if (row->types != TYPES_HALF &&
            comm_algorithm_fits(algorithm, row->choice, row->where))
            row->algorithm = algorithm;
    }
}

/* ---- questions ----------------------------------------------------------- */

static bool row_fits(const comm_row_t *row, const comm_query_t *query)
{
    bool power = (query->ranks & (query->ranks - 1)) == 0;

    return row->choice == query->choice && row->where == query->where &&
           (row->types & (query->half ? TYPES_HALF : TYPES_WIDE)) != 0 &&
           (row->ranks == 0 || query->ranks <= row->ranks ||
            (row->ranks == RANKS_POWER && power)) &&
           query->bytes <= row->bytes;
}

comm_algorithm_t comm_table_find(const comm_table_t *table,
                                 const comm_query_t *query)
{
    for (int i = 0; i < table->count; i++)
        if (row_fits(&table->rows[i], query))
            return table->rows[i].algorithm;
    /* Only where rows may be left out; means: not by node. */
    return COMM_BY_RING;
}

uint64_t comm_table_hash(const comm_table_t *table)
{
    str_buf_t text = {0};
    uint64_t hash;

    comm_table_print(table, &text);
    hash = hash_bytes(text.text, text.length);
    str_buf_free(&text);
    return hash;
}

/* ---- writing ------------------------------------------------------------- */

static void bytes_print(size_t bytes, char *out, size_t room)
{
    int shift = 0;

    while (shift < 30 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        shift += 10;
    }
    snprintf(out, room, "%zu%s", bytes,
             shift == 0    ? ""
             : shift == 10 ? "K"
             : shift == 20 ? "M"
                           : "G");
}

void comm_table_print(const comm_table_t *table, str_buf_t *text)
{
    str_buf_add(text, HEADER "\n%-15s %-5s %-5s %-5s %-6s %s\n", "# collective",
                "where", "types", "ranks", "bytes", "algorithm");
    for (int i = 0; i < table->count; i++) {
        const comm_row_t *row = &table->rows[i];
        char ranks[WORD] = "any", bytes[WORD] = "any";

        if (row->ranks != 0)
            snprintf(ranks, sizeof ranks, "%d", row->ranks);
        if (row->ranks == RANKS_POWER)
            snprintf(ranks, sizeof ranks, "2^n");
        if (row->bytes != SIZE_MAX)
            bytes_print(row->bytes, bytes, sizeof bytes);
        str_buf_add(text, "%-15s %-5s %-5s %-5s %-6s %s\n",
                    choices[row->choice], wheres[row->where], types[row->types],
                    ranks, bytes, algorithms[row->algorithm]);
    }
}

/* ---- reading ------------------------------------------------------------- */

typedef struct place {
    const char *name;
    int line;
} place_t;

typedef struct column {
    const char *what;         /* what a word of it is, for messages */
    const char *const *words; /* those it may have; ends with NULL */
} column_t;

static const column_t collective_column = {"collective", choices};
static const column_t where_column = {"place", wheres};
static const column_t types_column = {"type", types};
static const column_t algorithm_column = {"algorithm", algorithms};

/* Set *out to the index of [word] in [column]. */
static err_code_t word_find(const place_t *at, const column_t *column,
                            const char *word, int *out, err_t *err)
{
    const char *const *words = column->words;
    str_buf_t known = {0};

    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) {
            *out = i;
            str_buf_free(&known);
            return ERR_OK;
        }
        str_buf_add(&known, "%s%s", i == 0 ? "" : ", ", words[i]);
    }
    err_set(err, ERR_CONFIG, "%s, line %d: %s \"%s\" is unknown: choose %s",
            at->name, at->line, column->what, word, known.text);
    str_buf_free(&known);
    return ERR_CONFIG;
}

/* Read "any", or a number, which may end with K, M or G. */
static bool number_read(const char *word, int64_t any, int64_t *out)
{
    char digits[WORD];
    size_t length = strlen(word);
    int shift = 0;

    if (strcmp(word, "any") == 0) {
        *out = any;
        return true;
    }
    memcpy(digits, word, length + 1);
    if (length > 0 && strchr("KMG", word[length - 1]) != NULL) {
        shift = word[length - 1] == 'K'   ? 10
                : word[length - 1] == 'M' ? 20
                                          : 30;
        digits[length - 1] = '\0';
    }
    if (!str_to_int(digits, out) || *out <= 0 || *out > INT64_MAX >> shift)
        return false;
    *out <<= shift;
    return true;
}

static err_code_t limits_read(const place_t *at, const char *ranks,
                              const char *bytes, comm_row_t *row, err_t *err)
{
    int64_t number;

    if (strcmp(ranks, "2^n") == 0)
        row->ranks = RANKS_POWER;
    else if (number_read(ranks, 0, &number) && number <= INT32_MAX)
        row->ranks = (int)number;
    else
        return err_set(err, ERR_CONFIG,
                       "%s, line %d: expected ranks as any, 2^n or a number, "
                       "found \"%s\"",
                       at->name, at->line, ranks);
    if (!number_read(bytes, -1, &number))
        return err_set(err, ERR_CONFIG,
                       "%s, line %d: expected bytes as any or a number with "
                       "or without K, M or G, found \"%s\"",
                       at->name, at->line, bytes);
    row->bytes = (size_t)number; /* -1 becomes SIZE_MAX */
    return ERR_OK;
}

static err_code_t row_read(const place_t *at, const char *line, comm_row_t *out,
                           err_t *err)
{
    char words[6][WORD], more[2];
    int choice, where, type, algorithm;
    err_code_t rc;
    int found = sscanf(
        line,
        WORD_FORMAT WORD_FORMAT WORD_FORMAT WORD_FORMAT WORD_FORMAT WORD_FORMAT
        "%1s",
        words[0], words[1], words[2], words[3], words[4], words[5], more);

    if (found != 6)
        return err_set(err, ERR_CONFIG,
                       "%s, line %d: expected collective, where, types, ranks, "
                       "bytes and algorithm, found %s",
                       at->name, at->line, found < 6 ? "less" : "more");
    rc = word_find(at, &collective_column, words[0], &choice, err);
    if (rc == ERR_OK)
        rc = word_find(at, &where_column, words[1], &where, err);
    if (rc == ERR_OK)
        rc = word_find(at, &types_column, words[2], &type, err);
    if (rc == ERR_OK)
        rc = limits_read(at, words[3], words[4], out, err);
    if (rc == ERR_OK)
        rc = word_find(at, &algorithm_column, words[5], &algorithm, err);
    if (rc != ERR_OK)
        return rc;
    if (!comm_algorithm_fits((comm_algorithm_t)algorithm, (comm_choice_t)choice,
                             (comm_where_t)where))
        return err_set(err, ERR_CONFIG,
                       "%s, line %d: %s, %s, is not carried out by \"%s\" (see "
                       "docs/COMM.md)",
                       at->name, at->line, choices[choice], wheres[where],
                       algorithms[algorithm]);
    out->choice = (comm_choice_t)choice;
    out->where = (comm_where_t)where;
    out->types = type;
    out->algorithm = (comm_algorithm_t)algorithm;
    return ERR_OK;
}

/* Check that every query has an answer. It is enough to try those queries that
 * only rows without bounds match. */
static err_code_t table_complete(const comm_table_t *table, const char *name,
                                 err_t *err)
{
    for (int choice = 0; choice < COMM_CHOICES; choice++)
        for (int where = 0; where < COMM_WHERES * 2; where++) {
            comm_query_t query = {.choice = (comm_choice_t)choice,
                                  .where = (comm_where_t)(where / 2),
                                  .half = where % 2 == 1,
                                  .ranks = INT32_MAX,
                                  .bytes = SIZE_MAX};
            bool found = choice != COMM_CHOICE_ALLREDUCE &&
                         query.where <= COMM_WHERE_SLICE;

            for (int i = 0; i < table->count; i++)
                found |= row_fits(&table->rows[i], &query);
            if (!found)
                return err_set(err, ERR_CONFIG,
                               "%s has no row \"%s %s %s any any ALGORITHM\", "
                               "for what no other row fits",
                               name, choices[choice], wheres[query.where],
                               types[query.half ? TYPES_HALF : TYPES_WIDE]);
        }
    return ERR_OK;
}

/* Copy the line at *text to [line], without its comment; false at the end of
 * the text. */
static bool line_next(const char **text, char *line, size_t room)
{
    size_t length = strcspn(*text, "\n");

    if (**text == '\0')
        return false;
    snprintf(line, room, "%.*s", (int)length, *text);
    line[strcspn(line, "#")] = '\0';
    *text += length + ((*text)[length] == '\n');
    return true;
}

err_code_t comm_table_parse(const char *text, const char *name,
                            comm_table_t *out, err_t *err)
{
    comm_table_t table = {.count = 0};
    place_t at = {.name = name};
    char line[160];

    if (strncmp(text, HEADER, strlen(HEADER)) != 0)
        return err_set(err, ERR_CONFIG,
                       "%s is no table of algorithms: its first line is not "
                       "\"" HEADER "\"",
                       name);
    while (line_next(&text, line, sizeof line)) {
        err_code_t rc;

        at.line++;
        if (at.line == 1 || line[strspn(line, " \t\r")] == '\0')
            continue;
        if (table.count == COMM_TABLE_ROWS)
            return err_set(err, ERR_CONFIG, "%s has more than %d rows", name,
                           COMM_TABLE_ROWS);
        rc = row_read(&at, line, &table.rows[table.count], err);
        if (rc != ERR_OK)
            return rc;
        table.count++;
    }
    if (table_complete(&table, name, err) != ERR_OK)
        return ERR_CONFIG;
    *out = table;
    return ERR_OK;
}

void comm_table_default(comm_table_t *out)
{
    (void)comm_table_parse(builtin, "the built-in table", out, NULL);
}

err_code_t comm_table_load(const char *path, comm_table_t *out, err_t *err)
{
    char *text = NULL;
    size_t bytes;
    err_code_t rc;

    if (path == NULL || *path == '\0') {
        comm_table_default(out);
        return ERR_OK;
    }
    rc = file_read(path, &text, &bytes, err);
    if (rc == ERR_OK)
        rc = comm_table_parse(text, path, out, err);
    free(text);
    return rc;
}
