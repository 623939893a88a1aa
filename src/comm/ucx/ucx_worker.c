/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The UCP worker of a group: made once the ranks know who shares a node, as
 * that decides which transports it gets and where it listens (ucx_fabric.h,
 * ucx_gate.h); then the ranks exchange the addresses of their workers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "comm/ucx/ucx_gate.h"
#include "comm/ucx/ucx_group.h"

/* Longer addresses (many RDMA devices) take an exchange of their own. */
#define ADDRESS_MOST 504

typedef struct letter {
    uint64_t bytes;
    char address[ADDRESS_MOST];
} letter_t;

/* What all ranks told of their networks, and what follows for this one. */
typedef struct network {
    const ucx_fabric_t *fabrics;
    ucx_reach_t reach;
    const ucx_face_t *face; /* of UCX_REACH_FACE, else NULL */
} network_t;

static err_code_t net_error(err_t *err, const char *what, ucs_status_t status)
{
    return err_set(err, ERR_UNAVAILABLE, "UCX cannot %s: %s", what,
                   ucs_status_string(status));
}

static void request_init(void *request)
{
    memset(request, 0, sizeof(ucx_request_t));
}

bool ucx_net_is_own(void)
{
    static const char *const theirs[] = {"UCX_TLS", "UCX_NET_DEVICES",
                                         "UCX_TCP_TX_SEG_SIZE",
                                         "UCX_TCP_RX_SEG_SIZE"};

    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (getenv(theirs[i]) != NULL)
            return true;
    return false;
}

/* ---- which transports and devices ---------------------------------------- */

/* Larger segments over TCP than UCX's own choice (8 KiB): fewer system calls.
 * All ranks or none, as a receiver's segments must hold a sender's. What the
 * users' environments say counts more; where they restrict the transports there
 * may be no TCP, and UCX would warn of unknown names. */
static void config_tune(ucp_config_t *config, const comm_hello_t *hellos,
                        int size)
{
    bool several = false;

    for (int rank = 0; rank < size; rank++) {
        if (hellos[rank].own_net)
            return;
        several = several || strcmp(hellos[rank].host, hellos[0].host) != 0;
    }
    if (!several)
        return;
    (void)ucp_config_modify(config, "TX_SEG_SIZE", "64k");
    (void)ucp_config_modify(config, "RX_SEG_SIZE", "64k");
}

/* UCX listens on every interface that it may use. So it may use none where all
 * ranks share memory, and one else. */
static err_code_t config_confine(ucp_config_t *config, const network_t *network,
                                 err_t *err)
{
    char devices[UCX_DEVICES];
    ucs_status_t status = UCS_OK;

    switch (network->reach) {
    case UCX_REACH_MEMORY:
        status = ucp_config_modify(config, "TLS", "self,sm");
        break;
    case UCX_REACH_LOOPBACK:
        status = ucp_config_modify(config, "NET_DEVICES", "lo");
        break;
    case UCX_REACH_FACE:
        ucx_fabric_devices(network->face, devices, sizeof devices);
        status = ucp_config_modify(config, "NET_DEVICES", devices);
        log_debug("comm", "network devices: %s", devices);
        break;
    case UCX_REACH_ANY:
        log_debug("comm", "network devices: UCX_NET_DEVICES, or all of them");
        break;
    }
    return status == UCS_OK ? ERR_OK
                            : net_error(err, "choose its devices", status);
}

/* ---- the worker ---------------------------------------------------------- */

static err_code_t context_open(ucx_group_t *group, const network_t *network,
                               err_t *err)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
                      UCP_PARAM_FIELD_REQUEST_INIT |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
        .request_size = sizeof(ucx_request_t),
        .request_init = request_init,
        .estimated_num_eps = (size_t)group->base.size,
        .mt_workers_shared = 0,
    };
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    err_code_t rc;

    if (status != UCS_OK)
        return net_error(err, "read its configuration", status);
    config_tune(config, group->base.hellos, group->base.size);
    rc = config_confine(config, network, err);
    if (rc == ERR_OK) {
        status = ucp_init(&params, config, &group->context);
        if (status != UCS_OK) {
            group->context = NULL;
            rc = net_error(err, "start (see UCX_TLS, UCX_NET_DEVICES)", status);
        }
    }
    ucp_config_release(config);
    return rc;
}

static err_code_t worker_open(ucx_group_t *group, err_t *err)
{
    ucp_worker_params_t worker = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    ucs_status_t status =
        ucp_worker_create(group->context, &worker, &group->worker);

    if (status != UCS_OK) {
        group->worker = NULL;
        return net_error(err, "create a worker", status);
    }
    status = ucp_worker_get_address(group->worker, &group->address,
                                    &group->address_bytes);
    if (status != UCS_OK) {
        group->address = NULL;
        return net_error(err, "tell its address", status);
    }
    return ERR_OK;
}

/* Whom does this rank reach over the network? With UCX_TLS of the users' that
 * may be ranks of this node, too. false: nothing is known of somebody's
 * addresses. */
static bool gate_reached(const ucx_group_t *group, const ucx_fabric_t *fabrics,
                         uint8_t *reached)
{
    bool own_tls = false, known = true;

    for (int rank = 0; rank < group->base.size; rank++) {
        own_tls = own_tls || fabrics[rank].own_tls;
        known = known && !fabrics[rank].more && !fabrics[rank].open &&
                fabrics[rank].network != 0;
    }
    for (int rank = 0; rank < group->base.size; rank++)
        reached[rank] =
            own_tls || (rank != group->base.rank && !group->peers[rank].local);
    return known;
}

