/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * io_count: a program that links this counts how often files are opened and
 * read, by all its threads and libraries. The counts show how much work a slow
 * file system would have, and they do not depend on how busy the machine is.
 *
 * tests/lib/io_watch.la, preloaded into any program, counts in the same way.
 * Environment variables control it: IO_COUNT_SUFFIX is the end of the names of
 * the files that count. At its end the process appends a line to the file
 * IO_COUNT_FILE: "opens N reads N bytes N stats N slept N". Each open of such a
 * file takes IO_SLOW_OPEN microseconds longer, and each read IO_SLOW_READ
 * microseconds longer. The last number of the line is the sum of these delays
 * in the thread that was delayed most.
 */
#ifndef CDDP_TESTS_LIB_IO_COUNT_H
#define CDDP_TESTS_LIB_IO_COUNT_H

/* Set all counts to 0. From now on three kinds of calls count, for files whose
 * names end with [suffix], a static text: open, openat and their variants;
 * pread; stat. */
void io_count_begin(const char *suffix);

/* Number of opens since then, failed ones included. */
long io_count_opens(void);
/* Number of reads, and the bytes that they returned. */
long io_count_reads(void);
long io_count_bytes(void);
/* Number of calls of stat. */
long io_count_stats(void);

#endif
