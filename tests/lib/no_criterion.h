/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Included before every test if configure found no Criterion. */
#error make check needs Criterion: install libcriterion-dev (Debian, Ubuntu) or criterion (Spack) and run configure again
