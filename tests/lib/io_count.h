/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * io_count: a program that links this counts how often files are opened and
 * read, by all its threads and libraries. A count says what a slow file system
 * would have to do, and no busy machine blurs it.
 *
 * As a preloaded library (tests/lib/io_watch.la) it does the same for any
 * program, by its environment: files whose names end with IO_COUNT_SUFFIX
 * count. At its end the process appends a line to the file IO_COUNT_FILE:
 * "opens N reads N bytes N stats N slept N". IO_SLOW_OPEN and IO_SLOW_READ are
 * microseconds that each open and each read of such a file takes longer; the
 * last number of the line is what the thread that slept most has slept.
 */
#ifndef CDDP_TESTS_LIB_IO_COUNT_H
#define CDDP_TESTS_LIB_IO_COUNT_H

/* Count from 0 on, calls of open, openat and their variants for files whose
 * name ends with [suffix], a static text; reads of such files by pread; and
 * calls of stat for them. */
void io_count_begin(const char *suffix);

/* Number of opens since then, failed ones included. */
long io_count_opens(void);
/* Number of reads, and the bytes that they returned. */
long io_count_reads(void);
long io_count_bytes(void);
/* Number of calls of stat. */
long io_count_stats(void);

#endif
