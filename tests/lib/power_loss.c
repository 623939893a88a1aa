/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Files and directories are nodes, known by their inode numbers while the
 * record is made. Node 0 is the directory itself. */
#include "lib/power_loss.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"

#define BLOCK 512
#define NOTHING (-1) /* node of a name that is removed */
#define DEPTH_MAX 8

/* The name [name] in a directory leads to a node. */
typedef struct name {
    char *name;
    int node;
} name_t;

/* Content of a node: the bytes of a file or the names of a directory. */
typedef struct content {
    char *bytes;
    size_t room, size; /* [size] may be less than the bytes that are known */
    name_t *names;
    int count;
} content_t;

typedef struct node {
    bool directory;
    ino_t inode; /* an older node may have had the same number */
    content_t durable;
} node_t;

/* One name of a directory changes. */
typedef struct change {
    int directory, node;
    char *name;
} change_t;

typedef enum kind { DATA, SIZE, SYNC, NAMES } kind_t;

typedef struct op {
    kind_t kind;
    int node;          /* of DATA, SIZE, SYNC */
    size_t at, count;  /* of DATA; SIZE: [at] is the new size */
    char *bytes;       /* of DATA */
    change_t names[2]; /* of NAMES */
    int changes;
} op_t;

struct power_loss {
    node_t *nodes;
    int node_count;
    op_t *ops;
    int op_count;
};

/* ---- content ------------------------------------------------------------- */

static void content_reserve(content_t *content, size_t bytes)
{
    if (bytes <= content->room)
        return;
    content->bytes = realloc(content->bytes, bytes);
    memset(content->bytes + content->room, 0, bytes - content->room);
    content->room = bytes;
}

static void content_put(content_t *content, const char *bytes, size_t at,
                        size_t count)
{
    content_reserve(content, at + count);
    memcpy(content->bytes + at, bytes, count);
}

/* Bytes above a smaller size are gone. */
static void content_resize(content_t *content, size_t size)
{
    if (size < content->room)
        memset(content->bytes + size, 0, content->room - size);
    content_reserve(content, size);
    content->size = size;
}

static void name_set(content_t *content, const char *name, int node)
{
    int i = 0;

    while (i < content->count && strcmp(content->names[i].name, name) != 0)
        i++;
    if (i == content->count && node == NOTHING)
        return;
    if (i == content->count) {
        content->names =
            realloc(content->names, (size_t)(i + 1) * sizeof *content->names);
        content->names[content->count++].name = str_dup(name);
    }
    content->names[i].node = node;
}

static void content_copy(const content_t *from, content_t *to)
{
    *to = (content_t){0};
    if (from->size > 0)
        content_put(to, from->bytes, 0, from->size);
    to->size = from->size;
    for (int i = 0; i < from->count; i++)
        name_set(to, from->names[i].name, from->names[i].node);
}

static void content_free(content_t *content)
{
    for (int i = 0; i < content->count; i++)
        free(content->names[i].name);
    free(content->names);
    free(content->bytes);
}

/* ---- recording ----------------------------------------------------------- */

static int node_add(power_loss_t *power, bool directory, ino_t inode)
{
    power->nodes = realloc(power->nodes, (size_t)(power->node_count + 1) *
                                             sizeof *power->nodes);
    power->nodes[power->node_count] =
        (node_t){.directory = directory, .inode = inode};
    return power->node_count++;
}

static int node_find(const power_loss_t *power, ino_t inode)
{
    int node = power->node_count - 1;

    while (node >= 0 && power->nodes[node].inode != inode)
        node--;
    cr_assert_geq(node, 0, "a file was made by an unknown call");
    return node;
}

static int node_of(const power_loss_t *power, const char *path)
{
    struct stat st;

    cr_assert_eq(lstat(path, &st), 0, "%s", path);
    return node_find(power, st.st_ino);
}

static op_t *op_add(power_loss_t *power, kind_t kind, int node)
{
    op_t *op;

    power->ops =
        realloc(power->ops, (size_t)(power->op_count + 1) * sizeof *power->ops);
    op = &power->ops[power->op_count++];
    *op = (op_t){.kind = kind, .node = node};
    return op;
}

/* The name [path] leads to [node] from now on. */
static void change_add(const power_loss_t *power, op_t *op, const char *path,
                       int node)
{
    char *one = str_dup(path), *other = str_dup(path);

    op->names[op->changes++] =
        (change_t){.directory = node_of(power, dirname(one)),
                   .node = node,
                   .name = str_dup(basename(other))};
    free(other);
    free(one);
}

static void rename_note(power_loss_t *power, const io_tape_call_t *call)
{
    const int moved = node_of(power, call->to);
    op_t *op = op_add(power, NAMES, NOTHING);

    change_add(power, op, call->path,
               (call->flags & RENAME_EXCHANGE) != 0 ? node_of(power, call->path)
                                                    : NOTHING);
    change_add(power, op, call->to, moved);
}

