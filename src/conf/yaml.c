/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Converts libyaml's events to a tree by recursive descent. Only the subset of
 * YAML that a run file needs is accepted: no anchors, aliases or tags, so a
 * small document cannot expand to a large tree. The depth is limited, too.
 */
#include "conf/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/check.h"

#define YAML_DEPTH_MAX 64

/* U+FEFF in UTF-8. Some editors write it at the start of a file; elsewhere it
 * is invisible and would become part of a word. */
#define YAML_BYTE_ORDER_MARK "\xef\xbb\xbf"
#define YAML_MARK_BYTES 3

typedef struct yaml_reader {
    const yaml_source_t *source;
    yaml_parser_t parser;
    yaml_event_t event; /* current event, owned by the reader */
    int depth;
    err_t *err;
} yaml_reader_t;

static err_code_t yaml_node(yaml_reader_t *reader, tree_t **out);

static tree_place_t yaml_place(const yaml_reader_t *reader, yaml_mark_t mark)
{
    tree_place_t place = {.file = reader->source->name};

    if (!reader->source->bare) {
        place.line = (int)mark.line + 1;
        place.column = (int)mark.column + 1;
    }
    return place;
}

__attribute__((format(printf, 3, 4))) static err_code_t
yaml_fail(const yaml_reader_t *reader, tree_place_t place, const char *format,
          ...)
{
    char where[512];
    str_buf_t buf = {0};
    va_list args;

    va_start(args, format);
    str_buf_vadd(&buf, format, args);
    va_end(args);
    tree_place_format(place, where, sizeof where);
    err_set(reader->err, reader->source->code, "%s: %s", where, buf.text);
    str_buf_free(&buf);
    return reader->source->code;
}

/* Does the indentation of line [number] (from 0) contain a tab? libyaml's own
 * message does not say so. */
static bool yaml_line_has_tab(const yaml_source_t *source, size_t number)
{
    const char *at = source->text;

    for (; number > 0 && at != NULL; number--) {
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1;
    }
    return at != NULL && at[strspn(at, " ")] == '\t';
}

static err_code_t yaml_fail_syntax(const yaml_reader_t *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    yaml_mark_t mark = parser->problem_mark;
    const char *problem = parser->problem;

    if (problem == NULL)
        problem = "not YAML";
    if (parser->error == YAML_READER_ERROR)
        return yaml_fail(reader, (tree_place_t){reader->source->name, 0, 0},
                         "%s at byte %zu; run files are UTF-8", problem,
                         parser->problem_offset);
    if (yaml_line_has_tab(reader->source, mark.line))
        return yaml_fail(reader, yaml_place(reader, mark),
                         "YAML syntax: a tab in the indentation; use spaces");
    if (parser->context == NULL)
        return yaml_fail(reader, yaml_place(reader, mark), "YAML syntax: %s",
                         problem);
    return yaml_fail(reader, yaml_place(reader, mark), "YAML syntax: %s, %s",
                     problem, parser->context);
}

static err_code_t yaml_next(yaml_reader_t *reader)
{
    yaml_event_delete(&reader->event);
    if (!yaml_parser_parse(&reader->parser, &reader->event))
        return yaml_fail_syntax(reader);
    return ERR_OK;
}

static bool yaml_is_null(const yaml_event_t *event)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    const char *text = (const char *)event->data.scalar.value;
    size_t i;

    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(text, nulls[i]) == 0)
            return true;
    return false;
}

/* Refuse anchors and tags of the current event. Aliases are refused in
 * yaml_node and yaml_check_key. */
static err_code_t yaml_check_plain(const yaml_reader_t *reader)
{
    const yaml_event_t *event = &reader->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor != NULL)
        return yaml_fail(reader, yaml_place(reader, event->start_mark),
                         "anchor '&%s' is not supported; write the value out "
                         "where it is used",
                         anchor);
    if (tag != NULL)
        return yaml_fail(reader, yaml_place(reader, event->start_mark),
                         "tag '%s' is not supported; remove it", tag);
    return ERR_OK;
}

