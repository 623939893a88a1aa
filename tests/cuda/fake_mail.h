/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * fake_mail: messages between the ranks of a communicator of the stand-in for
 * NCCL: memory that processes share, with a small box for each pair of ranks.
 * As over a network, a message waits until its receiver takes it, and a rank
 * that has ended is one that never answers. Thread rule: one thread sends and
 * receives; fake_mail_stop may be called by others meanwhile.
 */
#ifndef CDDP_TESTS_CUDA_FAKE_MAIL_H
#define CDDP_TESTS_CUDA_FAKE_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_MAIL_NAME 64

typedef struct fake_mail fake_mail_t;

/* A message, or the part of it that is not yet sent or received. */
typedef struct fake_part {
    int peer; /* not this rank */
    bool send;
    char *at;
    size_t bytes;
} fake_part_t;

/* Write a new name for a set of boxes. */
void fake_mail_name(char name[FAKE_MAIL_NAME]);
/* Join the boxes [name] of [size] ranks as [rank]; returns at once. NULL: no
 * memory. */
fake_mail_t *fake_mail_join(const char *name, int rank, int size);
/* Have all ranks joined? */
bool fake_mail_complete(const fake_mail_t *mail);

/* Send and receive all [parts], those of one peer and direction in order.
 * [call] describes the collective: a receiver that has another one is told on
 * stderr, and waits for ever, as NCCL would. False: fake_mail_stop came first.
 */
bool fake_mail_exchange(fake_mail_t *mail, uint64_t call, fake_part_t *parts,
                        int count);
/* Wait until fake_mail_stop. */
void fake_mail_hang(fake_mail_t *mail);

/* End what is under way, for this rank. Others can see that it has stopped. */
void fake_mail_stop(fake_mail_t *mail);
bool fake_mail_stopped(const fake_mail_t *mail); /* this or another rank */
/* Nothing may be under way. */
void fake_mail_leave(fake_mail_t *mail);

#endif
