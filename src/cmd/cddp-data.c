/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-data: makes example data, and describes and checks data files. */
#include "config.h"

#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/data_convert.h"
#include "cmd/data_index.h"
#include "cmd/data_info.h"
#include "cmd/data_make.h"
#include "cmd/data_reshape.h"
#include "cmd/data_split.h"
#include "cmd/data_stats.h"
#include "cmd/data_verify.h"
#include "cmd/output.h"

#define PROGRESS_EVERY 10.0 /* seconds */

static const char help_text[] =
    "usage: cddp-data make ising -o DIR [options]\n"
    "       cddp-data make fields -o DIR [options]\n"
    "       cddp-data make bytes -o DIR [options] [PATH...]\n"
    "       cddp-data convert npy -o DIR [options] NAME=FILE...\n"
    "       cddp-data convert npz -o DIR [options] FILE|NAME=FILE:ARRAY...\n"
    "       cddp-data convert idx -o DIR [options] NAME=FILE...\n"
    "       cddp-data convert cifar10|cifar100 -o DIR [options] FILE...\n"
    "       cddp-data convert csv -o DIR [options] FILE...\n"
    "       cddp-data convert images -o DIR [options] FOLDER\n"
    "       cddp-data convert raw --type T --shape S -o DIR [options] "
    "NAME=FILE...\n"
    "       cddp-data shard -o DIR [options] FILE...\n"
    "       cddp-data split -o DIR [options] FILE...\n"
    "       cddp-data stats [--only A,B] [--layout L] [--yaml FILE] FILE...\n"
    "       cddp-data index --input A,B --target C,D [options] FILE...|DIR\n"
    "       cddp-data info FILE...\n"
    "       cddp-data verify FILE...\n"
    "\n"
    "make ising   Simulate the two-dimensional Ising model (32x32, periodic)\n"
    "             at temperatures from 1.0 to 3.54. Writes DIR/train-NN.h5\n"
    "             and DIR/valid-NN.h5 with /spins, /phase, /temperature and\n"
    "             /energy.\n"
    "  -o, --output DIR    output directory (made if absent)\n"
    "      --seed S        the same seed gives the same files [1]\n"
    "      --train N       training samples [20000]\n"
    "      --valid N       validation samples [6000]\n"
    "      --shards K      training files; half as many for validation [4]\n"
    "      --threads T     simulate on T threads [one per core]\n"
    "      --force         replace shards in DIR\n"
    "\n"
    "make fields  Draw random densities in three dimensions. Writes\n"
    "             DIR/train-NN.h5 and DIR/valid-NN.h5 with /density, /web\n"
    "             (void, sheet, filament or knot), /parameters of the\n"
    "             spectrum, and /scaled: the parameters in [-1, 1].\n"
    "  -o, --output DIR    output directory (made if absent)\n"
    "      --edge E        cells along an edge: a power of two [16]\n"
    "      --seed S        the same seed gives the same files [1]\n"
    "      --train N       training samples [2000]\n"
    "      --valid N       validation samples [500]\n"
    "      --shards K      training files; half as many for validation [4]\n"
    "      --threads T     draw on T threads [one per core]\n"
    "      --force         replace shards in DIR\n"
    "\n"
    "make bytes   Turn text files, and those in folders, into streams of\n"
    "             tokens for data.sequence: one token per byte, and a 0\n"
    "             after each text. Writes DIR/train-NN.h5 and\n"
    "             DIR/valid-00.h5 with /tokens. The same texts give the same\n"
    "             files.\n"
    "             PATH... [/usr/share/common-licenses /usr/share/doc]\n"
    "  -o, --output DIR    output directory (made if absent)\n"
    "      --valid P       percentage of the texts for validation [10]\n"
    "      --bytes N       most bytes of text, chosen by hash [33554432]\n"
    "      --shards K      training files [1]\n"
    "      --force         replace shards in DIR\n"
    "\n"
    "convert      Write files of other formats as shards DIR/train-NN.h5 with\n"
    "             a dataset /NAME for each NAME. Files with one NAME follow\n"
    "             each other. Files packed by gzip are unpacked.\n"
    "             npy: arrays of NumPy. npz: several arrays in a file.\n"
    "             idx: files of MNIST and its relatives. cifar10, cifar100:\n"
    "             the binary files of CIFAR; writes /image and /label.\n"
    "             csv: tables, the first line of which names the columns;\n"
    "             writes /input (float32) and /target (float64).\n"
    "             images: PNG and JPEG files below FOLDER/CLASS; writes\n"
    "             /image (uint8, [channels, height, width]) and /label.\n"
    "             raw: numbers and nothing else.\n"
    "             text: texts become one stream, the dataset /tokens, for\n"
    "             data.sequence. A token is a byte, or with --vocab one of a\n"
    "             byte-pair encoding.\n"
    "             Under srun --mpi=pmix the tasks divide the shards.\n"
    "  -o, --output DIR    output directory (made if absent)\n"
    "      --name NAME     names of the files, such as valid [train]\n"
    "      --shards K      files [as many as give 256 MiB each]\n"
    "      --gzip L        compress by level L, 1 to 9 [no compression]\n"
    "      --chunk K       KiB of samples in a chunk [contiguous; with --gzip\n"
    "                      1024]\n"
    "      --force         replace shards with these names in DIR\n"
    "      --input A,B     csv: columns of /input [all but those of --target]\n"
    "      --target C,D    csv: columns of /target [none]\n"
    "      --resize S      images: pixels of the shorter edge, or H,W\n"
    "      --crop S        images: cut out the middle: S x S, or H,W\n"
    "      --channels C    images: 1 (grey) or 3 [3]\n"
    "      --threads T     images: decode on T threads [one per core]\n"
    "      --type T        raw: int8, uint8, ... float64; big:T if the file "
    "is\n"
    "                      big-endian\n"
    "      --shape S       raw: sizes of one sample, such as 3,32,32; \"\": "
    "one\n"
    "                      number\n"
    "      --skip B        raw: bytes before the first sample [0]\n"
    "      --vocab FILE    text: a file like GPT-2's vocab.json [tokens are "
    "bytes]\n"
    "      --merges FILE   text: the merges.txt of the same encoding\n"
    "\n"
    "shard        Write the samples of HDF5 files as other shards\n"
    "             DIR/train-NN.h5, with all attributes and types.\n"
    "  -o, --output DIR    output directory (made if absent)\n"
    "      --name NAME     names of the files, such as valid [train]\n"
    "      --only A,B      copy only these datasets [all]\n"
    "      --shards K      files [as many as give 256 MiB each]\n"
    "      --gzip L        compress by level L, 1 to 9 [no compression]\n"
    "      --chunk K       KiB of samples in a chunk [as for convert]\n"
    "      --force         replace shards with these names in DIR\n"
    "\n"
    "split        The same, as DIR/train-NN.h5 and DIR/valid-NN.h5. The\n"
    "             samples keep their order. The same seed gives the same\n"
    "             files.\n"
    "  -o, --output DIR    output directory (made if absent)\n"
    "      --valid P       percentage of the samples for valid [10]\n"
    "      --seed S        which samples these are [1]\n"
    "      --by-class A    take this percentage of each class; A: the dataset\n"
    "                      of the classes\n"
    "      --only A,B      copy only these datasets [all]\n"
    "      --shards K      files of train [as many as give 256 MiB each]\n"
    "      --gzip L        compress by level L, 1 to 9 [no compression]\n"
    "      --chunk K       KiB of samples in a chunk [as for convert]\n"
    "      --force         replace train and valid in DIR\n"
    "\n"
    "stats        Print mean, standard deviation, minimum and maximum of each\n"
    "             channel over all files, how many numbers are nan or inf, "
    "and\n"
    "             how many samples each class has.\n"
    "      --only A,B      only these datasets [all]\n"
    "      --layout L      nhwc: channels are the last dimension [nchw]\n"
    "      --yaml FILE     write them to FILE, too\n"
    "\n"
    "index        Write the file .cddp-index beside the files. With it, "
    "cddp-train\n"
    "             opens only files that have changed. A run with 64 files or "
    "more\n"
    "             writes this file, if it may write there. Give the files of\n"
    "             data.train or of data.valid, and the datasets of data.input\n"
    "             and data.target. DIR stands for DIR/*.h5.\n"
    "      --input A,B     datasets of data.input, in the order of "
    "model.input\n"
    "      --target C,D    datasets of data.target, in the order in which\n"
    "                      losses name them; the dataset of a sample_weight\n"
    "                      comes after the target of its loss. Not with\n"
    "                      --sequence\n"
    "      --sequence T    for runs that set data.sequence to T\n"
    "      --files         for runs that set data.samples to files\n"
    "\n"
    "info         print the datasets of each file: types, shapes, chunks,\n"
    "             filters, and how cddp-train reads them\n"
    "verify       read every byte of each file, and the targets of its links\n"
    "             and virtual datasets; print its XXH3 hash\n"
    "\n"
    "  -h, --help          print this text\n"
    "      --version       print the versions of cddp and of HDF5\n"
    "\n"
    "Exit status: 0 done, 64 wrong command line, 65 bad data, 69 not built\n"
    "in, 71 out of memory, 74 input or output failed, 76 another task of the\n"
    "job step died, 78 tasks of a job step have other files.\n";

