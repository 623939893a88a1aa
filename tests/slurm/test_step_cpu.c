/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What kept threads from running, read from made-up files, and from those of
 * this process. */
#include "slurm/step_cpu.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file_tree.h"

TestSuite(step_cpu, .init = root_make, .fini = root_remove);

Test(step_cpu, without_files_nothing_is_known)
{
    cr_expect_eq(slurm_cpu_throttled(root), 0);
    cr_expect_eq(slurm_cpu_delay(root, false), 0);
    cr_expect_eq(slurm_cpu_delay(root, true), 0);
    cr_expect_eq(slurm_cpu_hertz(root), 0);
}

Test(step_cpu, every_cgroup_above_throttles_in_version_2)
{
    put("proc/self/cgroup", "0::/job_7/step_0\n");
    put("proc/self/mountinfo",
        "25 22 0:22 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
    put("sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
    put("sys/fs/cgroup/job_7/cpu.stat",
        "usage_usec 900\nnr_periods 4\nnr_throttled 2\n"
        "throttled_usec 250000\nnr_bursts 0\n");
    put("sys/fs/cgroup/job_7/step_0/cpu.stat",
        "nr_throttled 1\nthrottled_usec 1000000\n");
    cr_expect_float_eq(slurm_cpu_throttled(root), 1.25, 1e-9);
}

Test(step_cpu, version_1_counts_nanoseconds)
{
    put("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/job_7\n0::/x\n");
    put("proc/self/mountinfo",
        "26 25 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "27 25 0:24 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    put("sys/fs/cgroup/cpu/job_7/cpu.stat",
        "nr_periods 4\nnr_throttled 2\nthrottled_time 1500000000\n");
    cr_expect_float_eq(slurm_cpu_throttled(root), 1.5, 1e-9);
}

Test(step_cpu, delays_are_of_one_thread_or_of_all)
{
    put("proc/thread-self/schedstat", "100 2000000000 7\n");
    put("proc/self/task/10/schedstat", "100 2000000000 7\n");
    put("proc/self/task/11/schedstat", "100 500000000 7\n");
    cr_expect_float_eq(slurm_cpu_delay(root, false), 2.0, 1e-9);
    cr_expect_float_eq(slurm_cpu_delay(root, true), 2.5, 1e-9);
}

/* Every core has the file, as this thread may be moved meanwhile. */
Test(step_cpu, frequencies_are_in_hertz)
{
    char path[128];

    for (int core = 0; core < CPU_SETSIZE; core++) {
        snprintf(path, sizeof path,
                 "sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", core);
        put(path, "2400000\n");
    }
    cr_expect_eq(slurm_cpu_hertz(root), 2.4e9);
}

Test(step_cpu, this_process_does_not_wait_less_with_time)
{
    const double before = slurm_cpu_delay("", true);

    cr_expect_geq(before, 0);
    cr_expect_geq(slurm_cpu_delay("", true), before);
    cr_expect_geq(slurm_cpu_throttled(""), 0);
}
