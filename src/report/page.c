/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "report/assets.h"

/* The policy forbids every request, whatever a script does. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
    "'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>cddp report</title>\n";

static const char body[] =
    "</head>\n<body>\n<noscript>This report needs JavaScript, which is "
    "inside this file; nothing is loaded.</noscript>\n"
    "<div id=\"page\"></div>\n";

/* The licence of dygraphs asks to stand in every copy. */
static const char licence[] =
    "/* dygraphs: Copyright (c) 2006-2017 Dan Vanderkam and contributors.\n"
    "Permission is hereby granted, free of charge, to any person obtaining a\n"
    "copy of this software and associated documentation files (the\n"
    "\"Software\"), to deal in the Software without restriction, including\n"
    "without limitation the rights to use, copy, modify, merge, publish,\n"
    "distribute, sublicense, and/or sell copies of the Software, and to "
    "permit\n"
    "persons to whom the Software is furnished to do so, subject to the\n"
    "following conditions: The above copyright notice and this permission\n"
    "notice shall be included in all copies or substantial portions of the\n"
    "Software. THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY\n"
    "KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF\n"
    "MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. "
    "IN\n"
    "NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,\n"
    "DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR\n"
    "OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR "
    "THE\n"
    "USE OR OTHER DEALINGS IN THE SOFTWARE. */\n";

bool report_plots_built(void)
{
    return report_dygraphs_js[0] != '\0';
}

/* Append JSON so that it can stand in a <script>: '<', '>' and '&', which only
 * its texts can hold, get their number. */
static void json_put(const char *json, str_buf_t *out)
{
    while (*json != '\0') {
        const size_t plain = strcspn(json, "<>&");

        str_buf_add(out, "%.*s", (int)plain, json);
        json += plain;
        if (*json != '\0')
            str_buf_add(out, "\\u%04x", (unsigned)*json++);
    }
}

static err_code_t value_put(const json_t *value, str_buf_t *out, err_t *err)
{
    char *text =
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER |
                              JSON_REAL_PRECISION(9));

    if (text == NULL)
        return err_set(err, ERR_MEMORY, "out of memory for the report");
    json_put(text, out);
    free(text);
    return ERR_OK;
}

/* What is written of a bin. */
typedef enum column {
    COLUMN_STEP,
    COLUMN_LEAST,
    COLUMN_MEAN,
    COLUMN_MOST
} column_t;

/* Append `"[name]":[...]`, a number for each bin with values. */
static void column_put(const report_bins_t *bins, const char *name,
                       column_t column, str_buf_t *out)
{
    const char *comma = "";

    str_buf_add(out, "\"%s\":[", name);
    for (int i = 0; i < bins->used; i++) {
        const report_bin_t *bin = &bins->bins[i];

        if (bin->count == 0)
            continue;
        /* The middle of the bin; with one step a bin, the step. */
        if (column == COLUMN_STEP)
            str_buf_add(out, "%s%" PRId64, comma,
                        ((int64_t)i << bins->shift) +
                            ((((int64_t)1 << bins->shift) - 1) >> 1));
        else
            str_buf_add(out, "%s%.6g", comma,
                        column == COLUMN_LEAST  ? bin->least
                        : column == COLUMN_MOST ? bin->most
                                                : report_bin_mean(bin));
        comma = ",";
    }
    str_buf_add(out, "]");
}

/* A curve: an object with steps x and means y and, if a bin has several steps,
 * also the least and the most. */
static err_code_t curve_put(const report_curve_t *curve, str_buf_t *out,
                            err_t *err)
{
    json_t *name = report_json_text(curve->name);
    err_code_t rc = value_put(name, out, err);

    json_decref(name);
    str_buf_add(out, ":{");
    column_put(&curve->bins, "x", COLUMN_STEP, out);
    str_buf_add(out, ",");
    column_put(&curve->bins, "y", COLUMN_MEAN, out);
    if (curve->bins.shift > 0) {
        str_buf_add(out, ",");
        column_put(&curve->bins, "low", COLUMN_LEAST, out);
        str_buf_add(out, ",");
        column_put(&curve->bins, "high", COLUMN_MOST, out);
    }
    str_buf_add(out, "}");
    return rc;
}

static err_code_t run_put(const report_run_t *run, str_buf_t *out, err_t *err)
{
    err_code_t rc;

    str_buf_add(out, "{\"about\":");
    rc = value_put(run->about, out, err);
    str_buf_add(out, ",\"curves\":{");
    for (int i = 0; rc == ERR_OK && i < run->curves->count; i++) {
        str_buf_add(out, i > 0 ? ",\n" : "\n");
        rc = curve_put(run->curves->curves[i], out, err);
    }
    str_buf_add(out, "}}");
    return rc;
}

err_code_t report_page(const report_run_t *runs, int count, str_buf_t *out,
                       err_t *err)
{
    err_code_t rc = ERR_OK;

    str_buf_add(out, "%s<style>\n%s\n%s</style>\n%s", head, report_dygraphs_css,
                report_page_css, body);
    str_buf_add(out, "<script type=\"application/json\" id=\"data\">[");
    for (int i = 0; rc == ERR_OK && i < count; i++) {
        str_buf_add(out, i > 0 ? ",\n" : "");
        rc = run_put(&runs[i], out, err);
    }
    str_buf_add(out, "]</script>\n");
    if (report_plots_built())
        str_buf_add(out, "<script>%s%s</script>\n", licence,
                    report_dygraphs_js);
    str_buf_add(out, "<script>%s</script>\n</body>\n</html>\n", report_page_js);
    return rc;
}
