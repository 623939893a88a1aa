/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A node stores its children in a growing array and owns a copy of its file
 * name. A map with more than a few keys also has a hash table from keys to
 * children, so that reading a file takes time proportional to its size, even
 * for a hostile file with many keys.
 */
#include "base/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"

/* Minimum children for a hash table; below, a linear search is as fast. */
#define TREE_INDEX_MIN 16

typedef struct tree_child {
    char *key;          /* NULL in a list */
    tree_place_t place; /* of the key; the child owns the file name */
    tree_t *node;
} tree_child_t;

struct tree {
    tree_kind_t kind;
    char *text;
    char *file;
    tree_place_t place; /* [place.file] is [file] */
    tree_child_t *children;
    size_t count, room;
    size_t *slots; /* hash table of a map: 1 + index of a child, 0: free; NULL
                      below TREE_INDEX_MIN children */
    size_t slot_count; /* a power of two, at least twice [count] */
};

tree_t *tree_new(tree_kind_t kind, const char *text, tree_place_t place)
{
    tree_t *tree = calloc(1, sizeof *tree);

    if (tree == NULL)
        abort();
    tree->kind = kind;
    if (kind == TREE_SCALAR)
        tree->text = str_dup(text == NULL ? "" : text);
    tree->file = str_dup(place.file == NULL ? "" : place.file);
    tree->place = place;
    tree->place.file = tree->file;
    return tree;
}

/* The slot for the first [length] bytes of [key]: that of the child with this
 * key, or the free slot where it belongs. */
static size_t *tree_slot(const tree_t *map, const char *key, size_t length)
{
    const size_t mask = map->slot_count - 1;
    size_t at = (size_t)hash_bytes(key, length) & mask;
    const char *there;

    check(map->slot_count >= 2 * map->count && (map->slot_count & mask) == 0,
          "a table of %zu slots for %zu keys", map->slot_count, map->count);
    for (; map->slots[at] != 0; at = (at + 1) & mask) {
        there = map->children[map->slots[at] - 1].key;
        if (strncmp(there, key, length) == 0 && there[length] == '\0')
            break;
    }
    return &map->slots[at];
}

/* Enter the last child of [map] into the table. Of several children with the
 * same key the first one is found, as without a table. */
static void tree_index_last(tree_t *map)
{
    const char *key = map->children[map->count - 1].key;
    size_t *slot = tree_slot(map, key, strlen(key));

    if (*slot == 0)
        *slot = map->count;
}

static void tree_index(tree_t *map)
{
    const size_t count = map->count;

    if (count < TREE_INDEX_MIN)
        return;
    if (2 * count <= map->slot_count) {
        tree_index_last(map);
        return;
    }
    free(map->slots);
    map->slot_count = 4 * TREE_INDEX_MIN;
    while (map->slot_count < 4 * count)
        map->slot_count *= 2;
    map->slots = calloc(map->slot_count, sizeof *map->slots);
    if (map->slots == NULL)
        abort();
    for (map->count = 1; map->count <= count; map->count++)
        tree_index_last(map);
    map->count = count;
}

static void tree_append(tree_t *parent, char *key, tree_place_t place,
                        tree_t *node)
{
    tree_child_t *children;

    check(parent != node &&
              parent->kind == (key == NULL ? TREE_LIST : TREE_MAP),
          "a child '%s' of a node of kind %d", key == NULL ? "" : key,
          (int)parent->kind);
    if (parent->children == NULL || parent->count == parent->room) {
        parent->room = parent->room == 0 ? 8 : 2 * parent->room;
        children =
            reallocarray(parent->children, parent->room, sizeof *children);
        if (children == NULL)
            abort();
        parent->children = children;
    }
    place.file = node->file;
    parent->children[parent->count++] = (tree_child_t){key, place, node};
    if (key != NULL)
        tree_index(parent);
}

void tree_add(tree_t *list, tree_t *child)
{
    tree_append(list, NULL, child->place, child);
}

void tree_put(tree_t *map, const char *key, tree_place_t place, tree_t *child)
{
    tree_append(map, str_dup(key), place, child);
}

