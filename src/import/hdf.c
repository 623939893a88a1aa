/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/hdf.h"

/* IEEE half precision, which HDF5 has no name for before version 1.14.4. */
static hid_t half_type(bool native)
{
    hid_t type = H5Tcopy(native ? H5T_NATIVE_FLOAT : H5T_IEEE_F32LE);

    if (type >= 0 && H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 &&
        H5Tset_size(type, 2) >= 0 && H5Tset_ebias(type, 15) >= 0)
        return type;
    if (type >= 0)
        H5Tclose(type);
    return H5I_INVALID_HID;
}

hid_t import_hdf_type(import_type_t type, bool native)
{
    const hid_t stored[IMPORT_TYPES] = {
        [IMPORT_INT8] = H5T_STD_I8LE,      [IMPORT_UINT8] = H5T_STD_U8LE,
        [IMPORT_INT16] = H5T_STD_I16LE,    [IMPORT_UINT16] = H5T_STD_U16LE,
        [IMPORT_INT32] = H5T_STD_I32LE,    [IMPORT_UINT32] = H5T_STD_U32LE,
        [IMPORT_INT64] = H5T_STD_I64LE,    [IMPORT_UINT64] = H5T_STD_U64LE,
        [IMPORT_FLOAT32] = H5T_IEEE_F32LE, [IMPORT_FLOAT64] = H5T_IEEE_F64LE,
    };
    const hid_t memory[IMPORT_TYPES] = {
        [IMPORT_INT8] = H5T_NATIVE_INT8,
        [IMPORT_UINT8] = H5T_NATIVE_UINT8,
        [IMPORT_INT16] = H5T_NATIVE_INT16,
        [IMPORT_UINT16] = H5T_NATIVE_UINT16,
        [IMPORT_INT32] = H5T_NATIVE_INT32,
        [IMPORT_UINT32] = H5T_NATIVE_UINT32,
        [IMPORT_INT64] = H5T_NATIVE_INT64,
        [IMPORT_UINT64] = H5T_NATIVE_UINT64,
        [IMPORT_FLOAT32] = H5T_NATIVE_FLOAT,
        [IMPORT_FLOAT64] = H5T_NATIVE_DOUBLE,
    };

    if (type == IMPORT_FLOAT16)
        return half_type(native);
    return H5Tcopy(native ? memory[type] : stored[type]);
}
