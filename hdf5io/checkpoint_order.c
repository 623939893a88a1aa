/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_order.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/hash.h"

static const char *const order_shuffles[] = {[HDF5IO_SHUFFLE_NONE] = "none",
                                             [HDF5IO_SHUFFLE_CHUNK] = "chunk",
                                             [HDF5IO_SHUFFLE_FULL] = "full"};
#define ORDER_SHUFFLES ((int)(sizeof order_shuffles / sizeof order_shuffles[0]))

void hdf5io_order_print(const hdf5io_order_t *order, str_buf_t *out)
{
    char hash[HASH_TEXT_MAX];

    if (order->version == 0)
        return;
    str_buf_add(out, " \"order\": {\"version\": %d, \"shuffle\": \"%s\"",
                order->version, order_shuffles[order->shuffle]);
    if (order->lanes > 0)
        str_buf_add(out,
                    ", \"batch\": %" PRId64 ", \"lanes\": %" PRId64
                    ", \"units\": \"%s\"",
                    order->batch, order->lanes,
                    hash_format(order->units, hash));
    str_buf_add(out, "},\n");
}

static bool shuffle_parse(const char *text, hdf5io_shuffle_t *out)
{
    for (int k = 0; text != NULL && k < ORDER_SHUFFLES; k++)
        if (strcmp(text, order_shuffles[k]) == 0) {
            *out = (hdf5io_shuffle_t)k;
            return true;
        }
    return false;
}

/* Read what version 2 of `chunk` depends on. */
static bool lanes_parse(const json_t *item, hdf5io_order_t *out)
{
    const json_t *batch = json_object_get(item, "batch");
    const json_t *lanes = json_object_get(item, "lanes");
    const char *units = json_string_value(json_object_get(item, "units"));

    out->batch = json_integer_value(batch);
    out->lanes = json_integer_value(lanes);
    return out->lanes >= 1 && out->batch >= out->lanes && units != NULL &&
           hash_parse(units, &out->units);
}

err_code_t hdf5io_order_parse(const json_t *root, hdf5io_order_t *out,
                              err_t *err)
{
    const json_t *item = json_object_get(root, "order");
    const json_int_t version =
        json_integer_value(json_object_get(item, "version"));
    hdf5io_order_t order = {0};
    bool good = version >= 1 && version <= INT_MAX;

    if (item == NULL) {
        *out = order;
        return ERR_OK;
    }
    order.version = good ? (int)version : 0;
    /* What a later version says is not known here. */
    if (good && version <= HDF5IO_ORDER_NEWEST)
        good =
            shuffle_parse(json_string_value(json_object_get(item, "shuffle")),
                          &order.shuffle);
    if (good && version == HDF5IO_ORDER_NEWEST &&
        order.shuffle == HDF5IO_SHUFFLE_CHUNK)
        good = lanes_parse(item, &order);
    if (!good)
        return err_set(err, ERR_DATA, "its member \"order\" is not valid");
    *out = order;
    return ERR_OK;
}
