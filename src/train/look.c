/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The ranks find out first which of them see the same copy of the data. Ranks
 * of one view (one host, one set of mounts, equal names of shards) divide the
 * shards and ask the file system for size, time and inode of each, without
 * opening it; the sum of hashes of all shards identifies the copy. Views with
 * equal sums see one copy if the files are on a file system that hosts share.
 * On other file systems equal inodes may belong to other files, so there each
 * view has a copy of its own.
 *
 * Then each rank looks at its part of the shards of its copy. After a vote, the
 * facts travel in one all-gather.
 */
#include "train/look.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/dataset_index.h"
#include "train/view.h"
#include "train/vote.h"

/* The ranks between which something is divided. */
typedef struct part {
    int member, members; /* this rank's index; their number */
} part_t;

/* What the ranks of a view find together. */
typedef struct sight {
    uint64_t view; /* hash of host, mounts and names of shards */
    uint64_t names;
    uint64_t sum;   /* of the hashes of all shards */
    uint64_t local; /* number of shards that are on no shared file system */
} sight_t;

/* What a rank sends: the key of its copy, and the bytes of its facts. */
typedef struct parcel {
    uint64_t key, bytes;
} parcel_t;

/* The state of one call. */
typedef struct meeting {
    const train_look_t *look;
    const hdf5io_dataset_config_t *config;
    train_votes_t votes;
    hdf5io_dataset_t *dataset;
    uint64_t key; /* of the copy that this rank sees */
    part_t copy;  /* among the ranks that see it */
    void *packed; /* the facts that this rank found; NULL: nobody needs them */
    size_t bytes;
    /* [ranks]: what each rank says */
    sight_t *sights;
    uint64_t *keys;
    parcel_t *parcels;
    char *facts; /* [ranks, room]: the packed facts of each rank */
    size_t room;
} meeting_t;

static void sign_of_life(const meeting_t *meeting)
{
    if (meeting->look->alive != NULL)
        meeting->look->alive(meeting->look->context);
}

/* Put the option in front of the message in [err], unless this begins with a
 * place (file:line:column) of the run file. */
static void place_add(const train_look_t *look,
                      const hdf5io_dataset_config_t *config, err_t *err)
{
    if (err == NULL || look->what == NULL)
        return;
    for (int k = 0; k < HDF5IO_FIELDS_MAX; k++) {
        const char *input = config->inputs[k].place;
        const char *target = config->targets[k].place;

        if (input != NULL && strncmp(err->text, input, strlen(input)) == 0)
            return;
        if (target != NULL && strncmp(err->text, target, strlen(target)) == 0)
            return;
    }
    err_prefix(err, "%s", look->what);
}

/* Allocate what each rank says. All of it is allocated before a vote: a rank
 * without memory must not leave the others in a collective. */
static err_code_t meeting_make(meeting_t *meeting, err_t *err)
{
    const size_t size = (size_t)comm_group_size(meeting->look->group);
    const char *const what = "opening data";
    err_code_t rc;

    rc = mem_new(sight_t, size, what, &meeting->sights, err);
    if (rc == ERR_OK)
        rc = mem_new(uint64_t, size, what, &meeting->keys, err);
    if (rc == ERR_OK)
        rc = mem_new(parcel_t, size, what, &meeting->parcels, err);
    return rc;
}

static void meeting_free(meeting_t *meeting)
{
    mem_free(meeting->facts);
    mem_free(meeting->packed);
    mem_free(meeting->parcels);
    mem_free(meeting->keys);
    mem_free(meeting->sights);
}

/* Vote on this rank's result [rc]. Collective. */
static err_code_t meeting_vote(const meeting_t *meeting, err_code_t rc,
                               err_t *err)
{
    bool speaker;

    return train_vote(&meeting->votes, rc, &speaker, err);
}

/* ---- copies -------------------------------------------------------------- */

/* Is the file system of type [type] one that several hosts mount? An unknown
 * type counts as local, which costs opens but is never wrong. */
