/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "config.h"

#include "dev/dev_plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_id.h"

#define INSTALLED PKGLIBDIR "/libcddp_cuda.so"

static const char *plugin_path(void)
{
    const char *path = getenv("CDDP_CUDA_PLUGIN");

    return path != NULL && path[0] != '\0' ? path : INSTALLED;
}

/* Without a driver the installed plugin is not loaded, so that a run on the CPU
 * does not pay for it. One that CDDP_CUDA_PLUGIN names may need none. */
static err_code_t driver_check(const char *path, err_t *err)
{
    void *driver;

    if (strcmp(path, INSTALLED) != 0)
        return ERR_OK;
    driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (driver == NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "there is no NVIDIA driver on this machine: %s",
                       dlerror());
    dlclose(driver);
    return ERR_OK;
}

/* ---- the file ------------------------------------------------------------ */

static bool read_at(int file, void *out, size_t bytes, off_t at)
{
    return pread(file, out, bytes, at) == (ssize_t)bytes;
}

/* Is [file] of [bytes] bytes a complete shared object? dlopen would crash on
 * one whose end is missing, since it maps pages that the file does not have. */
static bool elf_complete(int file, off_t bytes)
{
    ElfW(Ehdr) head;

    if (!read_at(file, &head, sizeof head, 0) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_DYN ||
        head.e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    for (int i = 0; i < head.e_phnum; i++) {
        const off_t at = (off_t)(head.e_phoff + (size_t)i * head.e_phentsize);
        ElfW(Phdr) part;

        if (!read_at(file, &part, sizeof part, at) ||
            part.p_offset > (size_t)bytes ||
            part.p_filesz > (size_t)bytes - part.p_offset)
            return false;
    }
    return head.e_phnum > 0;
}

static err_code_t path_fails(const char *path, int number, err_t *err)
{
    if (number == ENOENT || number == ENOTDIR)
        return err_set(
            err, ERR_UNAVAILABLE, "there is no CUDA plugin %s (%s)", path,
            CUDA_ARCHS[0] == '\0' ? "CUDA in this build: " CUDA_SUMMARY
                                  : "this build has one: install "
                                    "it, or name it by "
                                    "CDDP_CUDA_PLUGIN");
    return err_set(err, ERR_UNAVAILABLE, "the CUDA plugin %s: %s", path,
                   strerror(number));
}

static err_code_t file_check(int file, const char *path, err_t *err)
{
    struct stat status;

    if (fstat(file, &status) != 0)
        return path_fails(path, errno, err);
    if (S_ISDIR(status.st_mode))
        return err_set(err, ERR_UNAVAILABLE,
                       "the CUDA plugin %s is a directory; CDDP_CUDA_PLUGIN "
                       "names a file",
                       path);
    if (!S_ISREG(status.st_mode) || !elf_complete(file, status.st_size))
        return err_set(err, ERR_UNAVAILABLE,
                       "the CUDA plugin %s is no complete shared library (of "
                       "%lld bytes); install it again",
                       path, (long long)status.st_size);
    return ERR_OK;
}

static err_code_t path_check(const char *path, err_t *err)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    err_code_t rc;

    if (file < 0)
        return path_fails(path, errno, err);
    rc = file_check(file, path, err);
    close(file);
    return rc;
}

/* ---- the library --------------------------------------------------------- */

/* The loader's [text] begins with the file that fails and a colon; a library
 * that was not found is named without a folder. */
static err_code_t open_fails(const char *path, const char *text, err_t *err)
{
    const int name = (int)strcspn(text, ":/");

    if (text[name] == ':' && strstr(text, "cannot open shared object") != NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "the CUDA plugin %s needs %.*s, which was not found: "
                       "install it, or add its folder to LD_LIBRARY_PATH",
                       path, name, text);
    return err_set(err, ERR_UNAVAILABLE,
                   "the CUDA plugin %s cannot be loaded: %s", path, text);
}

static err_code_t constant_check(const cddp_cuda_t *cuda, const char *path,
                                 err_t *err)
{
    if (cuda == NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s is no CUDA plugin of cddp: it has no symbol "
                       "cddp_cuda",
                       path);
    if (cuda->interface != CDDP_CUDA_INTERFACE)
        return err_set(err, ERR_UNAVAILABLE,
                       "the CUDA plugin %s belongs to another version of cddp "
                       "(interface %d, not %d)",
                       path, cuda->interface, CDDP_CUDA_INTERFACE);
    if (strcmp(cuda->build_id, BUILD_ID) != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "the CUDA plugin %s belongs to another build of cddp "
                       "(%s, not %s): install both together",
                       path, cuda->build_id, BUILD_ID);
    return ERR_OK;
}

/* RTLD_NODELETE keeps the library in memory when it is closed, since CUDA's
 * cannot be removed from a process. So nothing has to remember it. */
err_code_t dev_plugin_get(const cddp_cuda_t **out, err_t *err)
{
    const char *path = plugin_path();
    const cddp_cuda_t *cuda;
    char *whole = NULL; /* dlopen looks for a name without a slash elsewhere */
    void *library;
    err_code_t rc = path_check(path, err);

    if (rc == ERR_OK)
        rc = driver_check(path, err);
    if (rc == ERR_OK && (whole = realpath(path, NULL)) == NULL)
        rc = path_fails(path, errno, err);
    if (rc != ERR_OK)
        return rc;
    library = dlopen(whole, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    free(whole);
    if (library == NULL)
        return open_fails(path, dlerror(), err);
    cuda = dlsym(library, "cddp_cuda");
    rc = constant_check(cuda, path, err);
    if (rc == ERR_OK)
        *out = cuda;
    dlclose(library);
    return rc;
}
