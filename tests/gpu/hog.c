/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Usage: hog BYTES. Takes all free memory of GPU 0 except BYTES, prints how
 * much is left, and keeps the memory until the standard input ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dev/dev.h"

int main(int argc, char **argv)
{
    const size_t kept = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    size_t left = 0, total = 0;
    dev_device_t *dev = NULL;
    void *block = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = dev_open("cuda", 0, &dev, &err);

    if (rc == ERR_OK)
        rc = dev_room(dev, &left, &total, &err);
    if (rc == ERR_OK && left > kept)
        rc = dev_alloc(dev, left - kept, "the hog", &block, &err);
    if (rc == ERR_OK)
        rc = dev_room(dev, &left, &total, &err);
    if (rc == ERR_OK) {
        printf("left %zu of %zu\n", left, total);
        fflush(stdout);
        while (getchar() != EOF)
            ;
    } else {
        fprintf(stderr, "hog: %s\n", err.text);
    }
    if (block != NULL)
        dev_free(dev, block);
    dev_close(dev);
    return rc == ERR_OK ? 0 : 1;
}