static err_code_t yaml_scalar(const yaml_reader_t *reader, tree_t **out)
{
    const yaml_event_t *event = &reader->event;
    const char *text = (const char *)event->data.scalar.value;
    tree_place_t place = yaml_place(reader, event->start_mark);

    if (strlen(text) != event->data.scalar.length)
        return yaml_fail(reader, place, "a text holds the byte 0");
    *out = tree_new(yaml_is_null(event) ? TREE_NULL : TREE_SCALAR, text, place);
    return ERR_OK;
}

static err_code_t yaml_list(yaml_reader_t *reader, tree_t *list)
{
    tree_t *child;
    err_code_t rc;

    for (;;) {
        rc = yaml_next(reader);
        if (rc != ERR_OK || reader->event.type == YAML_SEQUENCE_END_EVENT)
            return rc;
        rc = yaml_node(reader, &child);
        if (rc != ERR_OK)
            return rc;
        tree_add(list, child);
    }
}

/* Check that the current event is a key that [map] does not have yet. */
static err_code_t yaml_check_key(const yaml_reader_t *reader, const tree_t *map)
{
    const yaml_event_t *event = &reader->event;
    tree_place_t place = yaml_place(reader, event->start_mark), before;
    const char *key;
    char first[512];

    if (event->type == YAML_ALIAS_EVENT ||
        (event->type == YAML_SCALAR_EVENT && yaml_is_null(event)))
        return yaml_fail(reader, place, "expected a key, found %s",
                         event->type == YAML_ALIAS_EVENT ? "an alias"
                                                         : "nothing");
    if (event->type != YAML_SCALAR_EVENT)
        return yaml_fail(reader, place, "expected a key, found a %s",
                         event->type == YAML_MAPPING_START_EVENT ? "map"
                                                                 : "list");
    key = (const char *)event->data.scalar.value;
    if (tree_key_find(map, key, &before))
        return yaml_fail(reader, place,
                         "duplicate key '%s'; it is already at %s", key,
                         tree_place_format(before, first, sizeof first));
    return yaml_check_plain(reader);
}

static err_code_t yaml_map(yaml_reader_t *reader, tree_t *map)
{
    err_code_t rc = ERR_OK;
    tree_place_t place;
    tree_t *key = NULL, *child;

    while (rc == ERR_OK) {
        rc = yaml_next(reader);
        if (rc != ERR_OK || reader->event.type == YAML_MAPPING_END_EVENT)
            break;
        rc = yaml_check_key(reader, map);
        if (rc == ERR_OK)
            rc = yaml_scalar(reader, &key);
        if (rc != ERR_OK)
            break;
        place = tree_place(key);
        rc = yaml_next(reader);
        if (rc == ERR_OK)
            rc = yaml_node(reader, &child);
        if (rc == ERR_OK)
            tree_put(map, tree_text(key), place, child);
        tree_free(key);
        key = NULL;
    }
    return rc;
}

static err_code_t yaml_collection(yaml_reader_t *reader, tree_t **out)
{
    bool is_list = reader->event.type == YAML_SEQUENCE_START_EVENT;
    tree_place_t place = yaml_place(reader, reader->event.start_mark);
    err_code_t rc;
    tree_t *tree;

    if (reader->depth == YAML_DEPTH_MAX)
        return yaml_fail(reader, place, "nested more than %d levels deep",
                         YAML_DEPTH_MAX);
    reader->depth++;
    tree = tree_new(is_list ? TREE_LIST : TREE_MAP, NULL, place);
    rc = is_list ? yaml_list(reader, tree) : yaml_map(reader, tree);
    check(reader->depth > 0 && reader->depth <= YAML_DEPTH_MAX,
          "a collection ends at depth %d", reader->depth);
    reader->depth--;
    if (rc == ERR_OK)
        *out = tree;
    else
        tree_free(tree);
    return rc;
}

