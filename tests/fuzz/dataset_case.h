/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A case of the target `dataset`: a few HDF5 files, written by HDF5 as the
 * fuzzer's bytes choose, and a model of their content. The model follows links
 * and mappings by HDF5's documented rules, without HDF5. So it predicts whether
 * the opener must accept or refuse a case, and which numbers are read.
 *
 * An empty input chooses two small plain datasets in one file. Most bytes leave
 * them unchanged, so that a case has only few unusual properties.
 */
#ifndef CDDP_TESTS_FUZZ_DATASET_CASE_H
#define CDDP_TESTS_FUZZ_DATASET_CASE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CASE_FILES 4
#define CASE_LINKS 12 /* links per file */
#define CASE_SETS 32
#define CASE_MAPS 3
#define CASE_RAWS 3
#define CASE_TEXT 160
/* Stored numbers are below this value, so that every type can hold them. */
#define CASE_VALUES 101
/* Maximum elements of a dataset that are written or compared. */
#define CASE_SMALL 4096

/* The remaining bytes of the fuzzer, from which choices are made. */
typedef struct case_bytes {
    const uint8_t *at;
    size_t left;
} case_bytes_t;

/* Choose a number below [count]; 0 when no bytes are left. */
unsigned case_pick(case_bytes_t *bytes, unsigned count);

typedef enum case_verdict {
    CASE_GOOD, /* must be accepted */
    CASE_BAD,  /* must be refused */
    CASE_VAGUE /* both are allowed, since the model does not know */
} case_verdict_t;

/* A mapping: rows to, to + stride, ... ([count] of them) of a virtual dataset
 * are rows from [from] on of a source. */
typedef struct case_map {
    int file; /* file of the source; -1: a name that does not exist */
    char name[CASE_TEXT], path[16];
    bool all; /* the whole source is selected, whatever its shape */
    uint64_t to, stride, from, count;
} case_map_t;

/* A dataset. */
typedef struct case_set {
    bool numbers; /* are its elements numbers? */
    bool reals;   /* floating-point numbers */
    bool named;   /* an enumeration, which HDF5 does not convert */
    case_verdict_t
        verdict;     /* of its type, storage and mappings, without its shape */
    bool damaged;    /* bytes covered by a checksum were changed */
    bool known;      /* the model knows the written numbers */
    bool fill_known; /* the model knows the value of numbers that were not
                        written */
    int ndim;
    hsize_t dims[H5S_MAX_RANK];
    size_t bytes;     /* bytes per element */
    uint64_t written; /* number of elements written, from the first on */
    double fill;
    uint64_t nan_at; /* index of a NaN, UINT64_MAX: none */
    bool mapped;
    case_map_t maps[CASE_MAPS];
    int map_count;
    char raws[CASE_RAWS][CASE_TEXT]; /* external files */
    uint64_t raw_bytes[CASE_RAWS];   /* bytes needed in each of them */
    int raw_count;
} case_set_t;

typedef enum case_kind {
    CASE_SET,
    CASE_GROUP,
    CASE_SOFT,
    CASE_EXTERNAL
} case_kind_t;

/* The groups of a file. */
enum { CASE_ROOT, CASE_G, CASE_H, CASE_GROUPS };

/* A link in a group. */
typedef struct case_link {
    int group;
    char name[4];
    case_kind_t kind;
    int index; /* index of the dataset, the group, or the file of an external
                  link; -1: the file does not exist */
    char path[16];
} case_link_t;

typedef struct case_file {
    char path[CASE_TEXT], name[16];
    bool below; /* in the directory "sub" */
    bool broken;
    case_link_t links[CASE_LINKS];
    int link_count;
} case_file_t;

/* A byte that is changed after all files are written. */
typedef struct case_patch {
    int file; /* -1: none */
    uint64_t at;
    uint8_t flip;
} case_patch_t;

typedef struct case_model {
    const char *home; /* the directory of all files */
    case_file_t files[CASE_FILES];
    int file_count, shard_count;
    case_set_t sets[CASE_SETS];
    int set_count;
    case_patch_t patch;
    double bound; /* attribute of the first file; NAN: none */
    case_verdict_t bound_verdict;
} case_model_t;

/* Common shapes of the datasets of a file. */
typedef struct case_shape {
    hsize_t rows;
    int ndim[2];
    hsize_t dims[2]
                [3]; /* dimensions of one sample, for even and odd datasets */
} case_shape_t;

/* Write the files of a case to the directory [home]. The caller has locked
 * HDF5. */
void case_write(case_bytes_t *bytes, const char *home, case_model_t *model);

/* Make the dataset [name] in [group] of file number [file]. [odd] selects the
 * second of the file's shapes. False: HDF5 refuses to make it. */
bool case_leaf(case_bytes_t *bytes, case_model_t *model, int file, hid_t group,
               const char *name, const case_shape_t *shape, int odd);

/* Choose the shape of a dataset: mostly that of the file. */
void case_shape_take(case_bytes_t *bytes, const case_shape_t *shape, int odd,
                     case_set_t *set);

/* Choose a type, which the caller closes, and set the properties of [set] that
 * follow from it. */
hid_t case_type(case_bytes_t *bytes, case_set_t *set);

/* a * b; UINT64_MAX on overflow. */
uint64_t case_product(uint64_t a, uint64_t b);
/* Number of elements of dimensions [first] to the last. */
uint64_t case_elements(const case_set_t *set, int first);

/* Choose a file for a link or mapping in file number [from]. Its name, which
 * may be wrong, is written to [name]. Returns its number, -1: no such file. */
int case_name(case_bytes_t *bytes, const case_model_t *model, int from,
              char name[CASE_TEXT]);

/* Index of the dataset at [path] from the root of file number [file]; -1:
 * none. */
int case_find(const case_model_t *model, int file, const char *path);

/* Can the dataset be opened and read? */
case_verdict_t case_set_verdict(const case_model_t *model, int set);

/* Will every read of the dataset succeed, once it is open? */
bool case_readable(const case_model_t *model, int set);

/* Value of element [element] in row [row]; false: unknown. */
bool case_value(const case_model_t *model, int set, uint64_t row,
                uint64_t element, double *out);

#endif