static err_code_t usage(err_t *err, const char *sentence)
{
    return err_set(err, ERR_USAGE, "%s; try cddp-data --help", sentence);
}

/* Check the arguments of "info" or "verify" (argv[0]), which must be files, not
 * options. */
static err_code_t files_check(int argc, char **argv, err_t *err)
{
    if (argc < 2)
        return err_set(err, ERR_USAGE,
                       "%s: name at least one file; try cddp-data --help",
                       argv[0]);
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-')
            return err_set(err, ERR_USAGE, "%s: unknown option %s", argv[0],
                           argv[i]);
    return ERR_OK;
}

static err_code_t info_run(int argc, char **argv, err_t *err)
{
    err_code_t rc = files_check(argc, argv, err);

    for (int i = 1; i < argc && rc == ERR_OK; i++) {
        str_buf_t text = {0};

        rc = cmd_data_info(argv[i], &text, err);
        if (rc == ERR_OK)
            str_print("%s", text.text);
        str_buf_free(&text);
    }
    return rc;
}

/* Verify all files, even after a bad one. The message about each is printed
 * here; [err] only counts the bad ones. */
static err_code_t verify_run(int argc, char **argv, err_t *err)
{
    err_code_t rc = files_check(argc, argv, err);
    int bad = 0;

    if (rc != ERR_OK)
        return rc;
    for (int i = 1; i < argc; i++) {
        cmd_verify_report_t report;
        err_t fault = ERR_INIT;
        char bytes[32], hash[HASH_TEXT_MAX];

        if (cmd_data_verify(argv[i], PROGRESS_EVERY, &report, &fault) !=
            ERR_OK) {
            str_print("BAD  %s\n", fault.text);
            rc = fault.code;
            bad++;
            continue;
        }
        str_print("ok   %s: %d datasets, %s, xxh3 %s\n", argv[i],
                  report.datasets,
                  str_bytes((uint64_t)report.bytes, bytes, sizeof bytes),
                  hash_format(report.hash, hash));
    }
    if (bad > 0)
        err_set(err, rc, "%d of %d files are bad", bad, argc - 1);
    return rc;
}