/* Parse the node that starts with the current event. */
static err_code_t yaml_node(yaml_reader_t *reader, tree_t **out)
{
    const yaml_event_t *event = &reader->event;
    err_code_t rc;

    if (event->type == YAML_ALIAS_EVENT)
        return yaml_fail(reader, yaml_place(reader, event->start_mark),
                         "alias '*%s' is not supported; write the value out "
                         "(quote the text if it is meant to begin with '*')",
                         event->data.alias.anchor);
    rc = yaml_check_plain(reader);
    if (rc != ERR_OK)
        return rc;
    if (event->type == YAML_SCALAR_EVENT)
        return yaml_scalar(reader, out);
    return yaml_collection(reader, out);
}

/* Parse the whole stream: its start, at most one document, and its end. */
static err_code_t yaml_document(yaml_reader_t *reader, tree_t **out)
{
    tree_place_t start = {reader->source->name, 0, 0};
    tree_t *tree = NULL;
    err_code_t rc;

    rc = yaml_next(reader);
    if (rc == ERR_OK)
        rc = yaml_next(reader);
    if (rc == ERR_OK && reader->event.type == YAML_STREAM_END_EVENT) {
        *out = tree_new(TREE_NULL, NULL, start);
        return ERR_OK;
    }
    if (rc == ERR_OK)
        rc = yaml_next(reader);
    if (rc == ERR_OK)
        rc = yaml_node(reader, &tree);
    if (rc == ERR_OK)
        rc = yaml_next(reader); /* document end */
    if (rc == ERR_OK)
        rc = yaml_next(reader);
    if (rc == ERR_OK && reader->event.type != YAML_STREAM_END_EVENT)
        rc = yaml_fail(reader, yaml_place(reader, reader->event.start_mark),
                       "a second document begins; expected only one");
    if (rc == ERR_OK)
        *out = tree;
    else
        tree_free(tree);
    return rc;
}

/* Length in bytes of a byte-order mark at the start of the text: 0 or 3. */
static size_t yaml_mark_length(const yaml_source_t *source)
{
    return source->bytes >= YAML_MARK_BYTES &&
                   memcmp(source->text, YAML_BYTE_ORDER_MARK,
                          YAML_MARK_BYTES) == 0
               ? YAML_MARK_BYTES
               : 0;
}

/* Refuse a byte-order mark after the first [skip] bytes. */
static err_code_t yaml_check_marks(const yaml_reader_t *reader, size_t skip)
{
    const yaml_source_t *source = reader->source;
    const char *mark = memmem(source->text + skip, source->bytes - skip,
                              YAML_BYTE_ORDER_MARK, YAML_MARK_BYTES);
    yaml_mark_t at = {0};

    if (mark == NULL)
        return ERR_OK;
    for (const char *c = source->text + skip; c < mark; c++) {
        at.column = *c == '\n' ? 0 : at.column + 1;
        at.line += *c == '\n';
    }
    return yaml_fail(reader, yaml_place(reader, at),
                     "a UTF-8 byte-order mark (bytes EF BB BF) inside the "
                     "text; remove it, it may only begin a file");
}

err_code_t yaml_parse(const yaml_source_t *source, tree_t **out, err_t *err)
{
    const size_t skip = yaml_mark_length(source);
    yaml_reader_t reader = {.source = source, .err = err};
    err_code_t rc;

    if (!yaml_parser_initialize(&reader.parser))
        return err_set(err, ERR_MEMORY, "no memory left to read %s",
                       source->name);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser,
                                 (const unsigned char *)source->text + skip,
                                 source->bytes - skip);
    rc = yaml_check_marks(&reader, skip);
    if (rc == ERR_OK)
        rc = yaml_document(&reader, out);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    return rc;
}
