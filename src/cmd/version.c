/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "config.h"

#include "cmd/version.h"

#include <hdf5.h>
#include <hwloc.h>
#include <jansson.h>
#include <link.h>
#include <oneapi/dnnl/dnnl.h>
#include <pmix.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <xxhash.h>
#include <yaml.h>

#include "base/str.h"
#include "build_id.h"
#include "dev/dev.h"
#include "dev/dev_plugin.h"
#include "hdf5io/filter.h"
#include "hdf5io/h5mpi.h"
#include "obs/tb_event.h"
#include "simd/isa.h"

#define GPUS_MAX 32 /* that are listed */

/* ---- libraries ----------------------------------------------------------- */

typedef struct library {
    const char *stem; /* "libhdf5": the name of the file begins with it */
    char path[512];   /* where it was loaded from; "": not found */
} library_t;

static int library_is(struct dl_phdr_info *info, size_t bytes, void *context)
{
    library_t *library = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash == NULL ? info->dlpi_name : slash + 1;
    const size_t length = strlen(library->stem);

    (void)bytes;
    if (strncmp(name, library->stem, length) != 0 ||
        strchr(".-_", name[length]) == NULL || strstr(name, "_hl.") != NULL ||
        strstr(name, "_hl-") != NULL)
        return 0;
    snprintf(library->path, sizeof library->path, "%s", info->dlpi_name);
    return 1;
}

/* The version of a library, and the file that was loaded. */
static void library_print(const char *name, const char *stem,
                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void library_print(const char *name, const char *stem,
                          const char *format, ...)
{
    library_t library = {.stem = stem};
    char version[128];
    va_list args;

    va_start(args, format);
    vsnprintf(version, sizeof version, format, args);
    va_end(args);
    (void)dl_iterate_phdr(library_is, &library);
    printf("%-7s %s%s%s\n", name, version, library.path[0] != '\0' ? "  " : "",
           library.path);
}

/* The version of NCCL, or why there is none. */
static void nccl_print(void)
{
    const cddp_cuda_t *plugin;
    int version = 0;
    err_t err = ERR_INIT;

    if (dev_plugin_get(&plugin, NULL) != ERR_OK || plugin->nccl_version == NULL)
        return;
    if (plugin->nccl_version(&version, &err) == ERR_OK)
        printf("nccl    %d.%d.%d\n", version / 10000, version / 100 % 100,
               version % 100);
    else
        printf("nccl    none: %s; without it one rank trains on a GPU, and "
               "several with ddp.backend: ucx\n",
               err.text);
}

/* One line for each GPU, or one that says why there is none. */
static void gpus_print(void)
{
    dev_info_t seen[GPUS_MAX];
    int count = 0;
    err_t err = ERR_INIT;

    if (dev_list("cuda", seen, GPUS_MAX, &count, &err) != ERR_OK) {
        printf("gpus    none: %s\n", err.text);
        return;
    }
    for (int i = 0; i < count && i < GPUS_MAX; i++) {
        const dev_info_t *gpu = &seen[i];

        printf("gpu %-3d %s, %s, %.1f GiB, %s, driver %s%s%s\n", gpu->index,
               gpu->name, gpu->uuid, (double)gpu->bytes / (1 << 30), gpu->arch,
               gpu->driver, gpu->lacks[0] != '\0' ? "; not usable: " : "",
               gpu->lacks);
    }
    nccl_print();
}

const char *cmd_version_build(void)
{
    return BUILD_ID;
}

void cmd_version_print(const char *command)
{
    const dnnl_version_t *dnnl = dnnl_version();
    unsigned major, minor, release;

    printf("%s %s (build %s)\n", command, PACKAGE_VERSION, BUILD_ID);
    printf(
        "features: launchers pmix, threads, spawn, solo; groups ucx, nccl (by "
        "the CUDA plugin), threads, self; ops cpu, ref; parallel HDF5 %s; "
        "TensorBoard files %s\n",
        h5mpi_built() ? "yes" : "no", obs_tb_built() ? "yes" : "no");
    H5get_libversion(&major, &minor, &release);
    library_print("hdf5", "libhdf5", "%u.%u.%u", major, minor, release);
    ucp_get_version(&major, &minor, &release);
    library_print("ucx", "libucp", "%u.%u.%u", major, minor, release);
    library_print("onednn", "libdnnl", "%d.%d.%d", dnnl->major, dnnl->minor,
                  dnnl->patch);
    library_print("pmix", "libpmix", "%s", PMIx_Get_version());
    library_print("libyaml", "libyaml", "%s", yaml_get_version_string());
    library_print("jansson", "libjansson", "%s", jansson_version_str());
    library_print("xxhash", "libxxhash", "%u", XXH_versionNumber());
    library_print("hwloc", "libhwloc", "%u.%u (API)",
                  hwloc_get_api_version() >> 16,
                  hwloc_get_api_version() >> 8 & 0xff);
    printf("chunks  gzip by %s, shuffle, fletcher32, lzf%s%s are decoded "
           "without HDF5\n",
           hdf5io_filter_inflater(), hdf5io_filter_zstd_built() ? ", zstd" : "",
           hdf5io_filter_blosc_built() ? ", blosc" : "");
    printf("dygraphs %s\n", DYGRAPHS_SUMMARY);
    printf("gnuplot %s\n", GNUPLOT_SUMMARY);
    printf("cuda    %s\n", CUDA_SUMMARY);
    gpus_print();
}

/* Copy the CPU's "model name" in /proc/cpuinfo to [out] of [room] bytes. */
static void cpu_model(char *out, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];

    snprintf(out, room, "unknown CPU");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');

        if (value == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, room, "%s", value + 2);
        break;
    }
    if (file != NULL)
        fclose(file);
}

/* Name of the instruction set that oneDNN uses on this CPU; ONEDNN_MAX_CPU_ISA
 * can restrict it. */
static const char *instruction_set(char *text, size_t room)
{
    static const struct {
        unsigned isa;
        const char *name;
    } names[] = {{dnnl_cpu_isa_sse41, "SSE4.1"},
                 {dnnl_cpu_isa_avx, "AVX"},
                 {dnnl_cpu_isa_avx2, "AVX2"},
                 {dnnl_cpu_isa_avx512_core, "AVX-512"},
                 {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 VNNI"},
                 {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 BF16"}};
    const unsigned isa = simd_isa();

    if (isa == dnnl_cpu_isa_avx512_core_bf16 && simd_hides_tiles())
        return "AVX-512 BF16 (AMX is left alone: its tiles are hidden here)";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].isa == isa)
            return names[i].name;
    snprintf(text, room, "instruction set %#x", isa);
    return text;
}

char *cmd_version_line(void)
{
    const dnnl_version_t *dnnl = dnnl_version();
    unsigned major, minor, release;
    char cpu[200], isa[40];

    ucp_get_version(&major, &minor, &release);
    cpu_model(cpu, sizeof cpu);
    return str_printf("oneDNN %d.%d.%d, UCX %u.%u.%u, %s, %s", dnnl->major,
                      dnnl->minor, dnnl->patch, major, minor, release, cpu,
                      instruction_set(isa, sizeof isa));
}
