/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-report: shows runs, as an HTML file, a table, a plot or CSV. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cmd/output.h"
#include "cmd/report_args.h"
#include "report/csv.h"
#include "report/list.h"
#include "report/page.h"
#include "report/watch.h"

#define PAGE_USUAL "report.html"
#define WATCH_USUAL 5 /* seconds */

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Write the page to a file, which appears complete or not at all, or to
 * standard output. */
static err_code_t page_write(const char *path, const str_buf_t *page,
                             err_t *err)
{
    err_code_t rc = ERR_OK;

    if (is_standard(path)) {
        fwrite(page->text, 1, page->length, stdout); /* checked at the end */
        return ERR_OK;
    }
    rc = file_publish(path, page->text, page->length, err);
    if (rc != ERR_OK)
        return rc;
    str_print("%s: written", path);
    if (!report_plots_built())
        printf(", but without plots: cddp was built without dygraphs "
               "(libjs-dygraphs)");
    printf("\n");
    return ERR_OK;
}

static err_code_t page_main(const report_args_t *args, err_t *err)
{
    report_run_t runs[REPORT_RUNS_MAX] = {{NULL, NULL}};
    str_buf_t page = {0};
    err_code_t rc = ERR_OK;
    int count = 0;

    while (rc == ERR_OK && count < args->count) {
        rc = report_run_read(args->dirs[count], &runs[count], err);
        count++;
    }
    if (rc == ERR_OK)
        rc = report_page(runs, count, &page, err);
    if (rc == ERR_OK)
        rc = page_write(args->output != NULL ? args->output : PAGE_USUAL, &page,
                        err);
    str_buf_free(&page);
    for (int i = 0; i < count; i++)
        report_run_free(&runs[i]);
    return rc;
}

static err_code_t list_main(const report_args_t *args, err_t *err)
{
    str_buf_t text = {0};
    err_code_t rc = report_list(args->dirs, args->count, &text, err);

    if (rc == ERR_OK)
        str_print("%s", text.text);
    str_buf_free(&text);
    return rc;
}

/* CSV to a file, which appears complete or not at all. */
static err_code_t csv_publish(const report_args_t *args, err_t *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    err_code_t rc;

    if (out == NULL)
        return err_set(err, ERR_MEMORY, "no memory for the rows of %s",
                       args->output);
    rc = report_csv(args->dirs, args->count, out, err);
    if (fclose(out) != 0 && rc == ERR_OK)
        rc = err_set(err, ERR_MEMORY, "no memory for the rows of %s",
                     args->output);
    if (rc == ERR_OK)
        rc = file_publish(args->output, text, length, err);
    free(text);
    return rc;
}

static err_code_t csv_main(const report_args_t *args, err_t *err)
{
    if (args->output != NULL && !is_standard(args->output))
        return csv_publish(args, err);
    return report_csv(args->dirs, args->count, stdout, err);
}

static err_code_t mode_main(const report_args_t *args, err_t *err)
{
    switch (args->mode) {
    case REPORT_MODE_LIST:
        return list_main(args, err);
    case REPORT_MODE_WATCH:
        return report_watch(args->dirs[0],
                            args->every != 0 ? args->every : WATCH_USUAL, err);
    case REPORT_MODE_CSV:
        return csv_main(args, err);
    default:
        return page_main(args, err);
    }
}

int main(int argc, char **argv)
{
    report_args_t args = {.help = false};
    err_t err = ERR_INIT;
    err_code_t rc;

    file_standard_open();
    rc = report_args_parse(argc, argv, &args, &err);
    if (rc == ERR_OK && args.help)
        fputs(report_args_help, stdout);
    else if (rc == ERR_OK && args.version)
        printf("cddp-report %s\ndygraphs %s\n", PACKAGE_VERSION,
               DYGRAPHS_SUMMARY);
    else if (rc == ERR_OK)
        rc = mode_main(&args, &err);
    rc = cmd_output_finish(rc, &err);
    if (rc != ERR_OK)
        fprintf(stderr, "cddp-report: %s\n", err.text);
    return (int)rc;
}