/* Whoever shares our network namespace may come over its loopback. */
static bool gate_is_wanted(const ucx_group_t *group,
                           const ucx_fabric_t *fabrics, const uint8_t *reached)
{
    for (int rank = 0; rank < group->base.size; rank++)
        if (reached[rank] &&
            fabrics[rank].network == fabrics[group->base.rank].network)
            return false;
    return true;
}

/* A job without a gate runs as well as one with it: what hinders it is told. */
static err_code_t gate_open(ucx_group_t *group, const network_t *network,
                            const ucx_gate_fds_t *before, err_t *err)
{
    ucx_gate_t gate = {.fabrics = network->fabrics,
                       .size = group->base.size,
                       .face = network->face,
                       .worker = group->address,
                       .bytes = group->address_bytes};
    uint8_t *reached;
    err_t why = ERR_INIT;
    int closed = 0;
    err_code_t rc = mem_new(uint8_t, (size_t)group->base.size, "reached ranks",
                            &reached, err);

    if (rc != ERR_OK)
        return rc;
    gate.reached = reached;
    if (gate_reached(group, network->fabrics, reached) &&
        gate_is_wanted(group, network->fabrics, reached)) {
        if (ucx_gate_close(&gate, before, &closed, &why) != ERR_OK)
            log_warn("comm",
                     "strangers on the network are not kept out: %s (see "
                     "\"Security\" in ADMIN.md)",
                     why.text);
        log_debug("comm", "%d listening sockets, closed to strangers", closed);
    }
    mem_free(reached);
    return ERR_OK;
}

static err_code_t worker_make(ucx_group_t *group, const ucx_card_t *cards,
                              err_t *err)
{
    const size_t size = (size_t)group->base.size;
    const int rank = group->base.rank;
    ucx_gate_fds_t before;
    ucx_fabric_t *fabrics;
    network_t network;
    int face = -1;
    err_code_t rc = mem_new(ucx_fabric_t, size, "networks", &fabrics, err);

    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < size; i++)
        fabrics[i] = cards[i].fabric;
    network =
        (network_t){.fabrics = fabrics,
                    .reach = ucx_fabric_reach(
                        fabrics, group->base.size, rank,
                        group->place.nodes == 1 && group->place.whole, &face)};
    network.face = face < 0 ? NULL : &fabrics[rank].faces[face];
    rc = context_open(group, &network, err);
    ucx_gate_look(&before);
    if (rc == ERR_OK)
        rc = worker_open(group, err);
    if (rc == ERR_OK)
        rc = gate_open(group, &network, &before, err);
    mem_free(fabrics);
    return rc;
}

/* ---- addresses ----------------------------------------------------------- */

/* All give [slot] bytes, which begin with their length. */
static err_code_t letters_exchange(ucx_group_t *group, const comm_oob_t *oob,
                                   size_t slot, err_t *err)
{
    const size_t head = offsetof(letter_t, address);
    const uint64_t bytes = group->address_bytes;
    char *all = NULL, *mine = NULL;
    err_code_t rc =
        mem_new(char, slot *(size_t)oob->size, "comm addresses", &all, err);

    if (rc == ERR_OK)
        rc = mem_new(char, slot, "comm address", &mine, err);
    if (rc != ERR_OK) {
        mem_free(all);
        return rc;
    }
    mem_free(group->addresses);
    group->addresses = all;
    memcpy(mine, &bytes, sizeof bytes);
    memcpy(mine + head, group->address,
           bytes < slot - head ? (size_t)bytes : slot - head);
    rc = oob->exchange(oob->context, mine, slot, group->addresses, err);
    mem_free(mine);
    for (int rank = 0; rank < oob->size; rank++)
        group->peers[rank].address =
            group->addresses + (size_t)rank * slot + head;
    return rc;
}

/* Addresses differ in length; few are longer than a letter. */
static err_code_t addresses_exchange(ucx_group_t *group, const comm_oob_t *oob,
                                     err_t *err)
{
    const size_t head = offsetof(letter_t, address);
    uint64_t longest = 0, bytes;
    err_code_t rc = letters_exchange(group, oob, sizeof(letter_t), err);

    for (int rank = 0; rc == ERR_OK && rank < oob->size; rank++) {
        memcpy(&bytes, group->addresses + (size_t)rank * sizeof(letter_t),
               sizeof bytes);
        longest = bytes > longest ? bytes : longest;
    }
    if (rc == ERR_OK && longest > ADDRESS_MOST)
        rc = letters_exchange(group, oob, mem_round(head + (size_t)longest),
                              err);
    return rc;
}

/* ---- open and close ------------------------------------------------------ */

err_code_t ucx_net_open(ucx_group_t *group, const comm_oob_t *oob,
                        const comm_hello_t *hellos, err_t *err)
{
    ucx_card_t card, *cards = NULL;
    int fd = -1;
    err_code_t rc =
        mem_new(ucx_card_t, (size_t)oob->size, "comm cards", &cards, err);

    if (rc == ERR_OK)
        rc = ucx_local_card(&card, &fd, err);
    if (rc == ERR_OK)
        rc = oob->exchange(oob->context, &card, sizeof card, cards, err);
    if (rc == ERR_OK)
        rc = ucx_local_find(group, oob, hellos, cards, err);
    if (rc == ERR_OK)
        rc = worker_make(group, cards, err);
    if (rc == ERR_OK)
        rc = addresses_exchange(group, oob, err);
    if (fd >= 0)
        close(fd);
    mem_free(cards);
    return rc;
}

void ucx_net_close(ucx_group_t *group)
{
    if (group->address != NULL)
        ucp_worker_release_address(group->worker, group->address);
    if (group->worker != NULL)
        ucp_worker_destroy(group->worker);
    if (group->context != NULL)
        ucp_cleanup(group->context);
    mem_free(group->addresses);
}
