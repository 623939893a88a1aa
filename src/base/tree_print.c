/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Prints a tree as YAML that reads back to the same tree. */
#include <string.h>

#include "base/tree.h"

/* Is [text] the same text for every YAML reader if it is not quoted? */
static bool tree_text_plain(const char *text)
{
    static const char *const nulls[] = {"null", "Null", "NULL"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_./+-";
    size_t length = strlen(text), i;

    if (length == 0 || strchr(" .-+", text[length - 1]) != NULL)
        return false;
    for (i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(text, nulls[i]) == 0)
            return false;
    if (strchr(letters, text[0]) == NULL)
        return false;
    if (text[0] == '-' && (text[1] == ' ' || text[1] == '-'))
        return false;
    for (i = 0; i < length; i++)
        if (text[i] != ' ' && strchr(letters, text[i]) == NULL)
            return false;
    return true;
}

void tree_print_text(const char *text, str_buf_t *out)
{
    const unsigned char *at;

    if (tree_text_plain(text)) {
        str_buf_add(out, "%s", text);
        return;
    }
    str_buf_add(out, "\"");
    for (at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            str_buf_add(out, "\\%c", *at);
        else if (*at < ' ' || *at == 0x7f)
            str_buf_add(out, "\\x%02x", *at);
        else
            str_buf_add(out, "%c", *at);
    }
    str_buf_add(out, "\"");
}

static void tree_print_lead(int spaces, str_buf_t *out)
{
    str_buf_add(out, "%*s", spaces, "");
}

/* Print a node, with newline, after a key or a dash. False: it needs lines of
 * its own. */
static bool tree_print_inline(const tree_t *tree, str_buf_t *out)
{
    switch (tree_kind(tree)) {
    case TREE_NULL:
        str_buf_add(out, "null");
        break;
    case TREE_SCALAR:
        tree_print_text(tree_text(tree), out);
        break;
    case TREE_LIST:
    case TREE_MAP:
        if (tree_count(tree) > 0)
            return false;
        str_buf_add(out, tree_kind(tree) == TREE_LIST ? "[]" : "{}");
        break;
    }
    str_buf_add(out, "\n");
    return true;
}

/* Print the lines of a list or map. With [started] the first line is already
 * indented, since it follows a dash. */
static void tree_print_lines(const tree_t *tree, int indent, bool started,
                             str_buf_t *out)
{
    const tree_t *child;
    size_t i;

    for (i = 0; i < tree_count(tree); i++) {
        child = tree_at(tree, i);
        if (i > 0 || !started)
            tree_print_lead(indent, out);
        if (tree_kind(tree) == TREE_LIST) {
            str_buf_add(out, "- ");
            if (!tree_print_inline(child, out))
                tree_print_lines(child, indent + 2, true, out);
            continue;
        }
        tree_print_text(tree_key(tree, i), out);
        str_buf_add(out, ":");
        if (tree_kind(child) <= TREE_SCALAR || tree_count(child) == 0) {
            str_buf_add(out, " ");
            tree_print_inline(child, out);
        } else {
            str_buf_add(out, "\n");
            tree_print_lines(child, indent + 2, false, out);
        }
    }
}

void tree_print(const tree_t *tree, int indent, str_buf_t *out)
{
    if (tree_kind(tree) > TREE_SCALAR && tree_count(tree) > 0) {
        tree_print_lines(tree, indent, false, out);
        return;
    }
    tree_print_lead(indent, out);
    tree_print_inline(tree, out);
}
