/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Node sets: any number of ranks reads a set, also after a node is lost.
 * Damaged files are never used. If the disk is full, the older set stays. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "nodesets.h"

static nodesets_t open_sets(int ranks, int per_node, bool copies)
{
    char *root = ckpt_home_make();

    return (nodesets_t){
        .root = root, .ranks = ranks, .per_node = per_node, .copies = copies};
}

static void close_sets(const nodesets_t *sets)
{
    ckpt_home_remove((char *)sets->root);
}

static int nodes_of(const nodesets_t *sets)
{
    return (sets->ranks + sets->per_node - 1) / sets->per_node;
}

/* ---- whole sets ---------------------------------------------------------- */

Test(nodeset, ranks_read_what_they_wrote)
{
    for (int ranks = 1; ranks <= 5; ranks++)
        for (int per_node = 1; per_node <= 2; per_node++) {
            nodesets_t sets = open_sets(ranks, per_node, false);

            cr_expect_eq(nodesets_read(&sets), -1);
            nodesets_save_ok(&sets, 10);
            cr_expect_eq(nodesets_read(&sets), 10);
            nodesets_save_ok(&sets, 20);
            cr_expect_eq(nodesets_read(&sets), 20);
            sets.least = 21;
            cr_expect_eq(nodesets_read(&sets), -1, "an older one is read");
            close_sets(&sets);
        }
}

/* A run with other numbers of ranks and nodes reads the set, if its nodes have
 * all parts. */
Test(nodeset, other_numbers_of_ranks_read_it)
{
    nodesets_t sets = open_sets(6, 3, false);

    nodesets_save_ok(&sets, 10);
    for (int per_node = 1; per_node <= 4; per_node++) {
        sets.per_node = per_node;
        sets.ranks = 2 * per_node;
        cr_expect_eq(nodesets_read(&sets), 10, "%d ranks a node", per_node);
    }
    sets.ranks = sets.per_node = 2; /* of the first node only */
    cr_expect_eq(nodesets_read(&sets), -1);
    close_sets(&sets);
}

/* A node never has more than two sets. */
Test(nodeset, a_save_deletes_all_but_the_set_before)
{
    nodesets_t sets = open_sets(4, 2, true);
    char *home = str_printf("%s/node-1", sets.root);

    for (int64_t step = 1; step <= 5; step++) {
        nodesets_save_ok(&sets, step);
        cr_expect_leq(ckpt_count(home, "step-"), 2);
        cr_expect_eq(ckpt_count(home, ".tmp"), 0);
    }
    hdf5io_nodeset_clean(home, 0);
    cr_expect_eq(ckpt_count(home, ""), 0);
    free(home);
    close_sets(&sets);
}

/* ---- lost nodes ---------------------------------------------------------- */

/* Two or three nodes, with equal or different numbers of ranks: if one node is
 * lost, the other nodes have all parts. */
Test(nodeset, a_copy_replaces_a_lost_node)
{
    static const int shapes[][2] = {{2, 1}, {4, 2}, {3, 2}, {3, 1},
                                    {5, 2}, {6, 2}, {6, 4}};

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int copies = 0; copies < 2; copies++) {
            nodesets_t sets =
                open_sets(shapes[i][0], shapes[i][1], copies == 1);

            for (int node = 0; node < nodes_of(&sets); node++) {
                nodesets_save_ok(&sets, 10 + node);
                nodesets_lose(&sets, node);
                cr_expect_eq(nodesets_read(&sets), copies ? 10 + node : -1,
                             "%d ranks, %d a node, without node %d", sets.ranks,
                             sets.per_node, node);
                sets.keep = 0;
            }
            close_sets(&sets);
        }
}

/* The teller is a rank whose node has the manifest. */
Test(nodeset, a_rank_tells_whose_node_has_the_set)
{
    nodesets_t sets = open_sets(4, 2, true);

    nodesets_save_ok(&sets, 10);
    nodesets_read(&sets);
    cr_expect_eq(sets.found.teller, 0);
    nodesets_lose(&sets, 0);
    cr_expect_eq(nodesets_read(&sets), 10);
    cr_expect_eq(sets.found.teller, 2);
    cr_expect_eq(sets.found.nonce, sets.keep);
    close_sets(&sets);
}

/* ---- damage -------------------------------------------------------------- */

/* Change one byte of [file]; a second call undoes that. */
static void flip(const nodesets_t *sets, int node, int64_t step,
                 const char *file)
{
    char *path = nodesets_path(sets, node, step, file), *bytes;
    size_t count;

    cr_assert_eq(file_read(path, &bytes, &count, NULL), ERR_OK);
    bytes[count / 2] ^= 4;
    cr_assert_eq(file_publish(path, bytes, count, NULL), ERR_OK);
    free(bytes);
    free(path);
}

