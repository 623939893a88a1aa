/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* In each round every process counts one file. So processes wait for each other
 * no longer than the largest file of a round takes. */
#include "import/share.h"

#include <stddef.h>

err_code_t import_share_count(const import_share_t *share, int files,
                              import_count_t *count, void *context,
                              err_code_t rc, int64_t *out, err_t *err)
{
    const int part = share == NULL ? 0 : share->part;
    const int parts = share == NULL ? 1 : share->parts;

    for (int first = 0; first < files; first += parts) {
        const int round = files - first < parts ? files - first : parts;
        int64_t mine = 0;

        if (rc == ERR_OK && part < round)
            rc = count(context, first + part, &mine, err);
        if (share != NULL)
            rc = share->gather(share->context, mine, rc,
                               rc == ERR_OK ? out + first : NULL, round, err);
        else if (rc == ERR_OK)
            out[first] = mine;
        if (rc != ERR_OK)
            return rc;
    }
    return rc;
}
