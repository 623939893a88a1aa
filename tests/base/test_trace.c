/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/trace.h"

#include <criterion/criterion.h>

Test(trace, keeps_spans_while_it_is_on_and_has_room)
{
    trace_t *trace = NULL;
    err_t err = ERR_INIT;
    double begin;

    cr_assert_eq(trace_open("a thread with a long name", 2, &trace, &err),
                 ERR_OK);
    begin = trace_begin(trace);
    cr_expect_lt(begin, 0);
    trace_end(trace, begin, "off", NULL, 1);
    cr_expect_eq(trace_count(trace), 0);
    trace_switch(trace, true);
    for (int i = 0; i < 3; i++)
        trace_end(trace, trace_begin(trace), "on", "work", i);
    cr_expect_eq(trace_count(trace), 2);
    cr_expect_eq(trace->lost, 1);
    cr_expect_eq(trace->spans[1].number, 1);
    cr_expect_str_eq(trace->spans[1].name, "on");
    cr_expect_leq(trace->spans[0].begin, trace->spans[0].end);
    cr_expect_leq(trace->spans[0].end, trace->spans[1].begin);
    trace_switch(trace, false);
    cr_expect_lt(trace_begin(trace), 0);
    trace_close(trace);
}

Test(trace, that_does_not_exist_keeps_nothing)
{
    trace_switch(NULL, true);
    cr_expect_lt(trace_begin(NULL), 0);
    trace_end(NULL, trace_begin(NULL), "none", NULL, TRACE_NO_NUMBER);
    trace_close(NULL);
}
