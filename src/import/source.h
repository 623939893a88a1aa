/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * source: samples to be converted, in their order. A kind of source (files of
 * NumPy, IDX files, ...) is a table of functions in registry.c. A source reads
 * its files once, from the first sample to the last, so it needs little memory
 * whatever their size.
 */
#ifndef CDDP_IMPORT_SOURCE_H
#define CDDP_IMPORT_SOURCE_H

#include <hdf5.h>
#include <stdint.h>

#include "base/err.h"
#include "import/share.h"
#include "import/type.h"

enum { IMPORT_FIELDS_MAX = 16 };

/* What the user says of the files. NULL or 0: not given. */
typedef struct import_config {
    const char *const *words; /* FILE or NAME=FILE, as the kind says */
    int word_count;
    const char *shape;  /* raw: shape of one sample, "3,32,32" */
    const char *type;   /* raw: "float32"; "big:" before it: big-endian */
    int64_t skip;       /* raw: bytes before the first sample of each file */
    const char *input;  /* csv: names of columns, "a,b" */
    const char *target; /* csv: the same */
    const char *resize; /* images: "256", or "256,320" */
    const char *crop;   /* images: the same */
    int channels;       /* images */
    int threads;        /* images */
    const char *vocab;  /* text: a file; see bpe.h */
    const char *merges; /* text: the same */
    /* NULL: this process is alone. Else several processes open equal sources
     * at the same time, and each process converts a part of the samples.
     * Opening a source may call share->gather. */
    const import_share_t *share;
} import_config_t;

typedef struct import_source import_source_t;

/* A kind of source. */
typedef struct import_kind {
    const char *name; /* "npy" */
    /* Which of the fields of the configuration it uses: one of IMPORT_TAKES_*
     * each; another one is an error of the command line. */
    int takes;
    /* Open the files, and describe what they contain. ERR_USAGE: a word or an
     * option that does not suit. ERR_DATA names file and place. */
    err_code_t (*open)(const import_config_t *config, import_source_t **out,
                       err_t *err);
    /* Read the next [rows] samples. out[f] receives those of field f, in the
     * byte order of this machine. Never called for more samples than there
     * are; with the last ones, the ends of the files are checked. */
    err_code_t (*read)(import_source_t *source, int64_t rows, void *const *out,
                       err_t *err);
    /* Pass over the next [rows] samples, without reading all of them. Errors as
     * for read. */
    err_code_t (*skip)(import_source_t *source, int64_t rows, err_t *err);
    /* Add to a shard whose datasets were created what belongs to no sample,
     * such as attributes; sets[f] is the dataset of field f. Called with the
     * HDF5 lock. NULL: there is nothing. ERR_IO. */
    err_code_t (*annotate)(import_source_t *source, hid_t file,
                           const hid_t *sets, err_t *err);
    void (*close)(import_source_t *source);
} import_kind_t;

enum {
    IMPORT_TAKES_SHAPE = 1,    /* shape, type, skip */
    IMPORT_TAKES_COLUMNS = 2,  /* input, target */
    IMPORT_TAKES_PICTURES = 4, /* resize, crop, channels, threads */
    IMPORT_TAKES_VOCAB = 8     /* vocab, merges */
};

/* The first member of the structs of all kinds. */
struct import_source {
    const import_kind_t *kind;
    import_field_t fields[IMPORT_FIELDS_MAX];
    int field_count; /* at least 1 */
    int64_t rows;    /* samples; at least 1 */
};

/* The kind with this name; NULL if there is none. */
const import_kind_t *import_kind_find(const char *name);

/* Names of all kinds, which end with NULL. */
const char *const *import_kind_names(void);

#endif
