/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Includes all headers of libcddp. Flags: `pkg-config --cflags --libs cddp`. */
#ifndef CDDP_CDDP_H
#define CDDP_CDDP_H

#include <cddp/checkpoint.h>
#include <cddp/data.h>
#include <cddp/ddp.h>
#include <cddp/device.h>
#include <cddp/error.h>
#include <cddp/group.h>
#include <cddp/hook.h>
#include <cddp/log.h>
#include <cddp/model.h>
#include <cddp/version.h>

#endif
