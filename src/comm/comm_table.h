/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_table: which algorithm carries out a collective, depending on its bytes,
 * its type and the place of the ranks. The table is a text that people can read
 * and that `cddp-bench allreduce --tune` writes; docs/COMM.md has the format.
 * All ranks of a group must have equal tables (comm_group_open compares them).
 */
#ifndef CDDP_COMM_COMM_TABLE_H
#define CDDP_COMM_COMM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

typedef enum comm_algorithm {
    COMM_BY_NODE, /* through memory that the ranks of a node share */
    COMM_BY_FLAT, /* not through such memory: as if the data were in no arena */
    COMM_BY_SHOT, /* one-shot slots, for small data */
    COMM_BY_STAGE,    /* copied through memory that the ranks share */
    COMM_BY_DOUBLING, /* recursive doubling */
    COMM_BY_HALVING,  /* Rabenseifner: recursive halving, then doubling */
    COMM_BY_RING,
    COMM_BY_DIRECT, /* directly to the owners, summed in rank order */
    COMM_BY_BRUCK
} comm_algorithm_t;

typedef enum comm_choice {
    COMM_CHOICE_ALLREDUCE,
    COMM_CHOICE_REDUCE_SCATTER,
    COMM_CHOICE_GATHER_RANGES,
    COMM_CHOICE_ALLGATHER
} comm_choice_t;

typedef enum comm_where {
    COMM_WHERE_ARENA, /* data in an arena, so that the node stage may be used */
    /* Between nodes, within an all-reduce that uses the node stage. */
    COMM_WHERE_SLICE,
    COMM_WHERE_LOCAL, /* all ranks are on one node */
    COMM_WHERE_NET    /* the ranks are on several nodes */
} comm_where_t;

/* The properties of a collective on which the choice depends. */
typedef struct comm_query {
    comm_choice_t choice;
    comm_where_t where;
    bool half;    /* the elements are 16-bit floats */
    int ranks;    /* number of ranks that take part */
    size_t bytes; /* total bytes; for an all-gather: bytes of one rank */
} comm_query_t;

#define COMM_TABLE_ROWS 64
#define COMM_ALGORITHMS (COMM_BY_BRUCK + 1)
#define COMM_CHOICES (COMM_CHOICE_ALLGATHER + 1)
#define COMM_WHERES (COMM_WHERE_NET + 1)

typedef struct comm_row {
    comm_choice_t choice;
    comm_where_t where;
    int types;    /* bit 1: wide types; bit 2: 16-bit floats */
    int ranks;    /* maximum number of ranks; 0: any; -1: any power of two */
    size_t bytes; /* maximum bytes; SIZE_MAX: any */
    comm_algorithm_t algorithm;
} comm_row_t;

typedef struct comm_table { /* the first row that matches decides */
    int count;
    comm_row_t rows[COMM_TABLE_ROWS];
} comm_table_t;

/* The built-in table. */
void comm_table_default(comm_table_t *out);

/* Read [text], which errors call [name]. ERR_CONFIG tells the line, what was
 * found and what is known. A table that is accepted has an answer for every
 * query. */
err_code_t comm_table_parse(const char *text, const char *name,
                            comm_table_t *out, err_t *err);
/* Read the file [path]; an empty path means the built-in table. ERR_IO, and the
 * errors of comm_table_parse. */
err_code_t comm_table_load(const char *path, comm_table_t *out, err_t *err);

/* Append the text of [table]; parsing it gives an equal table. */
void comm_table_print(const comm_table_t *table, str_buf_t *text);

/* Set the algorithm of every row to [algorithm] where it is possible, for
 * measurements and tests. Rows for 16-bit floats only do not change, as
 * algorithms other than direct round more than once. */
void comm_table_force(comm_table_t *table, comm_algorithm_t algorithm);

/* The algorithm for [query]. Pure. */
comm_algorithm_t comm_table_find(const comm_table_t *table,
                                 const comm_query_t *query);
/* A hash of the text; equal for equal tables. */
uint64_t comm_table_hash(const comm_table_t *table);

/* Static names: "ring", "allreduce", "local". */
const char *comm_algorithm_name(comm_algorithm_t algorithm);
const char *comm_choice_name(comm_choice_t choice);
const char *comm_where_name(comm_where_t where);
/* Return whether [algorithm] can carry out [choice] at the place [where]. */
bool comm_algorithm_fits(comm_algorithm_t algorithm, comm_choice_t choice,
                         comm_where_t where);

#endif
