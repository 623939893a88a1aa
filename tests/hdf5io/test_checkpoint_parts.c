/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Tensors that are divided into parts on the ranks: written by their owners,
 * shown as a whole, and read by any number of ranks, with any parts or whole.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ckpt_parts.h"

static void parts_check(void)
{
    static const ckpt_deal_t deals[] = {{0, -1, false},
                                        {400, -1, false},
                                        {37, -1, false},
                                        {8, -1, false},
                                        {50, 1, false}};
    const int count = sizeof deals / sizeof deals[0];

    for (int w = 0; w < count; w++) {
        char *home = ckpt_home_make();

        ckpt_parts_save(home, 1 + w, 11, deals[w]);
        for (int r = 0; r < count; r++)
            for (int size = 2; size <= 4; size++)
                ckpt_parts_expect(home, size, 11, deals[r]);
        ckpt_home_remove(home);
    }
}

Test(checkpoint_parts, come_back_in_other_parts_on_other_ranks)
{
    parts_check();
    ckpt_together = true;
    parts_check();
}

static int64_t elems_of(const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    return elems;
}

/* Read checkpoint.h5 with plain HDF5 calls and compare it with [want]. */
static void view_expect(const char *home, const ckpt_state_t *want, int i)
{
    const hdf5io_tensor_t *tensor = &want->tensors[i];
    char *path = str_printf("%s/step-%010d/checkpoint.h5", home, 11);
    size_t bytes = (size_t)elems_of(tensor) * sizeof(float);
    float *have = malloc(bytes);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, tensor->name, H5P_DEFAULT);

    cr_assert_geq(dataset, 0, "%s", path);
    cr_assert_geq(
        H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, have),
        0);
    cr_expect_arr_eq(have, tensor->data, bytes, "%s", tensor->name);
    H5Dclose(dataset);
    H5Fclose(file);
    free(have);
    free(path);
}

Test(checkpoint_parts, are_shown_whole)
{
    char *home = ckpt_home_make();
    ckpt_state_t want;

    ckpt_parts_save(home, 3, 11, (ckpt_deal_t){.turn = 7, .skip = -1});
    ckpt_state_make(&want, 11);
    view_expect(home, &want, 5);
    view_expect(home, &want, 6);
    view_expect(home, &want, 7);
    ckpt_state_free(&want);
    ckpt_home_remove(home);
}
