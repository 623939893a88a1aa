/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Whole run directories, good and bad; under the sanitizers, too. */
#include "report/page.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "report/csv.h"
#include "report/list.h"
#include "report/watch.h"

static void put(const char *dir, const char *name, const char *text)
{
    char *path = str_printf("%s/%s", dir, name);
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file, "%s", path);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    free(path);
}

static const char metrics[] =
    "{\"step\": 1, \"epoch\": 0, \"samples\": 8, \"time\": "
    "\"2031-05-04T10:20:30.125Z\", \"loss\": 2.5, \"step_s\": 0.5}\n"
    "{\"event\": \"</script>\", \"step\": 1, \"rank\": 3, \"host\": 0}\n"
    "{\"event\": \"eval\", \"step\": 1, \"loss\": 2, \"accuracy\": 0.5}\n"
    "no row\n"
    "{\"step\": 2, \"loss\": null, \"</script><b>&\": 3}\n"
    "{\"step\": 3, \"lo";

static const char lives[] =
    "{\"event\": \"begin\", \"time\": \"2031-05-04T10:20:29Z\", \"step\": 0}\n"
    "{\"event\": \"checkpoint\", \"time\": \"2031-05-04T10:20:31Z\", "
    "\"step\": 2}\n"
    "{\"event\": \"end\", \"time\": \"2031-05-04T10:20:32Z\", \"step\": 2, "
    "\"status\": 0, \"detail\": \"</script>\"}\n";

/* A run directory in [home], all of whose texts are hostile. */
static void run_make(const char *home)
{
    put(home, "metrics.jsonl", metrics);
    put(home, "lives.jsonl", lives);
    put(home, "config.yaml",
        "run:\n  name: \"</script><script>alert(1)</script>\"\n");
    put(home, "summary.json", "{\"world_size\": 2, \"x\": \"</script>\"}");
}

/* How often [word] is in [text]. */
static int count_of(const char *text, const char *word)
{
    int count = 0;

    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        count++;
    }
    return count;
}

static void home_make(char *home)
{
    strcpy(home, "report.XXXXXX");
    cr_assert_not_null(mkdtemp(home));
}

