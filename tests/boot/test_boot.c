/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tests the choice of a boot method by environment (recorded from Slurm 22.05),
 * lists of ranks, and boot without other ranks. test_boot_threads.c tests
 * boot_agree. */
#include <criterion/criterion.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/boot_backend.h"

/* Environment of srun -N2 -n4 --mpi=pmix, rank 3. */
static const char *lookup_pmix(const char *name)
{
    static const char *const table[][2] = {
        {"PMIX_NAMESPACE", "slurm.pmix.2.0"},
        {"PMIX_RANK", "3"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "4"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i][0], name) == 0)
            return table[i][1];
    return NULL;
}

/* Environment of a rank that boot_spawn_run has started inside rank 3 of the
 * step of lookup_pmix. */
static const char *lookup_spawn(const char *name)
{
    return strcmp(name, "CDDP_SPAWN") == 0 ? "1 2 5 4711" : lookup_pmix(name);
}

/* Environment of srun -n2 without --mpi. */
static const char *lookup_no_pmix(const char *name)
{
    if (strcmp(name, "SLURM_STEP_NUM_TASKS") == 0 ||
        strcmp(name, "SLURM_NTASKS") == 0)
        return "2";
    return strcmp(name, "SLURM_STEP_ID") == 0 ? "0" : NULL;
}

/* Environment of srun -n1 without --mpi. */
static const char *lookup_one_task(const char *name)
{
    if (strcmp(name, "SLURM_STEP_NUM_TASKS") == 0 ||
        strcmp(name, "SLURM_NTASKS") == 0)
        return "1";
    return strcmp(name, "SLURM_STEP_ID") == 0 ? "0" : NULL;
}

/* Environment of a batch script of a job with 3 tasks, without srun. */
static const char *lookup_batch(const char *name)
{
    return strcmp(name, "SLURM_NTASKS") == 0 ? "3" : NULL;
}

static const char *lookup_nothing(const char *name)
{
    (void)name;
    return NULL;
}

Test(boot_choose, pmix)
{
    boot_kind_t kind;

    cr_assert_eq(boot_choose(lookup_pmix, &kind, NULL), ERR_OK);
    cr_assert_eq(kind, BOOT_KIND_PMIX);
}

Test(boot_choose, spawn)
{
    boot_kind_t kind;

    cr_assert_eq(boot_choose(lookup_spawn, &kind, NULL), ERR_OK);
    cr_assert_eq(kind, BOOT_KIND_SPAWN);
}

Test(boot_choose, several_tasks_without_pmix)
{
    err_t err = ERR_INIT;
    boot_kind_t kind;

    cr_assert_eq(boot_choose(lookup_no_pmix, &kind, &err), ERR_CONFIG);
    cr_assert_not_null(strstr(err.text, "2 tasks"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "srun --mpi=pmix"), "%s", err.text);
}

Test(boot_choose, solo)
{
    const char *(*const lookups[])(const char *) = {
        lookup_one_task, lookup_batch, lookup_nothing};

    for (size_t i = 0; i < sizeof lookups / sizeof lookups[0]; i++) {
        boot_kind_t kind = BOOT_KIND_PMIX;

        cr_assert_eq(boot_choose(lookups[i], &kind, NULL), ERR_OK);
        cr_assert_eq(kind, BOOT_KIND_SOLO, "lookup %zu", i);
    }
}

static int list(const char *marks, char *out, size_t room)
{
    bool odd[64] = {false};
    int size = (int)strlen(marks);

    for (int i = 0; i < size; i++)
        odd[i] = marks[i] == 'x';
    return boot_rank_list(odd, size, out, room);
}

Test(boot_rank_list, words)
{
    char out[256];

    cr_assert_eq(list("....", out, sizeof out), 0);
    cr_assert_str_eq(out, "");
    cr_assert_eq(list("..x.", out, sizeof out), 1);
    cr_assert_str_eq(out, "rank 2");
    cr_assert_eq(list("x.xx", out, sizeof out), 3);
    cr_assert_str_eq(out, "ranks 0, 2, 3");
    cr_assert_eq(list("xxxxxxxxxxx.", out, sizeof out), 11);
    cr_assert_str_eq(out, "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 3 more");
}

Test(boot_rank_list, small_room_is_safe)
{
    char out[10];

    cr_assert_eq(list("xxxxxxxx", out, sizeof out), 8);
    cr_assert_lt(strlen(out), sizeof out);
}

Test(boot_solo, all)
{
    err_t err = ERR_INIT;
    boot_t *boot;
    int mine = 42, all = 0;

    cr_assert_eq(boot_solo_open(&boot, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(boot_rank(boot), 0);
    cr_assert_eq(boot_size(boot), 1);
    cr_assert_str_eq(boot_name(boot), "solo");
    cr_assert_eq(boot_exchange(boot, &mine, sizeof mine, &all, &err), ERR_OK);
    cr_assert_eq(all, 42);
    cr_assert_eq(boot_agree(boot, "build", 7, &err), ERR_OK);
    boot_close(boot);
    boot_close(NULL);
}
