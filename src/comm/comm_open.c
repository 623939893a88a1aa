/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opens groups: the ranks exchange hellos, which must agree, and then the
 * backend joins them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/comm_ops.h"
#include "comm/comm_staged.h"

static void hello_fill(comm_hello_t *hello, const comm_oob_t *oob,
                       const comm_ops_t *ops, const comm_config_t *config,
                       const err_t *refusal)
{
    memset(hello, 0, sizeof *hello);
    strncpy(hello->backend, ops->name, sizeof hello->backend - 1);
    strncpy(hello->device, config->dev == NULL ? "cpu" : dev_name(config->dev),
            sizeof hello->device - 1);
    if (oob->host != NULL)
        strncpy(hello->host, oob->host, sizeof hello->host - 1);
    else if (gethostname(hello->host, sizeof hello->host - 1) != 0)
        strcpy(hello->host, "unknown");
    hello->pid = getpid();
    hello->table = comm_table_hash(config->table);
    hello->own_net = ops->own_net != NULL && ops->own_net();
    hello->name = oob->name != NULL ? *oob->name : oob->rank;
    hello->refusal = refusal->code;
    snprintf(hello->why, sizeof hello->why, "%.*s", (int)sizeof hello->why - 1,
             refusal->text);
}

/* Fail if one of the ranks cannot join. */
static err_code_t hello_refused(const comm_hello_t *hellos, int size,
                                err_t *err)
{
    for (int rank = 0; rank < size; rank++)
        if (hellos[rank].refusal != ERR_OK)
            return err_set(err, (err_code_t)hellos[rank].refusal,
                           "rank %d on %s cannot join: %.*s",
                           (int)hellos[rank].name, hellos[rank].host,
                           (int)sizeof hellos[rank].why, hellos[rank].why);
    return ERR_OK;
}

static err_code_t hello_compare(const comm_hello_t *hellos, int size,
                                err_t *err)
{
    err_code_t refusal = hello_refused(hellos, size, err);

    if (refusal != ERR_OK)
        return refusal;
    for (int rank = 1; rank < size; rank++) {
        if (memcmp(hellos[rank].backend, hellos[0].backend,
                   sizeof hellos[0].backend) != 0)
            return err_set(err, ERR_CONFIG,
                           "rank 0 opens a group with comm backend \"%.15s\", "
                           "rank %d with \"%.15s\": give all ranks the same",
                           hellos[0].backend, rank, hellos[rank].backend);
        if (memcmp(hellos[rank].device, hellos[0].device,
                   sizeof hellos[0].device) != 0)
            return err_set(err, ERR_CONFIG,
                           "rank 0 on %s computes on device \"%.15s\", rank %d "
                           "on %s on \"%.15s\": give all ranks the same",
                           hellos[0].host, hellos[0].device, rank,
                           hellos[rank].host, hellos[rank].device);
        if (hellos[rank].table != hellos[0].table)
            return err_set(err, ERR_CONFIG,
                           "rank 0 on %s and rank %d on %s have different "
                           "tables of algorithms: give all ranks the same file",
                           hellos[0].host, rank, hellos[rank].host);
    }
    return ERR_OK;
}

/* Exchange the hellos of all ranks. The caller frees *hellos. */
static err_code_t hello_exchange(const comm_oob_t *oob,
                                 const comm_hello_t *mine,
                                 comm_hello_t **hellos, err_t *err)
{
    comm_hello_t *all;
    err_code_t rc =
        mem_new(comm_hello_t, (size_t)oob->size, "comm hellos", &all, err);

    if (rc != ERR_OK)
        return rc;
    rc = oob->exchange(oob->context, mine, sizeof *mine, all, err);
    if (rc == ERR_OK)
        rc = hello_compare(all, oob->size, err);
    if (rc == ERR_OK)
        *hellos = all;
    else
        mem_free(all);
    return rc;
}

/* Make the table of algorithms. If the file cannot be read, the reason goes to
 * *refusal and is exchanged with the hellos, as the other ranks already wait
 * for this exchange. */
static void table_prepare(const comm_config_t *config, comm_table_t *table,
                          err_t *refusal)
{
    if (config->table != NULL)
        memcpy(table, config->table, sizeof *table);
    else
        comm_table_default(table);
    if (config->table_path != NULL)
        (void)comm_table_load(config->table_path, table, refusal);
}

err_code_t comm_group_open(const comm_config_t *config, const comm_oob_t *oob,
                           comm_group_t **out, err_t *err)
{
    comm_config_t own = *config, joined;
    comm_hello_t mine, *hellos = NULL;
    comm_group_t *group = NULL;
    const comm_ops_t *ops;
    comm_table_t *table;
    err_t refusal = ERR_INIT;
    err_code_t rc;

    if (!(config->timeout > 0))
        return err_set(err, ERR_CONFIG,
                       "the timeout of a comm group is %g s: it must be above "
                       "zero",
                       config->timeout);
    rc = comm_registry_find(config->backend, oob->size, &ops, err);
    if (rc == ERR_OK)
        rc = mem_new(comm_table_t, 1, "comm table", &table, err);
    if (rc != ERR_OK)
        return rc;
    table_prepare(config, table, &refusal);
    if (refusal.code == ERR_OK && ops->ready != NULL)
        (void)ops->ready(config, &refusal);
    own.table = table;
    if (own.dev != NULL && dev_host_visible(own.dev))
        own.dev = NULL;
    /* Where the backend does not work on the memory of the device, its group is
     * the inner one of a staged group. */
    joined = own;
    if (!ops->device)
        joined.dev = NULL;
    hello_fill(&mine, oob, ops, &own, &refusal);
    rc = hello_exchange(oob, &mine, &hellos, err);
    if (rc == ERR_OK)
        rc = ops->open(&joined, oob, hellos, &group, err);
    if (rc == ERR_OK && joined.dev != own.dev)
        rc = comm_staged_open(group, own.dev, &group, err);
    if (rc == ERR_OK) {
        *out = group;
    } else {
        mem_free(hellos);
        mem_free(table);
    }
    return rc;
}
