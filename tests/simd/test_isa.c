/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Which instructions may be used. Each test is its own process, because the
 * result of the first call is kept. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "simd/isa.h"

Test(isa, tiles_that_the_machine_hides_are_left_alone)
{
    unsetenv("ONEDNN_MAX_CPU_ISA");
    unsetenv("DNNL_MAX_CPU_ISA");
    cr_expect(!(simd_hides_tiles() && simd_has_amx()));
    cr_expect(simd_has_bf16() || !simd_has_amx());
}

Test(isa, what_the_environment_asks_for_counts_more)
{
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    cr_expect_not(simd_has_bf16());
    cr_expect_not(simd_has_amx());
}

Test(isa, it_stays_as_it_was_first_found)
{
    const unsigned found = simd_isa();

    setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
    cr_expect_eq(simd_isa(), found);
}