Test(page, no_text_ends_a_script)
{
    report_run_t run;
    str_buf_t page = {0};
    err_t err = ERR_INIT;
    char home[32];

    home_make(home);
    run_make(home);
    cr_assert_eq(report_run_read(home, &run, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(report_page(&run, 1, &page, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(count_of(page.text, "</script"), report_plots_built() ? 3 : 2);
    cr_expect_eq(count_of(page.text, "alert(1)"), 2, "text and settings");
    cr_expect_eq(count_of(page.text, "<script>alert"), 0);
    cr_expect_eq(count_of(page.text, "sourceMappingURL"), 0);
    cr_expect_eq(run.curves->rows, 4);
    cr_expect_eq(run.curves->step, 2);
    cr_expect_eq(run.curves->best, 0.5);
    cr_expect_eq(json_array_size(json_object_get(run.about, "notes")), 2,
                 "a bad line, and one that is cut off");
    cr_expect_str_eq(json_string_value(json_object_get(run.about, "state")),
                     "complete");
    str_buf_free(&page);
    report_run_free(&run);
    file_remove_tree(home, NULL);
}

/* Files of another version or in another form: notes, no errors. */
Test(page, strange_files)
{
    report_run_t run;
    err_t err = ERR_INIT;
    char home[32], *below;

    home_make(home);
    put(home, "config.yaml", "run: [");
    put(home, "summary.json", "[1]");
    put(home, "lives.jsonl", "{}\n[]\n{\"event\": \"later\", \"step\": 5}\n");
    below = str_printf("%s/checkpoints", home);
    cr_assert_eq(mkdir(below, 0777), 0);
    free(below);
    below = str_printf("%s/checkpoints/step-0000000005", home);
    cr_assert_eq(mkdir(below, 0777), 0);
    put(below, "MANIFEST.json", "{\"version\": 3, \"versions\": 7}");
    free(below);
    cr_assert_eq(report_run_read(home, &run, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(run.curves->rows, 0);
    cr_expect_geq(json_array_size(json_object_get(run.about, "notes")), 5);
    report_run_free(&run);
    file_remove_tree(home, NULL);
}

Test(page, what_is_no_run)
{
    report_run_t run;
    str_buf_t text = {0};
    err_t err = ERR_INIT;
    char home[32], *path, *dirs[1] = {home};

    home_make(home);
    cr_expect_eq(report_run_read(home, &run, &err), ERR_DATA);
    report_run_free(&run);
    cr_expect_eq(report_run_read("none/such", &run, &err), ERR_DATA);
    report_run_free(&run);
    cr_expect_eq(report_list(dirs, 1, &text, &err), ERR_DATA);
    cr_expect_eq(report_csv(dirs, 1, stdout, &err), ERR_DATA);
    cr_expect_eq(report_watch(home, 1, &err), ERR_DATA);
    /* A FIFO does not block, and links are not followed. */
    path = str_printf("%s/metrics.jsonl", home);
    cr_assert_eq(mkfifo(path, 0666), 0);
    cr_expect_eq(report_run_read(home, &run, &err), ERR_DATA);
    report_run_free(&run);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink("/dev/zero", path), 0);
    cr_expect_eq(report_run_read(home, &run, &err), ERR_DATA);
    report_run_free(&run);
    free(path);
    str_buf_free(&text);
    file_remove_tree(home, NULL);
}

/* A list goes on behind a run that cannot be read. */
Test(page, list)
{
    str_buf_t text = {0};
    err_t err = ERR_INIT;
    char home[32], *good, *bad, *dirs[1] = {home};

    home_make(home);
    good = str_printf("%s/one", home);
    bad = str_printf("%s/bad", home);
    cr_assert(mkdir(good, 0777) == 0 && mkdir(bad, 0777) == 0);
    run_make(good);
    put(bad, "config.yaml", "");
    free(good);
    good = str_printf("%s/lives.jsonl", bad);
    cr_assert_eq(mkfifo(good, 0666), 0);
    cr_assert_eq(report_list(dirs, 1, &text, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(count_of(text.text, "unreadable"), 1, "%s", text.text);
    cr_expect_eq(count_of(text.text, "complete"), 1, "%s", text.text);
    cr_expect_eq(count_of(text.text, "accuracy 0.5"), 1, "%s", text.text);
    str_buf_free(&text);
    free(good);
    free(bad);
    file_remove_tree(home, NULL);
}

/* A run that is complete is shown once. */
Test(page, watch_ends_with_the_run)
{
    err_t err = ERR_INIT;
    char home[32];

    home_make(home);
    run_make(home);
    cr_expect_eq(report_watch(home, 3600, &err), ERR_OK, "%s", err.text);
    file_remove_tree(home, NULL);
}

Test(page, csv)
{
    char home[32], *dirs[1] = {home}, *text = NULL, *path;
    err_t err = ERR_INIT;
    FILE *out;

    home_make(home);
    run_make(home);
    path = str_printf("%s/out.csv", home);
    out = fopen(path, "w");
    cr_assert_not_null(out);
    cr_assert_eq(report_csv(dirs, 1, out, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(fclose(out), 0);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    cr_expect_eq(count_of(text, "\n"), 5, "%s", text);
    cr_expect_eq(count_of(text, "run,step,epoch,samples,time,loss,step_s,event,"
                                "rank,host,accuracy,</script><b>&\n"),
                 1, "%s", text);
    cr_expect_eq(
        count_of(text, ",1,0,8,2031-05-04T10:20:30.125Z,2.5,0.5,,,,,\n"), 1,
        "%s", text);
    free(text);
    free(path);
    file_remove_tree(home, NULL);
}
