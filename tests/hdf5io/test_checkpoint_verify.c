/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Storage that has other bytes than it was given: nothing is published, so the
 * checkpoints before stay. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"

#define RANKS 3

typedef struct plan {
    bool disk, together;
    int rank, lies_at; /* which rank's storage lies, about which of its files */
} plan_t;

static void body_write_lying(ckpt_rank_t *rank, void *context)
{
    const plan_t *plan = context;

    rank->config.verify_disk = plan->disk;
    rank->config.keep = 1;
    rank->config.heads = plan->together ? ckpt_heads_together : NULL;
    if (rank->votes.rank == plan->rank)
        rank->io.lies_at = plan->lies_at;
    ckpt_body_write(rank, NULL);
}

/* Write step 20 after step 10. Returns the outcome; *forgotten is the number of
 * files that were read back past the page cache. */
static err_code_t write_lying(const char *home, plan_t *plan, int *forgotten)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, RANKS, 20, body_write_lying, plan);
    const err_code_t code = ranks[0].code;
    char *who = str_printf("rank %d on ", plan->rank);

    *forgotten = 0;
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(ranks[r].code, code);
        *forgotten += ranks[r].io.forgotten;
        if (code == ERR_OK)
            continue;
        cr_assert(strstr(ranks[r].err.text, who), "%s", ranks[r].err.text);
        cr_assert(strstr(ranks[r].err.text, "storage gives back other bytes"),
                  "%s", ranks[r].err.text);
    }
    free(who);
    ckpt_ranks_free(ranks, RANKS);
    return code;
}

/* Rank 0 has three files: its shard, the view and the manifest. */
Test(checkpoint_verify, other_bytes_on_disk_fail_the_save)
{
    static const plan_t plans[] = {{true, false, 0, 1}, {true, false, 0, 2},
                                   {true, false, 0, 3}, {true, false, 1, 1},
                                   {true, false, 2, 1}, {true, true, 0, 1},
                                   {true, true, 2, 1}};

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        plan_t plan = plans[i];
        char *home = ckpt_home_make();
        int forgotten;

        ckpt_write(home, 2, 10);
        cr_assert_eq(write_lying(home, &plan, &forgotten), ERR_IO, "plan %zu",
                     i);
        cr_expect_eq(ckpt_count(home, ""), 1);
        ckpt_expect(home, 2, 10);
        ckpt_home_remove(home);
    }
}

Test(checkpoint_verify, each_file_is_read_back_from_disk)
{
    plan_t plan = {.disk = true};
    char *home = ckpt_home_make();
    int forgotten;

    ckpt_write(home, 2, 10);
    cr_assert_eq(write_lying(home, &plan, &forgotten), ERR_OK);
    cr_expect_eq(forgotten, RANKS + 2);
    cr_expect_eq(ckpt_count(home, ""), 1, "keep is 1");
    ckpt_expect(home, 2, 20);
    ckpt_home_remove(home);
}

/* The default. */
Test(checkpoint_verify, the_cache_is_believed)
{
    plan_t plan = {.lies_at = 1};
    char *home = ckpt_home_make();
    int forgotten;

    cr_assert_eq(write_lying(home, &plan, &forgotten), ERR_OK);
    cr_expect_eq(forgotten, 0);
    ckpt_expect(home, 2, 20);
    ckpt_home_remove(home);
}

/* The pages of a file that are in memory. */
static int resident(int fd, size_t pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *map = mmap(NULL, pages * page, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char *in = calloc(pages, 1);
    int count = 0;

    cr_assert_neq(map, MAP_FAILED);
    cr_assert_not_null(in);
    cr_assert_eq(mincore(map, pages * page, in), 0);
    for (size_t i = 0; i < pages; i++)
        count += in[i] & 1;
    free(in);
    munmap(map, pages * page);
    return count;
}

/* What the system's call does, where the directory of the test is on a disk. */
Test(checkpoint_verify, pages_are_dropped)
{
    enum { PAGES = 64 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *home = ckpt_home_make(), *path = str_printf("%s/file", home);
    char *bytes = calloc(PAGES, page);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    struct statfs fs;

    cr_assert(fd >= 0 && bytes != NULL);
    cr_assert_eq(write(fd, bytes, PAGES * page), (ssize_t)(PAGES * page));
    cr_assert_eq(fsync(fd), 0);
    cr_assert_eq(fstatfs(fd, &fs), 0);
    cr_expect_eq(resident(fd, PAGES), PAGES);
    hdf5io_io_system.forget(NULL, fd);
    if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
        printf("pages_are_dropped: not on a file system in memory\n");
    else
        cr_expect_lt(resident(fd, PAGES), PAGES);
    close(fd);
    free(bytes);
    free(path);
    ckpt_home_remove(home);
}
