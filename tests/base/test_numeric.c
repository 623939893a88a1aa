/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Numbers in text have a decimal point in every locale. */
#include "base/numeric.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/opt_value.h"
#include "base/str.h"
#include "lib/german.h"

static char directory[] = "/tmp/cddp-numeric-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
}

static void teardown(void)
{
    cr_assert_eq(file_remove_tree(directory, NULL), ERR_OK);
}

TestSuite(numeric, .init = setup, .fini = teardown);

Test(numeric, a_locale_changes_no_number)
{
    char text[32], *end, *made;
    str_buf_t buf = {0};
    err_t err = ERR_INIT;
    locale_t before;
    double value = 0;

    german_begin(directory);
    cr_expect_eq(numeric_parse("0.25x", &end), 0.25);
    cr_expect_str_eq(end, "x");
    numeric_print(text, sizeof text, "%g", 0.25);
    cr_expect_str_eq(text, "0.25");
    cr_expect(str_to_real("1.5e-3", &value));
    cr_expect_eq(value, 1.5e-3);
    cr_expect_not(str_to_real("1,5", &value));
    made = str_printf("%.2f", 0.25);
    cr_expect_str_eq(made, "0.25");
    free(made);
    cr_expect_str_eq(str_bytes(1536, text, sizeof text), "1.5 KiB");
    err_set(&err, ERR_DATA, "%g", 0.5);
    err_prefix(&err, "%g", 1.5);
    err_suffix(&err, "%g", 2.5);
    cr_expect_str_eq(err.text, "1.5: 0.5; 2.5");
    opt_value_print_real(0.1, &buf);
    cr_expect_str_eq(buf.text, "0.1");
    str_buf_free(&buf);
    /* The program's own locale does not change. */
    snprintf(text, sizeof text, "%.1f", 0.5);
    cr_expect_str_eq(text, "0,5");
    before = numeric_begin();
    snprintf(text, sizeof text, "%.1f", 0.5);
    numeric_end(before);
    cr_expect_str_eq(text, "0.5");
    snprintf(text, sizeof text, "%.1f", 0.5);
    cr_expect_str_eq(text, "0,5");
}
