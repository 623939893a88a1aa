/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Opens and closes the net of a group. The ranks first find out which of them
 * share a node, as that decides which transports the worker gets and where it
 * listens (ucx_fabric.h, ucx_gate.h). Then they exchange the addresses of their
 * workers.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "comm/ucx/ucx_gate.h"
#include "comm/ucx/ucx_local.h"
#include "comm/ucx/ucx_net.h"

/* Maximum bytes of an address in the first exchange. If an address is longer
 * (many RDMA devices), there is a second exchange. */
#define ADDRESS_MOST 504

/* Bytes of /dev/shm that all groups of a rank together may need. */
#define SHM_LEAST ((uint64_t)16 << 20)

typedef struct address_slot {
    uint64_t bytes;
    char address[ADDRESS_MOST];
} address_slot_t;

/* The networks of all ranks, and how this rank uses them. */
typedef struct network {
    const ucx_fabric_t *fabrics;
    ucx_reach_t reach;
    const ucx_iface_t *iface; /* for UCX_REACH_IFACE, else NULL */
} network_t;

/* Return the error that UCX cannot do [what] ("start"). */
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
    static const char *const names[] = {"UCX_TLS", "UCX_NET_DEVICES",
                                        "UCX_TCP_TX_SEG_SIZE",
                                        "UCX_TCP_RX_SEG_SIZE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL)
            return true;
    return false;
}

/* ---- which transports and devices ---------------------------------------- */

/* Choose larger segments for TCP than UCX does (8 KiB), for fewer system calls.
 * All ranks must do so or none, as a segment of the sender must fit into one of
 * the receiver. If a rank's environment chooses networks, that choice counts:
 * it may exclude TCP, and then UCX would warn of unknown options. */
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

/* UCX listens on every interface that it may use. So it may use no interface if
 * all ranks share memory, and otherwise only one. */
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
    case UCX_REACH_IFACE:
        ucx_fabric_devices(network->iface, devices, sizeof devices);
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

/* Each worker takes 4 MiB of /dev/shm for messages within the node. UCX fails
 * if there is less, as in containers, whose /dev/shm has 64 MiB by default. In
 * that case choose UCX's System V memory instead, unless the user has chosen
 * transports (UCX_TLS). */
static void config_spare(ucp_config_t *config, const network_t *network,
                         const comm_group_t *base)
{
    uint64_t least = 0;
    struct statvfs shm;
    char bytes[32];

    for (int rank = 0; rank < base->size; rank++)
        if (strcmp(base->hellos[rank].host, base->hellos[base->rank].host) == 0)
            least += SHM_LEAST;
    if (getenv("UCX_TLS") != NULL || statvfs("/dev/shm", &shm) != 0 ||
        (uint64_t)shm.f_bavail * shm.f_frsize >= least)
        return;
    log_debug(
        "comm", "/dev/shm has %s free: UCX uses System V shared memory instead",
        str_bytes((uint64_t)shm.f_bavail * shm.f_frsize, bytes, sizeof bytes));
    (void)ucp_config_modify(config, "TLS",
                            network->reach == UCX_REACH_MEMORY ? "self,sysv,cma"
                                                               : "^posix");
}

/* ---- the worker ---------------------------------------------------------- */

static err_code_t context_open(ucx_net_t *net, const network_t *network,
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
        .estimated_num_eps = (size_t)net->base->size,
        .mt_workers_shared = 0,
    };
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    err_code_t rc;

    if (status != UCS_OK)
        return net_error(err, "read its configuration", status);
    config_tune(config, net->base->hellos, net->base->size);
    rc = config_confine(config, network, err);
    config_spare(config, network, net->base);
    if (rc == ERR_OK) {
        status = ucp_init(&params, config, &net->worker_context);
        if (status != UCS_OK) {
            net->worker_context = NULL;
            rc = net_error(err, "start (see UCX_TLS, UCX_NET_DEVICES)", status);
        }
    }
    ucp_config_release(config);
    return rc;
}

