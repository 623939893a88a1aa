/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a run prints at its start. */
#include "train/intro.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "lib/facts.h"
#include "train/harness.h"

Test(intro, names_the_cores_of_the_job_that_are_idle)
{
    char why[256] = "";

    cr_assert(train_intro_idle("128(x2),64", 4, 1, why, sizeof why));
    cr_expect_not_null(strstr(why, "4 of the 128 cores"), "%s", why);
    cr_expect_not_null(strstr(why, "4 ranks of 1 core)"), "%s", why);
    cr_expect_not_null(strstr(why, "--cpus-per-task"), "%s", why);
    cr_assert(train_intro_idle("128", 1, 63, why, sizeof why));
    cr_expect_not_null(strstr(why, "1 rank of 63 cores)"), "%s", why);
}

Test(intro, one_of_two_hardware_threads_is_enough)
{
    char why[256];

    cr_expect_not(train_intro_idle("128", 2, 32, why, sizeof why));
    cr_expect_not(train_intro_idle("2(x2)", 2, 1, why, sizeof why));
    cr_expect_not(train_intro_idle(NULL, 1, 1, why, sizeof why));
    cr_expect_not(train_intro_idle("", 1, 1, why, sizeof why));
}

Test(intro, names_an_infiniband_that_is_not_used)
{
    char why[640] = "";

    cr_assert(train_intro_slow("tcp:eth0", "mlx5_0:1", why, sizeof why));
    cr_expect_not_null(strstr(why, "over tcp:eth0"), "%s", why);
    cr_expect_not_null(strstr(why, "(mlx5_0:1)"), "%s", why);
    cr_expect_not_null(strstr(why, "UCX_TLS"), "%s", why);
    cr_expect_not(train_intro_slow("tcp:eth0", "", why, sizeof why));
    cr_expect_not(
        train_intro_slow("rc_mlx5:mlx5_0:1", "mlx5_0:1", why, sizeof why));
    cr_expect_not(train_intro_slow(NULL, "mlx5_0:1", why, sizeof why));
}

/* What [ranks] ranks print if they read the chunks [h5] (see harness.h) and
 * have the setting [more] (NULL: none). free() it. */
static char *listen(bool h5, int ranks, const char *more)
{
    char path[] = "/tmp/cddp-intro-XXXXXX";
    const int old = dup(STDOUT_FILENO), catcher = mkstemp(path);
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    char *text;

    harness_open(&harness, 48);
    harness_chunks_add(&harness, "/c", 16, h5);
    harness.settings[0] = "train.epochs=1";
    harness.settings[1] = "data.input={path: /c}";
    harness.settings[2] = "data.shuffle=chunk";
    harness.settings[3] = more;
    fflush(stdout);
    dup2(catcher, STDOUT_FILENO);
    harness_run_ok(&harness, ranks, &out);
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    close(old);
    close(catcher);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    unlink(path);
    harness_close(&harness);
    return text;
}

Test(intro, says_how_each_field_is_read_and_why)
{
    char *ours = listen(false, 2, NULL), *h5 = listen(true, 1, NULL);

    FACTS(ours, "  train input /c: chunks\n", "  train target /y: pread\n",
          "  valid input /c: chunks\n", "  valid target /y: pread\n");
    FACTS(h5, "  train input /c: H5Dread, as only HDF5 undoes its filters\n",
          "  valid input /c: H5Dread, as only HDF5 undoes its filters\n");
    free(h5);
    free(ours);
}

Test(intro, says_what_is_done_to_the_samples)
{
    char *text = listen(false, 2, "data.input={path: /c, mean: 0.5, std: [2]}");

    FACTS(text, "  train input /c: chunks; the model gets (x - mean) / std, ",
          "  train target /y: pread\n");
    free(text);
}

/* Without lanes it is not known which chunks are in use together. */
Test(intro, says_what_the_chunks_in_use_need)
{
    const char *const line = "  train chunks in use at a time: ";
    char *enough = listen(false, 2, NULL);
    char *little = listen(false, 1, "data.memory=1");
    char *none = listen(false, 1, "data.lanes=0");

    FACTS(enough, line, " per rank (data.lanes); data.memory holds ");
    FACTS(little, line, ", but data.memory holds only ", "lower data.lanes");
    cr_expect_null(strstr(none, line), "%s", none);
    cr_expect_null(strstr(enough, "valid chunks"), "%s", enough);
    free(none);
    free(little);
    free(enough);
}