Test(nodeset, damaged_files_are_never_used)
{
    static const char *const files[] = {"rank-0.f32", "rank-1.f32",
                                        "MANIFEST.json"};
    nodesets_t sets = open_sets(2, 1, true);

    nodesets_save_ok(&sets, 10);
    nodesets_save_ok(&sets, 20);
    for (int f = 0; f < 3; f++)
        for (int node = 0; node < 2; node++) {
            flip(&sets, node, 20, files[f]);
            cr_expect_eq(nodesets_read(&sets), 20, "%s of node %d", files[f],
                         node);
            flip(&sets, 1 - node, 20, files[f]);
            cr_expect_eq(nodesets_read(&sets), 10, "%s of both", files[f]);
            flip(&sets, 0, 10, files[f]);
            flip(&sets, 1, 10, files[f]);
            cr_expect_eq(nodesets_read(&sets), -1, "%s of all", files[f]);
            flip(&sets, 0, 10, files[f]);
            flip(&sets, 1, 10, files[f]);
            flip(&sets, 0, 20, files[f]);
            flip(&sets, 1, 20, files[f]);
            cr_expect_eq(nodesets_read(&sets), 20);
        }
    close_sets(&sets);
}

Test(nodeset, parts_that_are_short_or_missing_are_not_used)
{
    nodesets_t sets = open_sets(2, 1, false);
    char *path;

    nodesets_save_ok(&sets, 10);
    nodesets_save_ok(&sets, 20);
    path = nodesets_path(&sets, 1, 20, "rank-1.f32");
    cr_assert_eq(truncate(path, 100), 0);
    cr_expect_eq(nodesets_read(&sets), 10);
    cr_assert_eq(unlink(path), 0);
    cr_expect_eq(nodesets_read(&sets), 10);
    free(path);
    close_sets(&sets);
}

/* Another user could have made the link. */
Test(nodeset, a_home_that_is_a_link_is_not_trusted)
{
    nodesets_t sets = open_sets(1, 1, false);
    char *home = str_printf("%s/node-0", sets.root);
    char *other = str_printf("%s/other", sets.root);

    nodesets_save_ok(&sets, 10);
    cr_assert_eq(rename(home, other), 0);
    cr_assert_eq(symlink(other, home), 0);
    cr_expect_eq(nodesets_read(&sets), -1);
    cr_expect_eq(nodesets_save(&sets, 20), ERR_IO);
    cr_assert_eq(unlink(home), 0);
    free(other);
    free(home);
    close_sets(&sets);
}

Test(nodeset, a_set_of_another_model_is_refused)
{
    nodesets_t sets = open_sets(2, 1, true);

    nodesets_save_ok(&sets, 10);
    sets.strict = true;
    cr_expect_eq(nodesets_read(&sets), -(int64_t)ERR_CONFIG);
    close_sets(&sets);
}

/* ---- a full disk --------------------------------------------------------- */

/* One call of rank 0 fails: all ranks know it, the new files are deleted, and
 * the older set is read. */
Test(nodeset, a_save_that_fails_leaves_the_set_before)
{
    nodesets_t sets = open_sets(4, 2, true);
    char *home = str_printf("%s/node-0", sets.root);
    int calls;

    nodesets_save_ok(&sets, 10);
    nodesets_save_ok(&sets, 15);
    calls = sets.calls;
    cr_assert_gt(calls, 2);
    for (sets.fail_at = 1; sets.fail_at <= calls; sets.fail_at++) {
        sets.error = ENOSPC;
        cr_expect_eq(nodesets_save(&sets, 20), ERR_IO, "call %d", sets.fail_at);
        cr_expect_not_null(strstr(sets.err.text, "No space left"), "%s",
                           sets.err.text);
        cr_expect_eq(ckpt_count(home, ""), 1);
        cr_expect_eq(ckpt_count(home, "step-0000000015"), 1);
    }
    sets.fail_at = 0;
    cr_expect_eq(nodesets_read(&sets), 15);
    nodesets_save_ok(&sets, 20);
    cr_expect_eq(nodesets_read(&sets), 20);
    free(home);
    close_sets(&sets);
}

/* ---- names --------------------------------------------------------------- */

Test(nodeset, only_names_of_sets_are_read)
{
    static const char *const wrong[] = {"step-0000000010",
                                        "step-10-00000000000000aa",
                                        ".tmp-step-0000000010-00000000000000aa",
                                        "step-0000000010-00000000000000AA",
                                        "step-0000000010-00000000000000aa.old"};
    hdf5io_nodeset_name_t name;
    char text[HDF5IO_NODESET_NAME];

    cr_assert(hdf5io_nodeset_parse("step-0000000010-00000000000000aa", &name));
    cr_expect(name.step == 10 && name.nonce == 0xaa);
    hdf5io_nodeset_print(name, text);
    cr_expect_str_eq(text, "step-0000000010-00000000000000aa");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(hdf5io_nodeset_parse(wrong[i], &name), "%s", wrong[i]);
}
