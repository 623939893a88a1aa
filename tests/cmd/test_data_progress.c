/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <criterion/criterion.h>

#include "cmd/data_progress.h"

Test(progress, lines)
{
    static const struct {
        int64_t done;
        double seconds;
        const char *line;
    } cases[] = {
        {0, 10, "cddp-data: valid: 0 of 2,000 samples (0 %)"},
        {1000, 42,
         "cddp-data: valid: 1,000 of 2,000 samples (50 %), about 42 s left"},
        {1999, 19990,
         "cddp-data: valid: 1,999 of 2,000 samples (99 %), about 10 s left"},
        {500, 100,
         "cddp-data: valid: 500 of 2,000 samples (25 %), about 5 min left"},
        {1, 10, "cddp-data: valid: 1 of 2,000 samples (0 %), about 5.6 h left"},
    };
    cmd_progress_t progress;

    cmd_progress_begin(&progress, "valid", 2000);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        str_buf_t line = {0};

        cmd_progress_line(&progress, cases[i].done, cases[i].seconds, &line);
        cr_expect_str_eq(line.text, cases[i].line);
        str_buf_free(&line);
    }
}
