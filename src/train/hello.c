/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/hello.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/thread.h"

/* Identifies where a rank runs. Padding is zeroed, as cards are compared byte
 * by byte. */
typedef struct card {
    char host[64];
    uint64_t mask; /* hash of the affinity mask */
} card_t;

static void card_fill(card_t *card)
{
    cpu_set_t mask;

    memset(card, 0, sizeof *card);
    gethostname(card->host, sizeof card->host - 1);
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    card->mask = hash_bytes(&mask, sizeof mask);
}

/* Set what [hello] tells of the ranks on this host. */
static err_code_t count_sharers(boot_t *boot, train_hello_t *hello, err_t *err)
{
    const int size = boot_size(boot), rank = boot_rank(boot);
    card_t *cards = NULL;
    card_t mine;
    err_code_t rc;

    rc = mem_new(card_t, (size_t)size, "host table", &cards, err);
    if (rc != ERR_OK)
        return rc;
    card_fill(&mine);
    rc = boot_exchange(boot, &mine, sizeof mine, cards, err);
    for (int r = 0; rc == ERR_OK && r < size; r++) {
        if (memcmp(&cards[r], &mine, sizeof mine) == 0)
            hello->sharers++;
        if (r < rank && strcmp(cards[r].host, mine.host) == 0)
            hello->local++;
    }
    mem_free(cards);
    return rc;
}

err_code_t train_hello(boot_t *boot, uint64_t config_hash, uint64_t build_hash,
                       train_hello_t *out, err_t *err)
{
    train_hello_t hello = {.cores = thread_cores()};
    err_code_t rc;

    rc = boot_agree(boot, "cddp build", build_hash, err);
    if (rc == ERR_OK)
        rc = boot_agree(boot, "configuration", config_hash, err);
    if (rc == ERR_OK)
        rc = count_sharers(boot, &hello, err);
    if (rc == ERR_OK)
        *out = hello;
    return rc;
}