static void open_note(power_loss_t *power, const io_tape_call_t *call)
{
    const bool nameless = (call->flags & O_TMPFILE) == O_TMPFILE;

    if (call->made) {
        const int node = node_add(power, false, call->inode);

        if (!nameless)
            change_add(power, op_add(power, NAMES, NOTHING), call->path, node);
    } else if ((call->flags & O_TRUNC) != 0) {
        op_add(power, SIZE, node_find(power, call->inode))->at = 0;
    }
}

static void write_note(power_loss_t *power, const io_tape_call_t *call)
{
    op_t *op = op_add(power, DATA, node_find(power, call->inode));

    op->at = (size_t)call->offset;
    op->count = call->count;
    op->bytes = malloc(call->count);
    memcpy(op->bytes, call->bytes, call->count);
}

void power_loss_note(void *context, const io_tape_call_t *call)
{
    power_loss_t *power = context;
    int node;

    switch (call->kind) {
    case IO_TAPE_OPEN:
        open_note(power, call);
        break;
    case IO_TAPE_WRITE:
        write_note(power, call);
        break;
    case IO_TAPE_SIZE:
        node = node_find(power, call->inode);
        op_add(power, SIZE, node)->at = (size_t)call->offset;
        break;
    case IO_TAPE_SYNC:
        op_add(power, SYNC, node_find(power, call->inode));
        break;
    case IO_TAPE_RENAME:
        rename_note(power, call);
        break;
    case IO_TAPE_LINK:
        node = node_find(power, call->inode);
        change_add(power, op_add(power, NAMES, NOTHING), call->to, node);
        break;
    case IO_TAPE_UNLINK:
        change_add(power, op_add(power, NAMES, NOTHING), call->path, NOTHING);
        break;
    case IO_TAPE_MKDIR:
        node = node_add(power, true, call->inode);
        change_add(power, op_add(power, NAMES, NOTHING), call->path, node);
        break;
    }
}

int power_loss_count(const power_loss_t *power)
{
    return power->op_count;
}

/* ---- opening ------------------------------------------------------------- */

static void directory_walk(power_loss_t *power, int node, const char *path);

/* Add [path], which has the name [name] in the directory [node]. */
static void entry_walk(power_loss_t *power, int node, const char *name,
                       const char *path)
{
    struct stat st;
    char *text;
    size_t bytes;
    int entry;

    cr_assert_eq(lstat(path, &st), 0);
    entry = node_add(power, S_ISDIR(st.st_mode), st.st_ino);
    name_set(&power->nodes[node].durable, name, entry);
    if (S_ISDIR(st.st_mode)) {
        directory_walk(power, entry, path);
    } else {
        cr_assert_eq(file_read(path, &text, &bytes, NULL), ERR_OK);
        content_put(&power->nodes[entry].durable, text, 0, bytes);
        power->nodes[entry].durable.size = bytes;
        free(text);
    }
}

static void directory_walk(power_loss_t *power, int node, const char *path)
{
    DIR *list = opendir(path);
    struct dirent *next;

    cr_assert_not_null(list, "%s", path);
    while ((next = readdir(list)) != NULL) {
        char *inner = str_printf("%s/%s", path, next->d_name);

        if (strcmp(next->d_name, ".") != 0 && strcmp(next->d_name, "..") != 0)
            entry_walk(power, node, next->d_name, inner);
        free(inner);
    }
    closedir(list);
}

power_loss_t *power_loss_open(const char *root)
{
    power_loss_t *power = calloc(1, sizeof *power);
    struct stat st;

    cr_assert_eq(stat(root, &st), 0);
    directory_walk(power, node_add(power, true, st.st_ino), root);
    return power;
}

static void op_free(op_t *op)
{
    free(op->bytes);
    for (int c = 0; c < op->changes; c++)
        free(op->names[c].name);
}

void power_loss_close(power_loss_t *power)
{
    for (int i = 0; i < power->op_count; i++)
        op_free(&power->ops[i]);
    for (int n = 0; n < power->node_count; n++)
        content_free(&power->nodes[n].durable);
    free(power->ops);
    free(power->nodes);
    free(power);
}

/* ---- a state ------------------------------------------------------------- */

/* Probabilities that a change is there although it was not synced. */
typedef struct odds {
    double names, bytes, sizes;
} odds_t;

typedef struct state {
    const power_loss_t *power;
    content_t *contents; /* of all nodes */
    int *synced; /* number of the last sync of each node, -1: there is none */
    bool *stuck; /* later sizes of the file are missing, too */
    rng_t rng;
    odds_t odds;
} state_t;

static bool happens(state_t *state, double odds)
{
    return rng_uniform(&state->rng) < odds;
}

