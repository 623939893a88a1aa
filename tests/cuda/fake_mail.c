/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "fake_mail.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BOX_BYTES 16000
#define WINDOWS 64              /* of a communicator, at most */
#define SLEEP_NS (20 * 1000000) /* a sleeper looks again after this time */

/* The part of a message that is on its way from one rank to another. */
typedef struct box {
    _Atomic uint32_t full;
    uint32_t bytes;
    uint64_t call;
    char data[BOX_BYTES];
} box_t;

/* In memory that all ranks share; zero at first. */
typedef struct office {
    _Atomic uint32_t joined;
    _Atomic uint32_t stopped;
    _Atomic uint32_t windows; /* registered so far, by all ranks */
    _Atomic uint64_t window_bytes[WINDOWS];
    _Atomic uint32_t captures;  /* captured calls so far, of all ranks */
    _Atomic uint32_t bells[64]; /* each rank's; rung after a change */
    box_t boxes[];              /* [size * size] */
} office_t;

struct fake_mail {
    int rank, size;
    office_t *office;
    size_t bytes;
    atomic_bool stop;
    char name[FAKE_MAIL_NAME];
};

/* A directory that all ranks see; $CDDP_FAKE_NCCL names another one. */
static const char *folder(void)
{
    const char *named = getenv("CDDP_FAKE_NCCL");

    return named != NULL ? named : "/dev/shm";
}

void fake_mail_name(char name[FAKE_MAIL_NAME])
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, FAKE_MAIL_NAME, "cddp-fake-nccl-%d-%lld%09ld", (int)getpid(),
             (long long)now.tv_sec, now.tv_nsec);
}

static void path_write(const fake_mail_t *mail, char *path, size_t room)
{
    snprintf(path, room, "%s/%s", folder(), mail->name);
}

fake_mail_t *fake_mail_join(const char *name, int rank, int size)
{
    fake_mail_t *mail = calloc(1, sizeof *mail);
    char path[512];
    int fd;

    if (mail == NULL)
        return NULL;
    mail->rank = rank;
    mail->size = size;
    mail->bytes =
        sizeof(office_t) + (size_t)size * (size_t)size * sizeof(box_t);
    snprintf(mail->name, sizeof mail->name, "%s", name);
    path_write(mail, path, sizeof path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)mail->bytes) == 0)
        mail->office =
            mmap(NULL, mail->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (mail->office == NULL || mail->office == MAP_FAILED) {
        perror(path);
        free(mail);
        return NULL;
    }
    /* All ranks have joined, so nobody needs the name of the file any more. */
    if (atomic_fetch_add(&mail->office->joined, 1) + 1 == (uint32_t)size)
        unlink(path);
    return mail;
}

bool fake_mail_complete(const fake_mail_t *mail)
{
    return atomic_load(&mail->office->joined) == (uint32_t)mail->size;
}

/* ---- windows ------------------------------------------------------------- */

bool fake_mail_window(fake_mail_t *mail, uint32_t number, size_t bytes)
{
    uint64_t before = 0;

    if (number >= WINDOWS)
        abort();
    if (!atomic_compare_exchange_strong(&mail->office->window_bytes[number],
                                        &before, (uint64_t)bytes) &&
        before != bytes)
        return false;
    atomic_fetch_add(&mail->office->windows, 1);
    return true;
}

bool fake_mail_windows(const fake_mail_t *mail, uint32_t count)
{
    return atomic_load(&mail->office->windows) >= count * (uint32_t)mail->size;
}

void fake_mail_capture(fake_mail_t *mail)
{
    atomic_fetch_add(&mail->office->captures, 1);
}

bool fake_mail_captures(const fake_mail_t *mail, uint32_t count)
{
    return atomic_load(&mail->office->captures) >= count * (uint32_t)mail->size;
}

/* ---- bells --------------------------------------------------------------- */