static err_code_t worker_open(ucx_net_t *net, err_t *err)
{
    ucp_worker_params_t worker = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    ucs_status_t status =
        ucp_worker_create(net->worker_context, &worker, &net->worker);

    if (status != UCS_OK) {
        net->worker = NULL;
        return net_error(err, "create a worker", status);
    }
    status =
        ucp_worker_get_address(net->worker, &net->address, &net->address_bytes);
    if (status != UCS_OK) {
        net->address = NULL;
        return net_error(err, "tell its address", status);
    }
    return ERR_OK;
}

/* Set reached[rank] for the ranks that this rank reaches over the network. If
 * UCX_TLS is set, these may be ranks of this node, too. Returns whether the
 * addresses of all ranks are known. */
static bool gate_reached(const ucx_net_t *net, const ucx_fabric_t *fabrics,
                         uint8_t *reached)
{
    bool own_tls = false, known = true;

    for (int rank = 0; rank < net->base->size; rank++) {
        own_tls = own_tls || fabrics[rank].own_tls;
        known = known && !fabrics[rank].more && !fabrics[rank].open &&
                fabrics[rank].network != 0;
    }
    for (int rank = 0; rank < net->base->size; rank++)
        reached[rank] =
            own_tls || (rank != net->base->rank && !net->peers[rank].local);
    return known;
}

/* Return whether a reached rank shares our network namespace, so that it may
 * connect over the loopback. */
static bool gate_has_mate(const ucx_net_t *net, const ucx_fabric_t *fabrics,
                          const uint8_t *reached)
{
    for (int rank = 0; rank < net->base->size; rank++)
        if (reached[rank] && rank != net->base->rank &&
            fabrics[rank].network == fabrics[net->base->rank].network)
            return true;
    return false;
}

/* Let only ranks of the group connect to the worker. On the loopback a gate is
 * of no use: only this machine can connect, and the address does not tell which
 * process connects. A job also runs without the gate, so if the kernel refuses
 * the gate, cddp only warns. Only rank 0 warns, and only once, as most likely
 * all machines have the same kernel. */
static err_code_t gate_make(ucx_net_t *net, const network_t *network,
                            const ucx_gate_fds_t *before, err_t *err)
{
    /* global: this process has warned, in one of its groups */
    static atomic_flag told = ATOMIC_FLAG_INIT;
    ucx_gate_t gate = {.fabrics = network->fabrics,
                       .size = net->base->size,
                       .iface = network->iface,
                       .worker = net->address,
                       .bytes = net->address_bytes};
    uint8_t *reached;
    err_t why = ERR_INIT;
    err_code_t rc = mem_new(uint8_t, (size_t)net->base->size, "reached ranks",
                            &reached, err);

    if (rc != ERR_OK)
        return rc;
    gate.reached = reached;
    if (gate_reached(net, network->fabrics, reached) &&
        network->reach != UCX_REACH_LOOPBACK) {
        gate.loopback = gate_has_mate(net, network->fabrics, reached);
        if (ucx_gate_close(&gate, before, &net->sinks, &why) != ERR_OK)
            log_print(net->base->rank == 0 && !atomic_flag_test_and_set(&told)
                          ? LOG_WARN
                          : LOG_DEBUG,
                      "comm",
                      "strangers on the network are not kept out: %s (see "
                      "\"Security\" in ADMIN.md)",
                      why.text);
        log_debug("comm", "%d listening sockets, closed to strangers",
                  net->sinks.count);
    }
    mem_free(reached);
    return ERR_OK;
}

static err_code_t worker_make(ucx_net_t *net, const ucx_info_t *infos,
                              const node_place_t *place, err_t *err)
{
    int size = net->base->size, rank = net->base->rank, iface = -1;
    ucx_gate_fds_t before;
    ucx_fabric_t *fabrics;
    network_t network;
    err_code_t rc =
        mem_new(ucx_fabric_t, (size_t)size, "networks", &fabrics, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < size; i++)
        fabrics[i] = infos[i].fabric;
    network.fabrics = fabrics;
    network.reach = ucx_fabric_reach(fabrics, size, rank,
                                     place->nodes == 1 && place->whole, &iface);
    network.iface = iface < 0 ? NULL : &fabrics[rank].ifaces[iface];
    rc = context_open(net, &network, err);
    ucx_gate_look(&before);
    if (rc == ERR_OK)
        rc = worker_open(net, err);
    if (rc == ERR_OK)
        rc = gate_make(net, &network, &before, err);
    mem_free(fabrics);
    return rc;
}

