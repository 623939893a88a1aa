/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A checkpoint opens in python3-h5py by name, also after it was moved, and each
 * tensor has the shape and the bits that were written. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "ckpt_fixture.h"

#define PYTHON "/usr/bin/python3"

static int64_t elems_of(const hdf5io_tensor_t *tensor)
{
    int64_t elems = 1;

    for (int d = 0; d < tensor->ndim; d++)
        elems *= tensor->dims[d];
    return elems;
}

/* Write the expected bits as raw floats to home/NUMBER.f32, with a list of
 * names. */
static void expectation_write(const char *home, const ckpt_state_t *state)
{
    str_buf_t list = {0};
    char *path;

    for (int i = 0; i < state->count; i++) {
        const hdf5io_tensor_t *t = &state->tensors[i];

        path = str_printf("%s/%d.f32", home, i);
        cr_assert_eq(file_publish(path, t->data,
                                  (size_t)elems_of(t) * sizeof(float), NULL),
                     ERR_OK);
        free(path);
        str_buf_add(&list, "%s", t->name);
        for (int d = 0; d < t->ndim; d++)
            str_buf_add(&list, " %lld", (long long)t->dims[d]);
        str_buf_add(&list, "\n");
    }
    path = str_printf("%s/list", home);
    cr_assert_eq(file_publish(path, list.text, list.length, NULL), ERR_OK);
    free(path);
    str_buf_free(&list);
}

Test(checkpoint_h5py, every_tensor_reads_whole_by_name)
{
    const char *source = getenv("srcdir");
    char *home, *from, *to, *command;
    ckpt_state_t state;

    if (system(PYTHON " -c 'import h5py' 2>/dev/null") != 0)
        cr_skip_test("python3-h5py is not installed (Debian: python3-h5py)");
    home = ckpt_home_make();
    from = str_printf("%s/step-0000000042", home);
    to = str_printf("%s/moved", home);
    ckpt_state_make(&state, 42);
    expectation_write(home, &state);
    for (int n = 0; n < 8; n++) {
        /* From n = 5 on, the ranks write one shard together. */
        const int size = n < 5 ? n + 1 : n - 3;

        ckpt_ranks_free(
            ckpt_ranks_run(home, size, 42,
                           n < 5 ? ckpt_body_write : ckpt_body_write_together,
                           NULL),
            size);
        cr_assert_eq(rename(from, to), 0);
        command = str_printf(PYTHON " %s/tests/hdf5io/h5py_read.py %s %s",
                             source == NULL ? "." : source, home, to);
        cr_assert_eq(system(command), 0, "%s", command);
        free(command);
        cr_assert_eq(file_remove_tree(to, NULL), ERR_OK);
    }
    ckpt_state_free(&state);
    free(to);
    free(from);
    ckpt_home_remove(home);
}
