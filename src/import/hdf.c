/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/hdf.h"

#include <string.h>

#include "base/mem.h"
#include "hdf5io/h5.h"

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

hid_t import_hdf_type(const import_field_t *field, bool native)
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

    if (field->type == IMPORT_STORED)
        return H5Tcopy(field->stored);
    if (field->type == IMPORT_FLOAT16)
        return half_type(native);
    return H5Tcopy(native ? memory[field->type] : stored[field->type]);
}

/* Create the attribute and write [all], whose texts have [width] bytes each. */
static bool names_write(hid_t object, const char *name, hsize_t count,
                        size_t width, const char *all)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    const hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t attribute = H5I_INVALID_HID;
    bool good = type >= 0 && space >= 0 && H5Tset_size(type, width) >= 0 &&
                H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
                H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0;

    if (good)
        attribute =
            H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    good = attribute >= 0 && H5Awrite(attribute, type, all) >= 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return good;
}

err_code_t import_hdf_names(hid_t object, const char *name, char *const *texts,
                            int count, err_t *err)
{
    size_t width = 1;
    char *all = NULL;
    err_code_t rc;

    for (int i = 0; i < count; i++)
        width = strlen(texts[i]) > width ? strlen(texts[i]) : width;
    rc = mem_new(char, (size_t)count *width, "names", &all, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < count; i++)
        memcpy(all + (size_t)i * width, texts[i], strlen(texts[i]));
    if (!names_write(object, name, (hsize_t)count, width, all))
        rc = h5_err_set(err, ERR_IO, "cannot write attribute %s", name);
    mem_free(all);
    return rc;
}
