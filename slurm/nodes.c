/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/nodes.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "slurm/ask.h"

#define SAID_MOST ((size_t)1 << 20) /* bytes of what Slurm's commands say */

#define FAULTS_MOST 2 /* steps in a row that a node may lose */

/* ---- words --------------------------------------------------------------- */

/* Return the length of the word at *text, which is moved to its beginning. */
static size_t word_at(const char **text)
{
    *text += strspn(*text, " \n");
    return strcspn(*text, " \n");
}

static slurm_node_t *node_named(slurm_nodes_t *nodes, const char *name,
                                size_t length)
{
    for (int i = 0; i < nodes->count; i++)
        if (strlen(nodes->list[i].name) == length &&
            strncmp(nodes->list[i].name, name, length) == 0)
            return &nodes->list[i];
    return NULL;
}

/* ---- the list ------------------------------------------------------------ */

err_code_t slurm_nodes_take(const char *names, slurm_nodes_t *out, err_t *err)
{
    slurm_nodes_t nodes = {0};
    size_t count = 0, length;
    err_code_t rc;

    for (const char *at = names; (length = word_at(&at)) > 0; at += length)
        count++;
    rc = mem_new(slurm_node_t, count, "nodes of the job", &nodes.list, err);
    if (rc != ERR_OK)
        return rc;
    for (const char *at = names; (length = word_at(&at)) > 0; at += length)
        snprintf(nodes.list[nodes.count++].name, sizeof nodes.list[0].name,
                 "%.*s", (int)length, at);
    *out = nodes;
    return ERR_OK;
}

void slurm_nodes_free(slurm_nodes_t *nodes)
{
    mem_free(nodes->list);
    *nodes = (slurm_nodes_t){0};
}

err_code_t slurm_nodes_read(const char *list, slurm_nodes_t *out, err_t *err)
{
    const char *const args[] = {"scontrol", "show", "hostnames", list, NULL};
    char *said = NULL;
    err_code_t rc = mem_new(char, SAID_MOST, "names of nodes", &said, err);

    if (rc == ERR_OK)
        rc = slurm_ask(args, said, SAID_MOST, err);
    if (rc == ERR_OK)
        rc = slurm_nodes_take(said, out, err);
    mem_free(said);
    return rc;
}

/* ---- states -------------------------------------------------------------- */

static bool state_is_down(const char *state, size_t length)
{
    static const char *const down[] = {"down", "fail", "inval"};

    if (memchr(state, '*', length) != NULL)
        return true;
    for (size_t i = 0; i < sizeof down / sizeof down[0]; i++)
        if (length >= strlen(down[i]) &&
            strncmp(state, down[i], strlen(down[i])) == 0)
            return true;
    return false;
}

void slurm_nodes_states(slurm_nodes_t *nodes, const char *lines)
{
    for (const char *at = lines;;) {
        const size_t name = word_at(&at);
        const char *state = at + name;
        const size_t length = word_at(&state);
        slurm_node_t *node = node_named(nodes, at, name);

        if (name == 0 || length == 0)
            return;
        if (node != NULL)
            node->down = state_is_down(state, length);
        at = state + length;
    }
}

void slurm_nodes_held(slurm_nodes_t *nodes, const char *names)
{
    size_t length;

    for (int i = 0; i < nodes->count; i++)
        nodes->list[i].gone = true;
    for (const char *at = names; (length = word_at(&at)) > 0; at += length) {
        slurm_node_t *node = node_named(nodes, at, length);

        if (node != NULL)
            node->gone = false;
    }
}

static err_code_t states_ask(slurm_nodes_t *nodes, const char *list, char *said,
                             err_t *err)
{
    const char *const args[] = {"sinfo", "-h", "-N",    "-n",
                                list,    "-o", "%N %t", NULL};
    const err_code_t rc = slurm_ask(args, said, SAID_MOST, err);

    if (rc == ERR_OK)
        slurm_nodes_states(nodes, said);
    return rc;
}

/* Ask which nodes the job still has. A node that has failed may be up again,
 * but the job does not get it back. */
static err_code_t held_ask(slurm_nodes_t *nodes, const char *job, char *said,
                           err_t *err)
{
    const char *const list[] = {"squeue", "-h", "-j", job, "-o", "%N", NULL};
    const char *const names[] = {"scontrol", "show", "hostnames", said, NULL};
    char *held = NULL;
    err_code_t rc = slurm_ask(list, said, SAID_MOST, err);

    said[strcspn(said, "\n")] = '\0';
    if (rc != ERR_OK || said[0] == '\0')
        return rc;
    rc = mem_new(char, SAID_MOST, "nodes of the job", &held, err);
    if (rc == ERR_OK)
        rc = slurm_ask(names, held, SAID_MOST, err);
    if (rc == ERR_OK)
        slurm_nodes_held(nodes, held);
    mem_free(held);
    return rc;
}

err_code_t slurm_nodes_ask(slurm_nodes_t *nodes, const char *list,
                           const char *job, err_t *err)
{
    char *said = NULL;
    err_code_t rc = mem_new(char, SAID_MOST, "states of nodes", &said, err);

    if (rc == ERR_OK)
        rc = states_ask(nodes, list, said, err);
    if (rc == ERR_OK)
        rc = held_ask(nodes, job, said, err);
    mem_free(said);
    return rc;
}

void slurm_nodes_fault(slurm_nodes_t *nodes, const char *name)
{
    for (int i = 0; i < nodes->count; i++) {
        slurm_node_t *node = &nodes->list[i];

        /* A node that was avoided had no chance to do better. */
        if (strcmp(node->name, name) == 0)
            node->faults++;
        else if (node->faults < FAULTS_MOST)
            node->faults = 0;
    }
}

bool slurm_node_avoided(const slurm_node_t *node)
{
    return node->down || node->gone || node->faults >= FAULTS_MOST;
}
