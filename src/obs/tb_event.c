/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "obs/tb_event.h"

#ifdef HAVE_TENSORBOARD

#include <isa-l/crc.h>
#include <limits.h>
#include <string.h>

#include "base/check.h"
#include "base/little.h"
#include "tb_event.pb-c.h"

/* Numbers of a frame are little-endian. */
#define FRAME_HEAD 12 /* bytes before the message: length and its CRC */
#define FRAME_TAIL 4  /* bytes after it: its CRC */
#define FLOAT_TYPE 1  /* TensorFlow's DT_FLOAT and DT_STRING */
#define STRING_TYPE 7
#define HPARAMS_ROOM (16 << 10)

bool obs_tb_built(void)
{
    return true;
}

/* ---- frame --------------------------------------------------------------- */

/* TFRecord's masked CRC32C. crc32_iscsi leaves both inversions of a CRC32C to
 * its caller. */
static uint32_t crc_masked(uint8_t *bytes, size_t count)
{
    const uint32_t crc = ~crc32_iscsi(bytes, (int)count, ~0U);

    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

static bool event_add(obs_tb_buffer_t *buffer, const Tb__Event *event)
{
    const size_t size = tb__event__get_packed_size(event);
    const size_t left = buffer->room - buffer->length;
    uint8_t *at = buffer->bytes + buffer->length;

    if (size > INT_MAX || left < size + FRAME_HEAD + FRAME_TAIL)
        return false;
    little_put(at, size, 8);
    little_put(at + 8, crc_masked(at, 8), 4);
    tb__event__pack(event, at + FRAME_HEAD);
    little_put(at + FRAME_HEAD + size, crc_masked(at + FRAME_HEAD, size), 4);
    buffer->length += size + FRAME_HEAD + FRAME_TAIL;
    return true;
}

static Tb__Event event_make(double wall, int64_t step, Tb__Event__WhatCase what)
{
    Tb__Event event = TB__EVENT__INIT;

    event.wall_time = wall;
    event.step = step;
    event.what_case = what;
    return event;
}

/* ---- records ------------------------------------------------------------- */

bool obs_tb_add_version(obs_tb_buffer_t *buffer, double wall)
{
    Tb__Event event = event_make(wall, 0, TB__EVENT__WHAT_FILE_VERSION);
    char version[] = "brain.Event:2";

    event.file_version = version;
    return event_add(buffer, &event);
}

bool obs_tb_add_start(obs_tb_buffer_t *buffer, double wall, int64_t step)
{
    Tb__Event event = event_make(wall, step, TB__EVENT__WHAT_SESSION_LOG);
    Tb__SessionLog log = TB__SESSION_LOG__INIT;

    log.status = TB__SESSION_LOG__SESSION_STATUS__START;
    event.session_log = &log;
    return event_add(buffer, &event);
}

bool obs_tb_add_scalars(obs_tb_buffer_t *buffer, double wall, int64_t step,
                        const obs_tb_scalar_t *scalars, int count)
{
    Tb__Event event = event_make(wall, step, TB__EVENT__WHAT_SUMMARY);
    Tb__Summary summary = TB__SUMMARY__INIT;
    Tb__Summary__Value values[OBS_TB_SCALARS_MAX];
    Tb__Summary__Value *list[OBS_TB_SCALARS_MAX];

    check(count <= OBS_TB_SCALARS_MAX, "%d numbers in a record", count);
    for (int i = 0; i < count; i++) {
        tb__summary__value__init(&values[i]);
        values[i].tag = (char *)scalars[i].tag;
        values[i].value_case = TB__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        values[i].simple_value = scalars[i].value;
        list[i] = &values[i];
    }
    summary.n_value = (size_t)count;
    summary.value = list;
    event.summary = &summary;
    return event_add(buffer, &event);
}

/* Append a record with the tensor of one value, for the plugin [plugin]. */
static bool tensor_add(obs_tb_buffer_t *buffer, double wall, const char *tag,
                       Tb__SummaryMetadata__PluginData *plugin,
                       Tb__TensorProto *tensor)
{
    Tb__Event event = event_make(wall, 0, TB__EVENT__WHAT_SUMMARY);
    Tb__Summary summary = TB__SUMMARY__INIT;
    Tb__SummaryMetadata metadata = TB__SUMMARY_METADATA__INIT;
    Tb__Summary__Value value = TB__SUMMARY__VALUE__INIT, *list = &value;

    metadata.plugin_data = plugin;
    value.tag = (char *)tag;
    value.metadata = &metadata;
    value.value_case = TB__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = tensor;
    summary.n_value = 1;
    summary.value = &list;
    event.summary = &summary;
    return event_add(buffer, &event);
}

bool obs_tb_add_text(obs_tb_buffer_t *buffer, double wall, const char *tag,
                     const char *text)
{
    Tb__SummaryMetadata__PluginData plugin =
        TB__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Tb__TensorShapeProto__Dim dim = TB__TENSOR_SHAPE_PROTO__DIM__INIT;
    Tb__TensorShapeProto__Dim *dims = &dim;
    Tb__TensorShapeProto shape = TB__TENSOR_SHAPE_PROTO__INIT;
    Tb__TensorProto tensor = TB__TENSOR_PROTO__INIT;
    ProtobufCBinaryData string = {strlen(text), (uint8_t *)text};
    char name[] = "text";

    plugin.plugin_name = name;
    dim.size = 1;
    shape.n_dim = 1;
    shape.dim = &dims;
    tensor.dtype = STRING_TYPE;
    tensor.tensor_shape = &shape;
    tensor.n_string_val = 1;
    tensor.string_val = &string;
    return tensor_add(buffer, wall, tag, &plugin, &tensor);
}

/* Pack the settings as the hparams plugin expects them into [out]. Returns the
 * number of bytes, 0 if they do not fit. */
static size_t hparams_pack(double wall, const obs_tb_hparam_t *hparams,
                           int count, uint8_t out[HPARAMS_ROOM])
{
    Tb__HParamsPluginData data = TB__HPARAMS_PLUGIN_DATA__INIT;
    Tb__SessionStartInfo info = TB__SESSION_START_INFO__INIT;
    Tb__SessionStartInfo__Entry entries[OBS_TB_SCALARS_MAX];
    Tb__SessionStartInfo__Entry *list[OBS_TB_SCALARS_MAX];
    Tb__Value values[OBS_TB_SCALARS_MAX];

    for (int i = 0; i < count; i++) {
        tb__session_start_info__entry__init(&entries[i]);
        tb__value__init(&values[i]);
        entries[i].key = (char *)hparams[i].name;
        entries[i].value = &values[i];
        values[i].kind_case = hparams[i].text == NULL
                                  ? TB__VALUE__KIND_NUMBER_VALUE
                                  : TB__VALUE__KIND_STRING_VALUE;
        if (hparams[i].text == NULL)
            values[i].number_value = hparams[i].number;
        else
            values[i].string_value = (char *)hparams[i].text;
        list[i] = &entries[i];
    }
    info.n_hparams = (size_t)count;
    info.hparams = list;
    info.start_time_secs = wall;
    data.data_case = TB__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
    data.session_start_info = &info;
    if (tb__hparams_plugin_data__get_packed_size(&data) > HPARAMS_ROOM)
        return 0;
    return tb__hparams_plugin_data__pack(&data, out);
}

bool obs_tb_add_hparams(obs_tb_buffer_t *buffer, double wall,
                        const obs_tb_hparam_t *hparams, int count)
{
    Tb__SummaryMetadata__PluginData plugin =
        TB__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Tb__TensorShapeProto shape = TB__TENSOR_SHAPE_PROTO__INIT;
    Tb__TensorProto tensor = TB__TENSOR_PROTO__INIT;
    uint8_t content[HPARAMS_ROOM];
    char name[] = "hparams";

    check(count <= OBS_TB_SCALARS_MAX, "%d settings", count);
    plugin.plugin_name = name;
    plugin.content.data = content;
    plugin.content.len = hparams_pack(wall, hparams, count, content);
    tensor.dtype = FLOAT_TYPE;
    tensor.tensor_shape = &shape;
    return plugin.content.len > 0 &&
           tensor_add(buffer, wall, "_hparams_/session_start_info", &plugin,
                      &tensor);
}

#else

bool obs_tb_built(void)
{
    return false;
}

bool obs_tb_add_version(obs_tb_buffer_t *buffer, double wall)
{
    (void)buffer, (void)wall;
    return false;
}

bool obs_tb_add_start(obs_tb_buffer_t *buffer, double wall, int64_t step)
{
    (void)buffer, (void)wall, (void)step;
    return false;
}

bool obs_tb_add_scalars(obs_tb_buffer_t *buffer, double wall, int64_t step,
                        const obs_tb_scalar_t *scalars, int count)
{
    (void)buffer, (void)wall, (void)step, (void)scalars, (void)count;
    return false;
}

bool obs_tb_add_text(obs_tb_buffer_t *buffer, double wall, const char *tag,
                     const char *text)
{
    (void)buffer, (void)wall, (void)tag, (void)text;
    return false;
}

bool obs_tb_add_hparams(obs_tb_buffer_t *buffer, double wall,
                        const obs_tb_hparam_t *hparams, int count)
{
    (void)buffer, (void)wall, (void)hparams, (void)count;
    return false;
}

#endif
