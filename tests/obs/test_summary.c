/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/summary.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

static const obs_value_t value = {"top5", 0.75};

static const obs_spent_t spent = {
    .seconds = {[OBS_SPENT_START] = 2, [OBS_SPENT_LOST] = 0.5}};

static const obs_summary_t some = {.status = ERR_REQUEUE,
                                   .step = 100,
                                   .epoch = 5,
                                   .loss = 1.0 / 3,
                                   .accuracy = 0.98,
                                   .bound = NAN,
                                   .values = &value,
                                   .value_count = 1,
                                   .seconds = 12.5,
                                   .first_step_s = 0.25,
                                   .main_to_step_s = 0.125,
                                   .first_step_at = 1.5e9,
                                   .data_share = INFINITY,
                                   .peak_rss_mb = 33.5,
                                   .world_size = 4,
                                   .spent = &spent,
                                   .cpu_efficiency = 0.75,
                                   .memory_limit_mb = 4096.5};

Test(summary, holds_every_number_and_null_for_none)
{
    char directory[] = "/tmp/cddp-summary-XXXXXX";
    err_t err = ERR_INIT;
    json_t *object;
    char *path;

    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(obs_summary_write(directory, &some, &err), ERR_OK, "%s",
                 err.text);
    path = str_printf("%s/summary.json", directory);
    object = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    free(path);
    cr_assert_eq(file_remove_tree(directory, &err), ERR_OK);
    cr_assert_not_null(object);
#define INTEGER(key) json_integer_value(json_object_get(object, key))
#define REAL(key) json_real_value(json_object_get(object, key))
    cr_assert_eq(json_object_size(object), 18);
    cr_assert_eq(json_object_size(json_object_get(object, "metrics")), 1);
    cr_assert_eq(json_real_value(json_object_get(
                     json_object_get(object, "metrics"), "top5")),
                 0.75);
    cr_assert_eq(INTEGER("status"), 75);
    cr_assert_str_eq(json_string_value(json_object_get(object, "status_text")),
                     "checkpointed, requeue me");
    cr_assert_eq(INTEGER("step"), 100);
    cr_assert_eq(INTEGER("epoch"), 5);
    cr_assert_eq(INTEGER("world_size"), 4);
    cr_assert_eq(REAL("loss"), 1.0 / 3);
    cr_assert_eq(REAL("accuracy"), 0.98);
    cr_assert_eq(REAL("seconds"), 12.5);
    cr_assert_eq(REAL("first_step_s"), 0.25);
    cr_assert_eq(REAL("main_to_step_s"), 0.125);
    cr_assert_eq(REAL("first_step_at"), 1.5e9);
    cr_assert_eq(REAL("peak_rss_mb"), 33.5);
    cr_assert_eq(REAL("cpu_efficiency"), 0.75);
    cr_assert_eq(REAL("memory_limit_mb"), 4096.5);
    cr_assert(json_is_null(json_object_get(object, "bound")));
    cr_assert(json_is_null(json_object_get(object, "data_share")));
    {
        const json_t *kinds = json_object_get(object, "spent");

        cr_assert_eq(json_object_size(kinds), OBS_SPENT_KINDS + 1);
        cr_assert_eq(json_real_value(json_object_get(kinds, "wall")), 2.5);
        cr_assert_eq(json_real_value(json_object_get(kinds, "start_up")), 2);
        cr_assert_eq(json_real_value(json_object_get(kinds, "lost")), 0.5);
    }
    json_decref(object);
}

Test(summary, names_the_path_that_cannot_be_written)
{
    err_t err = ERR_INIT;

    cr_assert_eq(obs_summary_write("/nowhere", &some, &err), ERR_IO);
    cr_assert_not_null(strstr(err.text, "/nowhere/summary.json"));
    cr_assert_not_null(strstr(err.text, "No such file or directory"));
}