static void bell_ring(fake_mail_t *mail, int rank)
{
    _Atomic uint32_t *bell = &mail->office->bells[rank];

    atomic_fetch_add(bell, 1);
    syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void bell_await(fake_mail_t *mail, uint32_t seen)
{
    const struct timespec most = {.tv_nsec = SLEEP_NS};

    syscall(SYS_futex, &mail->office->bells[mail->rank], FUTEX_WAIT, seen,
            &most, NULL, 0);
}

static uint32_t bell_look(const fake_mail_t *mail)
{
    return atomic_load(&mail->office->bells[mail->rank]);
}

/* ---- exchange ------------------------------------------------------------ */

static box_t *box_of(const fake_mail_t *mail, int from, int to)
{
    return &mail->office->boxes[from * mail->size + to];
}

static bool part_send(fake_mail_t *mail, uint64_t call, fake_part_t *part)
{
    box_t *box = box_of(mail, mail->rank, part->peer);
    const size_t bytes = part->bytes < BOX_BYTES ? part->bytes : BOX_BYTES;

    if (atomic_load(&box->full) != 0)
        return false;
    memcpy(box->data, part->at, bytes);
    box->bytes = (uint32_t)bytes;
    box->call = call ^ part->tag;
    atomic_store(&box->full, 1);
    part->at += bytes;
    part->bytes -= bytes;
    bell_ring(mail, part->peer);
    return true;
}

static bool part_receive(fake_mail_t *mail, uint64_t call, fake_part_t *part)
{
    box_t *box = box_of(mail, part->peer, mail->rank);

    call ^= part->tag;
    if (atomic_load(&box->full) == 0)
        return false;
    if (box->call != call || box->bytes > part->bytes) {
        fprintf(stderr,
                "fake_nccl: rank %d receives for call %016llx what rank %d "
                "sends for call %016llx: it hangs\n",
                mail->rank, (unsigned long long)call, part->peer,
                (unsigned long long)box->call);
        fake_mail_hang(mail);
        return false;
    }
    memcpy(part->at, box->data, box->bytes);
    part->at += box->bytes;
    part->bytes -= box->bytes;
    atomic_store(&box->full, 0);
    bell_ring(mail, part->peer);
    return true;
}

/* Is an earlier part of the same peer and direction unfinished? */
static bool part_waits(const fake_part_t *parts, int index)
{
    for (int i = 0; i < index; i++)
        if (parts[i].bytes > 0 && parts[i].peer == parts[index].peer &&
            parts[i].send == parts[index].send)
            return true;
    return false;
}

/* Move parts as far as possible. Returns whether a part moved; sets *done if
 * all are done. */
static bool parts_move(fake_mail_t *mail, uint64_t call, fake_part_t *parts,
                       int count, bool *done)
{
    bool moved = false;

    *done = true;
    for (int i = 0; i < count; i++) {
        if (parts[i].bytes == 0)
            continue;
        if (!part_waits(parts, i))
            moved |= parts[i].send ? part_send(mail, call, &parts[i])
                                   : part_receive(mail, call, &parts[i]);
        *done &= parts[i].bytes == 0;
    }
    return moved;
}

bool fake_mail_exchange(fake_mail_t *mail, uint64_t call, fake_part_t *parts,
                        int count)
{
    bool done = false;

    while (!done && !atomic_load(&mail->stop)) {
        const uint32_t seen = bell_look(mail);

        if (!parts_move(mail, call, parts, count, &done) && !done)
            bell_await(mail, seen);
    }
    return done;
}

void fake_mail_hang(fake_mail_t *mail)
{
    while (!atomic_load(&mail->stop))
        bell_await(mail, bell_look(mail));
}

/* ---- the end ------------------------------------------------------------- */

void fake_mail_stop(fake_mail_t *mail)
{
    atomic_store(&mail->stop, true);
    atomic_store(&mail->office->stopped, 1);
    for (int rank = 0; rank < mail->size; rank++)
        bell_ring(mail, rank);
}

bool fake_mail_stopped(const fake_mail_t *mail)
{
    return atomic_load(&mail->office->stopped) != 0;
}

void fake_mail_leave(fake_mail_t *mail)
{
    char path[512];

    if (!fake_mail_complete(mail)) {
        path_write(mail, path, sizeof path);
        unlink(path);
    }
    munmap(mail->office, mail->bytes);
    free(mail);
}
