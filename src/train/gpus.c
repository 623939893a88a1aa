/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

/* What a rank tells the others about its GPU. The struct is sent as bytes, with
 * its padding. */
typedef struct card {
    char name[sizeof((train_device_t *)NULL)->name];
    char uuid[sizeof((dev_info_t *)NULL)->uuid];
    char software[128]; /* versions of driver and libraries */
    char visible[64];   /* CUDA_VISIBLE_DEVICES */
    int32_t count;      /* number of GPUs that the rank sees */
} card_t;

/* What all ranks have told. */
typedef struct deck {
    comm_group_t *group;
    card_t *cards;
    int size;
} deck_t;

static void card_fill(card_t *card, const train_device_t *device)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    memset(card, 0, sizeof *card);
    snprintf(card->name, sizeof card->name, "%s", device->name);
    snprintf(card->uuid, sizeof card->uuid, "%s", device->info.uuid);
    if (device->info.driver[0] != '\0')
        snprintf(card->software, sizeof card->software, "driver %s, %s",
                 device->info.driver, device->info.libraries);
    if (visible != NULL)
        snprintf(card->visible, sizeof card->visible,
                 "CUDA_VISIBLE_DEVICES is \"%.30s\"", visible);
    else
        snprintf(card->visible, sizeof card->visible,
                 "CUDA_VISIBLE_DEVICES is not set");
    card->count = device->visible;
}

static bool same_host(const deck_t *deck, int a, int b)
{
    return strcmp(comm_group_host(deck->group, a),
                  comm_group_host(deck->group, b)) == 0;
}

/* ---- a GPU for each rank ------------------------------------------------- */

/* Set *a and *b to the first two ranks on one GPU; false: there are none. */
static bool sharers_find(const deck_t *deck, int *a, int *b)
{
    for (*b = 1; *b < deck->size; ++*b)
        for (*a = 0; *a < *b; ++*a)
            if (deck->cards[*a].uuid[0] != '\0' &&
                strcmp(deck->cards[*a].uuid, deck->cards[*b].uuid) == 0 &&
                same_host(deck, *a, *b))
                return true;
    return false;
}

static err_code_t sharing_check(const deck_t *deck, bool allowed, err_t *err)
{
    int a, b;

    if (!sharers_find(deck, &a, &b))
        return ERR_OK;
    if (!allowed)
        return err_set(
            err, ERR_CONFIG,
            "ranks %d and %d on %s compute on one GPU, %s; rank %d sees %d, as "
            "%s: start one rank for each GPU (srun --gpus-per-node=N "
            "--gpu-bind=none with N tasks on a node), or set train.share_gpu "
            "to true",
            a, b, comm_group_host(deck->group, b), deck->cards[b].uuid, b,
            (int)deck->cards[b].count, deck->cards[b].visible);
    if (comm_group_rank(deck->group) == 0)
        log_warn(
            "train",
            "ranks %d and %d on %s share a GPU, as train.share_gpu allows: "
            "they take turns on it, so this is for tests only",
            a, b, comm_group_host(deck->group, b));
    return ERR_OK;
}

/* Say once that the GPUs of a node cannot see each other. That is so if two
 * ranks of one host see one GPU each, and not the same GPU. */
static void neighbours_note(const deck_t *deck)
{
    for (int b = 1; b < deck->size; b++)
        for (int a = 0; a < b; a++)
            if (deck->cards[a].count == 1 && deck->cards[b].count == 1 &&
                same_host(deck, a, b) &&
                strcmp(deck->cards[a].uuid, deck->cards[b].uuid) != 0) {
                log_warn("train",
                         "each rank on %s sees its own GPU only, as with srun "
                         "--gpus-per-task, so that these GPUs cannot send to "
                         "each other directly: use --gpus-per-node=N "
                         "--gpu-bind=none",
                         comm_group_host(deck->group, a));
                return;
            }
}

/* ---- equal models and software ------------------------------------------- */

static err_code_t models_compare(const deck_t *deck, bool reproducible,
                                 err_t *err)
{
    const card_t *cards = deck->cards;
    int r = 1;

    while (r < deck->size && strcmp(cards[r].name, cards[0].name) == 0)
        r++;
    if (r >= deck->size)
        return ERR_OK;
    if (reproducible)
        return err_set(err, ERR_CONFIG,
                       "train.reproducible is true, but rank 0 computes on %s "
                       "and rank %d, on %s, on %s, which give other bits: use "
                       "nodes of one kind, or leave it false",
                       cards[0].name, r, comm_group_host(deck->group, r),
                       cards[r].name);
    if (comm_group_rank(deck->group) == 0)
        log_warn("train",
                 "rank 0 computes on %s and rank %d, on %s, on %s: the slowest "
                 "sets the pace of all",
                 cards[0].name, r, comm_group_host(deck->group, r),
                 cards[r].name);
    return ERR_OK;
}

static err_code_t software_compare(const deck_t *deck, err_t *err)
{
    const card_t *cards = deck->cards;

    for (int r = 1; r < deck->size; r++)
        if (strcmp(cards[r].software, cards[0].software) != 0)
            return err_set(err, ERR_CONFIG,
                           "train.reproducible is true, but rank 0 has %s and "
                           "rank %d, on %s, has %s, which can give other bits: "
                           "use nodes of one kind, or leave it false",
                           cards[0].software, r,
                           comm_group_host(deck->group, r), cards[r].software);
    return ERR_OK;
}

err_code_t train_gpus_compare(const train_config_t *config, comm_group_t *group,
                              const train_device_t *device, err_t *err)
{
    deck_t deck = {.group = group, .size = comm_group_size(group)};
    card_t mine;
    err_code_t rc = mem_new(card_t, (size_t)deck.size, "GPUs of the ranks",
                            &deck.cards, err);

    if (rc != ERR_OK)
        return rc;
    card_fill(&mine, device);
    rc = comm_allgather(group, &mine, sizeof mine, deck.cards, err);
    if (rc == ERR_OK)
        rc = sharing_check(&deck, config->train.share_gpu, err);
    if (rc == ERR_OK)
        rc = models_compare(&deck, config->train.reproducible, err);
    if (rc == ERR_OK && config->train.reproducible)
        rc = software_compare(&deck, err);
    if (rc == ERR_OK && comm_group_rank(group) == 0)
        neighbours_note(&deck);
    mem_free(deck.cards);
    return rc;
}