void tree_free(tree_t *tree)
{
    size_t i;

    if (tree == NULL)
        return;
    for (i = 0; i < tree->count; i++) {
        free(tree->children[i].key);
        tree_free(tree->children[i].node);
    }
    free(tree->slots);
    free(tree->children);
    free(tree->text);
    free(tree->file);
    free(tree);
}

tree_t *tree_clone(const tree_t *tree)
{
    tree_t *copy = tree_new(tree->kind, tree->text, tree->place);
    const tree_child_t *child;
    size_t i;

    for (i = 0; i < tree->count; i++) {
        child = &tree->children[i];
        tree_append(copy, child->key == NULL ? NULL : str_dup(child->key),
                    child->place, tree_clone(child->node));
    }
    return copy;
}

tree_kind_t tree_kind(const tree_t *tree)
{
    return tree->kind;
}

const char *tree_text(const tree_t *tree)
{
    return tree->text;
}

size_t tree_count(const tree_t *tree)
{
    return tree->count;
}

const tree_t *tree_at(const tree_t *tree, size_t index)
{
    return index < tree->count ? tree->children[index].node : NULL;
}

const char *tree_key(const tree_t *map, size_t index)
{
    return index < map->count ? map->children[index].key : NULL;
}

tree_place_t tree_place(const tree_t *tree)
{
    return tree->place;
}

tree_place_t tree_key_place(const tree_t *map, size_t index)
{
    return index < map->count ? map->children[index].place : map->place;
}

/* The child whose key is the first [length] bytes of [key], or NULL. */
static tree_child_t *tree_find(const tree_t *map, const char *key,
                               size_t length)
{
    size_t i;

    if (map->kind != TREE_MAP)
        return NULL;
    if (map->slots != NULL) {
        i = *tree_slot(map, key, length);
        return i == 0 ? NULL : &map->children[i - 1];
    }
    for (i = 0; i < map->count; i++)
        if (strncmp(map->children[i].key, key, length) == 0 &&
            map->children[i].key[length] == '\0')
            return &map->children[i];
    return NULL;
}

const tree_t *tree_get(const tree_t *map, const char *key)
{
    const tree_child_t *child = tree_find(map, key, strlen(key));

    return child == NULL ? NULL : child->node;
}

bool tree_key_find(const tree_t *map, const char *key, tree_place_t *place)
{
    const tree_child_t *child = tree_find(map, key, strlen(key));

    if (child == NULL)
        return false;
    *place = child->place;
    return true;
}

char *tree_place_format(tree_place_t place, char *out, size_t room)
{
    if (place.line <= 0)
        snprintf(out, room, "%s", place.file);
    else if (place.column <= 0)
        snprintf(out, room, "%s:%d", place.file, place.line);
    else
        snprintf(out, room, "%s:%d:%d", place.file, place.line, place.column);
    return out;
}

/* Store [node] under the first [length] bytes of [key], in place of [old]
 * (NULL: append). */
static void tree_replace(tree_t *map, tree_child_t *old, const char *key,
                         size_t length, tree_t *node)
{
    char *name;

    if (old == NULL) {
        name = strndup(key, length);
        if (name == NULL)
            abort();
        tree_append(map, name, node->place, node);
        return;
    }
    tree_free(old->node);
    old->node = node;
    old->place = node->place;
}

bool tree_set(tree_t *root, const char *path, tree_t *child)
{
    tree_t *map = root;
    tree_child_t *found;
    size_t length;

    for (;; path += length + 1) {
        length = strcspn(path, ".");
        if (map->kind == TREE_NULL)
            map->kind = TREE_MAP;
        if (length == 0 || map->kind != TREE_MAP) {
            tree_free(child);
            return false;
        }
        found = tree_find(map, path, length);
        if (path[length] == '\0')
            break;
        if (found == NULL) {
            tree_replace(map, NULL, path, length,
                         tree_new(TREE_MAP, NULL, child->place));
            found = tree_find(map, path, length);
        }
        map = found->node;
    }
    tree_replace(map, found, path, length, child);
    return true;
}
