/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_table: which algorithm carries out a collective, as a function of its
 * bytes, its type and where the ranks are. One text, which people can read and
 * `cddp-bench allreduce --tune` writes; docs/COMM.md has the format. All ranks
 * of a group must have the same table (comm_group_open compares them).
 */
#ifndef CDDP_COMM_COMM_TABLE_H
#define CDDP_COMM_COMM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

typedef enum comm_algorithm {
    COMM_BY_NODE,     /* memory that the ranks of a node share */
    COMM_BY_FLAT,     /* not by node: as if the data lay in no arena */
    COMM_BY_SHOT,     /* one-shot slots, small */
    COMM_BY_STAGE,    /* copied through memory that the ranks share */
    COMM_BY_DOUBLING, /* recursive doubling */
    COMM_BY_HALVING,  /* Rabenseifner: recursive halving, then doubling */
    COMM_BY_RING,
    COMM_BY_DIRECT, /* straight to owners, in rank order */
    COMM_BY_BRUCK
} comm_algorithm_t;

typedef enum comm_choice {
    COMM_CHOICE_ALLREDUCE,
    COMM_CHOICE_REDUCE_SCATTER,
    COMM_CHOICE_GATHER_RANGES,
    COMM_CHOICE_ALLGATHER
} comm_choice_t;

typedef enum comm_where {
    COMM_WHERE_ARENA, /* the data lies in an arena, node stage possible */
    COMM_WHERE_SLICE, /* between nodes, within an all-reduce by node stage */
    COMM_WHERE_LOCAL, /* all ranks are on one node */
    COMM_WHERE_NET    /* on several nodes */
} comm_where_t;

/* What is to be decided. */
typedef struct comm_query {
    comm_choice_t choice;
    comm_where_t where;
    bool half;    /* 16-bit floats */
    int ranks;    /* that take part */
    size_t bytes; /* in all; all-gather: of one rank */
} comm_query_t;

#define COMM_TABLE_ROWS 64
#define COMM_ALGORITHMS (COMM_BY_BRUCK + 1)
#define COMM_CHOICES (COMM_CHOICE_ALLGATHER + 1)
#define COMM_WHERES (COMM_WHERE_NET + 1)

typedef struct comm_row {
    comm_choice_t choice;
    comm_where_t where;
    int types;    /* a bit for wide types, 1, and one for 16-bit floats, 2 */
    int ranks;    /* at most; 0: any, -1: any power of two */
    size_t bytes; /* at most; SIZE_MAX: any */
    comm_algorithm_t algorithm;
} comm_row_t;

typedef struct comm_table { /* the first row that fits decides */
    int count;
    comm_row_t rows[COMM_TABLE_ROWS];
} comm_table_t;

/* The built-in table. */
void comm_table_default(comm_table_t *out);

/* Read [text], called [name] in errors (ERR_CONFIG: line, what was found, what
 * is known). Every query has an answer in what is accepted. */
err_code_t comm_table_parse(const char *text, const char *name,
                            comm_table_t *out, err_t *err);
/* The same for the file [path]; an empty path: the built-in table. ERR_IO. */
err_code_t comm_table_load(const char *path, comm_table_t *out, err_t *err);

/* Append the text of [table], which parses into the same one. */
void comm_table_print(const comm_table_t *table, str_buf_t *text);

/* Let every row be carried out by [algorithm] that may be; rows of 16-bit
 * floats alone stay, as others than direct round more than once. To measure or
 * test. */
void comm_table_force(comm_table_t *table, comm_algorithm_t algorithm);

/* Pure. */
comm_algorithm_t comm_table_find(const comm_table_t *table,
                                 const comm_query_t *query);
/* Equal for equal tables. */
uint64_t comm_table_hash(const comm_table_t *table);

/* "ring", "allreduce", "local"; static. */
const char *comm_algorithm_name(comm_algorithm_t algorithm);
const char *comm_choice_name(comm_choice_t choice);
const char *comm_where_name(comm_where_t where);
/* May [choice] be carried out so, there? */
bool comm_algorithm_fits(comm_algorithm_t algorithm, comm_choice_t choice,
                         comm_where_t where);

#endif
