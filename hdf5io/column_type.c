/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/column_type.h"

#include "hdf5io/h5.h"

/* Is [type] a standard number type? If so, *out says how it is stored. */
static bool column_type_standard(hid_t type, convert_type_t *out)
{
    const struct {
        convert_kind_t kind;
        hid_t little, big;
    } rows[] = {
        {CONVERT_I8, H5T_STD_I8LE, H5T_STD_I8BE},
        {CONVERT_U8, H5T_STD_U8LE, H5T_STD_U8BE},
        {CONVERT_I16, H5T_STD_I16LE, H5T_STD_I16BE},
        {CONVERT_U16, H5T_STD_U16LE, H5T_STD_U16BE},
        {CONVERT_I32, H5T_STD_I32LE, H5T_STD_I32BE},
        {CONVERT_U32, H5T_STD_U32LE, H5T_STD_U32BE},
        {CONVERT_I64, H5T_STD_I64LE, H5T_STD_I64BE},
        {CONVERT_U64, H5T_STD_U64LE, H5T_STD_U64BE},
        {CONVERT_F32, H5T_IEEE_F32LE, H5T_IEEE_F32BE},
        {CONVERT_F64, H5T_IEEE_F64LE, H5T_IEEE_F64BE},
    };
    bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool little = H5Tequal(type, rows[i].little) > 0;

        if (!little && H5Tequal(type, rows[i].big) <= 0)
            continue;
        out->kind = rows[i].kind;
        out->swap = little == host_big;
        return true;
    }
    return false;
}

/* Is [type] a 16-bit float with [exponent] bits of exponent, as a type of IEEE
 * 754 stores it? */
static bool column_type_layout(hid_t type, size_t exponent)
{
    const size_t mantissa = 15 - exponent;
    size_t sign, high, high_bits, low, low_bits;

    return H5Tget_fields(type, &sign, &high, &high_bits, &low, &low_bits) >=
               0 &&
           sign == 15 && high == mantissa && high_bits == exponent &&
           low == 0 && low_bits == mantissa &&
           H5Tget_ebias(type) == ((size_t)1 << (exponent - 1)) - 1;
}

/* Is [type] binary16 or bfloat16? HDF5 has no names for them before 1.14.4, but
 * h5py and others describe them. */
static bool column_type_half(hid_t type, convert_type_t *out)
{
    const bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    H5T_order_t order;

    if (H5Tget_class(type) != H5T_FLOAT || H5Tget_size(type) != 2 ||
        H5Tget_precision(type) != 16 || H5Tget_offset(type) != 0 ||
        H5Tget_norm(type) != H5T_NORM_IMPLIED)
        return false;
    order = H5Tget_order(type);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE)
        return false;
    if (column_type_layout(type, 5))
        out->kind = CONVERT_F16;
    else if (column_type_layout(type, 8))
        out->kind = CONVERT_BF16;
    else
        return false;
    out->swap = (order == H5T_ORDER_BE) != host_big;
    return true;
}

/* Other number types (24-bit floats, 12 bits of a camera) are converted by HDF5
 * to the native type that holds them. False: not a number type. */
static bool column_type_other(hid_t type, hdf5io_column_t *out)
{
    H5T_class_t class = H5Tget_class(type);
    bool is_signed = class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;

    out->type.swap = false;
    if (class == H5T_INTEGER) {
        out->type.kind = is_signed ? CONVERT_I64 : CONVERT_U64;
        out->memory = H5Tcopy(is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64);
    } else if (class == H5T_FLOAT && H5Tget_size(type) <= sizeof(float)) {
        out->type.kind = CONVERT_F32;
        out->memory = H5Tcopy(H5T_NATIVE_FLOAT);
    } else if (class == H5T_FLOAT) {
        out->type.kind = CONVERT_F64;
        out->memory = H5Tcopy(H5T_NATIVE_DOUBLE);
    } else {
        return false;
    }
    return true;
}

err_code_t hdf5io_column_type_find(hdf5io_column_t *out, bool *standard,
                                   err_t *err)
{
    err_code_t rc = ERR_OK;
    hid_t type = H5Dget_type(out->dataset), base;

    if (type < 0)
        return h5_err_set(err, ERR_DATA, "%s: the type of %s is unreadable",
                          out->file, out->path);
    base = H5Tget_class(type) == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type);
    *standard = column_type_standard(base, &out->type) ||
                column_type_half(base, &out->type);
    if (*standard)
        out->memory = H5Tcopy(type);
    else if (!column_type_other(base, out))
        rc = err_set(err, ERR_DATA,
                     "%s: %s holds no numbers (text, compound or other): "
                     "expected an integer or float type",
                     out->file, out->path);
    H5Tclose(base);
    H5Tclose(type);
    return rc;
}
