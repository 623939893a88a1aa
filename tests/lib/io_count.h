/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * io_count: a program that links this counts how often files are opened, and
 * what is read of them, by all its threads and libraries. A count says what a
 * slow file system would have to do, and no busy machine blurs it.
 */
#ifndef CDDP_TESTS_LIB_IO_COUNT_H
#define CDDP_TESTS_LIB_IO_COUNT_H

/* Count from 0 on, calls of open, openat and their variants for files whose
 * name ends with [suffix], a static text. */
void io_count_begin(const char *suffix);

/* Number of such calls since then, failed ones included. */
long io_count_opens(void);

/* Bytes that calls of pread have read since then from such files. */
long io_count_bytes(void);

#endif
