/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Memory that all ranks of a node map. A rank makes a memfd, which no name in
 * /dev/shm outlives, and the others open it through /proc, as they did when
 * they verified that it is on this node; a nonce behind the data tells that it
 * is the right one. Its pages are allocated before it is mapped: too little
 * memory is an error then, not a signal on the first touch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/ucx_group.h"
#include "comm/ucx_node.h"

typedef struct shm_ticket {
    int64_t pid, fd; /* fd -1: it could not be made */
    uint64_t nonce;
} shm_ticket_t;

static size_t segment_bytes(size_t bytes)
{
    return mem_round(bytes) + MEM_ALIGN; /* the nonce */
}

static void *segment_map(int fd, size_t bytes)
{
    void *map = mmap(NULL, segment_bytes(bytes), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_POPULATE, fd, 0);

    return map == MAP_FAILED ? NULL : map;
}

static void *segment_nonce(void *map, size_t bytes)
{
    return (char *)map + mem_round(bytes);
}

/* The kernel would first take all there is and then start killing. */
static bool memory_has(size_t bytes)
{
    return bytes / (size_t)sysconf(_SC_PAGESIZE) <
           (size_t)sysconf(_SC_PHYS_PAGES);
}

static err_code_t segment_new(size_t bytes, shm_ticket_t *ticket, void **map,
                              err_t *err)
{
    off_t whole = (off_t)segment_bytes(bytes);
    int fd = memfd_create("cddp-arena", MFD_CLOEXEC);
    int failure = fd < 0              ? errno
                  : memory_has(bytes) ? posix_fallocate(fd, 0, whole)
                                      : ENOMEM;

    if (failure == 0) {
        *map = segment_map(fd, bytes);
        failure = *map == NULL ? errno : 0;
    }
    if (failure == 0 && getrandom(&ticket->nonce, sizeof ticket->nonce, 0) !=
                            (ssize_t)sizeof ticket->nonce)
        failure = EIO;
    if (failure == 0) {
        memcpy(segment_nonce(*map, bytes), &ticket->nonce,
               sizeof ticket->nonce);
        ticket->fd = fd;
        return ERR_OK;
    }
    ucx_shm_unmap(map, 1, bytes);
    if (fd >= 0)
        close(fd);
    return err_set(err, ERR_MEMORY,
                   "cannot get %zu bytes of memory that the ranks of this node "
                   "share: %s (ask for more memory per node, or start fewer "
                   "ranks on it)",
                   bytes, strerror(failure));
}

static bool segment_find(const shm_ticket_t *ticket, size_t bytes, void **map)
{
    struct stat status;
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)ticket->pid,
             (long long)ticket->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 &&
        status.st_size == (off_t)segment_bytes(bytes))
        *map = segment_map(fd, bytes);
    close(fd);
    return *map != NULL && memcmp(segment_nonce(*map, bytes), &ticket->nonce,
                                  sizeof ticket->nonce) == 0;
}

void ucx_shm_unmap(void **maps, int count, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        if (maps[i] != NULL)
            munmap(maps[i], segment_bytes(bytes));
        maps[i] = NULL;
    }
}

err_code_t ucx_shm_agree(ucx_group_t *group, bool well, char *votes, err_t *err)
{
    char mine = (char)well;
    err_code_t code = comm_allgather(&group->base, &mine, 1, votes, err);

    for (int rank = 0; code == ERR_OK && rank < group->base.size; rank++)
        if (!votes[rank])
            code = err_set(err, ERR_UNAVAILABLE,
                           "rank %d on %s cannot map memory of the other ranks "
                           "on its node (it opens /proc/PID/fd)",
                           comm_rank_name(&group->base, rank),
                           group->base.hellos[rank].host);
    return code;
}