static void names_apply(state_t *state, int number)
{
    const op_t *op = &state->power->ops[number];
    bool durable = false;

    for (int c = 0; c < op->changes; c++)
        durable |= state->synced[op->names[c].directory] > number;
    if (!durable && !happens(state, state->odds.names))
        return;
    for (int c = 0; c < op->changes; c++)
        name_set(&state->contents[op->names[c].directory], op->names[c].name,
                 op->names[c].node);
}

/* The sizes of a file become durable in their order, up to some point. */
static void size_apply(state_t *state, int number, size_t size)
{
    const int node = state->power->ops[number].node;

    if (state->synced[node] <= number && !state->stuck[node])
        state->stuck[node] = !happens(state, state->odds.sizes);
    if (state->synced[node] > number || !state->stuck[node])
        content_resize(&state->contents[node], size);
}

static void data_apply(state_t *state, int number)
{
    const op_t *op = &state->power->ops[number];
    content_t *content = &state->contents[op->node];
    const size_t end = op->at + op->count;
    const bool durable = state->synced[op->node] > number;

    if (end > content->size)
        size_apply(state, number, end);
    for (size_t at = op->at, next; at < end; at = next) {
        next = (at / BLOCK + 1) * BLOCK < end ? (at / BLOCK + 1) * BLOCK : end;
        if (durable || happens(state, state->odds.bytes))
            content_put(content, op->bytes + (at - op->at), at, next - at);
    }
}

/* Write [node] and all below it to [path]. [inodes], unless NULL, gets the
 * inode numbers of what is written. */
static void node_write(const state_t *state, int node, const char *path,
                       power_loss_t *inodes, int depth)
{
    const content_t *content = &state->contents[node];
    struct stat st;
    int fd;

    cr_assert_lt(depth, DEPTH_MAX);
    if (!state->power->nodes[node].directory) {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        cr_assert(fd >= 0 && file_write_all(fd, content->bytes, content->size));
        close(fd);
    } else if (depth > 0) {
        cr_assert_eq(mkdir(path, 0777), 0, "%s", path);
    }
    cr_assert_eq(stat(path, &st), 0);
    if (inodes != NULL)
        inodes->nodes[node].inode = st.st_ino;
    for (int i = 0; i < content->count; i++) {
        char *inner = str_printf("%s/%s", path, content->names[i].name);

        if (content->names[i].node != NOTHING)
            node_write(state, content->names[i].node, inner, inodes, depth + 1);
        free(inner);
    }
}

static void state_open(state_t *state, const power_loss_t *power)
{
    const size_t count = (size_t)power->node_count;

    state->power = power;
    state->contents = calloc(count, sizeof *state->contents);
    state->synced = calloc(count, sizeof *state->synced);
    state->stuck = calloc(count, sizeof *state->stuck);
    for (int n = 0; n < power->node_count; n++) {
        content_copy(&power->nodes[n].durable, &state->contents[n]);
        state->synced[n] = -1;
    }
}

static void state_apply(state_t *state, int count)
{
    const op_t *ops = state->power->ops;

    for (int i = 0; i < count; i++)
        if (ops[i].kind == SYNC)
            state->synced[ops[i].node] = i;
    for (int i = 0; i < count; i++) {
        if (ops[i].kind == NAMES)
            names_apply(state, i);
        else if (ops[i].kind == DATA)
            data_apply(state, i);
        else if (ops[i].kind == SIZE)
            size_apply(state, i, ops[i].at);
    }
}

static void state_close(state_t *state)
{
    for (int n = 0; n < state->power->node_count; n++)
        content_free(&state->contents[n]);
    free(state->stuck);
    free(state->synced);
    free(state->contents);
}

static double odds_choose(rng_t *rng)
{
    static const double odds[] = {0, 0.1, 0.5, 0.9, 1};

    return odds[rng_below(rng, sizeof odds / sizeof *odds)];
}

void power_loss_store(const power_loss_t *power, int count, uint64_t seed,
                      const char *to)
{
    state_t state;

    state_open(&state, power);
    rng_open(&state.rng, seed, RNG_INIT, 0, 0);
    state.odds.names = odds_choose(&state.rng);
    state.odds.bytes = odds_choose(&state.rng);
    state.odds.sizes = odds_choose(&state.rng);
    state_apply(&state, count);
    node_write(&state, 0, to, NULL, 0);
    state_close(&state);
}

void power_loss_continue(power_loss_t *power, int count, const char *to)
{
    state_t state = {.odds = {1, 1, 1}};

    state_open(&state, power);
    rng_open(&state.rng, 0, RNG_INIT, 0, 0);
    state_apply(&state, count);
    for (int n = 0; n < power->node_count; n++)
        power->nodes[n].inode = 0;
    node_write(&state, 0, to, power, 0);
    state_close(&state);
    for (int i = count; i < power->op_count; i++)
        op_free(&power->ops[i]);
    power->op_count = count;
}
