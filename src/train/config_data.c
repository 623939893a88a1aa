/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The section data of the run file. */
#include "hdf5io/sampler.h"
#include "train/config_rows.h"

static const char *const shuffles[] = {"none", "chunk", "full", NULL};
static const char *const validates[] = {"quick", "full", "none", "labels",
                                        NULL};

static const char *const samples[] = {"rows", "files", NULL};

static const char *const ios[] = {"independent", "mpi", "stage", NULL};

const char *const train_config_ios[] = {"independent", "mpi", NULL};

const char *train_config_shuffle(int shuffle)
{
    return shuffles[shuffle];
}

const opt_row_t train_data_options[] = {
    CONFIG(data.train, "train", OPT_TEXTS, NULL,
           .help = "training shards: a glob, a file, or a list of these"),
    CONFIG(data.valid, "valid", OPT_TEXTS, "[]",
           .help = "validation shards; empty: no evaluation"),
    CONFIG(data.input, "input", OPT_MAP, "", .rows = hdf5io_input_options,
           .size = sizeof(hdf5io_field_t),
           .help = "what the model reads; several inputs: each under its "
                   "name in model.input"),
    CONFIG(data.target, "target", OPT_MAP, "", .rows = hdf5io_target_options,
           .size = sizeof(hdf5io_field_t),
           .help = "what the model should output; several targets: each "
                   "under the name that a loss gives as its target"),
    CONFIG(data.samples, "samples", OPT_CHOICE, "rows", .choices = samples,
           .help = "rows: the samples of a shard are along dimension 0 of its "
                   "datasets; files: each shard is one sample, and its "
                   "datasets have no dimension for samples"),
    CONFIG(data.sequence, "sequence", OPT_INT, "0", .min = 0, .max = 1 << 30,
           .unit = "numbers",
           .help = "length of the samples that are cut from "
                   "data.input.path, which holds one stream of numbers "
                   "per file; the target of each number is the next one. "
                   "0: samples along dimension 0"),
    CONFIG(data.shuffle, "shuffle", OPT_CHOICE, "chunk", .choices = shuffles,
           .help = "order of the training samples in an epoch"),
    CONFIG(data.lanes, "lanes", OPT_INT, "64", .min = 0,
           .max = HDF5IO_LANES_MAX, .former = "16",
           .help = "with shuffle: chunk, number of parts of the data from "
                   "which each batch takes samples, at most train.batch. "
                   "About 4 chunks of each part are in use at a time; --check "
                   "says how much memory they need. If data.memory is "
                   "smaller, chunks are decoded again; fewer parts need less "
                   "memory. If the number of ranks divides the number of "
                   "parts, each chunk is needed by one rank only. 0: the "
                   "order of earlier versions, in which each rank reads "
                   "nearly every chunk"),
    CONFIG(data.prefetch, "prefetch", OPT_INT, "4", .min = 0, .max = 1024,
           .unit = "batches", .free = true,
           .help = "number of batches that are read ahead; 0: batches are "
                   "read within the step"),
    CONFIG(data.threads, "threads", OPT_INT, "0", .min = 0, .max = 64,
           .unit = "threads", .free = true,
           .help = "number of threads of a rank that read batches ahead and "
                   "convert them. Each thread has one batch at a time, so at "
                   "most data.prefetch threads are used. Between batches they "
                   "decode chunks that later batches need, as far as "
                   "data.memory allows. No bit of a result depends on the "
                   "number of threads. 0: 2 threads, or 1 if the rank has only "
                   "one core. Not used with io: mpi"),
    CONFIG(data.io, "io", OPT_CHOICE, "independent", .choices = ios,
           .free = true,
           .help = "independent: each rank reads for itself; mpi: "
                   "collective MPI-IO; stage: as independent; besides, one "
                   "rank of each node copies shards, as many as fit, to "
                   "data.stage_dir, beginning in the first epoch. Ranks read "
                   "a shard from its copy as soon as the copy is complete. If "
                   "copying fails, the run goes on without copies. Copies "
                   "change no bit of a result"),
    CONFIG(data.stage_dir, "stage_dir", OPT_TEXT, "", .free = true,
           .help = "with io: stage, a directory of each node, on a local disk "
                   "or in memory. The run makes a new directory there for its "
                   "copies, and removes this new directory at its end. In "
                   "memory (tmpfs) copies take at most 1/4 of the memory that "
                   "the job may use on the node. Empty: $TMPDIR, or /dev/shm "
                   "if TMPDIR is not set"),
    CONFIG(data.open_files, "open_files", OPT_INT, "0", .min = 0,
           .max = 1 << 30, .unit = "files", .free = true,
           .help = "number of shards of each split that a rank keeps open "
                   "at a time; the one that was read longest ago is closed. "
                   "0: half of the limit of open files (ulimit -Hn), divided "
                   "among the ranks of a process. Not used with io: mpi"),
    CONFIG(data.memory, "memory", OPT_INT, "0", .min = 0, .max = 9e15,
           .unit = "bytes", .free = true,
           .help = "memory in which a rank keeps the decoded chunks of each "
                   "split; others are decoded again when they are needed. A "
                   "row of chunks is kept even if it needs more. Short rows "
                   "(below 4 KiB, labels for example) of contiguous datasets "
                   "are kept, too, if all of them fit into 1/8 of this "
                   "memory. 0: 1/16 of the memory that the job may use on the "
                   "node, divided among its ranks there, at least 128 MiB"),
    CONFIG(data.validate, "validate", OPT_CHOICE, "quick", .choices = validates,
           .free = true,
           .help = "how ranks (at start) and a resumed run check that "
                   "they see the same data. quick: shapes, and a sample "
                   "of the bytes; none: shapes only; labels: as quick, and "
                   "before training the ranks look at every target: class "
                   "numbers in range, probabilities, no nan; full: all "
                   "bytes, and every target and input, also the parts that a "
                   "crop leaves out"),
    {.name = NULL}};
