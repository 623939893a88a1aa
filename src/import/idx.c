/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * IDX, the format of MNIST and its relatives. All numbers are big-endian:
 *
 *     2 bytes 0, 1 byte type, 1 byte number of dimensions n,
 *     n sizes of 4 bytes, then the elements.
 */
#include "import/columns.h"

static bool type_of(unsigned char code, import_type_t *out)
{
    static const struct {
        unsigned char code;
        import_type_t type;
    } codes[] = {{0x08, IMPORT_UINT8},   {0x09, IMPORT_INT8},
                 {0x0b, IMPORT_INT16},   {0x0c, IMPORT_INT32},
                 {0x0d, IMPORT_FLOAT32}, {0x0e, IMPORT_FLOAT64}};

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code) {
            *out = codes[i].type;
            return true;
        }
    return false;
}

err_code_t import_idx_header(const import_config_t *config,
                             import_stream_t *stream, import_header_t *out,
                             err_t *err)
{
    const char *path = import_stream_path(stream);
    unsigned char magic[4], sizes[4 * (IMPORT_DIMS_MAX + 1)];
    import_field_t *field = &out->field;
    err_code_t rc =
        import_stream_exact(stream, magic, sizeof magic, "header", err);

    (void)config;
    if (rc != ERR_OK)
        return rc;
    if (magic[0] != 0 || magic[1] != 0 || !type_of(magic[2], &field->type))
        return err_set(err, ERR_DATA,
                       "%s: this is no IDX file: it begins with the bytes %02x "
                       "%02x %02x instead of 00 00 and a type from 08 to 0e",
                       path, magic[0], magic[1], magic[2]);
    if (magic[3] < 1 || magic[3] > IMPORT_DIMS_MAX + 1)
        return err_set(err, ERR_DATA,
                       "%s: expected 1 to %d dimensions, found %d", path,
                       IMPORT_DIMS_MAX + 1, magic[3]);
    rc =
        import_stream_exact(stream, sizes, 4 * (size_t)magic[3], "header", err);
    if (rc != ERR_OK)
        return rc;
    field->ndim = magic[3] - 1;
    for (int i = 0; i < magic[3]; i++) {
        const unsigned char *at = sizes + (ptrdiff_t)4 * i;
        const int64_t size =
            (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];

        if (i == 0)
            out->rows = size;
        else
            field->dims[i - 1] = size;
    }
    out->swapped = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    return ERR_OK;
}
