/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * fake_mail: messages between the ranks of a communicator of the stand-in for
 * NCCL. Processes share memory with a small box for each pair of ranks. As over
 * a network, a message waits until its receiver takes it, and a rank that has
 * ended never answers. Thread rule: one thread sends and receives; at the same
 * time other threads may call fake_mail_stop.
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
    uint64_t tag; /* must be the same at the sender and the receiver */
} fake_part_t;

/* Write a new name for a set of boxes. */
void fake_mail_name(char name[FAKE_MAIL_NAME]);
/* Join the boxes [name] of [size] ranks as rank [rank]; returns at once.
 * Returns NULL if there is no memory. */
fake_mail_t *fake_mail_join(const char *name, int rank, int size);
/* Have all ranks joined? */
bool fake_mail_complete(const fake_mail_t *mail);

/* Tell all ranks that this one has registered window [number] of [bytes] bytes.
 * Returns false if another rank has given this window another size. */
bool fake_mail_window(fake_mail_t *mail, uint32_t number, size_t bytes);
/* Have all ranks registered [count] windows? */
bool fake_mail_windows(const fake_mail_t *mail, uint32_t count);

/* Tell all ranks that this one has captured one more call. */
void fake_mail_capture(fake_mail_t *mail);
/* Have all ranks together captured [count] calls for each rank? */
bool fake_mail_captures(const fake_mail_t *mail, uint32_t count);

/* Send and receive all [parts]. Parts of the same peer and direction move in
 * their order. [call] describes the collective. If the receiver of a message
 * executes another collective, or expects another tag, it says so on stderr and
 * waits for ever, as NCCL would. Returns false if fake_mail_stop was called
 * before the end. */
bool fake_mail_exchange(fake_mail_t *mail, uint64_t call, fake_part_t *parts,
                        int count);
/* Wait until fake_mail_stop. */
void fake_mail_hang(fake_mail_t *mail);

/* End the exchange of this rank. Other ranks can see that it has stopped. */
void fake_mail_stop(fake_mail_t *mail);
bool fake_mail_stopped(const fake_mail_t *mail); /* has any rank? */
/* No exchange may be running. */
void fake_mail_leave(fake_mail_t *mail);

#endif
