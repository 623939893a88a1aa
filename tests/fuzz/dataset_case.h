/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A case of the target `dataset`: a few HDF5 files that HDF5 itself writes as
 * the fuzzer's bytes choose, and a model of what they hold. The model follows
 * links and mappings by HDF5's documented rules, without HDF5, so it can say
 * whether the opener must take a case or refuse it, and which numbers it reads.
 *
 * No bytes at all choose two small plain datasets in one file, and most choices
 * leave them as they are: what is odd comes one or a few at a time.
 */
#ifndef CDDP_TESTS_FUZZ_DATASET_CASE_H
#define CDDP_TESTS_FUZZ_DATASET_CASE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CASE_FILES 4
#define CASE_LINKS 12 /* of one file */
#define CASE_SETS 32
#define CASE_MAPS 3
#define CASE_RAWS 3
#define CASE_TEXT 160
/* Numbers that are stored are below it, so that every type holds them. */
#define CASE_VALUES 101
/* Elements that are written, or compared, of one dataset at most. */
#define CASE_SMALL 4096

/* The fuzzer's bytes, from which choices are taken. */
typedef struct case_bytes {
    const uint8_t *at;
    size_t left;
} case_bytes_t;

/* A number below [count]; 0 when the bytes are used up. */
unsigned case_pick(case_bytes_t *bytes, unsigned count);

typedef enum case_verdict {
    CASE_GOOD, /* must be accepted */
    CASE_BAD,  /* must be refused */
    CASE_VAGUE /* either, in an orderly way: the model does not know */
} case_verdict_t;

/* Rows of a virtual dataset: to, to + stride, ... of them [count], from rows
 * [from] and on of a source. */
typedef struct case_map {
    int file; /* of the source; -1: a name that no file has */
    char name[CASE_TEXT], path[16];
    bool all; /* the source is selected whole, whatever its shape */
    uint64_t to, stride, from, count;
} case_map_t;

/* A dataset. */
typedef struct case_set {
    bool numbers, reals;    /* numbers; floating-point ones */
    bool named;             /* an enumeration, which HDF5 does not convert */
    case_verdict_t verdict; /* of what it is made of, without its shape */
    bool damaged;           /* bytes under a check sum were changed */
    bool known;             /* the model knows the numbers that were written */
    bool fill_known;        /* and those that were not */
    int ndim;
    hsize_t dims[H5S_MAX_RANK];
    size_t bytes;     /* of an element */
    uint64_t written; /* elements, from the first on */
    double fill;
    uint64_t nan_at; /* UINT64_MAX: nowhere */
    bool mapped;
    case_map_t maps[CASE_MAPS];
    int map_count;
    char raws[CASE_RAWS][CASE_TEXT]; /* external files */
    uint64_t raw_bytes[CASE_RAWS];   /* that it needs of them */
    int raw_count;
} case_set_t;

typedef enum case_kind {
    CASE_SET,
    CASE_GROUP,
    CASE_SOFT,
    CASE_EXTERNAL
} case_kind_t;

/* Groups of a file. */
enum { CASE_ROOT, CASE_G, CASE_H, CASE_GROUPS };

/* A name in a group. */
typedef struct case_link {
    int group;
    char name[4];
    case_kind_t kind;
    int index; /* the set, the group, or the file of an external link, -1:
                  none has its name */
    char path[16];
} case_link_t;

typedef struct case_file {
    char path[CASE_TEXT], name[16];
    bool below; /* in the directory sub */
    bool broken;
    case_link_t links[CASE_LINKS];
    int link_count;
} case_file_t;

/* A byte that is changed when all files are written. */
typedef struct case_patch {
    int file; /* -1: none */
    uint64_t at;
    uint8_t flip;
} case_patch_t;

typedef struct case_model {
    const char *home; /* the directory */
    case_file_t files[CASE_FILES];
    int file_count, shard_count;
    case_set_t sets[CASE_SETS];
    int set_count;
    case_patch_t patch;
    double bound; /* attribute of the first file; NAN: none */
    case_verdict_t bound_verdict;
} case_model_t;

/* What the datasets of a file have in common, unless they are odd ones. */
typedef struct case_shape {
    hsize_t rows;
    int ndim[2];
    hsize_t dims[2][3]; /* of one sample, of even and odd datasets */
} case_shape_t;

/* Write the files of a case below [home]. The lock of HDF5 is held. */
void case_write(case_bytes_t *bytes, const char *home, case_model_t *model);

/* Make the dataset [name] in [group] of file number [file]; [odd]: the second
 * of its file's shapes. False: HDF5 refuses to make it. */
bool case_leaf(case_bytes_t *bytes, case_model_t *model, int file, hid_t group,
               const char *name, const case_shape_t *shape, int odd);

/* Shape of a dataset: mostly that of the file. */
void case_shape_take(case_bytes_t *bytes, const case_shape_t *shape, int odd,
                     case_set_t *set);

/* A type of the library or one of our own, to be closed; sets what [set] says
 * of it. */
hid_t case_type(case_bytes_t *bytes, case_set_t *set);

/* a * b, or the largest number. */
uint64_t case_product(uint64_t a, uint64_t b);
/* Elements of dimensions [first] and on. */
uint64_t case_elements(const case_set_t *set, int first);

/* The file that a link or mapping in file number [from] names: its name, which
 * may be wrong, into [name]. Its number, -1: there is none of that name. */
int case_name(case_bytes_t *bytes, const case_model_t *model, int from,
              char name[CASE_TEXT]);

/* The dataset that [path] leads to from the root of file number [file]; -1: it
 * leads to none. */
int case_find(const case_model_t *model, int file, const char *path);

/* Can the dataset be opened and read? */
case_verdict_t case_set_verdict(const case_model_t *model, int set);

/* Will every read of it succeed, once it is open? */
bool case_readable(const case_model_t *model, int set);

/* Element [element] of row [row]; false: the model does not know. */
bool case_value(const case_model_t *model, int set, uint64_t row,
                uint64_t element, double *out);

#endif