/* ---- addresses ----------------------------------------------------------- */

/* Exchange the addresses of all ranks. Each rank gives [slot] bytes: the length
 * of its address, and as much of the address as fits. */
static err_code_t slots_exchange(ucx_net_t *net, const comm_oob_t *oob,
                                 size_t slot, err_t *err)
{
    const size_t head = offsetof(address_slot_t, address);
    const uint64_t bytes = net->address_bytes;
    char *all = NULL, *mine = NULL;
    err_code_t rc =
        mem_new(char, slot *(size_t)oob->size, "comm addresses", &all, err);

    if (rc == ERR_OK)
        rc = mem_new(char, slot, "comm address", &mine, err);
    if (rc != ERR_OK) {
        mem_free(all);
        return rc;
    }
    mem_free(net->addresses);
    net->addresses = all;
    memcpy(mine, &bytes, sizeof bytes);
    memcpy(mine + head, net->address,
           bytes < slot - head ? (size_t)bytes : slot - head);
    rc = oob->exchange(oob->context, mine, slot, net->addresses, err);
    mem_free(mine);
    for (int rank = 0; rank < oob->size; rank++)
        net->peers[rank].address = net->addresses + (size_t)rank * slot + head;
    return rc;
}

err_code_t ucx_net_meet(ucx_net_t *net, const comm_oob_t *oob, err_t *err)
{
    const size_t head = offsetof(address_slot_t, address);
    uint64_t longest = 0, bytes;
    err_code_t rc = slots_exchange(net, oob, sizeof(address_slot_t), err);

    for (int rank = 0; rc == ERR_OK && rank < oob->size; rank++) {
        memcpy(&bytes, net->addresses + (size_t)rank * sizeof(address_slot_t),
               sizeof bytes);
        longest = bytes > longest ? bytes : longest;
    }
    if (rc == ERR_OK && longest > ADDRESS_MOST)
        rc = slots_exchange(net, oob, mem_round(head + (size_t)longest), err);
    return rc;
}

/* ---- open and close ------------------------------------------------------ */

static err_code_t peers_new(ucx_net_t *net, err_t *err)
{
    size_t size = (size_t)net->base->size;
    err_code_t rc = mem_new(ucx_peer_t, size, "comm peers", &net->peers, err);

    for (size_t i = 0; rc == ERR_OK && i < size; i++)
        net->peers[i] = (ucx_peer_t){.net = net, .pidfd = -1};
    return rc;
}

err_code_t ucx_net_open(ucx_net_t *net, const comm_oob_t *oob,
                        ucx_local_t *local, err_t *err)
{
    ucx_info_t info, *infos = NULL;
    int fd = -1;
    err_code_t rc = peers_new(net, err);

    if (rc == ERR_OK)
        rc = mem_new(ucx_info_t, (size_t)oob->size, "comm infos", &infos, err);
    if (rc == ERR_OK)
        rc = ucx_local_info(&info, &fd, err);
    if (rc == ERR_OK)
        rc = oob->exchange(oob->context, &info, sizeof info, infos, err);
    if (rc == ERR_OK)
        rc = ucx_local_find(net, oob, infos, local, err);
    if (rc == ERR_OK)
        rc = worker_make(net, infos, &local->place, err);
    if (fd >= 0)
        close(fd);
    mem_free(infos);
    return rc;
}

void ucx_net_close(ucx_net_t *net)
{
    if (net->address != NULL)
        ucp_worker_release_address(net->worker, net->address);
    if (net->worker != NULL)
        ucp_worker_destroy(net->worker);
    if (net->worker_context != NULL)
        ucp_cleanup(net->worker_context);
    ucx_gate_open(&net->sinks);
    mem_free(net->addresses);
    mem_free(net->peers);
}
