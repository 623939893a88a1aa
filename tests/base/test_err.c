/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/err.h"

#include <criterion/criterion.h>
#include <string.h>

Test(err, set_returns_the_code_and_keeps_the_sentence)
{
    err_t err = ERR_INIT;

    cr_assert_eq(err_set(&err, ERR_DATA, "row %d is bad", 7), ERR_DATA);
    cr_assert_str_eq(err.text, "row 7 is bad");
    cr_assert_eq(err.culprit, -1);
}

Test(err, prefix_puts_the_object_in_front)
{
    err_t err = ERR_INIT;

    err_set(&err, ERR_IO, "no space left");
    cr_assert_eq(err_prefix(&err, "%s", "a.h5"), ERR_IO);
    cr_assert_str_eq(err.text, "a.h5: no space left");
}

Test(err, suffix_says_what_it_was_for)
{
    err_t err = ERR_INIT;
    char big[2 * ERR_TEXT_MAX];

    err_set_peer(&err, 3, "n1", "rank 3 died");
    cr_assert_eq(err_suffix(&err, "bucket %d", 2), ERR_PEER);
    cr_assert_str_eq(err.text, "rank 3 died; bucket 2");
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    err_suffix(&err, "%s", big);
    err_suffix(&err, "%s", big);
    cr_assert_eq(strlen(err.text), ERR_TEXT_MAX - 1);
}

Test(err, copy_takes_everything)
{
    err_t from = ERR_INIT, err = ERR_INIT;

    err_set_peer(&from, 3, "n1", "rank 3 died");
    cr_assert_eq(err_copy(&err, &from), ERR_PEER);
    cr_assert_eq(memcmp(&err, &from, sizeof err), 0);
    cr_assert_eq(err_copy(NULL, &from), ERR_PEER);
}

Test(err, peer_names_rank_and_host)
{
    err_t err = ERR_INIT;

    err_set_peer(&err, 3, "n1", "rank 3 died");
    cr_assert_eq(err.code, ERR_PEER);
    cr_assert_eq(err.culprit, 3);
    cr_assert_str_eq(err.host, "n1");
}

Test(err, long_sentences_are_cut_not_overrun)
{
    err_t err = ERR_INIT;
    char big[2 * ERR_TEXT_MAX];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    err_set(&err, ERR_IO, "%s", big);
    err_prefix(&err, "%s", big);
    cr_assert_eq(strlen(err.text), ERR_TEXT_MAX - 1);
}

Test(err, the_table_is_the_documented_interface)
{
    cr_assert_eq((int)ERR_REQUEUE, 75);
    cr_assert(err_code_requeue(ERR_PEER));
    cr_assert_not(err_code_requeue(ERR_CONFIG));
    cr_assert_str_eq(err_code_name(ERR_DATA), "DATA");
    cr_assert_str_neq(err_code_text(ERR_OK), "");
}

Test(err, a_code_of_nobody_has_a_text_too)
{
    const err_code_t none = (err_code_t)99;

    cr_assert_str_neq(err_code_text(none), "");
    cr_assert_str_eq(err_code_name(none), "?");
    cr_assert_not(err_code_requeue(none));
}

Test(err, a_caller_may_drop_the_sentence)
{
    cr_assert_eq(err_set(NULL, ERR_DATA, "x"), ERR_DATA);
    cr_assert_eq(err_set_peer(NULL, 1, "n", "x"), ERR_PEER);
    cr_assert_eq(err_prefix(NULL, "x"), ERR_OK);
    cr_assert_eq(err_suffix(NULL, "x"), ERR_OK);
}

/* Names in messages may come from files of other users. */
Test(err, control_characters_are_made_visible)
{
    err_t err = ERR_INIT;

    err_set(&err, ERR_DATA, "%s", "x\033]0;title\a");
    cr_assert_str_eq(err.text, "x\\x1b]0;title\\x07");
    err_prefix(&err, "%s", "a\nb");
    cr_assert_str_eq(err.text, "a\\x0ab: x\\x1b]0;title\\x07");
    err_suffix(&err, "%s", "\2332J");
    cr_assert_str_eq(err.text, "a\\x0ab: x\\x1b]0;title\\x07; \\x9b2J");
    err_set_peer(&err, 1, "n1", "%s", "\033c");
    cr_assert_str_eq(err.text, "\\x1bc");
}