/* Has every rank that was to make memory made it? */
static err_code_t tickets_check(const ucx_group_t *group,
                                const shm_ticket_t *tickets, size_t bytes,
                                bool all, err_t *err)
{
    const ucx_place_t *place = &group->place;

    for (int node = 0; node < place->nodes; node++)
        for (int i = 0; i < (all ? ucx_place_count(place, node) : 1); i++) {
            int rank = ucx_place_rank(place, node, i);

            if (tickets[rank].fd < 0)
                return err_set(
                    err, ERR_MEMORY,
                    "rank %d on %s cannot get %zu bytes of memory that "
                    "the ranks of its node share",
                    comm_rank_name(&group->base, rank),
                    group->base.hellos[rank].host, bytes);
        }
    return ERR_OK;
}

static bool tickets_map(const ucx_group_t *group, const shm_ticket_t *tickets,
                        size_t bytes, int count, void **maps)
{
    const ucx_place_t *place = &group->place;
    bool well = true;

    for (int i = 0; i < count; i++) {
        int rank = ucx_place_rank(place, place->here, i);

        if (maps[i] == NULL)
            well &= segment_find(&tickets[rank], bytes, &maps[i]);
    }
    return well;
}

err_code_t ucx_shm_share(ucx_group_t *group, size_t bytes, bool all,
                         void **maps, err_t *err)
{
    size_t size = (size_t)group->base.size;
    int local = group->place.local, count = all ? group->place.count : 1;
    shm_ticket_t mine = {.pid = getpid(), .fd = -1};
    void *tickets = NULL;
    err_t reason = ERR_INIT;
    bool well = false;
    err_code_t made = ERR_OK;
    err_code_t code =
        mem_alloc(size * sizeof mine, "comm tickets", &tickets, err);

    if (code != ERR_OK)
        return code;
    if (local < count)
        made = segment_new(bytes, &mine, &maps[local], &reason);
    code = comm_allgather(&group->base, &mine, sizeof mine, tickets, err);
    if (code == ERR_OK)
        code = tickets_check(group, tickets, bytes, all, err);
    if (code == ERR_OK)
        well = tickets_map(group, tickets, bytes, count, maps);
    if (code == ERR_OK) /* the tickets are spent: they hold the votes */
        code = ucx_shm_agree(group, well, tickets, err);
    if (made != ERR_OK) {
        code = made;
        if (err != NULL)
            *err = reason;
    }
    if (mine.fd >= 0)
        close((int)mine.fd);
    if (code != ERR_OK)
        ucx_shm_unmap(maps, count, bytes);
    mem_free(tickets);
    return code;
}

/* ---- arena --------------------------------------------------------------- */

err_code_t ucx_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                          err_t *err)
{
    ucx_group_t *group = (ucx_group_t *)base;
    ucx_node_t *node = &group->node;
    size_t maps = (size_t)group->place.count * sizeof(void *);
    ucx_arena_t *arena;
    void *memory = NULL;
    err_code_t code;

    code = mem_alloc(sizeof *arena + maps, "comm arena", &memory, err);
    if (code != ERR_OK)
        return code;
    arena = memory;
    arena->base.group = base;
    arena->bytes = bytes;
    arena->shared = atomic_load(&node->open) && node->opened < UCX_NODE_ARENAS;
    if (arena->shared) {
        code = ucx_shm_share(group, bytes, true, arena->maps, err);
        arena->base.data = arena->maps[group->place.local];
    } else {
        code = mem_alloc(bytes, "comm arena", &arena->base.data, err);
    }
    if (code != ERR_OK) {
        mem_free(arena);
        return code;
    }
    if (arena->shared) {
        arena->number = node->opened++;
        node->arenas[arena->number] = arena;
    }
    *out = &arena->base;
    return ERR_OK;
}

void ucx_arena_close(comm_arena_t *base)
{
    ucx_arena_t *arena = (ucx_arena_t *)base;
    ucx_group_t *group = (ucx_group_t *)base->group;

    if (arena->shared) {
        group->node.arenas[arena->number] = NULL;
        ucx_shm_unmap(arena->maps, group->place.count, arena->bytes);
    } else {
        mem_free(base->data);
    }
    mem_free(arena);
}
