/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Limits of memory and kills, read from made-up trees of cgroups. */
#include "slurm/step_memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file_tree.h"

TestSuite(step_memory, .init = root_make, .fini = root_remove);

static const char *nothing(const char *name)
{
    (void)name;
    return NULL;
}

/* Cgroups of version 2: the cgroup of the task is below that of the step. */
static void second_make(const char *job_limit, const char *step_limit)
{
    put("proc/self/cgroup", "0::/slurm/job_7/step_0/user/task_1\n");
    put("proc/self/mountinfo",
        "22 1 0:2 / / rw - ext4 /dev/a rw\n"
        "25 22 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
        "rw\n");
    put("sys/fs/cgroup/slurm/job_7/memory.max", job_limit);
    put("sys/fs/cgroup/slurm/job_7/step_0/memory.max", step_limit);
    put("sys/fs/cgroup/slurm/job_7/step_0/memory.events",
        "low 0\nhigh 0\nmax 5\noom 2\noom_kill 2\noom_group_kill 0\n");
    put("sys/fs/cgroup/slurm/job_7/step_0/user/task_1/memory.max", "max\n");
    put("sys/fs/cgroup/slurm/job_7/step_0/user/task_1/memory.events",
        "oom 0\noom_kill 0\n");
}

Test(step_memory, the_smallest_cgroup_above_counts)
{
    slurm_memory_t limit;

    second_make("8388608\n", "4194304\n");
    limit = slurm_memory_limit(nothing, root);
    cr_expect_eq(limit.bytes, 4194304);
    cr_expect_str_eq(limit.source, "the step's cgroup");
    second_make("2097152\n", "max\n");
    cr_expect_eq(slurm_memory_limit(nothing, root).bytes, 2097152);
}

Test(step_memory, kills_are_those_of_the_step_not_of_this_task)
{
    second_make("max\n", "max\n");
    cr_expect_eq(slurm_memory_kills(root), 2);
}

/* Cgroups of version 1, beside an empty tree of version 2, as under systemd. */
static void first_make(const char *path)
{
    char *text =
        str_printf("9:name=systemd:/x\n4:cpu,memory:%s\n0::/y\n", path);

    put("proc/self/cgroup", text);
    put("proc/self/mountinfo",
        "26 25 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "27 25 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup "
        "rw,cpu,memory\n");
    free(text);
}

Test(step_memory, version_1_adds_up_the_tasks)
{
    first_make("/slurm/uid_0/job_3/step_1/task_0");
    put("sys/fs/cgroup/memory/slurm/uid_0/job_3/step_1/memory.limit_in_bytes",
        "1048576\n");
    put("sys/fs/cgroup/memory/slurm/uid_0/job_3/memory.limit_in_bytes",
        "9223372036854771712\n");
    put("sys/fs/cgroup/memory/slurm/uid_0/job_3/step_1/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    put("sys/fs/cgroup/memory/slurm/uid_0/job_3/step_1/task_1/"
        "memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    cr_expect_eq(slurm_memory_limit(nothing, root).bytes, 1048576);
    cr_expect_eq(slurm_memory_kills(root), 3);
}

/* If Slurm makes no cgroups, only the kills of this process's cgroup count:
 * cgroups below it belong to others. */
Test(step_memory, a_cgroup_that_is_no_step)
{
    first_make("/mine");
    put("sys/fs/cgroup/memory/mine/memory.oom_control", "oom_kill 4\n");
    put("sys/fs/cgroup/memory/mine/other/memory.oom_control", "oom_kill 8\n");
    cr_expect_eq(slurm_memory_kills(root), 4);
}

/* In a container, the mounted tree begins at the container's own cgroup. */
Test(step_memory, a_tree_that_begins_further_down)
{
    put("proc/self/cgroup", "0::/outer/inner\n");
    put("proc/self/mountinfo",
        "25 22 0:22 /outer /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("sys/fs/cgroup/inner/memory.max", "65536\n");
    cr_expect_eq(slurm_memory_limit(nothing, root).bytes, 65536);
}

static const char *of_slurm(const char *name)
{
    if (strcmp(name, "SLURM_MEM_PER_CPU") == 0)
        return "16";
    if (strcmp(name, "SLURM_CPUS_ON_NODE") == 0)
        return "4";
    return strcmp(name, "SLURM_MEM_PER_NODE") == 0 ? "48" : NULL;
}

static const char *of_cores(const char *name)
{
    return strcmp(name, "SLURM_MEM_PER_NODE") == 0 ? "0" : of_slurm(name);
}

Test(step_memory, slurm_s_variables)
{
    slurm_memory_t limit = slurm_memory_limit(of_slurm, root);

    cr_expect_eq(limit.bytes, (uint64_t)48 << 20);
    cr_expect_str_eq(limit.source, "SLURM_MEM_PER_NODE");
    /* 0 means all memory of the node. */
    limit = slurm_memory_limit(of_cores, root);
    cr_expect_eq(limit.bytes, (uint64_t)64 << 20);
    cr_expect_str_eq(limit.source, "SLURM_MEM_PER_CPU");
}

Test(step_memory, without_any_limit_it_is_the_host)
{
    cr_expect_str_eq(slurm_memory_limit(nothing, root).source, "this host");
    cr_expect_gt(slurm_memory_limit(nothing, root).bytes, 1 << 20);
    cr_expect_eq(slurm_memory_kills(root), -1);
}

/* Files of a damaged system may have such text. */
Test(step_memory, nonsense_is_survived)
{
    static const char *const lines[] = {
        "", ":", "::", "0::", "a:b", "\n\n:", "4::", "0::/../x"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        put("proc/self/cgroup", lines[i]);
        put("proc/self/mountinfo", lines[i]);
        cr_expect_eq(slurm_memory_kills(root), -1);
        put("proc/self/mountinfo", "1 2 3 / /t - cgroup2 x y\n");
        (void)slurm_memory_kills(root);
        cr_expect_str_eq(slurm_memory_limit(nothing, root).source, "this host");
    }
}

Test(step_memory, words)
{
    const slurm_memory_t limit = {.bytes = (uint64_t)4 << 30, .source = "x"};
    char text[128];

    cr_expect_str_eq(
        slurm_memory_words(&limit, 1, text, sizeof text),
        "out of memory: the step's limit is 4.0 GiB (x), oom_kill 1");
}
