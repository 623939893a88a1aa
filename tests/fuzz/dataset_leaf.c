/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Datasets with their own storage: any type, shape, layout and filters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/dataset_case.h"

#define LEAF_CHOICES(array) (sizeof(array) / sizeof(array)[0])

/* Maximum chunks of a dataset that is written: the newer formats store an index
 * of all chunks, written or not. */
#define LEAF_CHUNKS 65536
/* A filter number from the range reserved for tests. */
#define LEAF_FILTER 300
/* Maximum bytes of a chunk that has filters or is written: any program holds
 * such a chunk in memory. */
#define LEAF_CHUNK_BYTES ((uint64_t)1 << 20)

uint64_t case_product(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t case_elements(const case_set_t *set, int first)
{
    uint64_t elements = 1;

    for (int d = first; d < set->ndim; d++)
        if (set->dims[d] == 0)
            return 0;
    for (int d = first; d < set->ndim; d++)
        elements = case_product(elements, set->dims[d]);
    return elements;
}

void case_shape_take(case_bytes_t *bytes, const case_shape_t *shape, int odd,
                     case_set_t *set)
{
    static const int ranks[] = {0, 1, 2, 3, 5, 7, 31, 32};
    static const hsize_t sizes[] = {1,
                                    2,
                                    3,
                                    0,
                                    7,
                                    64,
                                    1000,
                                    65535,
                                    (hsize_t)1 << 20,
                                    (hsize_t)1 << 31,
                                    (hsize_t)1 << 32,
                                    (hsize_t)1 << 40,
                                    (hsize_t)1 << 61,
                                    (hsize_t)1 << 62,
                                    (hsize_t)INT64_MAX,
                                    (hsize_t)1 << 63,
                                    UINT64_MAX - 1};

    set->ndim = 1 + shape->ndim[odd];
    set->dims[0] = shape->rows;
    for (int d = 1; d < set->ndim; d++)
        set->dims[d] = shape->dims[odd][d - 1];
    if (case_pick(bytes, 16) < 14)
        return;
    set->ndim = ranks[case_pick(bytes, LEAF_CHOICES(ranks))];
    for (int d = 0; d < set->ndim; d++)
        set->dims[d] = sizes[d < 4 ? case_pick(bytes, LEAF_CHOICES(sizes))
                                   : case_pick(bytes, 3)];
}

/* A copy of [type] with [size] bytes. */
static hid_t leaf_sized_type(hid_t type, size_t size)
{
    hid_t copy = H5Tcopy(type);

    H5Tset_size(copy, size);
    return copy;
}

/* A type that HDF5 itself must convert: an integer of unusual size or
 * precision, or a 16-bit float. */
static hid_t leaf_odd_type(case_bytes_t *bytes, case_set_t *set)
{
    hid_t type;

    switch (case_pick(bytes, 4)) {
    case 0:
        type = H5Tcopy(H5T_STD_U16LE);
        H5Tset_precision(type, 12);
        H5Tset_offset(type, (size_t)case_pick(bytes, 5));
        return type;
    case 1:
        return leaf_sized_type(H5T_STD_I32BE, 3);
    case 2:
        type = H5Tcopy(H5T_STD_I64LE);
        H5Tset_precision(type, 9 + case_pick(bytes, 40));
        return type;
    default:
        type = H5Tcopy(H5T_IEEE_F32LE);
        H5Tset_fields(type, 15, 10, 5, 0, 10);
        H5Tset_ebias(type, 15);
        H5Tset_size(type, 2);
        set->reals = true;
        return type;
    }
}

/* A type that is not a number for cddp. */
static hid_t leaf_other_type(case_bytes_t *bytes, case_set_t *set)
{
    const hsize_t three = 3;
    hid_t type;

    set->numbers = false;
    switch (case_pick(bytes, 8)) {
    case 0:
        return leaf_sized_type(H5T_C_S1, 5);
    case 1:
        return leaf_sized_type(H5T_C_S1, H5T_VARIABLE);
    case 2:
        type = H5Tcreate(H5T_COMPOUND, 8);
        H5Tinsert(type, "x", 0, H5T_STD_I32LE);
        H5Tinsert(type, "y", 4, H5T_IEEE_F32LE);
        return type;
    case 3:
        type = H5Tcreate(H5T_OPAQUE, 3);
        H5Tset_tag(type, "opaque");
        return type;
    case 4:
        return H5Tarray_create2(H5T_STD_I16LE, 1, &three);
    case 5:
        return H5Tvlen_create(H5T_STD_I16LE);
    case 6:
        return H5Tcopy(H5T_STD_B16LE);
    default:
        return H5Tcopy(H5T_STD_REF_OBJ);
    }
}

static hid_t leaf_enumeration(bool short_one)
{
    hid_t type = H5Tenum_create(short_one ? H5T_STD_I8LE : H5T_STD_I16BE);
    int8_t small = 1;
    int16_t one = 0x0100; /* 1 in big-endian byte order */

    H5Tenum_insert(type, "ONE",
                   short_one ? (const void *)&small : (const void *)&one);
    return type;
}

hid_t case_type(case_bytes_t *bytes, case_set_t *set)
{
    const hid_t types[] = {
        H5T_STD_I32LE,  H5T_STD_I8LE,   H5T_STD_U8LE,      H5T_STD_I16LE,
        H5T_STD_U16LE,  H5T_STD_I64LE,  H5T_STD_U64LE,     H5T_STD_U32LE,
        H5T_STD_I16BE,  H5T_STD_U16BE,  H5T_STD_I32BE,     H5T_STD_U32BE,
        H5T_STD_I64BE,  H5T_STD_U64BE,  H5T_IEEE_F32LE,    H5T_IEEE_F32BE,
        H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_NATIVE_LDOUBLE};
    const unsigned count = LEAF_CHOICES(types);
    const unsigned choice = case_pick(bytes, count + 5);

    set->numbers = true;
    set->reals = choice >= 14 && choice < count;
    if (choice < count)
        return H5Tcopy(types[choice]);
    if (choice < count + 2)
        return leaf_odd_type(bytes, set);
    set->named = choice < count + 4;
    if (set->named)
        return leaf_enumeration(choice == count + 2);
    return leaf_other_type(bytes, set);
}

/* Storage of one dataset. */
typedef struct leaf_plan {
    hid_t list, type;
    hsize_t most[H5S_MAX_RANK];
    uint64_t chunk_bytes; /* bytes of one chunk; 0: not chunked */
    uint64_t chunks;
    bool checked; /* the last filter detects changed bytes */
    bool never;   /* elements that are not written have no value */
    bool early;
    int file;
} leaf_plan_t;

static void leaf_filters(case_bytes_t *bytes, leaf_plan_t *plan,
                         case_set_t *set)
{
    const unsigned choice = case_pick(bytes, 8);
    /* For other widths the library's own filter changes the numbers. */
    const bool whole = H5Tget_class(plan->type) == H5T_INTEGER &&
                       H5Tget_precision(plan->type) == 8 * set->bytes &&
                       set->bytes != 3;

    if (plan->chunk_bytes > LEAF_CHUNK_BYTES)
        return;
    if (choice == 1 || choice == 3)
        H5Pset_shuffle(plan->list);
    if (choice == 4 && whole)
        H5Pset_scaleoffset(plan->list, H5Z_SO_INT, 0);
    if (choice == 5 && set->numbers)
        H5Pset_nbit(plan->list);
    if (choice >= 2 && choice <= 3)
        H5Pset_deflate(plan->list, 1);
    if (choice == 6 || (choice > 2 && case_pick(bytes, 2) == 1))
        H5Pset_fletcher32(plan->list);
    plan->checked = choice == 2 || choice == 3 || choice == 6;
    if (choice == 7) {
        H5Pset_filter(plan->list, LEAF_FILTER, H5Z_FLAG_OPTIONAL, 0, NULL);
        set->verdict = CASE_BAD;
    }
}

static void leaf_chunks(case_bytes_t *bytes, leaf_plan_t *plan, case_set_t *set)
{
    static const hsize_t sizes[] = {
        1, 2, 5, 64, 65536, (hsize_t)1 << 31, UINT32_MAX};
    hsize_t chunk[H5S_MAX_RANK];

    plan->chunk_bytes = H5Tget_size(plan->type);
    plan->chunks = 1;
    for (int d = 0; d < set->ndim; d++) {
        const unsigned choice = case_pick(bytes, 12);

        chunk[d] = set->dims[d] / 3 + 1;
        if (choice == 1 && set->dims[d] > 0)
            chunk[d] = set->dims[d];
        else if (choice >= 5)
            chunk[d] = sizes[choice - 5];
        if (choice >= 8 || set->dims[d] == 0)
            plan->most[d] = H5S_UNLIMITED;
        plan->chunk_bytes = case_product(plan->chunk_bytes, chunk[d]);
        plan->chunks = case_product(plan->chunks, set->dims[d] / chunk[d] + 1);
    }
    H5Pset_chunk(plan->list, set->ndim, chunk);
    leaf_filters(bytes, plan, set);
}

/* Choose raw storage in one to three external files. */
static void leaf_raws(case_bytes_t *bytes, leaf_plan_t *plan,
                      const case_model_t *model, case_set_t *set)
{
    const uint64_t total =
        case_product(case_elements(set, 0), H5Tget_size(plan->type));
    const int count = 1 + (int)case_pick(bytes, CASE_RAWS);
    uint64_t left = total;

    if (total == 0 || !set->numbers || case_elements(set, 0) > CASE_SMALL)
        return;
    for (int i = 0; i < count; i++) {
        const uint64_t at = case_pick(bytes, 3) * 5;
        const uint64_t part = i + 1 == count ? left : 1 + left / 2;

        if (part == 0)
            break;
        snprintf(set->raws[i], CASE_TEXT, "%s/raw-%d-%d", model->home,
                 model->set_count, i);
        H5Pset_external(plan->list, set->raws[i], (off_t)at,
                        i + 1 == count ? part + case_pick(bytes, 3) : part);
        set->raw_bytes[i] = at + part;
        set->raw_count = i + 1;
        left -= part;
        if (left == 0)
            break;
    }
}

static void leaf_fill(case_bytes_t *bytes, leaf_plan_t *plan, case_set_t *set)
{
    const unsigned choice = case_pick(bytes, 8);
    const double fill = 7;

    set->fill = 0;
    set->fill_known = true;
    if (choice == 1 && set->numbers && H5Tget_class(plan->type) != H5T_ENUM &&
        H5Pset_fill_value(plan->list, H5T_NATIVE_DOUBLE, &fill) >= 0)
        set->fill = fill;
    if (choice == 2)
        H5Pset_fill_time(plan->list, H5D_FILL_TIME_ALLOC);
    plan->never = choice == 3 || choice == 4;
    if (choice == 3)
        H5Pset_fill_time(plan->list, H5D_FILL_TIME_NEVER);
    if (choice == 4)
        H5Pset_fill_value(plan->list, plan->type, NULL);
    if (plan->never)
        set->fill_known = false;
}

static void leaf_plan_make(case_bytes_t *bytes, leaf_plan_t *plan,
                           const case_model_t *model, case_set_t *set)
{
    const unsigned layout = set->ndim == 0 ? 0 : case_pick(bytes, 8);
    const uint64_t total =
        case_product(case_elements(set, 0), H5Tget_size(plan->type));

    plan->list = H5Pcreate(H5P_DATASET_CREATE);
    for (int d = 0; d < set->ndim; d++)
        plan->most[d] = set->dims[d];
    leaf_fill(bytes, plan, set);
    if (layout >= 3 && layout < 6)
        leaf_chunks(bytes, plan, set);
    else if (layout == 6)
        H5Pset_layout(plan->list, H5D_COMPACT);
    else if (layout == 7)
        leaf_raws(bytes, plan, model, set);
    else if (layout == 1 && set->raw_count == 0)
        plan->early = total <= CASE_SMALL * 16 ||
                      (plan->never && total <= (uint64_t)1 << 42);
    if (plan->early)
        H5Pset_alloc_time(plan->list, H5D_ALLOC_TIME_EARLY);
}

/* Value of element number [at]. */
static double leaf_number(const case_model_t *model, const case_set_t *set,
                          uint64_t at)
{
    const uint64_t number = (uint64_t)(set - model->sets);

    if (at == set->nan_at)
        return NAN;
    return (double)((number * 17 + at * 3 + at / 7) % CASE_VALUES);
}

/* Make a buffer of the numbers to write. Enumerations are written in their own
 * type, since HDF5 does not convert to them. */
static void *leaf_buffer(const case_model_t *model, const case_set_t *set,
                         hid_t type, hid_t *memory)
{
    const bool named = H5Tget_class(type) == H5T_ENUM;
    double *reals = calloc(set->written + 1, sizeof *reals);

    *memory = named ? H5Tcopy(type) : H5Tcopy(H5T_NATIVE_DOUBLE);
    for (uint64_t i = 0; i < set->written; i++) {
        const double number = leaf_number(model, set, i);

        if (!named)
            reals[i] = number;
        else if (H5Tget_size(type) == 1)
            ((uint8_t *)reals)[i] = (uint8_t)number;
        else
            ((uint8_t *)reals)[2 * i + 1] = (uint8_t)number;
    }
    return reals;
}

/* Write the first set->written elements, which are whole rows. */
static void leaf_store(const case_model_t *model, hid_t dataset, hid_t type,
                       case_set_t *set)
{
    const hsize_t start[H5S_MAX_RANK] = {0};
    hsize_t count[H5S_MAX_RANK] = {0};
    hid_t memory, from = H5I_INVALID_HID, to = H5Dget_space(dataset);
    void *numbers = leaf_buffer(model, set, type, &memory);
    herr_t status;

    if (set->ndim > 0) {
        memcpy(count, set->dims, sizeof count);
        count[0] = set->written / case_elements(set, 1);
        from = H5Screate_simple(set->ndim, count, NULL);
        H5Sselect_hyperslab(to, H5S_SELECT_SET, start, NULL, count, NULL);
    }
    status = H5Dwrite(dataset, memory, set->ndim > 0 ? from : H5S_ALL,
                      set->ndim > 0 ? to : H5S_ALL, H5P_DEFAULT, numbers);
    if (status < 0) {
        set->known = set->fill_known = false;
        set->verdict = CASE_VAGUE;
    }
    if (from >= 0)
        H5Sclose(from);
    H5Sclose(to);
    H5Tclose(memory);
    free(numbers);
}

/* Choose how many elements are written: all, the first row, or none. */
static uint64_t leaf_amount(case_bytes_t *bytes, const leaf_plan_t *plan,
                            const case_set_t *set)
{
    const unsigned choice = case_pick(bytes, 8);
    const uint64_t all = case_elements(set, 0);

    if (!set->numbers || plan->chunk_bytes > LEAF_CHUNK_BYTES)
        return 0;
    if (all <= CASE_SMALL)
        return choice == 7 && set->raw_count == 0 ? 0
               : choice == 6 && set->raw_count == 0 && set->ndim > 0 && all > 0
                   ? case_elements(set, 1)
                   : all;
    if (plan->chunks == 0 || plan->chunks > LEAF_CHUNKS || set->ndim == 0 ||
        case_elements(set, 1) > CASE_SMALL)
        return 0;
    return choice < 4 ? case_elements(set, 1) : 0;
}

/* Set the verdict if some elements have neither storage nor a fill value. */
static void leaf_missing(const leaf_plan_t *plan, case_set_t *set)
{
    const uint64_t all = case_elements(set, 0);
    const H5D_layout_t layout = H5Pget_layout(plan->list);

    if (!plan->never || set->written == all || set->verdict == CASE_BAD)
        return;
    if (layout == H5D_CHUNKED)
        set->verdict = set->written > 0 ? CASE_VAGUE : CASE_BAD;
    else if (layout == H5D_CONTIGUOUS && set->written == 0 && !plan->early)
        set->verdict = CASE_BAD;
}

/* Choose a byte of the first chunk to be changed later. */
static void leaf_damage(case_bytes_t *bytes, case_model_t *model,
                        const leaf_plan_t *plan, hid_t dataset, case_set_t *set)
{
    const hsize_t first[H5S_MAX_RANK] = {0};
    hsize_t size = 0;
    haddr_t at = HADDR_UNDEF;
    unsigned mask;

    if (case_pick(bytes, 8) != 7 || !plan->checked || set->written == 0 ||
        model->patch.file >= 0)
        return;
    H5Dflush(dataset);
    if (H5Dget_chunk_info_by_coord(dataset, first, &mask, &at, &size) < 0 ||
        at == HADDR_UNDEF || size == 0 || mask != 0)
        return;
    model->patch.file = plan->file;
    model->patch.at = at + case_pick(bytes, 255) % size;
    model->patch.flip = (uint8_t)(1 << case_pick(bytes, 8));
    set->damaged = true;
}

bool case_leaf(case_bytes_t *bytes, case_model_t *model, int file, hid_t group,
               const char *name, const case_shape_t *shape, int odd)
{
    case_set_t *set = &model->sets[model->set_count];
    leaf_plan_t plan = {.file = file};
    hid_t space, dataset;

    memset(set, 0, sizeof *set);
    set->known = true;
    set->nan_at = UINT64_MAX;
    plan.type = case_type(bytes, set);
    set->bytes = H5Tget_size(plan.type);
    case_shape_take(bytes, shape, odd, set);
    leaf_plan_make(bytes, &plan, model, set);
    space = set->ndim == 0 ? H5Screate(H5S_SCALAR)
                           : H5Screate_simple(set->ndim, set->dims, plan.most);
    dataset = H5Dcreate2(group, name, plan.type, space, H5P_DEFAULT, plan.list,
                         H5P_DEFAULT);
    if (dataset >= 0) {
        set->written = leaf_amount(bytes, &plan, set);
        if (set->reals && set->written > 0 && case_pick(bytes, 16) == 15)
            set->nan_at = case_pick(bytes, 256) % set->written;
        if (set->written > 0)
            leaf_store(model, dataset, plan.type, set);
        leaf_missing(&plan, set);
        leaf_damage(bytes, model, &plan, dataset, set);
        H5Dclose(dataset);
        model->set_count++;
    }
    if (space >= 0)
        H5Sclose(space);
    H5Pclose(plan.list);
    H5Tclose(plan.type);
    return dataset >= 0;
}
