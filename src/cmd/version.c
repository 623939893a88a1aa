/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "config.h"

#include "cmd/version.h"

#include <hdf5.h>
#include <jansson.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <ucp/api/ucp.h>
#include <xxhash.h>
#include <yaml.h>
#ifdef HAVE_PMIX
#include <pmix.h>
#endif

#include "build_id.h"
#include "hdf5io/h5mpi.h"

static const char *pmix_version(void)
{
#ifdef HAVE_PMIX
    return PMIx_Get_version();
#else
    return "not built in";
#endif
}

void cmd_version_print(const char *command)
{
    const dnnl_version_t *dnnl = dnnl_version();
    unsigned major, minor, release;

    printf("%s %s (build %s)\n", command, PACKAGE_VERSION, BUILD_ID);
    printf("features: launchers pmix, threads, solo; groups ucx, threads, "
           "self; ops cpu, ref; parallel HDF5 %s; gpu no\n",
           h5mpi_built() ? "yes" : "no");
    H5get_libversion(&major, &minor, &release);
    printf("hdf5    %u.%u.%u\n", major, minor, release);
    ucp_get_version(&major, &minor, &release);
    printf("ucx     %u.%u.%u\n", major, minor, release);
    printf("onednn  %d.%d.%d\n", dnnl->major, dnnl->minor, dnnl->patch);
    printf("pmix    %s\n", pmix_version());
    printf("libyaml %s\n", yaml_get_version_string());
    printf("jansson %s\n", jansson_version_str());
    printf("xxhash  %u\n", XXH_versionNumber());
}