static bool is_shared(uint64_t type)
{
    static const uint32_t types[] = {
        0x00006969, /* NFS */
        0x0BD00BD0, /* Lustre */
        0x47504653, /* GPFS (Spectrum Scale) */
        0x19830326, /* BeeGFS */
        0x00C36400, /* CephFS */
        0xAAD7AAEA, /* PanFS */
        0x20030528, /* OrangeFS (PVFS2) */
        0xFE534D42, /* SMB 2 and later */
        0x01161970, /* GFS2 */
        0x7461636F, /* OCFS2 */
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if ((uint32_t)type == types[i])
            return true;
    return false;
}

static uint64_t names_hash(const hdf5io_dataset_t *dataset)
{
    hash_state_t *state = hash_state_open();
    uint64_t names;

    for (int i = 0; i < hdf5io_dataset_shards(dataset); i++) {
        const char *path = hdf5io_dataset_shard(dataset, i);

        hash_state_add(state, path, strlen(path) + 1);
    }
    names = hash_state_value(state);
    hash_state_free(state);
    return names;
}

/* The view of this rank, before any shard is asked for. */
static sight_t sight_begin(const meeting_t *meeting)
{
    sight_t sight = {.names = names_hash(meeting->dataset)};
    struct stat here = {0}; /* the working directory, if a name needs it */
    bool relative = false;
    uint64_t parts[4];

    for (int i = 0; i < hdf5io_dataset_shards(meeting->dataset); i++)
        if (hdf5io_dataset_shard(meeting->dataset, i)[0] != '/')
            relative = true;
    if (relative && stat(".", &here) != 0)
        here = (struct stat){0};
    parts[0] = train_view(meeting->look->group);
    parts[1] = sight.names;
    parts[2] = (uint64_t)here.st_dev;
    parts[3] = (uint64_t)here.st_ino;
    sight.view = hash_bytes(parts, sizeof parts);
    return sight;
}

/* Add the shards of this rank to [sight]. A file that cannot be asked for gets
 * its error when it is opened. */
static void sight_add(const meeting_t *meeting, const part_t *part,
                      sight_t *sight)
{
    const int shards = hdf5io_dataset_shards(meeting->dataset);
    struct statfs system = {0};
    dev_t device = 0;
    bool known = false;

    for (int i = part->member; i < shards; i += part->members) {
        const char *path = hdf5io_dataset_shard(meeting->dataset, i);
        struct stat status = {0};

        sign_of_life(meeting);
        if (stat(path, &status) != 0) {
            sight->local++;
            continue;
        }
        if (!known || status.st_dev != device)
            known = statfs(path, &system) == 0;
        device = status.st_dev;
        if (!known || !is_shared((uint64_t)system.f_type))
            sight->local++;
        sight->sum +=
            hash_bytes((const uint64_t[]){(uint64_t)i, (uint64_t)status.st_size,
                                          (uint64_t)status.st_mtim.tv_sec,
                                          (uint64_t)status.st_mtim.tv_nsec,
                                          (uint64_t)status.st_ino},
                       5 * sizeof(uint64_t));
    }
}

/* This rank's part among the ranks whose entry in [keys] equals its own. */
static part_t part_of(const uint64_t *keys, int rank, int size)
{
    part_t part = {0};

    for (int r = 0; r < size; r++) {
        if (keys[r] != keys[rank])
            continue;
        part.member += r < rank ? 1 : 0;
        part.members++;
    }
    return part;
}

/* A number that is equal on all ranks that see one copy, from what the ranks of
 * this view found. */
static uint64_t copy_key(const sight_t *sights, int rank, int size)
{
    uint64_t parts[3] = {sights[rank].names, 0, 0};
    bool local = false;

    for (int r = 0; r < size; r++) {
        if (sights[r].view != sights[rank].view)
            continue;
        parts[1] += sights[r].sum;
        local = local || sights[r].local > 0;
    }
    parts[2] = local ? sights[rank].view : 0;
    return hash_bytes(parts, sizeof parts);
}

/* Find this rank's part of its copy. Collective. */
static err_code_t copy_find(meeting_t *meeting, err_t *err)
{
    comm_group_t *group = meeting->look->group;
    const int rank = comm_group_rank(group), size = comm_group_size(group);
    sight_t mine = sight_begin(meeting);
    part_t view;
    err_code_t rc;

    rc =
        comm_allgather(group, &mine.view, sizeof mine.view, meeting->keys, err);
    if (rc != ERR_OK)
        return rc;
    view = part_of(meeting->keys, rank, size);
    sight_add(meeting, &view, &mine);
    rc = comm_allgather(group, &mine, sizeof mine, meeting->sights, err);
    if (rc != ERR_OK)
        return rc;
    meeting->key = copy_key(meeting->sights, rank, size);
    rc = comm_allgather(group, &meeting->key, sizeof meeting->key,
                        meeting->keys, err);
    if (rc == ERR_OK)
        meeting->copy = part_of(meeting->keys, rank, size);
    return rc;
}

/* ---- facts --------------------------------------------------------------- */

/* Look at this rank's part of the shards, and pack what was found. */
static err_code_t part_look(meeting_t *meeting, err_t *err)
{
    const int shards = hdf5io_dataset_shards(meeting->dataset);
    err_code_t rc = ERR_OK;

    for (int i = meeting->copy.member; i < shards && rc == ERR_OK;
         i += meeting->copy.members) {
        sign_of_life(meeting);
        rc = hdf5io_dataset_look(meeting->dataset, i, err);
    }
    if (rc != ERR_OK) {
        place_add(meeting->look, meeting->config, err);
        return rc;
    }
    if (meeting->copy.members == 1)
        return ERR_OK;
    return hdf5io_catalogue_pack(hdf5io_dataset_catalogue(meeting->dataset),
                                 meeting->copy.member, meeting->copy.members,
                                 &meeting->packed, &meeting->bytes, err);
}

/* Send the facts of this rank to all, and get those of all ranks. Collective.
 */
static err_code_t facts_gather(meeting_t *meeting, err_t *err)
{
    comm_group_t *group = meeting->look->group;
    const size_t size = (size_t)comm_group_size(group);
    const parcel_t mine = {meeting->key, meeting->bytes};
    char *padded = NULL;
    err_code_t rc;

    rc = comm_allgather(group, &mine, sizeof mine, meeting->parcels, err);
    if (rc != ERR_OK)
        return rc;
    for (size_t r = 0; r < size; r++)
        if (meeting->parcels[r].bytes > meeting->room)
            meeting->room = (size_t)meeting->parcels[r].bytes;
    if (meeting->room == 0)
        return ERR_OK;
    rc = mem_new(char, meeting->room, "opening data", &padded, err);
    if (rc == ERR_OK)
        rc = mem_new_array(meeting->room, size, "opening data",
                           mem_out(char, &meeting->facts), err);
    rc = meeting_vote(meeting, rc, err);
    if (rc == ERR_OK) {
        if (meeting->bytes > 0)
            memcpy(padded, meeting->packed, meeting->bytes);
        rc = comm_allgather(group, padded, meeting->room, meeting->facts, err);
    }
    mem_free(padded);
    return rc;
}

/* Merge the facts of the other ranks that see this copy. */
static err_code_t facts_merge(meeting_t *meeting, err_t *err)
{
    comm_group_t *group = meeting->look->group;
    const parcel_t *parcels = meeting->parcels;
    const int rank = comm_group_rank(group), size = comm_group_size(group);
    err_code_t rc = ERR_OK;

    for (int r = 0; r < size && rc == ERR_OK; r++)
        if (r != rank && parcels[r].key == parcels[rank].key)
            rc = hdf5io_catalogue_merge(
                hdf5io_dataset_catalogue(meeting->dataset),
                meeting->facts + (size_t)r * meeting->room,
                (size_t)parcels[r].bytes, err);
    return rc;
}

/* Bring the facts of this copy together, and finish the dataset. Collective. */
static err_code_t facts_share(meeting_t *meeting, err_t *err)
{
    err_code_t rc = facts_gather(meeting, err);

    if (rc != ERR_OK)
        return rc;
    rc = facts_merge(meeting, err);
    if (rc == ERR_OK)
        rc = hdf5io_dataset_finish(meeting->dataset, err);
    if (rc != ERR_OK)
        place_add(meeting->look, meeting->config, err);
    return meeting_vote(meeting, rc, err);
}

/* Open the dataset with all ranks of the group. Collective. */
static err_code_t together_open(meeting_t *meeting, err_code_t rc, err_t *err)
{
    if (rc == ERR_OK) {
        rc = hdf5io_dataset_begin(meeting->config, &meeting->dataset, err);
        if (rc != ERR_OK)
            place_add(meeting->look, meeting->config, err);
    }
    if (rc == ERR_OK)
        rc = meeting_make(meeting, err);
    rc = meeting_vote(meeting, rc, err);
    if (rc == ERR_OK) {
        hdf5io_dataset_index_read(meeting->dataset,
                                  comm_group_rank(meeting->look->group) == 0);
        rc = copy_find(meeting, err);
    }
    if (rc == ERR_OK) {
        rc = part_look(meeting, err);
        rc = meeting_vote(meeting, rc, err);
    }
    return rc == ERR_OK ? facts_share(meeting, err) : rc;
}

/* Write the index for the next start, and free what was read of the old one.
 * An index only saves time, so a failure is no error. */
static void index_end(const train_look_t *look, hdf5io_dataset_t *dataset)
{
    const int rank = look->group == NULL ? 0 : comm_group_rank(look->group);
    err_t err = ERR_INIT;

    if (look->index && rank == 0 && hdf5io_dataset_index_due(dataset) &&
        hdf5io_dataset_index_write(dataset, &err) != ERR_OK)
        log_warn("train", "the index of the shards was not written: %s",
                 err.text);
    hdf5io_dataset_index_forget(dataset);
}

err_code_t train_look_open(const train_look_t *look,
                           const hdf5io_dataset_config_t *config, err_code_t rc,
                           hdf5io_dataset_t **out, err_t *err)
{
    meeting_t meeting = {.look = look, .config = config};

    if (look->group == NULL || comm_group_size(look->group) == 1 ||
        config->mpi != NULL) {
        if (rc != ERR_OK)
            return rc;
        rc = hdf5io_dataset_open(config, out, err);
        if (rc != ERR_OK)
            place_add(look, config, err);
        else
            index_end(look, *out);
        return rc;
    }
    meeting.votes = train_votes_of_group(look->group);
    rc = together_open(&meeting, rc, err);
    meeting_free(&meeting);
    if (rc == ERR_OK) {
        index_end(look, meeting.dataset);
        *out = meeting.dataset;
    } else {
        hdf5io_dataset_close(meeting.dataset);
    }
    return rc;
}