static err_code_t version_print(err_t *err)
{
    unsigned major, minor, release;

    if (H5get_libversion(&major, &minor, &release) < 0)
        return err_set(err, ERR_UNAVAILABLE, "HDF5 does not say its version");
    str_print("cddp-data %s\nHDF5 %u.%u.%u\n", PACKAGE_VERSION, major, minor,
              release);
    return ERR_OK;
}

static err_code_t command_run(int argc, char **argv, err_t *err)
{
    static const struct {
        const char *name;
        err_code_t (*run)(int argc, char **argv, err_t *err);
    } commands[] = {{"make", cmd_data_make},     {"convert", cmd_data_convert},
                    {"shard", cmd_data_reshape}, {"split", cmd_data_split},
                    {"stats", cmd_data_stats},   {"index", cmd_data_index},
                    {"info", info_run},          {"verify", verify_run}};
    static const char *const names[] = {"make",  "convert", "shard",
                                        "split", "stats",   "index",
                                        "info",  "verify",  NULL};
    const char *name = argc > 1 ? argv[1] : NULL;

    if (name == NULL)
        return usage(err, "a command is missing");
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            /* A failed write is found at the end (cmd_output_finish). */
            str_print("%s", help_text);
            return ERR_OK;
        }
    if (strcmp(name, "--version") == 0)
        return version_print(err);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1, err);
    return cmd_command_refuse("cddp-data", name, names, err);
}

int main(int argc, char **argv)
{
    err_t err = ERR_INIT;
    err_code_t rc;

    file_standard_open();
    rc = command_run(argc, argv, &err);
    rc = cmd_output_finish(rc, &err);
    /* Of several tasks that end with an error, only one has the message. */
    if (rc != ERR_OK && err.text[0] != '\0')
        fprintf(stderr, "cddp-data: %s\n", err.text);
    return rc;
}
