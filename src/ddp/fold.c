/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/fold.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/comm_fold.h"

typedef enum slot_state {
    SLOT_FREE,
    SLOT_BUSY, /* being computed or added to another slot */
    SLOT_WHOLE /* has the sum of leaves [begin, end) */
} slot_state_t;

typedef struct slot {
    slot_state_t state;
    int64_t begin, end;
} slot_t;

struct ddp_fold {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* signalled when a slot is free or no leaf is left */
    /* Range of this rank's leaves; [next] is the first unclaimed one. */
    int64_t first, next, end;
    int64_t leaves; /* number of leaves of all ranks */
    bool stopped;
    ddp_fold_add_t *add;
    void *context;
    int slot_count;
    slot_t slots[];
};

void ddp_fold_sum(void *to, void *from, size_t count, comm_type_t type)
{
    comm_fold_t pair;

    comm_fold_begin(&pair, 2, count, type);
    comm_fold_push(&pair, 0, 1, to);
    comm_fold_push(&pair, 1, 2, from);
}

int ddp_fold_slots(int64_t first, int64_t held, int64_t leaves, int threads)
{
    int most = 1;

    /* The moment when [n] leaves are added up as far as possible, and the
     * threads compute leaves from [n] on. */
    for (int64_t n = 0; n < held; n++) {
        int64_t left = held - n;
        int slots = comm_tree_views(first, n, leaves) +
                    (left < threads ? (int)left : threads);

        if (slots > most)
            most = slots;
    }
    return most;
}

err_code_t ddp_fold_open(int slots, ddp_fold_add_t *add, void *context,
                         ddp_fold_t **out, err_t *err)
{
    ddp_fold_t *fold = NULL;
    err_code_t rc = mem_new_tail(ddp_fold_t, slots, (size_t)slots,
                                 "the tree of leaves", &fold, err);

    if (rc != ERR_OK)
        return rc;
    pthread_mutex_init(&fold->lock, NULL);
    thread_cond_init(&fold->moved);
    fold->add = add;
    fold->context = context;
    fold->slot_count = slots;
    *out = fold;
    return ERR_OK;
}

void ddp_fold_close(ddp_fold_t *fold)
{
    if (fold == NULL)
        return;
    pthread_cond_destroy(&fold->moved);
    pthread_mutex_destroy(&fold->lock);
    mem_free(fold);
}

void ddp_fold_begin(ddp_fold_t *fold, int64_t first, int64_t held,
                    int64_t leaves)
{
    check(first >= 0 && held >= 0 && first + held <= leaves,
          "%lld leaves from %lld, of %lld", (long long)held, (long long)first,
          (long long)leaves);
    for (int i = 0; CHECK_ON && i < fold->slot_count; i++)
        check(fold->stopped || fold->slots[i].state != SLOT_BUSY,
              "slot %d is still in use", i);
    fold->first = fold->next = first;
    fold->end = first + held;
    fold->leaves = leaves;
    fold->stopped = false;
    for (int i = 0; i < fold->slot_count; i++)
        fold->slots[i].state = SLOT_FREE;
}

/* ---- computing: under the lock ------------------------------------------- */

static int slot_free(const ddp_fold_t *fold)
{
    int i = 0;

    while (i < fold->slot_count && fold->slots[i].state != SLOT_FREE)
        i++;
    return i < fold->slot_count ? i : -1;
}

static bool leaf_left(const ddp_fold_t *fold)
{
    return !fold->stopped && fold->next < fold->end;
}

bool ddp_fold_claim(ddp_fold_t *fold, ddp_leaf_t *out)
{
    bool got;
    int slot;

    pthread_mutex_lock(&fold->lock);
    while ((slot = slot_free(fold)) < 0 && leaf_left(fold))
        pthread_cond_wait(&fold->moved, &fold->lock);
    got = leaf_left(fold);
    if (got) {
        check(slot >= 0 && slot < fold->slot_count, "slot %d of %d", slot,
              fold->slot_count);
        fold->slots[slot].state = SLOT_BUSY;
        *out = (ddp_leaf_t){.number = fold->next++, .slot = slot};
        if (!leaf_left(fold))
            pthread_cond_broadcast(&fold->moved);
    }
    pthread_mutex_unlock(&fold->lock);
    return got;
}

/* Return whether the two slots are the halves of a node of the tree. */
static bool siblings(const ddp_fold_t *fold, const slot_t *left,
                     const slot_t *right)
{
    return left->end == right->begin &&
           comm_tree_view_end(left->begin, right->end, fold->leaves) ==
               right->end;
}

/* Find a complete slot that forms a node of the tree with [mine]. */
static bool pair_find(ddp_fold_t *fold, slot_t *mine, slot_t **left,
                      slot_t **right)
{
    for (int i = 0; i < fold->slot_count; i++) {
        slot_t *other = &fold->slots[i];

        if (other->state != SLOT_WHOLE || other == mine)
            continue;
        *left = other->begin < mine->begin ? other : mine;
        *right = *left == mine ? other : mine;
        if (siblings(fold, *left, *right))
            return true;
    }
    return false;
}

void ddp_fold_stop(ddp_fold_t *fold)
{
    pthread_mutex_lock(&fold->lock);
    fold->stopped = true;
    pthread_cond_broadcast(&fold->moved);
    pthread_mutex_unlock(&fold->lock);
}

err_code_t ddp_fold_done(ddp_fold_t *fold, const ddp_leaf_t *leaf, void *thread,
                         err_t *err)
{
    slot_t *mine = &fold->slots[leaf->slot];
    slot_t *left, *right;
    err_code_t rc = ERR_OK;

    pthread_mutex_lock(&fold->lock);
    check(mine->state == SLOT_BUSY && leaf->number >= fold->first &&
              leaf->number < fold->next,
          "leaf %lld is done, claimed are %lld to %lld; slot state %d",
          (long long)leaf->number, (long long)fold->first,
          (long long)fold->next, (int)mine->state);
    *mine = (slot_t){SLOT_WHOLE, leaf->number, leaf->number + 1};
    while (pair_find(fold, mine, &left, &right)) {
        left->state = right->state = SLOT_BUSY;
        pthread_mutex_unlock(&fold->lock);
        rc = fold->add(fold->context, thread, (int)(left - fold->slots),
                       (int)(right - fold->slots), err);
        pthread_mutex_lock(&fold->lock);
        if (rc != ERR_OK)
            break;
        *left = (slot_t){SLOT_WHOLE, left->begin, right->end};
        right->state = SLOT_FREE;
        pthread_cond_broadcast(&fold->moved);
        mine = left;
    }
    pthread_mutex_unlock(&fold->lock);
    if (rc != ERR_OK)
        ddp_fold_stop(fold);
    return rc;
}

/* ---- after all leaves ---------------------------------------------------- */

/* The complete slot that begins with leaf [begin]; NULL if there is none. */
static const slot_t *slot_at(const ddp_fold_t *fold, int64_t begin)
{
    for (int i = 0; i < fold->slot_count; i++)
        if (fold->slots[i].state == SLOT_WHOLE && fold->slots[i].begin == begin)
            return &fold->slots[i];
    return NULL;
}

int ddp_fold_views(const ddp_fold_t *fold, int *slots)
{
    const slot_t *slot;
    int count = 0;

    for (int64_t at = fold->first; (slot = slot_at(fold, at)) != NULL;
         at = slot->end)
        slots[count++] = (int)(slot - fold->slots);
    check(count <= COMM_VIEWS_MAX, "%d subtrees", count);
    return count;
}
